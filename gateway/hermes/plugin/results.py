"""The effect of the answers of a hook name's callbacks: changed fields, a question to the person, or an outcome.

An answer in an unknown shape has no meaning, as in Hermes; two rules are stricter on purpose: a `block` without a
message blocks, and among several answers a block beats an approval.
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

MAX_CONTEXT = 10_000  # characters of one piece of context; a longer one is in a file, with its beginning here
MAX_SHOWN = 2_000
BLOCK_TEXT = "A plugin did not allow this call."
APPROVED_KEY = "approved by plugins"  # in the session's bag


def apply_args(event: Event, args: dict[str, Any]) -> None:
    """Apply a callback's changes to the very arguments that it got: Hermes runs the tool with those."""
    event["args"] = HERMES_TOOLS.resolve_args(str(event.get("tool")), args)


def apply_request(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Apply the answers of the middleware `tool_request`: the last arguments count."""
    said = [one["args"] for one in answers if isinstance(one, dict) and isinstance(one.get("args"), dict)]
    if said:
        apply_args(event, said[-1])


def apply_tool_decision(event: Event, answers: Sequence[Any], approved: MutableSet[str]) -> Any:
    """Apply the answers of `pre_tool_call`."""
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
    """Ask a person, unless one has approved the rule for longer than once."""
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
    """Apply the answers of `transform_tool_result`: an empty text counts too."""
    for text in _texts_of(answers, strict=True):
        shown = shown_result_of(event)
        if (left := shown.read(text)) != shown.text:
            event["result"] = left
        return


def apply_terminal_output(event: Event, answers: Sequence[Any], approved: MutableSet[str]) -> Any:  # noqa: ARG001
    """Apply the answers of `transform_terminal_output`: the exit code of the command stays below."""
    _, code = split_exit_code(str(event["result"]))
    for text in _texts_of(answers, strict=True):
        event["result"] = join_exit_code(text, code)
        return


def apply_reply(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Apply the answers of `transform_llm_output`."""
    if text := next((text for text in _texts_of(answers) if text), ""):
        event["response_full"] = text


def apply_context(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Apply the answers of `pre_llm_call`."""
    pieces = [answer.get("context") if isinstance(answer, dict) else answer for answer in answers]
    texts = (str(piece) for piece in pieces if piece and not isinstance(piece, dict))
    found = [_shorten(text, event) for text in texts if text.strip()]
    if found:
        event["context"] = [*(event.get("context") or ()), *found]


def apply_verify(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Apply the answers of `pre_verify`: the first that wants more of the model counts."""
    asked = (answer for answer in answers if isinstance(answer, dict) and _action_of(answer) in ("continue", "block"))
    message = next(filter(None, (_text_of(answer, "message", "reason").strip() for answer in asked)), None)
    if message is None:
        return None
    own = own_bag_of(event)
    own["nudges"] = own.get("nudges", 0) + 1
    return Retry(message)


def apply_dispatch(event: Event, answers: Sequence[Any], _: MutableSet[str]) -> Any:
    """Apply the answers of `pre_gateway_dispatch`: the first that decides counts."""
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
    """Apply the answers of `post_gateway_admission`: the first that has handled the message counts."""
    for answer in answers:
        if isinstance(answer, dict) and answer.get("action") == "handled":
            return End(_text_of(answer, "reply").strip(), "handled by a plugin")
    return None


def _action_of(answer: dict[str, Any]) -> str:
    """Return the action's word, also from an enumeration of texts, for which `str` would return the member's name."""
    word = answer.get("action") or answer.get("decision")
    return str.__str__(word).strip().lower() if isinstance(word, str) else ""


def _text_of(answer: dict[str, Any], *keys: str) -> str:
    return next((answer[key] for key in keys if isinstance(answer.get(key), str) and answer[key]), "")


def _texts_of(answers: Sequence[Any], strict: bool = False) -> Iterator[str]:
    """Yield the answers that are texts.

    `strict`: any other answer is a failure, since the text that it was to hide would pass.
    """
    for answer in answers:
        if isinstance(answer, str):
            yield answer
        elif strict:
            raise TypeError(f"it answered a {type(answer).__name__}, not a text; give back json.dumps(...)")


def _shorten(text: str, event: Event) -> str:
    """Shorten a text for the model, which gets it at every call of the turn; the whole is in a file for the turn."""
    if len(text) <= MAX_CONTEXT:
        return text
    home = os.environ.get("HERMES_HOME", ".")  # noqa: TID251 - in a worker this is what its hook declared
    at = {name: str(event.get(name) or "") for name in ("platform", "user_id", "chat_type", "chat_id", "thread_id")}
    folder = find_file_folder(Path(home) / "hermes-gateway" / "files", **at)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.txt"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return f"{text[:MAX_SHOWN]}\n[{len(text)} characters in all; the whole text is in {path}]"
