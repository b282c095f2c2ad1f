"""The line about a turn's tools, behind the growing answer: the names of the tools, their counts and arguments.

The line is a part of the growing answer, and disappears when more text follows or the answer is complete. The gateway
therefore edits the line at the network's rate, shows it only where an answer can be, and a crash leaves no line behind.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.config.platform_settings import ProgressDisplay
from gateway.logs.redaction import REPLACEMENT
from gateway.logs.text import to_one_line
from gateway.messages.message import Reply
from gateway.messages.steps import Step, ToolFinished, ToolStarted
from gateway.outbox.stream_writer import StreamWriter

SIGN, GOING_ON = "🔧", " …"
MOST_NAMES = 4  # the last tools, by name
LONGEST_NAME = 40
LONGEST_ARGS = 80  # characters of a tool's arguments
MOST_CLEANED = 4000  # characters that are searched for secrets: the line shows only a beginning of them

_SECRET_NAMES = re.compile(r"(?i)token|secret|passw|passphrase|key|auth|credential|cookie|signature")


class ToolProgress(msgspec.Struct, eq=False):
    """Follows the steps of one turn. `show` gets each new line."""

    _progress: ProgressDisplay
    _redact: Callable[[str], str]
    _show: Callable[[str], None]
    _counts: dict[str, int] = {}  # by name, the latest tool last
    _running: set[str] = set()
    _args: str = ""

    def note(self, step: Step) -> None:
        """Update the line for a recorded step."""
        match step if self._progress != "off" else None:
            case ToolStarted(call_id=call, name=name, args=args):
                self._counts[name] = self._counts.pop(name, 0) + 1
                self._running.add(call)
                self._args = self._describe_args(args) if self._progress == "all" else ""
                self._show(self.format())
            case ToolFinished(call_id=call) if call in self._running:
                self._running.discard(call)
                self._show(self.format())

    def format(self) -> str:
        """Return the line as Markdown, in which a model's text is literal."""
        names = list(self._counts)
        shown = [f"`{to_code(name, LONGEST_NAME)}`{describe_count(self._counts[name])}" for name in names[-MOST_NAMES:]]
        others = sum(self._counts[name] for name in names[:-MOST_NAMES])
        words = ", ".join([*([f"{others} more"] if others else []), *shown])
        args = f": `{self._args}`" if self._args else ""
        return f"{SIGN} {words}{args}{GOING_ON if self._running else ''}"

    def _describe_args(self, args: Mapping[str, Any]) -> str:
        """Describe the arguments without secrets: a name that suggests a secret hides its value."""
        told = {name: REPLACEMENT if _SECRET_NAMES.search(name) else value for name, value in args.items()}
        if len(told) == 1:
            said = str(next(iter(told.values())))[:MOST_CLEANED]
        else:
            said = ", ".join(f"{name}={str(value)[:MOST_CLEANED]}" for name, value in told.items())[:MOST_CLEANED]
        return to_code(self._redact(said), LONGEST_ARGS)


class ShownAnswer:
    """The answer that grows in the chat: the text, followed by the line of the tools.

    `show` gets each reply that the chat may display. If `line` is set, the line of the tools is a message of its own.
    """

    def __init__(
        self,
        open_stream: Callable[[Reply], StreamWriter],
        reply: Reply,
        show: Callable[[Reply], None],
        line: Reply | None = None,
    ) -> None:
        self._open_stream = open_stream
        self._stream = open_stream(reply)
        self._line_stream = open_stream(line) if line else None
        self._show = show
        self._text = self._line = ""

    async def begin_part(self, reply: Reply) -> None:
        """Finish the displayed part of the answer; show the text that follows as another message, `reply`."""
        await self._stream.rest()
        self._stream, self._text = self._open_stream(reply), ""

    async def add(self, text: str, *, anew: bool = False) -> None:
        """Append `text` to the display, or replace the displayed text (`anew`); more text removes the tools' line."""
        self._text = text if anew else self._text + text
        if self._line and not self._line_stream:
            self._line, anew = "", True
        await self._add(self._stream, self._text if anew else text, anew=anew)

    async def show_line(self, line: str) -> None:
        if line == self._line:
            return
        self._line = line
        if self._line_stream:
            await self._add(self._line_stream, line, anew=True)
        else:
            await self._add(self._stream, f"{self._text}\n\n{line}".lstrip(), anew=True)

    async def repeat(self) -> None:
        """Refresh the display after a pause."""
        for one in self._list_streams():
            await one.repeat()

    async def rest(self) -> None:
        """Finish the display, because the answer is complete."""
        for one in self._list_streams():
            await one.rest()

    def _list_streams(self) -> list[StreamWriter]:
        return [self._stream, *([self._line_stream] if self._line_stream else [])]

    async def _add(self, stream: StreamWriter, text: str, *, anew: bool) -> None:
        self._show(stream.reply)  # from here on, the chat may display this reply
        await stream.add(text, anew=anew)


def to_code(text: str, limit: int) -> str:
    """Return a text for a code span on one line; the text cannot end the span."""
    words = " ".join(text.replace("`", "'").split())
    return to_one_line(words if len(words) <= limit else f"{words[: limit - 1]}…", limit)


def describe_count(count: int) -> str:
    return f" \u00d7{count}" if count > 1 else ""
