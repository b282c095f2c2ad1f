"""The settings file of a program on the desk: our lines in it, beside the hooks that are there, which stay in order."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from gateway.config.desk_settings import DeskSettings
from gateway.desk import ask
from gateway.desk.codex import HookEntry
from gateway.desk.programs import PROGRAMS, Program
from gateway.errors import ConfigError

MARGIN = 60.0  # seconds by which the program's limit is longer than ours
TOLD_SECONDS = 10.0  # for events of which the gateway is notified in the background
MARK, WEB_PATH = "/desk/ask.py", "/desk/"


class RemoteGateway(NamedTuple):
    """A gateway on another machine, and a key by which programs ask there."""

    url: str
    key: str


Gateway: TypeAlias = Path | RemoteGateway
"""The gateway that programs ask: its desk socket, or one on another machine."""


class SettingsFile(NamedTuple):
    """The file as it is (None: it is missing), and as it would be. `others`: homes of other gateways in it."""

    path: Path
    before: str | None
    after: str
    others: tuple[str, ...]


def find_file(program: Program, environ: Mapping[str, str]) -> Path:
    """Return the path of the program's settings, and where a link leads to, that place."""
    own, place = program.settings, environ.get(program.settings.variable)
    home = Path((place if own.is_home_variable else "") or environ.get("HOME") or Path.home())
    folder = Path(place) if place and not own.is_home_variable else home / own.folder
    return (folder / own.file).resolve()


def connect(program: Program, path: Path, gateway: Gateway, settings: DeskSettings) -> SettingsFile:
    """Return the file with our lines, in their newest form, behind what is there.

    Raises:
        ConfigError: the file cannot be read as the program's settings.
    """
    before, kept = _read(path)
    others = {_find_gateway(hook.fields) for hook in _list_own_hooks(kept, program)} - {describe_gateway(gateway)}
    _remove_own(kept, program)
    hooks = kept.setdefault("hooks", {})
    for event, entry in make_entries(program, gateway, settings).items():
        hooks.setdefault(event, []).append({"hooks": [entry]})
    return SettingsFile(path, before, _write(kept), tuple(sorted(others)))


def disconnect(program: Program, path: Path) -> SettingsFile:
    """Return the file without our lines. Raises ConfigError as `connect` does."""
    before, kept = _read(path)
    if not _list_own_hooks(kept, program):
        return SettingsFile(path, before, before or "", ())
    _remove_own(kept, program)
    return SettingsFile(path, before, _write(kept), ())


def list_connections(environ: Mapping[str, str]) -> list[tuple[Program, SettingsFile]]:
    """List the programs that this installation has connected, each with its file without our lines."""
    found = []
    for program in PROGRAMS.values():
        path = find_file(program, environ)
        with suppress(ConfigError):  # a file of another form has no lines that we could take out
            _, kept = _read(path)
            if any(str(ask.__file__) in hook.fields.get("command", "") for hook in _list_own_hooks(kept, program)):
                found.append((program, disconnect(program, path)))
    return found


def list_own_hooks(program: Program, path: Path) -> list[HookEntry]:
    """List our hooks in these settings. Raises ConfigError as `connect` does."""
    _, kept = _read(path)
    return _list_own_hooks(kept, program)


def find_gateways(program: Program, path: Path) -> frozenset[str]:
    """Return the gateways that these settings ask. Raises ConfigError as `connect` does."""
    return frozenset(_find_gateway(hook.fields) for hook in list_own_hooks(program, path))


def has_own_lines(program: Program, path: Path, socket: Path, settings: DeskSettings) -> bool:
    """Return True if all our lines are in the file as `connect` writes them, each for all calls of its event."""
    try:
        _, kept = _read(path)
    except ConfigError:
        return False
    groups = {event: [one for one in found if isinstance(one, dict)] for event, found in kept.get("hooks", {}).items()}
    return all(
        any(entry in one.get("hooks", ()) and not {"matcher", "if"} & set(one) for one in groups.get(event, ()))
        for event, entry in make_entries(program, socket, settings).items()
    )


def has_ended_hooks(path: Path) -> bool:
    """Return True if these settings, of whatever place, end all hooks of the program."""
    try:
        _, kept = _load(path)
    except ConfigError:
        return False
    return isinstance(kept, dict) and bool(kept.get("disableAllHooks"))


