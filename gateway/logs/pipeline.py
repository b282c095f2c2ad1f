"""The way of a line out of the caller: it is caught in an instant and written by a thread of its own.

Logging can never stop the gateway: a full queue drops and counts, a sink that fails counts, a call with wrong arguments
is logged as it is. Secrets are removed, and foreign text is made harmless, before any sink sees a line.
"""

import logging
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TextIO

from gateway.errors import GatewayError
from gateway.logs.lines import (
    CONTEXT_KEYS,
    LineFormatter,
    LogLine,
    as_json,
    format_for_journald,
    format_for_pipe,
    format_for_terminal,
    log_context,
)
from gateway.logs.redaction import Redactor
from gateway.logs.sinks import Sink
from gateway.logs.text import BLOCK_LIMIT, to_one_line, to_text_block

MAX_QUEUED_LINES = 10_000
FLUSH_SECONDS = 2.0  # how long the last lines are waited for
FOREIGN_LIMIT = 4 * BLOCK_LIMIT  # readers see no more, so secrets are not searched any further
CUT_MARGIN = 8000

# They log whole addresses (with a token in them, or a chat's text) at INFO, every request or every change of a file.
NOISY_LOGGERS = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "openai", "asyncio", "watchfiles")

log = logging.getLogger(__name__)


def choose_formatter(stream: TextIO, form: str, environ: Mapping[str, str], *, colours: bool) -> LineFormatter:
    """Choose the format of lines on this stream: `text` or `json` on request, else by its reader."""
    if form != "auto":
        return as_json if form == "json" else format_for_pipe
    if _is_journald(stream, environ.get("JOURNAL_STREAM", "")):
        return format_for_journald
    return format_for_terminal if colours else format_for_pipe


def _is_journald(stream: TextIO, named: str) -> bool:
    """Return True if this is the stream that systemd connected to its journal; the variable outlives redirections."""
    if not named:
        return False
    found = os.fstat(stream.fileno())
    return named == f"{found.st_dev}:{found.st_ino}"


class LogPipeline:
    """The log of this process while it is entered; before and after, logging is as it was."""

    def __init__(
        self, redactor: Redactor, sinks: Sequence[Sink], level: str = "info", noisy: Iterable[str] = ()
    ) -> None:
        self.redactor = redactor
        self._sinks = tuple(sinks)
        self._intake = LogQueueHandler()
        self._thread = threading.Thread(target=self._carry, name="logs", daemon=True)
        self._level = level
        self._noisy = (*NOISY_LOGGERS, *noisy)

    @property
    def lost(self) -> int:
        """Counts the lines that could not be kept or written."""
        return self._intake.lost + sum(sink.lost for sink in self._sinks)

    def set_level(self, level: str) -> None:
        """Log our own lines from this level on, libraries from INFO on, and noisy ones from WARNING on."""
        ours = logging.getLevelNamesMapping()[level.upper()]
        logging.getLogger().setLevel(max(ours, logging.INFO))
        logging.getLogger("gateway").setLevel(ours)
        for name in self._noisy:
            logging.getLogger(name).setLevel(max(ours, logging.WARNING))

    def __enter__(self) -> Self:
        self._levels = {name: logging.getLogger(name).level for name in ("", "gateway", *self._noisy)}
        root = logging.getLogger()
        self._handlers, root.handlers[:] = root.handlers[:], [self._intake]
        self.set_level(self._level)
        logging.captureWarnings(capture=True)
        self._hooks = (sys.excepthook, threading.excepthook)
        sys.excepthook, threading.excepthook = _log_uncaught, _log_uncaught_in_thread
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.excepthook, threading.excepthook = self._hooks
        if isinstance(error, Exception) and not isinstance(error, GatewayError):
            log.critical("ended by an uncaught error", exc_info=error)
            sys.excepthook = _ignore_uncaught
        logging.captureWarnings(capture=False)
        logging.getLogger().handlers[:] = self._handlers
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._intake.end()
        self._thread.join(FLUSH_SECONDS)
        if self._thread.is_alive():
            self._intake.abandon()
            self._thread.join(FLUSH_SECONDS)
        if not self._thread.is_alive():
            for sink in self._sinks:
                sink.close()

    def _carry(self) -> None:
        reported = 0
        while (line := self._intake.waiting.get()) is not None:
            self._write(line)
            reported = self._report_loss(reported) if self._intake.waiting.empty() else reported
        self._report_loss(reported)

    def _report_loss(self, reported: int) -> int:
        lost = self._intake.lost
        if lost > reported:
            words = f"lines that were lost, since more was logged than could be written: {lost - reported}"
            self._write(LogLine(time.time(), "warning", __name__, words, {}))
        return lost

    def _write(self, line: LogLine) -> None:
        clean = self._cleaned(line)
        for sink in self._sinks:
            sink.write(clean)

    def _cleaned(self, line: LogLine) -> LogLine:
        message = to_one_line(self._redacted(line.message))
        context = {key: to_one_line(self._redacted(value), 200) for key, value in line.context.items()}
        exception = to_text_block(self._redacted(line.exception, from_end=True))
        return line._replace(
            message=message, logger=to_one_line(line.logger, 100), context=context, exception=exception
        )

    def _redacted(self, text: str, *, from_end: bool = False) -> str:
        """Return the text without secrets; of an endless text one end, without the margin that may cut a secret."""
        if len(text) <= FOREIGN_LIMIT:
            return self.redactor.clean(text)
        if from_end:
            return self.redactor.clean(text[-FOREIGN_LIMIT:])[CUT_MARGIN:]
        return self.redactor.clean(text[:FOREIGN_LIMIT])[:-CUT_MARGIN]


