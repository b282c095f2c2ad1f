"""The calls of a hook for an event, over its wire: the answer of an interceptor counts, an observer's does not."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.events import Deny, Event, is_yes
from gateway.events.catalogue import get_event_spec
from gateway.hooks.hook import Remark
from gateway.hooks.outcome_collector import describe_refused_field
from gateway.hooks.wires.codec import RpcMessage
from gateway.hooks.wires.field_encoding import check_changes, encode_event, to_plain
from gateway.hooks.wires.wire import BagDelta, HookAnswer, HookFailed, Wire
from gateway.messages.transcript import SUMMARY_KEY
from gateway.worker.protocol import CallMeta, describe_session


def ignore(_remark: str) -> None:
    """Drop a remark."""


class CallTerms(msgspec.Struct, frozen=True):
    """The terms of a call: within `timeout` seconds, to the function `target`, without the fields `left_out`.

    `remark` gets the parts of the answer that have no effect.
    """

    timeout: float
    remark: Remark = ignore
    left_out: frozenset[str] = frozenset()
    target: str = ""


async def intercept(wire: Wire, event: Event, terms: CallTerms) -> Any:
    """Call a hook and return its answer as plain data; apply the hook's changes to the event.

    Raises:
        HookFailed: the hook could not answer.
        Pause: the hook asks the person a question first.
    """
    fields, fixed = encode_event(event.name, event, terms.left_out)
    known = event.bags.answers
    writable = frozenset(event) if event.writable is None else event.writable
    meta = _build_meta(
        event,
        terms.target,
        decides=True,
        writable=None if event.writable is None and not fixed else tuple(writable - fixed),
        answers=None if known is None else dict(known),
    )
    while True:
        answer = await wire.call(event.name, fields, meta, terms.timeout)
        asked = answer.ask
        if asked is None:
            break
        answers = meta.answers or {}
        if asked.name in answers:  # a program that always asks: the known answer decides
            return None if is_yes(answers[asked.name]) else Deny(f"Not allowed: {asked.prompt}")
        given = event.ask(asked.prompt, asked.name)
        meta = msgspec.structs.replace(meta, answers={**answers, asked.name: given})
    _apply_bags(event, answer)
    changed = {field: value for field, value in answer.changed.items() if field not in fixed}
    if wrong := check_changes(event.name, changed) or check_changes(event.name, _changes_of(answer.result)):
        raise HookFailed(wrong, kind="garbled")
    event.update(changed)
    if answer.refused:
        terms.remark(describe_refused_field(event.name, *sorted(answer.refused), writable=event.writable or ()))
    return answer.result


def _changes_of(result: Any) -> Mapping[str, Any]:
    """Return the fields that a result changes. A decision (ours or Hermes's) changes no field."""
    is_change = isinstance(result, Mapping) and not {"decision", "action"} & result.keys()
    return result if is_change else {}


async def observe(wire: Wire, event: Event, terms: CallTerms) -> None:
    """Notify a hook; decisions and changes in its answer have no effect.

    Raises HookFailed if the hook could not be reached, or failed.
    """
    fields, _ = encode_event(event.name, event, terms.left_out)
    answer = await wire.call(event.name, fields, _build_meta(event, terms.target), terms.timeout)
    _apply_bags(event, answer)
    report_answer(answer, event.name, event, terms.remark)


def report_answer(answer: HookAnswer | RpcMessage, name: str, fields: Mapping[str, Any], remark: Remark) -> None:
    if said := _describe_vain_answer(answer, fields):
        remark(f"{said} at {name}, which it only observes{_suggest_intercepting(name)}")


def _describe_vain_answer(answer: HookAnswer | RpcMessage, event: Mapping[str, Any]) -> str:
    """Describe a decision or a change by an observer; any other answer may have a meaning of its own."""
    if answer.ask is not None:
        return "asked"
    result = answer.result if isinstance(answer.result, Mapping) else {}
    if "decision" in result:
        return f"answered {str(result['decision']).capitalize()}"
    fields = [*answer.refused, *(field for field in result if field in event)]
    return f"changed {', '.join(map(repr, dict.fromkeys(fields)))}" if fields else ""


def _suggest_intercepting(name: str) -> str:
    known = get_event_spec(name)
    can_decide = known is None or known.writable or known.outcomes
    return f"; for that, name {name} under `intercepts`" if can_decide else ""


def _build_meta(event: Event, target: str, **more: Any) -> CallMeta:
    return CallMeta(
        event=str(event.get("id", "")),
        target=target,
        turn=str(event.get("turn_id") or ""),
        turn_bag=_json_part_of(event.turn),
        session_bag=_json_part_of(event.session),
        # within a conversation the environment is not consulted, as in Hermes
        session=describe_session(event) if event.get("session_key") else {},
        **more,
    )


def _json_part_of(bag: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a bag that another process can read; in-process hooks may keep live objects in a bag."""
    if not bag:
        return {}
    sent, odd = to_plain(bag)
    return {key: value for key, value in sent.items() if key not in odd}


def _apply_bags(event: Event, answer: HookAnswer) -> None:
    if answer.turn_bag:
        answer.turn_bag.apply_to(event.turn)
    if answer.session_bag:
        changes = answer.session_bag
        if isinstance(changes.put.get(SUMMARY_KEY), dict):  # only the gateway writes a summary: a model obeys its words
            changes = BagDelta({name: one for name, one in changes.put.items() if name != SUMMARY_KEY}, changes.gone)
        changes.apply_to(event.session)
