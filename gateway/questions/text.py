"""The text of a question: our own words, with everything that others wrote as literal text between them.

A person who approves must have seen what runs: tool and arguments are complete, and so is a hook's question. A network
shows each literal text as a code block, in which nothing is active, and invisible characters by their codes.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.agent.tool_approval import ask_for_approval
from gateway.agent.toolbox.shell import ASK_OUTSIDE
from gateway.events import AskedCall, Question
from gateway.logs.signs import code_of, show_signs
from gateway.messages.message import LiteralText

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
APPROVAL_END = "Yes or no? A button answers, or /approve and /deny."
TYPED_APPROVAL_END = "Yes or no? Write it, or /approve and /deny."
LASTING = "For this session and Always allow every call of this tool"
TYPED_LASTING = "For this session is written /approve session, and Always /approve always."
QUESTION_END = "A button answers, or a text."
TYPED_QUESTION_END = "Write your answer."


def show_question(question: Question, *, can_last: bool, has_buttons: bool) -> tuple[LiteralText, ...]:
    """Return the texts of a question for a person who may see all of it; `can_last`: their approval may last longer."""
    words = [*show_calls(question.prompt, question.calls)]
    if can_last and [[question.pattern]] == [list(call.args.values()) for call in question.calls]:
        words.append(LiteralText(f"{LASTING} with the same arguments."))
    elif can_last and question.pattern:
        words.append(LiteralText(f"{LASTING} with this, whatever else it says:", show_signs(question.pattern)))
    elif can_last:
        words.append(LiteralText(f"{LASTING}, whatever it says."))
    if can_last and not has_buttons:
        words.append(LiteralText(TYPED_LASTING))
    return (*words, LiteralText(describe_end(is_approval=question.is_approval, has_buttons=has_buttons)))


def describe_end(*, is_approval: bool, has_buttons: bool) -> str:
    """Describe how to answer there."""
    if has_buttons:
        return APPROVAL_END if is_approval else QUESTION_END
    return TYPED_APPROVAL_END if is_approval else TYPED_QUESTION_END


def show_calls(prompt: str, calls: Sequence[AskedCall]) -> Iterator[LiteralText]:
    """Yield the question, and the calls that an approval allows, complete."""
    if len(calls) == 1 and PLAIN_NAME.fullmatch(calls[0].tool) and prompt in prompts_of_tool(calls[0].tool):
        yield LiteralText(prompt)
        yield from show_call(calls[0])
        return
    if not calls:
        yield LiteralText("A question:", show_signs(prompt))
        return
    yield LiteralText("A question before a tool runs:", show_signs(prompt))
    for number, call in enumerate(calls, 1):
        count = f"Call {number} of {len(calls)}, of the tool" if len(calls) > 1 else "The tool"
        yield LiteralText(f"{count}:", show_signs(call.tool))
        yield from show_call(call)


def prompts_of_tool(tool: str) -> tuple[str, ...]:
    """Return the prompts of our own tools; everyone else's words are literal text."""
    return ask_for_approval(tool), ask_for_approval(tool, again=True), ASK_OUTSIDE


def show_call(call: AskedCall) -> Iterator[LiteralText]:
    """Yield the arguments one by one, or all as JSON if a name is unusual and could pass for more."""
    if not call.args:
        yield LiteralText("It has no arguments.")
    elif not all(PLAIN_NAME.fullmatch(name) for name in call.args):
        yield LiteralText("Arguments (JSON):", show_signs(json.dumps(call.args, ensure_ascii=False)))
    else:
        yield from (show_argument(name, value) for name, value in call.args.items())
    if call.changed_by:
        yield LiteralText("Made of the agent's call by the hook:", show_signs(", ".join(call.changed_by)))


def show_argument(name: str, value: Any) -> LiteralText:
    """Return a text argument unchanged, any other as JSON."""
    if value == "":
        return LiteralText(f"{name}: (empty)")
    if isinstance(value, str):
        return LiteralText(f"{name}:", show_signs(value))
    return LiteralText(f"{name} (JSON):", show_signs(json.dumps(value, ensure_ascii=False)))


def to_code_line(text: str) -> str:
    """Return a text for one line of Markdown, without markup."""
    shown = show_signs(text).replace("\n", code_of("\n"))
    ticks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in (shown[:1], shown[-1:]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def to_markdown(literals: Sequence[LiteralText]) -> str:
    """Convert to Markdown, for networks without literal text; no text can end its own code block."""
    blocks = []
    for one in literals:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", one.text)), default=0))
        blocks.append(f"{one.words}\n{fence}\n{one.text}\n{fence}" if one.text else one.words)
    return "\n".join(blocks)
