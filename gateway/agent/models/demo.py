"""The demo model: no language model at all, but one that shows every part of the gateway without a key or a network.

It is deterministic: the same words give the same answer. It reads the person's last message, wants the matching tools,
and reports their results; without a match it says so, and how to connect a real model.
"""

import random
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import anyio
import msgspec

from gateway.agent.model import WORDS, Chunk, ModelRequest
from gateway.messages.transcript import Entry, ToolCall, Usage

CONNECT_HINT = "`hermes-gateway setup model` where I run (`./x setup model` in a checkout) connects a real one."
SUM_PATTERN = re.compile(  # numbers and the signs between them are short, so that no text is scanned repeatedly
    r"[-+(]{0,9}\d[\d\s.()]{0,40}+(?:[-+*/%^\u00d7\u00f7]{1,3}+[\s(+-]{0,9}+\d[\d\s.()]{0,40}+)+"
)
ASK_PATTERN = re.compile(
    r"\b(?:ask|delegate)\b.{0,200}?\b(?:helper|agent)\b[\s:,]*(?:to\s+)?(.*)", re.IGNORECASE | re.DOTALL
)
REMEMBER = re.compile(r"\bremember\b(?: that)?\s+(.+)", re.IGNORECASE | re.DOTALL)
RECALL = re.compile(r"\bdo you remember\b|\brecall\b", re.IGNORECASE)
COUNT = re.compile(r"\bcount\b(?: slowly)?(?: to)?\s*(\d{1,9})?", re.IGNORECASE)
TOOL_PATTERNS = (
    ("time", re.compile(r"\b(what|current|tell)\b.{0,200}\b(time|date|day)\b", re.IGNORECASE)),
    ("recall", RECALL),
    ("list_hooks", re.compile(r"\bhooks?\b", re.IGNORECASE)),
    ("load_skill", re.compile(r"\bskills?\b", re.IGNORECASE)),
    ("fail_on_purpose", re.compile(r"\bfail\b", re.IGNORECASE)),
)
EXAMPLES = (
    "what time is it",
    "what is 12 * (3 + 4)",
    "remember that my bicycle is green",
    "what do you remember",
    "which hooks are running",
    "read a skill",
    "ask the helper to introduce itself",
    "count to 20 slowly (and /stop me)",
    "fail on purpose",
)
GREETINGS = ("Hello!", "Hi there!", "Good to see you!")


class DemoModel(msgspec.Struct, frozen=True):
    """Streams word by word, `delay` seconds apart."""

    delay: float = 0.03
    seed: int = 0

    @property
    def name(self) -> str:
        return "demo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the answer, a word at a time; tool calls and usage come with the last chunk."""
        calls = tuple(self._wanted(request))
        text = "" if calls else self._reply(request)
        for word in WORDS.findall(text):
            yield Chunk(word)
            if self.delay > 0:
                await anyio.sleep(self.delay)
        spent = sum(len(entry.content) for entry in request.messages) + len(request.system)
        usage = Usage(spent // 4, max(len(text) // 4, 1))
        yield Chunk(tool_calls=calls, usage=usage, stop="tool_calls" if calls else "stop")

    def _wanted(self, request: ModelRequest) -> Iterator[ToolCall]:
        """Yield the tools that the person's words ask for, once: after their results comes the answer."""
        words, results = _find_last_exchange(request.messages)
        if results or not words:
            return
        offered = {spec.name: spec for spec in request.tools}
        for number, (name, args) in enumerate(_find_intents(words)):
            if name not in offered:
                continue
            if key := {"delegate": "agent", "load_skill": "skill"}.get(name):
                args = {key: offered[name].schema["properties"][key]["enum"][0], **args}
            yield ToolCall(f"demo_{len(request.messages)}_{number}", name, args)

    def _reply(self, request: ModelRequest) -> str:
        words, results = _find_last_exchange(request.messages)
        if results:
            return "\n".join(_describe_result(entry) for entry in results)
        words = words.lower()
        if re.search(r"\b(hi|hello|hey|good (morning|evening|day))\b", words):
            greeting = random.Random(f"{self.seed}:{words}").choice(GREETINGS)  # noqa: S311 - variety, not secrecy
            return f"{greeting} {self._about()}"
        if re.search(r"\b(help|what can you do|who are you)\b", words):
            return f"{self._about()}\n\nYou can try:\n" + "\n".join(f"- {example}" for example in EXAMPLES)
        if "introduce" in words:
            return "I am a sub-agent of the demo: another agent gave me this task, and gets my answer."
        return f"{self._about()} I do not know what to do with that; `help` lists what I can do."

    def _about(self) -> str:
        return f"I am the demo model, which only follows a few fixed phrases. {CONNECT_HINT}"


def _find_last_exchange(messages: Sequence[Entry]) -> tuple[str, list[Entry]]:
    """Return the person's last message, and the tool results since."""
    results: list[Entry] = []
    for entry in reversed(messages):
        if entry.role == "tool":
            results.insert(0, entry)
        elif entry.role == "user":
            return entry.content, results
    return "", results


def _find_intents(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tools that these words want. A text for another agent or for memory is not searched any further."""
    if found := ASK_PATTERN.search(text):
        yield "delegate", {"task": found[1].strip() or "Introduce yourself."}
    elif (found := REMEMBER.search(text)) and not RECALL.search(text):
        yield "remember", {"text": found[1].strip()[:2000]}
    elif found := COUNT.search(text):
        yield "count_slowly", {"to": min(int(found[1] or 10), 60)}
    else:
        yield from ((name, {}) for name, pattern in TOOL_PATTERNS if pattern.search(text))
        yield from (("calculate", {"expression": found[0].strip()}) for found in SUM_PATTERN.finditer(text))


def _describe_result(entry: Entry) -> str:
    if entry.error:
        return f"The tool `{entry.name}` did not do it: {entry.content}"
    sentences = {"time": "It is {}.", "calculate": "The result is {}."}
    before, _, after = sentences.get(entry.name, "{}").partition("{}")
    return f"{before}{entry.content}{after}"


MODEL = DemoModel
