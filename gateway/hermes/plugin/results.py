"""What the answers of a hook name's callbacks come to: changes of the event, a question to the person, an outcome.

An answer in a shape that the name does not know means nothing, as in Hermes; two things are stricter on purpose: a
`block` without a message blocks, and of several answers a block beats an approval.
"""

import hashlib
import os
from collections.abc import Iterator, MutableSet, Sequence
from pathlib import Path
from typing import Any

from gateway.events import YES_WORDS, Deny, End, Event, Retry
from gateway.files.folders import find_file_folder
from gateway.hermes.plugin.arguments import own_bag_of, shown_result_of
from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hermes.shim.tool_results import join_exit_code, split_exit_code

MAX_CONTEXT = 10_000  # characters of one piece of context; what is longer lies in a file, and its beginning stands here
MAX_SHOWN = 2_000
BLOCK_TEXT = "A plugin did not allow this call."
APPROVED_KEY = "approved by plugins"  # in the session's bag


def apply_args(event: Event, args: dict[str, Any]) -> None:
    """What a callback has changed in the very arguments that it was given: Hermes runs the tool with those."""
    event["args"] = HERMES_TOOLS.resolve_args(str(event.get("tool")), args)


def apply_request(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Middleware of the kind `tool_request`: the last arguments that were answered count."""
    said = [one["args"] for one in answers if isinstance(one, dict) and isinstance(one.get("args"), dict)]
    if said:
        apply_args(event, said[-1])


def apply_tool_decision(event: Event, answers: Sequence[Any], approved: MutableSet[str]) -> Any:
    """`pre_tool_call`."""
    said = [answer for answer in answers if isinstance(answer, dict)]
    if block := next((one for one in said if _action_of(one) in ("block", "deny")), None):
        return Deny(_text_of(block, "message", "reason") or BLOCK_TEXT)
    for one in said:
        if _action_of(one) == "modify" and isinstance(one.get("args"), dict):
            event["args"] = {**event["args"], **HERMES_TOOLS.resolve_args(str(event.get("tool")), one["args"])}
    if approval := next((one for one in said if _action_of(one) == "approve"), None):
        return _ask_person(event, approval, approved)
    return None


def _ask_person(event: Event, approval: dict[str, Any], approved: MutableSet[str]) -> Any:
    """A person decides, unless one has decided it for longer than once."""
    tool = event.get("tool")
    rule = str(approval.get("rule_key") or "").strip() or str(tool)
    if rule in approved or rule in event.session.get(APPROVED_KEY, ()):
        return None
    why = _text_of(approval, "message")
    answer = str(event.ask(f"May I run {tool}?" + (f" {why}" if why else ""), f"approve {rule}")).strip().lower()
    if answer == "always":
        approved.add(rule)
    elif answer == "session":
        event.session[APPROVED_KEY] = [*event.session.get(APPROVED_KEY, ()), rule]
    elif answer not in YES_WORDS:
        return Deny(f"The person did not allow {tool} to run.")
    return None


def apply_tool_result(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """`transform_tool_result`: an empty text counts too."""
    for text in _texts_of(answers, strict=True):
        shown = shown_result_of(event)
        if (left := shown.read(text)) != shown.text:
            event["result"] = left
        return


def apply_terminal_output(event: Event, answers: Sequence[Any], approved: MutableSet[str]) -> Any:  # noqa: ARG001
    """`transform_terminal_output`: how the command ended still stands below it."""
    _, code = split_exit_code(str(event["result"]))
    for text in _texts_of(answers, strict=True):
        event["result"] = join_exit_code(text, code)
        return


def apply_reply(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """`transform_llm_output`."""
    if text := next((text for text in _texts_of(answers) if text), ""):
        event["response_full"] = text


def apply_context(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """`pre_llm_call`."""
    pieces = [answer.get("context") if isinstance(answer, dict) else answer for answer in answers]
    texts = (str(piece) for piece in pieces if piece and not isinstance(piece, dict))
    found = [_shorten(text, event) for text in texts if text.strip()]
    if found:
        event["context"] = [*(event.get("context") or ()), *found]


def apply_verify(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """`pre_verify`: the first that wants more of the model."""
    asked = (answer for answer in answers if isinstance(answer, dict) and _action_of(answer) in ("continue", "block"))
    message = next(filter(None, (_text_of(answer, "message", "reason").strip() for answer in asked)), None)
    if message is None:
        return None
    own = own_bag_of(event)
    own["nudges"] = own.get("nudges", 0) + 1
    return Retry(message)


def apply_dispatch(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """`pre_gateway_dispatch`: the first that says something decides."""
    for answer in answers:
        word = _action_of(answer) if isinstance(answer, dict) else ""
        if word == "skip":
            return End("", str(answer.get("reason") or "skipped by a plugin"))
        if word == "rewrite" and isinstance(answer.get("text"), str):
            event["text"] = answer["text"]
            return None
        if word == "allow":
            return None
    return None


def apply_message_answer(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:  # noqa: ARG001
    """`post_gateway_admission`: the first that has handled the message."""
    for answer in answers:
        if isinstance(answer, dict) and answer.get("action") == "handled":
            return End(_text_of(answer, "reply").strip(), "handled by a plugin")
    return None


def _action_of(answer: dict[str, Any]) -> str:
    """The word itself, also where it is a member of an enumeration of texts, which `str` would call by its name."""
    word = answer.get("action") or answer.get("decision")
    return str.__str__(word).strip().lower() if isinstance(word, str) else ""


def _text_of(answer: dict[str, Any], *keys: str) -> str:
    return next((answer[key] for key in keys if isinstance(answer.get(key), str) and answer[key]), "")


def _texts_of(answers: Sequence[Any], strict: bool = False) -> Iterator[str]:
    """Those that are texts. `strict`: another one is a failure, since what it was to hide would pass."""
    for answer in answers:
        if isinstance(answer, str):
            yield answer
        elif strict:
            raise TypeError(f"it answered a {type(answer).__name__}, not a text; give back json.dumps(...)")


def _shorten(text: str, event: Event) -> str:
    """A text that the model can be shown at every call of the turn; the whole lies where the turn may read it."""
    if len(text) <= MAX_CONTEXT:
        return text
    home = os.environ.get("HERMES_HOME", ".")  # noqa: TID251 - in a worker this is what its hook declared
    at = {name: str(event.get(name) or "") for name in ("platform", "user_id", "chat_type", "chat_id", "thread_id")}
    folder = find_file_folder(Path(home) / "hermes-gateway" / "files", **at)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.txt"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return f"{text[:MAX_SHOWN]}\n[{len(text)} characters in all; the whole text is in {path}]"
