"""A line of the log, and how it looks: as JSON in the file, in words on a terminal, with its weight in the journal."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

CONTEXT_KEYS = ("session", "turn", "hook", "platform")

log_context: ContextVar[Mapping[str, str]] = ContextVar("gateway_log_context", default=MappingProxyType({}))


@contextmanager
def bind_context(*, session: str = "", turn: str = "", hook: str = "", platform: str = "") -> Iterator[None]:
    """Add these to the lines that are written inside; empty ones stay as they were outside."""
    given = {"session": session, "turn": turn, "hook": hook, "platform": platform}
    mark = log_context.set({**log_context.get(), **{key: value for key, value in given.items() if value}})
    try:
        yield
    finally:
        log_context.reset(mark)


LEVELS = ("debug", "info", "warning", "error", "critical")

_COLOURS = {"debug": "2", "warning": "33", "error": "31", "critical": "1;31"}
_SYSLOG_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3, "critical": 2}  # syslog's, which journald reads


class LogLine(NamedTuple):
    """One line: when it was logged, how grave it is, by whom, and in which session, turn and hook."""

    time: float
    level: str
    logger: str
    message: str
    context: Mapping[str, str]
    exception: str = ""


LineFormatter: TypeAlias = Callable[[LogLine], str]


def as_json(line: LogLine) -> str:
    """Encode a line as one object; programs may rely on `time`, `level`, `logger` and `message`."""
    stamp = datetime.fromtimestamp(round(line.time, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"time": stamp, "level": line.level, "logger": line.logger, "message": line.message}
    fields |= line.context
    if line.exception:
        fields["exception"] = line.exception
    return json.dumps(fields, ensure_ascii=False)


def from_json(text: str) -> LogLine | None:
    """Parse a line that `as_json` wrote; None for a foreign or incomplete one."""
    try:
        fields: Any = json.loads(text)
        moment = datetime.fromisoformat(fields["time"]).timestamp()
        context = {key: str(fields[key]) for key in CONTEXT_KEYS if key in fields}
        words = [str(fields[key]) for key in ("level", "logger", "message")]
        return LogLine(moment, words[0], words[1], words[2], context, str(fields.get("exception", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def format_for_terminal(line: LogLine) -> str:
    """Format a line for people, in colour; with the day unless it is today."""
    then, now = time.localtime(line.time), time.localtime()
    clock = time.strftime("%H:%M:%S" if then[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", then)
    level = f"\x1b[{_COLOURS[line.level]}m{line.level:<8}\x1b[0m" if line.level in _COLOURS else f"{line.level:<8}"
    return f"\x1b[2m{clock}\x1b[0m {level} {_format_text(line, dim=True)}"


def format_for_pipe(line: LogLine) -> str:
    """Format a line for people, without colour, and with the day, since it may be read later."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line.time))
    return f"{stamp} {line.level:<8} {_format_text(line)}"


def format_for_journald(line: LogLine) -> str:
    """Format a line for journald, which stamps the time itself, and reads the level from the line's prefix."""
    weight = _SYSLOG_PRIORITIES.get(line.level, 6)
    return "\n".join(f"<{weight}>{part}" for part in _format_text(line).split("\n"))


def _format_text(line: LogLine, *, dim: bool = False) -> str:
    where = " ".join(f"{key}={value}" for key, value in line.context.items())
    if where and dim:
        where = f"\x1b[2m{where}\x1b[0m"
    text = f"{line.logger.removeprefix('gateway.')}: {line.message}{'  ' if where else ''}{where}"
    # Each line of a traceback is set in, so that none can pass for a line of the log.
    return "\n    | ".join([text, *line.exception.rstrip("\n").split("\n")]) if line.exception else text
