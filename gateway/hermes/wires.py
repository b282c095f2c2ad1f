"""The wires to Hermes's shell hooks and outbound webhooks: the shape of their events and of their answers.

A shell hook is a one-shot program that reads `{hook_event_name, tool_name, tool_input, session_id, cwd, extra}`. A
webhook gets the same with a delivery id and a time, and a signature over the whole body.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.errors import AgentError
from gateway.events import Bags, Event, Pause, outcome_to_dict
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, TELEMETRY_SCHEMA, HermesHook
from gateway.hooks.remote import Remote
from gateway.hooks.services import MatchPattern
from gateway.hooks.wires.field_encoding import to_plain
from gateway.hooks.wires.oneshot_answer import BLOCKING_EXIT, MAX_SHOWN
from gateway.hooks.wires.process_handle import describe_exit
from gateway.hooks.wires.wire import Disconnection, HookAnswer, HookFailed
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.protocol import CallMeta

SIGNATURE = "X-Hermes-Signature-256"

_WORDS = re.compile(r"\w+(?:\|\w+)*")  # one|another
# Messages of interpreters and argument parsers that exit with the blocking code before the script runs.
_NOT_BEGUN = re.compile(r"usage: |\S*python[\d.]*: can't open file |\S+: \d+: cannot open ")
TOOL_HOOKS = frozenset({"pre_tool_call", "post_tool_call"})
_TOP_LEVEL_FIELDS = frozenset({"tool_name", "args", "session_id", "parent_session_id", "gateway", "session_store"})
_encode = msgspec.json.Encoder().encode
_decode_object = JsonDecoder[dict[str, Any]](dict[str, Any]).decode


async def build_payload(
    row: HermesHook, event: Event, matcher: str, cwd: str, match: MatchPattern | None
) -> dict[str, Any] | None:
    """Build the object for the hook; None if the event is not meant for it."""
    kwargs = row.build_arguments(event)
    if kwargs is None:
        return None
    if row.name in TOOL_HOOKS:
        names = str(kwargs.get("tool_name")), str(event.get("tool"))
        if not await matches_tool(matcher, *names, match):
            return None
    args = kwargs.get("args")
    extra, _ = to_plain({name: value for name, value in kwargs.items() if name not in _TOP_LEVEL_FIELDS})
    return {
        "hook_event_name": row.name,
        "tool_name": kwargs.get("tool_name"),
        "tool_input": args if isinstance(args, dict) else None,
        "session_id": kwargs.get("session_id") or kwargs.get("parent_session_id") or "",
        "cwd": cwd,
        "extra": {**extra, "telemetry_schema_version": TELEMETRY_SCHEMA},
    }


async def matches_tool(matcher: str, theirs: str, ours: str, match: MatchPattern | None) -> bool:
    """Tell if a matcher means this tool, by Hermes's name, or by ours if it contains that word itself.

    `match` tries a pattern that is more than words, outside the caller's loop; with None, it is tried here.
    Raises:
        HookFailed: it cannot be tried.
    """
    names_ours = re.search(rf"\b{re.escape(ours)}\b", matcher) is not None
    names = (theirs, *((ours,) if names_ours else ()))
    if not matcher or _WORDS.fullmatch(matcher):
        return not matcher or not set(matcher.split("|")).isdisjoint(names)
    if match is None:
        return any(re.fullmatch(matcher, name) for name in names)
    try:
        return await match(matcher, names)
    except AgentError as error:
        raise HookFailed(str(error), kind="timeout") from None


class ShellHookFormat:
    """The format of a one-shot program of Hermes.

    `stands` returns the present content hash, which must be the trusted one.
    """

    def __init__(
        self, name: str, hook: str, matcher: str, trusted: str, stands: Callable[[], str], match: MatchPattern | None
    ) -> None:
        self._match = match
        self._name = name
        self._row = HERMES_HOOKS.get(hook)
        self._matcher = matcher
        self._trusted = trusted
        self._stands = stands

    async def build_input(
        self, name: str, fields: Mapping[str, Any], folder: str, answers: Mapping[str, Any]
    ) -> bytes | None:
        """Build the program's input. Raises HookFailed if the program was edited since it was trusted."""
        if self._row is None:
            return None
        said = await build_payload(self._row, _make_event(name, fields, answers), self._matcher, folder, self._match)
        if said is not None and self._stands() != self._trusted:
            remedy = f"read it, then run: hermes-gateway hooks trust {self._name}"
            raise HookFailed(f"it was edited since it was trusted; {remedy}", kind="untrusted")
        return None if said is None else _encode(said)

    def read_answer(
        self, name: str, fields: Mapping[str, Any], meta: CallMeta, ended: tuple[int, bytes, str]
    ) -> HookAnswer:
        """Read the answer from the program's end. Raises HookFailed if it failed without an answer."""
        code, stdout, stderr = ended
        said = _parse_object(stdout)
        blocks = code == BLOCKING_EXIT and not _NOT_BEGUN.match(stderr)
        if said is None and code != 0 and not blocks:
            raise HookFailed(
                f"{describe_exit(code)}: {stderr.strip()[-MAX_SHOWN:] or 'nothing on stderr'}", kind="died"
            )
        answers: Sequence[Any] = () if said is None else (said,)
        if blocks and "block" not in (said or {}).values():
            answers = ({"action": "block", "message": stderr.strip()[:MAX_SHOWN] or "blocked by a shell hook"},)
        if self._row is None or self._row.apply_results is None or not meta.decides or not answers:
            return HookAnswer()
        event = _make_event(name, fields, meta.answers or {})
        try:
            outcome = self._row.apply_results(event, answers, set())
        except Pause as pause:
            return HookAnswer(ask=pause.questions[0])
        changed = {field: value for field, value in event.items() if value is not fields.get(field)}
        return HookAnswer(result=outcome_to_dict(outcome), changed=changed)


class OutboundWebhook:
    """The wire to a URL that gets events.

    The content of its answer is not read; only success counts.
    """

    def __init__(
        self, remote: Remote, hooks: Sequence[str], matcher: str, key: bytes | None, match: MatchPattern | None
    ) -> None:
        self._match = match
        self._remote = remote
        self._rows = [HERMES_HOOKS[name] for name in hooks]
        self._matcher = matcher
        self._key = key

    @property
    def gone(self) -> Disconnection:
        return self._remote.gone

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        decoded = msgspec.json.decode(fields) if isinstance(fields, bytes) else fields
        event = _make_event(name, decoded, meta.answers or {})
        key = (event.get("delivery") or {}).get("key") or event.get("id") or ""
        for row in self._rows:
            is_meant = any(name == one or (one.endswith(":*") and name.startswith(one[:-1])) for one in row.events)
            if is_meant and (said := await build_payload(row, event, self._matcher, "", self._match)) is not None:
                head = {"delivery_id": f"{key}:{row.name}", "timestamp": event.get("time")}
                body = _encode({**head, "event": row.name, **said})
                await self._remote.post(body, make_signature_header(self._key, body), timeout)
        return HookAnswer()

    async def stop(self, grace: float) -> None:
        await self._remote.stop(grace)


def make_signature_header(key: bytes | None, body: bytes) -> dict[str, str]:
    """Make the header that proves the author of this body."""
    return {} if key is None else {SIGNATURE: f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"}


def _make_event(name: str, fields: Mapping[str, Any], answers: Mapping[str, Any]) -> Event:
    return Event(name, fields, None, Bags(answers=answers))


def _parse_object(stdout: bytes) -> dict[str, Any] | None:
    try:
        return _decode_object(stdout)
    except ValueError:
        return None
