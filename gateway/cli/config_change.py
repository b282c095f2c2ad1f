"""`hermes-gateway config set`, `unset`, `undo` and `edit`: the file of the configuration changes."""

import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.output import print_note, print_text, show_json
from gateway.config.change_writer import undo_change, write_change
from gateway.config.changes import SettingChange, prepare_settings, refuse_override, split_key
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.control.client import call_gateway
from gateway.errors import ConfigError, GatewayError
from gateway.logs.text import to_one_line


def change_setting(home: Home, key: str, value: str | None, *, as_json: bool) -> None:
    """Set a value, or remove it if the value is None."""
    running = find_running_origins(home)
    refuse_override(key, running.get(".".join(split_key(key)), ""))  # a service has variables that this terminal lacks
    schema, environ = load_settings_schema(), get_process_environment()
    change = prepare_settings(schema, home, environ, {key: value})
    write_change(home, change)
    show_change(change, is_running=bool(running), as_json=as_json)


def find_running_origins(home: Home) -> Mapping[str, str]:
    """Return the origin of each setting of the running gateway; nothing if none runs."""
    with suppress(GatewayError):
        return {one["name"]: one["origin"] for one in call_gateway(home.socket, "config.show")["settings"]}
    return {}


def show_change(change: SettingChange, *, is_running: bool, as_json: bool) -> None:
    if as_json:
        show_json({"setting": change.name, "files": [str(file.path) for file in change.files]})
    for file in change.files if not as_json else ():
        said = ".".join(line.strip().removesuffix(":") for line in file.lines)
        print_text(f"written to {file.path}: {to_one_line(said, 200)}")
    for finding in change.warnings:
        print_note(f"warning: {to_one_line(finding.what)}; {to_one_line(finding.remedy)}")
    if is_running:
        print_note("to use it now: hermes-gateway reload; to take it back: hermes-gateway config undo")


def undo_setting(home: Home, *, as_json: bool) -> None:
    files = undo_change(home)
    if as_json:
        show_json({"files": [str(path) for path in files]})
    else:
        print_text("\n".join(f"{path} is again as it was before the last change" for path in files))


def open_configuration(home: Home) -> None:
    """Open config.yaml in the person's editor, and wait until they leave it; raises ConfigError if it does not run."""
    environ = get_process_environment()
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    prepare_home(home)
    try:
        subprocess.run([*shlex.split(editor), str(home.config)], check=True)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        why = f"{to_one_line(editor, 60)} does not run, or has failed: {to_one_line(str(error), 200)}"
        raise ConfigError(f"{why}\nname your editor: EDITOR=nano hermes-gateway config edit") from None
