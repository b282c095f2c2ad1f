"""The command of a shell hook: its words, the files that it names, the variables that they read, and the hash of it."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gateway.files.folders import read_plain_file
from gateway.hermes.config import ShellEntry
from gateway.hooks.places.inspection import quote_path
from gateway.yaml_source.tree import Finding, SourceLocation, to_printable

MAX_SCRIPT_BYTES = 4_000_000
SCRIPT_ENDINGS = (".bash", ".js", ".lua", ".mjs", ".php", ".pl", ".py", ".rb", ".sh", ".ts", ".zsh")
ALLOWLIST_FILE = "shell-hooks-allowlist.json"  # of Hermes
APPROVED_ENDINGS = (*SCRIPT_ENDINGS, ".cjs", ".fish", ".pyw")  # those that Hermes takes for scripts
SYSTEM_PATHS = ("/usr/", "/bin/", "/sbin/", "/lib")

_VARIABLE = re.compile(rb"(?:\$\{?|environ(?:\.get\(|\[)|getenv\()[\"']?([A-Z][A-Z0-9_]{1,199})")


class ShellApproval(msgspec.Struct, frozen=True):
    """One line of Hermes's list of approved commands."""

    event: str = ""
    command: str = ""
    script_mtime_at_approval: str | None = None


class ShellApprovals(msgspec.Struct, frozen=True):
    """Hermes's list of approved commands."""

    approvals: tuple[ShellApproval, ...] = ()


def shell_digest_of(entry: ShellEntry, home: Path) -> str:
    """Hash the event, the command, the matcher, and the files that the command names."""
    total = hashlib.sha256(f"{entry.event}\0{entry.command}\0{entry.matcher}".encode())
    for path in _list_files(entry.command, home):
        script = _read_script(path)
        total.update(f"\0{path}\0".encode() + (b"(cannot be read)" if script is None else script))
    return total.hexdigest()


def is_approved_in_hermes(entry: ShellEntry, home: Path) -> bool:
    """Tell if Hermes's own list approves this command, and its script has not changed since then."""
    try:
        said = msgspec.json.decode(read_plain_file(home / ALLOWLIST_FILE), type=ShellApprovals)
    except (OSError, msgspec.MsgspecError, ValueError):
        return False
    changed = _describe_change(entry.command)
    asked = (entry.event, entry.command, changed)
    return any((one.event, one.command, one.script_mtime_at_approval) == asked for one in said.approvals)


def _describe_change(command: str) -> str | None:
    """Return the time of a script's last change as Hermes writes it."""
    words = split_command(command)
    paths = [word for word in words if "/" in word]
    script = next((word for word in words if word.lower().endswith(APPROVED_ENDINGS)), (paths or words)[0])
    try:
        changed = datetime.fromtimestamp(Path(script).stat().st_mtime, tz=UTC)
    except OSError:
        return None
    return changed.isoformat().replace("+00:00", "Z")


def split_command(command: str) -> tuple[str, ...]:
    """Split a command as Hermes does: without a shell, and with `~` for the user's home."""
    return tuple(str(Path(word).expanduser()) if word.startswith("~") else word for word in shlex.split(command))


def check_command_files(place: SourceLocation, words: Sequence[str], home: Path) -> Iterator[Finding]:
    """Check that program and script exist: an interpreter without its script ends like a script that blocks."""
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    named = (*(words[:1] if "/" in words[0] else ()), *((script,) if script.endswith(SCRIPT_ENDINGS) else ()))
    for word in named:
        if not (home / word).exists():
            what, remedy = f"{to_printable(word)} is not there", f"a relative path begins in {home}"
            yield Finding(place, what, f"{remedy}; correct it in Hermes's config.yaml")
        elif word == words[0] and not os.access(home / word, os.X_OK):
            what = f"{to_printable(word)} cannot be executed"
            yield Finding(place, what, f"run: chmod +x {quote_path(home / word)}")


def _list_files(command: str, home: Path) -> list[Path]:
    """List the user's files that the command names; the system's programs do not count."""
    try:
        paths = [home / word for word in split_command(command)]
    except ValueError:
        return []
    return [
        path
        for path in paths
        if os.path.isfile(path)  # noqa: PTH113 - a word that cannot be a path is none to it, and no error
        and not str(path).startswith(SYSTEM_PATHS)
    ]


def find_command_variables(command: str, home: Path) -> tuple[str, ...]:
    """Find the environment variables that the command's scripts read: nothing else declares them."""
    scripts = read_command_files(command, home)
    return tuple(dict.fromkeys(name.decode() for script in scripts for name in _VARIABLE.findall(script)))


def read_command_files(command: str, home: Path) -> list[bytes]:
    """Read the files that the command names."""
    return [_read_script(path) or b"" for path in _list_files(command, home)]


def _read_script(path: Path) -> bytes | None:
    """Read a script; return None if it cannot be read."""
    try:
        return read_plain_file(path, MAX_SCRIPT_BYTES)
    except OSError:
        return None