class LogQueueHandler(logging.Handler):
    """Catches records where they are logged; all that depends on the caller's moment is read there and then."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        self.waiting: queue.Queue[LogLine | None] = queue.Queue(MAX_QUEUED_LINES)

    def end(self) -> None:
        """Mark the end of the lines; if the queue is too full for that, `abandon` makes up for it."""
        with suppress(queue.Full):
            self.waiting.put_nowait(None)

    def abandon(self) -> None:
        """Give up the waiting lines, since the time to write them is over."""
        with suppress(queue.Empty):
            while True:
                self.lost += self.waiting.get_nowait() is not None
        self.end()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.waiting.put_nowait(_line_from(record))
        except queue.Full:
            self.lost += 1


def _line_from(record: logging.LogRecord) -> LogLine:
    context = dict(log_context.get())
    context |= {key: str(record.__dict__[key]) for key in CONTEXT_KEYS if key in record.__dict__}
    return LogLine(
        record.created, record.levelname.lower(), record.name, _message_of(record), context, _exception_of(record)
    )


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - the arguments are foreign, and their __str__ may do anything
        return f"{record.msg!r} (its arguments cannot be shown: {type(error).__name__})"


def _exception_of(record: logging.LogRecord) -> str:
    parts: list[str] = []
    if record.exc_info and record.exc_info[1] is not None:
        parts = traceback.format_exception(*record.exc_info)
    elif record.exc_text:
        parts = [record.exc_text]
    return "".join(parts) + (record.stack_info or "")


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("ended by an uncaught error", exc_info=(kind, error, trace))


def _ignore_uncaught(_kind: type[BaseException], _error: BaseException, _trace: TracebackType | None) -> None:
    """Ignore the error: the log has it, without secrets; Python would print it with all its values."""


def _log_uncaught_in_thread(args: Any) -> None:
    if args.exc_type is not SystemExit:
        name = args.thread.name if args.thread else "a thread"
        log.error("%s ended by an uncaught error", name, exc_info=(args.exc_type, args.exc_value, args.exc_traceback))
