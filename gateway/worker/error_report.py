"""The report of an exception: one line that names the place in the hook, and a traceback, both bounded.

The exception is foreign: its text may be fifty megabytes, may not be text, and reading it may raise.
"""

import itertools
import traceback
from pathlib import Path
from typing import Any

MAX_MESSAGE = 2_000
MAX_TRACEBACK = 16_000
MAX_FRAMES = 20
MAX_WALKED = 500  # frames, before those of others are left out
MAX_PIECES = 200
# Frames of these folders are left out: the gateway's own, and Python's.
PROGRAM_FOLDER = f"{Path(__file__).resolve().parents[1]}/"
LIBRARY_FOLDER, PACKAGES = f"{Path(traceback.__file__).parent}/", "/site-packages/"


def is_program_file(name: str) -> bool:
    """Return True if the file belongs to the program that runs hooks, and not to a hook."""
    return name.startswith(PROGRAM_FOLDER)


def is_author_file(name: str) -> bool:
    """Return True if the author of a hook has written this file, and not we or the authors of libraries."""
    return not (is_program_file(name) or name.startswith((LIBRARY_FOLDER, "<")) or PACKAGES in name)


def describe_error(error: BaseException, folder: Path) -> dict[str, Any]:
    """Describe an exception; `worn` means that the process is unsound, and needs a replacement."""
    message, text = _message_of(error), _traceback_of(error)
    place = _place_of(error, folder)
    if place:
        message = f"{place}: {message}"
    return {"message": message, "data": {"traceback": text, "worn": isinstance(error, MemoryError)}}


def _to_encodable(text: str) -> str:
    """Return the text in a form that can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def _message_of(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except BaseException:  # noqa: BLE001 - the text of a foreign exception is foreign code
        return kind
    return _to_encodable(f"{kind}: {text[:MAX_MESSAGE]}" if text else kind)


def _place_of(error: BaseException, folder: Path) -> str:
    """Return the place in the hook's own code."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno or 1}:{error.offset or 1}"
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [(name, line) for name, line in lines if Path(name).is_relative_to(folder)]
    return f"{Path(own[-1][0]).relative_to(folder)}:{own[-1][1]}" if own else ""


def _traceback_of(error: BaseException) -> str:
    try:
        report = traceback.TracebackException.from_exception(error, limit=-MAX_WALKED, lookup_lines=False)
        _keep_author_lines(report)
        lines = report.format()
        return _to_encodable("".join(itertools.islice(lines, MAX_PIECES))[-MAX_TRACEBACK:])
    except BaseException:  # noqa: BLE001 - the text of a foreign exception is foreign code
        return ""


def _keep_author_lines(report: traceback.TracebackException) -> None:
    """Leave out the frames of the gateway, and those of libraries beside lines of the author."""
    reports = [report]
    while reports:
        one = reports.pop()
        frames = [frame for frame in one.stack if not is_program_file(frame.filename)]
        own = [frame for frame in frames if is_author_file(frame.filename)]
        one.stack = traceback.StackSummary.from_list((own or frames)[-MAX_FRAMES:])
        reports += filter(None, (one.__cause__, one.__context__, *(one.exceptions or ())))


def describe_await(coroutine: Any) -> str:
    """Describe where a suspended coroutine waits, innermost last, in the form of a traceback."""
    lines: list[str] = []
    while coroutine is not None and len(lines) < MAX_FRAMES:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is None:
            break
        if not is_program_file(frame.f_code.co_filename):
            lines.append(f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n')
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return _to_encodable("".join(lines))
