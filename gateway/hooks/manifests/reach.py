"""The reach of a restricted hook: what all programs need, its own folders, and the paths and ports in its manifest.

A hook that was placed by hand and has no `reads`, `writes` and `net` is not restricted.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from gateway.hooks.manifests.manifest import Manifest, expand_path
from gateway.hooks.manifests.manifest_keys import Net
from gateway.hooks.nats_transport import is_nats_url, parse_nats_url
from gateway.worker.sandbox import Sandbox, find_needed_paths

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Variables for programs of a person's desktop. They are not secrets, but a program can act for the person with them.
DESKTOP_VARIABLES = frozenset(
    {"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "PULSE_SERVER"}
)
# The programs that hold keys for a person, and those that control the screen.
AGENT_VARIABLES = frozenset({"SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "XAUTHORITY", "NOTIFY_SOCKET"})
NAMES_PORT = 53  # for DNS; over TCP, since the filter blocks all else
OVER_TCP = {"RES_OPTIONS": "use-vc"}
GRANTS = ("may", "read")  # options that count only in config.yaml, and only for a built-in hook
MAX_FIRST_LINE = 256  # bytes of a script's first line, which names its interpreter


class HookReach(msgspec.Struct, frozen=True):
    """The additional paths and ports that a restricted hook may reach, and the reason of the restriction.

    `owns_folder`: the hook may write to its own folder.
    """

    reason: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: bool | tuple[int, ...] = False
    owns_folder: bool = False


class ReachFacts(NamedTuple):
    """The reach of a hook, for people: why it is restricted ("" if it is not), and what this kernel cannot enforce."""

    restricted: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: str = ""
    unheld: tuple[str, ...] = ()


class TurnGrants(NamedTuple):
    """The rights that the owner gives the turns of a built-in hook: chats to write to, and places to read."""

    may: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()


class HookLimits(NamedTuple):
    """The limits of work that the gateway does for a hook: its `uses`, its `own` folders, and `reads` if restricted.

    `grants` is for a hook that can have some; its HOOK.yaml has the options `may` and `read`.
    For a hook whose folder is gone, the gateway does no work (`NO_LIMITS_KNOWN`).
    """

    uses: Collection[str] = ()
    own: tuple[Path, ...] = ()
    reads: tuple[Path, ...] | None = None
    grants: TurnGrants | None = None

    @property
    def is_restricted(self) -> bool:
        return self.reads is not None


NO_LIMITS_KNOWN = HookLimits(reads=())


def describe_reach(reach: HookReach, folder: Path, data: Path, unheld: tuple[str, ...], url: str = "") -> ReachFacts:
    own = (str(data), *((str(folder),) if reach.owns_folder else ()))
    reads, writes = (tuple(map(_describe_path, paths)) for paths in (reach.reads, reach.writes))
    return ReachFacts(reach.reason, (str(folder), *reads), (*own, *writes), describe_network(reach.net, url), unheld)


def _describe_path(path: str) -> str:
    """Describe a path for people; a path that is missing when the hook starts is not reachable."""
    return path if os.path.exists(path) else f"{path} (not there)"  # noqa: PTH110 - as it is written


def read_grants(options: Mapping[str, Any]) -> TurnGrants:
    """Read the options `may` and `read` of the configuration."""
    may, read = (one if isinstance(one := options.get(name), list) else [] for name in GRANTS)
    return TurnGrants(tuple(map(str, may)), tuple(Path(expand_path(str(path))) for path in read))


def find_missing_paths(manifest: Manifest) -> Iterator[str]:
    """Yield, for people, the declared paths that are missing, so that the hook will not reach them."""
    for key, paths in (("reads", manifest.reads), ("writes", manifest.writes)):
        for path in paths:
            if not os.path.exists(expand_path(path)):  # noqa: PTH110 - as it is written
                yield f"{path}, in `{key}`: what is not there when a hook starts is not given to it; make it first"


def describe_network(net: Net | None, url: str = "") -> str:
    """Describe the hook's network for people.

    `url` is the address of the hook's server: no code of the hook runs here, and the gateway posts its events.
    """
    if is_nats_url(url):
        address = parse_nats_url(url)
        return f"the gateway sends these events to {address.subject} at {','.join(address.servers)}"
    if url:
        return f"the gateway posts these events to {urlsplit(url).netloc}"
    if isinstance(net, bool) or not net:
        return "all of it" if net else "none"
    return f"TCP to the ports {', '.join(map(str, net))}"


def find_reach(manifest: Manifest, is_installed: bool, is_placed: bool) -> HookReach | None:
    """Return the reach of a hook; None if nothing restricts it. The owner agreed to the reach of an installed hook."""
    if not manifest.says_reach and not is_installed:
        return None
    return HookReach(
        "it was installed" if is_installed else "its manifest says what it reaches",
        tuple(expand_path(path) for path in manifest.reads),
        tuple(expand_path(path) for path in manifest.writes),
        manifest.net or False,
        is_placed and not is_installed,
    )


def build_sandbox(reach: HookReach, folder: Path, data: Path, around: tuple[str, ...]) -> Sandbox:
    """Build the sandbox for the hook in this folder, with its own folder for data.

    `around` are further paths that the hook may read.
    """
    own = (str(data), *((str(folder),) if reach.owns_folder else ()))
    net = reach.net if isinstance(reach.net, bool) or not reach.net else (*reach.net, NAMES_PORT)
    return Sandbox(
        read=(*find_needed_paths(), str(folder), *around, *reach.reads), write=(*own, *reach.writes), net=net or False
    )


def restrict_environment(environ: Mapping[str, str], reach: HookReach, data: Path) -> dict[str, str]:
    """Return the environment of a restricted hook: its only temporary folder is its data folder."""
    kept = {name: value for name, value in environ.items() if name not in DESKTOP_VARIABLES | AGENT_VARIABLES}
    return {**kept, "TMPDIR": str(data), **(OVER_TCP if isinstance(reach.net, tuple) else {})}


def list_certificates(environ: Mapping[str, str]) -> tuple[str, ...]:
    """List the certificates that the environment names for web libraries; these files may be anywhere."""
    return tuple(environ[name] for name in CERTIFICATE_VARIABLES if environ.get(name))


def list_program_files(command: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """List the program that a command names, and the interpreter in its first line, through all links."""
    found: list[str] = []
    program = _find_program(command[0], folder, environ)
    while program and program not in found:
        found += [program, os.path.realpath(program)]
        program = next(_find_interpreter(program, folder, environ), "")
    return tuple(dict.fromkeys(found))


def _find_program(name: str, folder: Path, environ: Mapping[str, str]) -> str:
    return str(folder / name) if "/" in name else shutil.which(name, path=environ.get("PATH")) or ""


def _find_interpreter(program: str, folder: Path, environ: Mapping[str, str]) -> Iterator[str]:
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - a name of a program
            first = file.readline(MAX_FIRST_LINE)
    except OSError:
        return
    words = first[2:].decode("utf-8", "surrogateescape").split() if first.startswith(b"#!") else []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if words:
        yield _find_program(words[0], folder, environ)
