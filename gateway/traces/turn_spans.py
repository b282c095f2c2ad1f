"""The parts of a turn as spans: the turn, its stages, its tools, and the calls of hooks.

All spans but the calls of hooks are derived from the journal's records, so tracing costs a turn nothing: a stage lasts
from one record to the next, by the journal's own clock. A span's id is derived from its subject. So each can name its
parent, whichever of the two comes first, and a turn that goes on in another process stays one trace. If several nodes
share the journal, each sends the turns that it runs.

Spans hold no text of people: names, numbers, ids, and how the turn ended.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.engine.interface import Record
from gateway.hooks.stats import HookCall
from gateway.messages.steps import turn_of
from gateway.messages.transcript import Usage
from gateway.records import subjects
from gateway.records.own_turns import OwnTurns

MOST_OPEN = 10_000  # beginnings whose end is waited for; a turn that asks a person may take for ever
WELL = ("ok", "ended", "denied", "interrupted", "command")  # how turns end that did not fail


class Span(NamedTuple):
    """A span. `turn` and `parent` are the spans around it, `of` is its subject; times are in seconds since 1970."""

    name: str
    turn: str
    of: str
    parent: str
    begun: float
    ended: float
    attributes: Mapping[str, Any]
    error: str = ""  # of what kind


class PlaceFact(msgspec.Struct, frozen=True):
    platform: str = ""


class MessageFact(msgspec.Struct, frozen=True):
    """The fields of a message or a reply."""

    id: str = ""
    address: PlaceFact = PlaceFact()


class EntryFact(msgspec.Struct, frozen=True):
    error: bool = False


class AnswerFact(msgspec.Struct, frozen=True):
    """The answer that ended a turn."""

    stop: str = ""
    usage: Usage | None = None


class TurnFact(msgspec.Struct, frozen=True):
    """The fields of a record that matter here."""

    kind: str
    session_key: str = ""
    message: MessageFact | None = None
    turn_id: str = ""
    by: str = ""
    attempt: int = 1
    hop: int = 0
    name: str = ""
    call_id: str = ""
    entry: EntryFact | None = None
    usage: Usage = Usage()
    stop: str = ""
    status: str = "ok"
    reply: MessageFact | None = None
    reply_id: str = ""
    last: bool = True
    permanent: bool = True
    attempts: int = 1
    answer: AnswerFact | None = None


class OpenSpan(NamedTuple):
    """A span that has begun."""

    begun: float
    turn: str = ""
    name: str = ""
    session: str = ""
    platform: str = ""


_decode = msgspec.json.Decoder(TurnFact).decode


class TurnSpans:
    """The spans that have begun. `find_provider` returns the provider of a model, by its name."""

    def __init__(self, find_provider: Callable[[str], str], node: str = "") -> None:
        self._own = OwnTurns(node)
        self._find_provider = find_provider
        self._open: dict[tuple[str, str], OpenSpan] = {}  # by kind, and what it is of

    def note(self, record: Record) -> Iterator[Span]:
        """Yield the spans that end with this record."""
        try:
            fact = _decode(record.data)
        except msgspec.DecodeError:
            return  # from a later version; its reader reports it
        reply_id = fact.reply.id if fact.reply else fact.reply_id
        chain = subjects.token_of_subject(record.subject)
        is_ours = self._own.has(chain, fact.kind, fact.by, reply_id)
        yield from (span for span in self._note(fact, chain, record) if is_ours)

    def _note(self, fact: TurnFact, chain: str, record: Record) -> Iterator[Span]:
        at = record.ts
        self._note_beginning(chain, fact, at)
        match fact.kind:
            case "claim":
                yield from self._begin_turn(chain, fact, at)
            case "llm":
                yield from self._end_model(fact, at)
            case "tool_finished":
                yield from self._end_tool(fact, at)
            case "done":
                yield from self._end_turn(chain, fact, at)
            case "sent" | "failed" if fact.last and fact.permanent:
                yield from self._end_send(fact.reply_id, fact, at)
            case "out" if fact.reply and subjects.is_sent(record.subject):
                yield from self._end_send(fact.reply.id, fact, at)

    def note_call(self, call: HookCall) -> Span:
        """Return the span of a hook's call. A call outside of turns is a trace of its own."""
        fields, trace = call.fields, call.trace
        turn_id = str(fields.get("turn_id") or "")
        of = f"{fields.get('id')}/{call.hook}/{trace.at}"
        about = {"hook": call.hook, "event": call.event, "outcome": trace.outcome}
        about |= {key: str(fields[key]) for key in ("call_id", "platform") if fields.get(key)}
        about |= _ids_of(str(fields.get("session_key") or ""), turn_id)
        error = trace.outcome if trace.error else ""
        begun = trace.at - trace.seconds
        return Span(f"hook {call.hook}", turn_of(turn_id) or of, of, turn_id, begun, trace.at, about, error)

    def _note_beginning(self, chain: str, fact: TurnFact, at: float) -> None:
        match fact.kind:
            case "in" if fact.message and ("wait", chain) not in self._open:
                platform = fact.message.address.platform
                self._begin("wait", chain, OpenSpan(at, session=fact.session_key, platform=platform))
            case "tool_started":
                called = f"{fact.turn_id}/{fact.call_id}"
                self._begin("tool", called, OpenSpan(at, fact.turn_id, fact.name))
                self._begin("model", called, OpenSpan(at))  # of the agent that it may be
            case "asked":
                self._begin("answer", fact.turn_id, OpenSpan(at))
            case "out" if fact.reply and fact.turn_id:
                self._begin("send", fact.reply.id, OpenSpan(at, fact.turn_id, platform=fact.reply.address.platform))

    def _begin_turn(self, chain: str, fact: TurnFact, at: float) -> Iterator[Span]:
        waited = self._open.pop(("wait", chain), OpenSpan(at))
        if answered := self._open.pop(("answer", fact.turn_id), None):
            yield self._part_of(fact.turn_id, "wait for an answer", answered.begun, at, {})
        elif ("turn", fact.turn_id) not in self._open:
            begun = OpenSpan(waited.begun, fact.turn_id, "", waited.session, waited.platform)
            self._begin("turn", fact.turn_id, begun)
            yield self._part_of(fact.turn_id, "wait", waited.begun, at, {"attempt": fact.attempt})
        self._begin("model", fact.turn_id, OpenSpan(at))

    def _end_model(self, fact: TurnFact, at: float) -> Iterator[Span]:
        model, usage = fact.usage.model, fact.usage
        about: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._find_provider(model),
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": [fact.stop] if fact.stop else [],
            **_tokens_of(usage),
        }
        begun = self._open.pop(("model", fact.turn_id), OpenSpan(at)).begun
        yield self._part_of(fact.turn_id, f"chat {model}".strip(), begun, at, about)

    def _end_tool(self, fact: TurnFact, at: float) -> Iterator[Span]:
        called = f"{fact.turn_id}/{fact.call_id}"
        self._open.pop(("model", called), None)
        self._begin("model", fact.turn_id, OpenSpan(at))
        if not (begun := self._open.pop(("tool", called), None)):
            return
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": begun.name,
            "gen_ai.tool.call.id": fact.call_id,
            **_ids_of("", fact.turn_id),
        }
        error = "tool" if fact.entry and fact.entry.error else ""
        turn = turn_of(fact.turn_id)
        yield Span(f"execute_tool {begun.name}", turn, called, fact.turn_id, begun.begun, at, about, error)

    def _end_turn(self, chain: str, fact: TurnFact, at: float) -> Iterator[Span]:
        self._open.pop(("wait", chain), None)
        if fact.answer:
            yield from self._end_model(replace(fact, usage=fact.answer.usage or fact.usage, stop=fact.answer.stop), at)
        self._open.pop(("model", fact.turn_id), None)
        self._open.pop(("answer", fact.turn_id), None)
        if not (begun := self._open.pop(("turn", fact.turn_id), None)):
            return
        about: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": begun.session,
            "platform": begun.platform,
            "status": fact.status,
            "calls": fact.usage.calls,
            **_tokens_of(fact.usage),
            **_ids_of(begun.session, fact.turn_id),
        }
        error = "" if fact.status in WELL else fact.status
        yield Span("invoke_agent", fact.turn_id, fact.turn_id, "", begun.begun, at, about, error)

    def _end_send(self, reply_id: str, fact: TurnFact, at: float) -> Iterator[Span]:
        if begun := self._open.pop(("send", reply_id), None):
            about = {"platform": begun.platform, "attempts": fact.attempts}
            error = "send" if fact.kind == "failed" else ""
            yield self._part_of(begun.turn, f"send {begun.platform}", begun.begun, at, about, error)

    def _part_of(
        self, turn_id: str, name: str, begun: float, ended: float, about: Mapping[str, Any], error: str = ""
    ) -> Span:
        """Return the span of a stage of a turn, or of an agent that it called."""
        about = {**{key: value for key, value in about.items() if value != ""}, **_ids_of("", turn_id)}
        of = f"{turn_id}/{name}/{ended}"
        return Span(name, turn_of(turn_id), of, turn_id, min(begun, ended), ended, about, error)

    def _begin(self, kind: str, of: str, begun: OpenSpan) -> None:
        self._open[kind, of] = begun
        if len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]


def _tokens_of(usage: Usage) -> dict[str, int]:
    return {"gen_ai.usage.input_tokens": usage.input_tokens, "gen_ai.usage.output_tokens": usage.output_tokens}


def _ids_of(session: str, turn_id: str) -> dict[str, str]:
    """Return the ids as the lines of the log have them."""
    return {key: value for key, value in (("session", session), ("turn", turn_of(turn_id))) if value}
