"""One variable of `.env` is set or removed; every byte outside its line stays as it is.

The file is read again and compared with what was wanted, since what is a line there is the parser's to say.
"""

import io
import re
from collections.abc import Mapping

from dotenv.parser import Binding, parse_stream

from gateway.config.environment import find_references
from gateway.yaml_source.edit import BOM, EditError, find_line_break

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=~-]+\Z")


def set_variable(data: bytes, name: str, value: str) -> bytes:
    """Return the text with this value: in the line that sets it, else in one at the end.

    Raises:
        EditError: the value cannot be in such a file, or no edit leaves everything else as it is.
    """
    if not value or find_references(value) or "${" in value:
        raise EditError("cannot be in .env: a text that is not empty and has no `${` is wanted")
    text, bindings = _read_bindings(data)
    line = f"{name}={_quote(value)}"
    at = _find_line(bindings, name)
    if at is None:
        line_break = find_line_break(text)
        ending = "" if not text or text.endswith(("\n", "\r")) else line_break
        changed = f"{text}{ending}{line}{line_break}"
    else:
        changed = _replace(bindings, {at: line})
    return _check(data, changed, {**_read_values(bindings), name: value})


def remove_variable(data: bytes, name: str) -> bytes:
    """Return the text without the lines that set the variable.

    Raises:
        EditError: it is not set there, or no edit leaves everything else as it is.
    """
    _text, bindings = _read_bindings(data)
    gone = {at: "" for at, binding in enumerate(bindings) if binding.key == name and binding.value}
    if not gone:
        raise EditError("is not set in the file")
    values = _read_values(bindings)
    values.pop(name)
    return _check(data, _replace(bindings, gone), values)


def _read_bindings(data: bytes) -> tuple[str, list[Binding]]:
    try:
        text = data.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError:
        raise EditError("cannot be written: .env is not UTF-8 text") from None
    return text, list(parse_stream(io.StringIO(text)))


def _read_values(bindings: list[Binding]) -> dict[str, str]:
    return {binding.key: binding.value for binding in bindings if binding.key and binding.value}


def _find_line(bindings: list[Binding], name: str) -> int | None:
    """Find the line that counts: the last one with a value, else the last one of that name."""
    named = [at for at, binding in enumerate(bindings) if binding.key == name]
    return next((at for at in reversed(named) if bindings[at].value), named[-1] if named else None)


def _replace(bindings: list[Binding], lines: Mapping[int, str]) -> str:
    """Put these lines in the places of others; blank lines before them stay, and so does `export`."""
    parts = []
    for at, binding in enumerate(bindings):
        whole = binding.original.string
        if at in lines:
            body = whole.lstrip()
            blank, line = whole[: len(whole) - len(body)], lines[at]
            indent = blank[len(blank.rstrip(" \t")) :]
            found = re.match(r"export[^\S\r\n]+", body)
            ending = re.search(r"(?:\r\n|\r|\n)?\Z", body)
            line_end = ending[0] if ending and line else ""
            whole = (
                f"{blank if line else blank.removesuffix(indent)}{found[0] if found and line else ''}{line}{line_end}"
            )
        parts.append(whole)
    return "".join(parts)


def _quote(value: str) -> str:
    if _PLAIN.match(value):
        return value
    escaped = value.replace("\\", "\\\\")
    if "\n" in value or "\r" in value:
        return '"' + escaped.replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'
    return "'" + escaped.replace("'", "\\'") + "'"


def _check(data: bytes, changed: str, wanted: Mapping[str, str]) -> bytes:
    _text, bindings = _read_bindings(changed.encode("utf-8", "surrogateescape"))
    if _read_values(bindings) != wanted:
        raise EditError("cannot be written without a change to other lines of .env")
    bom = BOM if data.startswith(BOM.encode()) else ""
    return f"{bom}{changed}".encode()
