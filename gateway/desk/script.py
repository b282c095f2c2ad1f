"""A gateway on another machine: its address and a key, and the file of `connect --script` with both."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from gateway.config.desk_settings import DeskSettings
from gateway.desk import ask
from gateway.desk.programs import Program
from gateway.desk.settings_file import RemoteGateway, make_fields, make_options
from gateway.errors import ConfigError
from gateway.web.host_rules import is_own_address
from gateway.web.program_keys import PREFIX

NAMES = "PROGRAM, KEY, VARIABLE, IS_HOME, FOLDER, FILE"
EMPTY = f'{NAMES} = "", "", "", False, "", ""'
NO_ENTRIES = "ENTRIES: dict[str, dict[str, Any]] = {}"
KEY_FROM = "make one where that gateway runs: hermes-gateway keys new NAME --as desk >FILE"


def read_gateway(url: str, key_file: str) -> RemoteGateway:
    """Return the gateway on another machine. Raises ConfigError."""
    parts = urlsplit(url)
    is_own = parts.hostname == "localhost" or is_own_address(parts.hostname or "")
    if not parts.hostname or parts.scheme not in ("https", "http") or (parts.scheme == "http" and not is_own):
        raise ConfigError(f"--url {url!r} is not an address for a key\nwrite https://HOST, or http://127.0.0.1:PORT")
    try:
        key = Path(key_file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--key-file {key_file!r} cannot be read: {error}\n{KEY_FROM}") from None
    if not re.fullmatch(rf"{PREFIX}[\w-]+", key):
        raise ConfigError(f"--key-file {key_file!r} has no key of a gateway\n{KEY_FROM}")
    return RemoteGateway(f"{parts.scheme}://{parts.netloc}", key)


def make_script(program: Program, gateway: RemoteGateway, settings: DeskSettings) -> str:
    """Return the file, with the address and the key in it."""
    entries = {
        event: {"type": "command", "command": make_options(program, event, gateway.url, settings), **more}
        for event, more in make_fields(program, settings).items()
    }
    first, _, _ = Path(ask.__file__).read_text("utf-8").partition("\nif __name__")
    rest = Path(ask.__file__).with_name("remote.py").read_text("utf-8")
    own = program.settings
    values = (program.name, gateway.key, own.variable, own.is_home_variable, own.folder, own.file)
    for empty, full in ((EMPTY, f"{NAMES} = {values}"), (NO_ENTRIES, f"ENTRIES = {entries}")):
        assert empty in rest
        rest = rest.replace(empty, full)
    return first + "\n" + "".join(line for line in rest.splitlines(True) if not line.startswith("from gateway."))
