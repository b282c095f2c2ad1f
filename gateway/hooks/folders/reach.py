"""What a restricted hook reaches: what every program reads, what is its own, and what it says and may.

A hook that was placed by hand and says nothing of `reads`, `writes` and `net` is restricted by nothing.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from gateway.hooks.folders.manifest import Manifest, expand_path
from gateway.hooks.folders.manifest_keys import Net
from gateway.hooks.nats_transport import is_nats_url, parse_nats_url
from gateway.worker.sandbox import Sandbox, find_needed_paths

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# What programs of a person's desktop need. No secret, but with them one acts for the person.
DESKTOP_VARIABLES = frozenset(
    {"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "PULSE_SERVER"}
)
# Those who hold keys for a person, and whoever speaks to the screen for them.
AGENT_VARIABLES = frozenset({"SSH_AGENT_PID", "GPG_AGENT_INFO", "GNOME_KEYRING_CONTROL", "XAUTHORITY", "NOTIFY_SOCKET"})
NAMES_PORT = 53  # where names are looked up; over TCP, since the filter lets nothing else through
OVER_TCP = {"RES_OPTIONS": "use-vc"}
MAX_FIRST_LINE = 256  # bytes of a script that say which program reads it


class HookReach(msgspec.Struct, frozen=True):
    """What a restricted hook may reach besides what all need, and why it is restricted.

    `owns_folder`: it writes into the folder where it lies.
    """

    reason: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: bool | tuple[int, ...] = False
    owns_folder: bool = False


class ReachFacts(NamedTuple):
    """For people: why it is restricted ("": it is not), what it reaches, and what this kernel does not hold of that."""

    restricted: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    net: str = ""
    unheld: tuple[str, ...] = ()


class HookLimits(NamedTuple):
    """The limits of work that others do for a hook: its `uses`, its `own` folders, and `reads` if it is restricted.

    A hook whose folder is gone may nothing (`NO_LIMITS_KNOWN`).
    """

    uses: Collection[str] = ()
    own: tuple[Path, ...] = ()
    reads: tuple[Path, ...] | None = None

    @property
    def is_restricted(self) -> bool:
        return self.reads is not None


NO_LIMITS_KNOWN = HookLimits(reads=())


def describe_reach(reach: HookReach, folder: Path, data: Path, unheld: tuple[str, ...], url: str = "") -> ReachFacts:
    own = (str(data), *((str(folder),) if reach.owns_folder else ()))
    reads, writes = (tuple(map(_describe_path, paths)) for paths in (reach.reads, reach.writes))
    return ReachFacts(reach.reason, (str(folder), *reads), (*own, *writes), describe_network(reach.net, url), unheld)


def _describe_path(path: str) -> str:
    """What does not exist when a hook starts cannot be given to it."""
    return path if os.path.exists(path) else f"{path} (not there)"  # noqa: PTH110 - as it is written


def find_missing_paths(manifest: Manifest) -> Iterator[str]:
    """For people: what it says that it reaches and is not there, so that it will not reach it."""
    for key, paths in (("reads", manifest.reads), ("writes", manifest.writes)):
        for path in paths:
            if not os.path.exists(expand_path(path)):  # noqa: PTH110 - as it is written
                yield f"{path}, in `{key}`: what is not there when a hook starts is not given to it; make it first"


def describe_network(net: Net | None, url: str = "") -> str:
    """`url`: of a server that stands in for its code: nothing of it runs here, and what goes out, the gateway posts."""
    if is_nats_url(url):
        address = parse_nats_url(url)
        return f"the gateway sends these events to {address.subject} at {','.join(address.servers)}"
    if url:
        return f"the gateway posts these events to {urlsplit(url).netloc}"
    if isinstance(net, bool) or not net:
        return "all of it" if net else "none"
    return f"TCP to the ports {', '.join(map(str, net))}"


def find_reach(manifest: Manifest, is_installed: bool, is_placed: bool) -> HookReach | None:
    """None: nothing restricts it. What an installed one says has been agreed to."""
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
    """For the hook in this folder, with its own folder for data. `around`: what else lies ready for it."""
    own = (str(data), *((str(folder),) if reach.owns_folder else ()))
    net = reach.net if isinstance(reach.net, bool) or not reach.net else (*reach.net, NAMES_PORT)
    return Sandbox(
        read=(*find_needed_paths(), str(folder), *around, *reach.reads),
        write=(*own, *reach.writes),
        net=net or False,
    )


def restrict_environment(environ: Mapping[str, str], reach: HookReach, data: Path) -> dict[str, str]:
    """What a restricted hook is given of its environment: it has no temporary folder but its own."""
    kept = {name: value for name, value in environ.items() if name not in DESKTOP_VARIABLES | AGENT_VARIABLES}
    return {**kept, "TMPDIR": str(data), **(OVER_TCP if isinstance(reach.net, tuple) else {})}


def list_certificates(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What libraries for the web are told to trust, which may lie anywhere."""
    return tuple(environ[name] for name in CERTIFICATE_VARIABLES if environ.get(name))


def list_program_files(command: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The program that a command names, and the one that its first line names, through all links."""
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
