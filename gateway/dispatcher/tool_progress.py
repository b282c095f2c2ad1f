"""What the tools of a turn do, as one line behind its answer while that grows: which, how often, and what with.

The line is a part of the answer that is shown while it grows, and goes where more is written or the answer is whole. So
it is edited as that is, at the network's pace, is shown where an answer can be, and a crash leaves none behind.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from gateway.config.platform_settings import ProgressDisplay
from gateway.logs.redaction import REPLACEMENT
from gateway.logs.text import to_one_line
from gateway.messages.message import Reply
from gateway.messages.steps import Step, ToolFinished, ToolStarted
from gateway.outbox.stream_writer import StreamWriter

SIGN, GOING_ON = "🔧", " …"
MOST_NAMES = 4  # tools that are named, the last ones
LONGEST_NAME = 40
LONGEST_ARGS = 80  # characters that are shown of what a tool is given
MOST_CLEANED = 4000  # characters that are looked through for secrets: what is shown is a beginning of the rest

_SECRET_NAMES = re.compile(r"(?i)token|secret|passw|passphrase|key|auth|credential|cookie|signature")


class ToolProgress:
    """Follows the steps of one turn. `show` is given the line whenever it is another."""

    def __init__(self, progress: ProgressDisplay, redact: Callable[[str], str], show: Callable[[str], None]) -> None:
        self._progress = progress
        self._redact = redact
        self._show = show
        self._counts: dict[str, int] = {}  # by name, the tool that began last at the end
        self._running: set[str] = set()
        self._args = ""

    def note(self, step: Step) -> None:
        """Show what this step, which stands in the journal, has changed."""
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
        """The line, as Markdown in which nothing that a model wrote acts."""
        names = list(self._counts)
        shown = [f"`{to_code(name, LONGEST_NAME)}`{describe_count(self._counts[name])}" for name in names[-MOST_NAMES:]]
        others = sum(self._counts[name] for name in names[:-MOST_NAMES])
        words = ", ".join([*([f"{others} more"] if others else []), *shown])
        args = f": `{self._args}`" if self._args else ""
        return f"{SIGN} {words}{args}{GOING_ON if self._running else ''}"

    def _describe_args(self, args: Mapping[str, Any]) -> str:
        """What the tool is given, without secrets: of those that have a name it says so, whatever they are."""
        told = {name: REPLACEMENT if _SECRET_NAMES.search(name) else value for name, value in args.items()}
        if len(told) == 1:
            said = str(next(iter(told.values())))[:MOST_CLEANED]
        else:
            said = ", ".join(f"{name}={str(value)[:MOST_CLEANED]}" for name, value in told.items())[:MOST_CLEANED]
        return to_code(self._redact(said), LONGEST_ARGS)


class ShownAnswer:
    """The answer as the chat sees it while it grows: what is written, and behind it the line of the tools.

    `show` is told as which reply something of it may stand there. With a `line` that is a message of its own.
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
        """Show the next text as this reply."""
        await self._stream.rest()
        self._stream, self._text = self._open_stream(reply), ""

    async def add(self, text: str, *, anew: bool = False) -> None:
        """Go on with this text, or begin `anew` with it; the line goes where there is more to read."""
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
        """Nothing has come for a while."""
        for one in self._list_streams():
            await one.repeat()

    async def rest(self) -> None:
        """Nothing more is written."""
        for one in self._list_streams():
            await one.rest()

    def _list_streams(self) -> list[StreamWriter]:
        return [self._stream, *([self._line_stream] if self._line_stream else [])]

    async def _add(self, stream: StreamWriter, text: str, *, anew: bool) -> None:
        self._show(stream.reply)  # from here on it may stand in the chat
        await stream.add(text, anew=anew)


def to_code(text: str, limit: int) -> str:
    """For a code span, in one line: none of it ends the span or the line."""
    words = " ".join(text.replace("`", "'").split())
    return to_one_line(words if len(words) <= limit else f"{words[: limit - 1]}…", limit)


def describe_count(count: int) -> str:
    return f" \u00d7{count}" if count > 1 else ""