def make_entries(program: Program, gateway: Gateway, settings: DeskSettings) -> dict[str, dict[str, Any]]:
    """Return our entry for each event."""
    fields = make_fields(program, settings)
    if isinstance(gateway, Path):
        start = shlex.join([sys.executable, "-I", "-S", "-E", str(ask.__file__)])
        words = {event: make_options(program, event, str(gateway), settings) for event in fields}
        return {event: {"type": "command", "command": f"{start} {words[event]}", **fields[event]} for event in fields}
    url, headers = f"{gateway.url}{WEB_PATH}{program.name}", {"Authorization": f"Bearer {gateway.key}"}
    fields.pop(program.events.guard)  # it cannot read a file of the program
    return {event: {"type": "http", "url": url, "headers": headers, **fields[event]} for event in fields}


def make_fields(program: Program, settings: DeskSettings) -> dict[str, dict[str, Any]]:
    """Return what an entry says beside its command, for each event that we take."""
    own, events = program.settings, program.events
    asked = {"timeout": int(settings.wait + MARGIN) * own.second}
    told = {"timeout": int(TOLD_SECONDS) * own.second, **own.told}
    fields: dict[str, dict[str, Any]] = {
        events.before: {**asked, **own.before},
        events.question: asked,
        events.guard: asked,
    }
    fields |= dict.fromkeys(sorted(events.ends), told)
    return {event: more for event, more in fields.items() if event}


def make_options(program: Program, event: str, gateway: str, settings: DeskSettings) -> str:
    """Return the options of the command; its own time limit ends before the program's."""
    seconds = TOLD_SECONDS / 2 if event in program.events.ends else settings.wait + MARGIN / 2
    return shlex.join([program.name, event, settings.down, f"{seconds:g}", gateway])


def write_file(file: SettingsFile) -> None:
    """Write the file at once or not at all, for its owner alone. Raises ConfigError if it changed meanwhile."""
    before, _ = _read(file.path)
    if before != file.before:
        raise ConfigError(f"{file.path} was changed meanwhile; nothing was written\ntry again")
    file.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=file.path.parent, prefix=f".{file.path.name}.")  # it is 0600
    with os.fdopen(number, "w", encoding="utf-8") as written:
        written.write(file.after)
        written.flush()
        os.fsync(number)
    Path(name).replace(file.path)


def _load(path: Path) -> tuple[str | None, Any]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None, {}
    except (UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    try:
        return text, json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}\nmend the file first; nothing was written") from None


def _read(path: Path) -> tuple[str | None, dict[str, Any]]:
    text, kept = _load(path)
    groups = kept.get("hooks", {}) if isinstance(kept, dict) else None
    if not isinstance(groups, dict) or not all(map(_is_group_list, groups.values())):
        raise ConfigError(f"{path} has another form than these settings have\nmend the file first; nothing was written")
    return text, kept


def _is_group_list(groups: Any) -> bool:
    if not isinstance(groups, list):
        return False
    return all(isinstance(one.get("hooks", []), list) for one in groups if isinstance(one, dict))


def _write(kept: Mapping[str, Any]) -> str:
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def _is_own(handler: Any, program: Program) -> bool:
    if not isinstance(handler, dict):
        return False
    command, url = handler.get("command"), handler.get("url")
    is_command = isinstance(command, str) and MARK in command and f" {program.name} " in command
    return is_command or (isinstance(url, str) and url.endswith(f"{WEB_PATH}{program.name}"))


def describe_gateway(gateway: Gateway) -> str:
    return gateway.url if isinstance(gateway, RemoteGateway) else str(gateway)


def _find_gateway(handler: Mapping[str, Any]) -> str:
    """Return the gateway that our handler asks, as `describe_gateway` describes it."""
    if url := handler.get("url"):
        return str(url).rpartition(WEB_PATH)[0]
    try:
        return shlex.split(handler["command"])[-1]
    except ValueError:  # a person has changed the line
        return str(handler["command"])


def _list_own_hooks(kept: Mapping[str, Any], program: Program) -> list[HookEntry]:
    return [
        HookEntry(event, number, at, hook)
        for event, groups in kept.get("hooks", {}).items()
        for number, group in enumerate(groups)
        for at, hook in enumerate(group.get("hooks", ()) if isinstance(group, dict) else ())
        if _is_own(hook, program)
    ]


def _remove_own(kept: dict[str, Any], program: Program) -> None:
    """Remove our handlers, and the groups and events that are empty without them."""
    hooks = kept.get("hooks", {})
    for event, groups in list(hooks.items()):
        for group in [one for one in groups if isinstance(one, dict)]:
            handlers = group.get("hooks", [])
            left = [one for one in handlers if not _is_own(one, program)]
            if len(left) == len(handlers):
                continue
            if left:
                group["hooks"] = left
            else:
                groups.remove(group)
                if not groups:
                    del hooks[event]
    if not hooks:
        kept.pop("hooks", None)
