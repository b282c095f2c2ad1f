"""A systemd of one's own: the real manager as process 1 of private namespaces, with one unit."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.cli.service.units import UNIT
from gateway.errors import GatewayError
from gateway.testing.patience import wait_until

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "hermes-gateway"
INIT = Path("/lib/systemd/systemd")
HOST_RUNS_SYSTEMD = Path("/run/systemd/system").is_dir()
NAMESPACES = ("--pid", "--mount", "--uts", "--ipc", "--cgroup")
# What the manager asks for at its start and its end, all empty.
TARGETS = ("basic", "default", "exit", "final", "network-online", "shutdown", "sysinit", "time-sync", "umount")
# The host's state and sockets are out of sight: what the unit writes there is gone with the namespace. Within it mounts
# are shared again, since that is how systemd hands a unit its credentials.
BOOT = """
mount --make-rprivate / && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && mount --make-rshared /
mkdir -m 700 /run/credstore && printf %s from-the-credstore >/run/credstore/OPENAI_API_KEY
exec env -i container=lxc PATH="$PATH" SYSTEMD_UNIT_PATH="$1" "$2" --system --log-target=console --show-status=0
"""
# Of the unit as it is shipped, only what a test cannot wait for or does not have: minutes, a second user, a boot.
DROP_IN = f"""
[Unit]
DefaultDependencies=no
[Service]
User=
WatchdogSec=4
RestartSec=100ms
BindReadOnlyPaths={ROOT}
StandardOutput=append:%s
StandardError=inherit
"""


def shipped(kind: str) -> str:
    """The unit as it is in the repository, with the program where it is here."""
    lines = (ROOT / "systemd" / kind / UNIT).read_text("utf-8").splitlines(keepends=True)
    return "".join(f"ExecStart={PROGRAM} run\n" if line.startswith("ExecStart=") else line for line in lines)


@dataclass(frozen=True)
class System:
    """The private system: its first process, as the host counts, and where its one unit's words go."""

    init: int
    words: Path

    def systemctl(self, *words: str) -> str:
        inside = ["nsenter", "-t", str(self.init), "-m", "-p", "-u", "-i", "-C", "systemctl", *words]
        return subprocess.run(inside, capture_output=True, text=True).stdout.strip()

    def path(self, inside: str, of: int | None = None) -> Path:
        """Where we find what the private system calls so; or what one of its processes, which may see more or less."""
        return Path(f"/proc/{self.host_pid(of) if of else self.init}/root{inside}")

    def host_pid(self, inside: int) -> int:
        for status in Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                ids = next(line.split()[1:] for line in status.read_text().splitlines() if line.startswith("NSpid"))
                ours = (status.parent / "ns" / "pid").readlink() == Path(f"/proc/{self.init}/ns/pid").readlink()
                if ours and ids[-1] == str(inside):
                    return int(ids[0])
        raise LookupError(inside)

    def show(self, name: str) -> str:
        return self.systemctl("show", UNIT, "--value", "-p", name)

    def wait(self, name: str, wanted: str) -> None:
        """Until the unit says so; else with all that it said instead."""
        reached = comes_about(lambda: self.show(name) == wanted)
        assert reached, f"{name} is {self.show(name)}, not {wanted}\n{self.words.read_text()}"


@contextlib.contextmanager
def private_system(units: Path, words: Path, console: Path) -> Iterator[System]:
    """The manager is up; afterwards it and all that it started is gone, and so are its control groups."""
    before = cgroups()
    boot = ["bash", "-c", BOOT, "boot", str(units), str(INIT)]
    command = ["unshare", "--fork", *NAMESPACES, "--mount-proc", "--kill-child", *boot]
    with console.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said) as outside:
        try:
            system = booted(outside, words, console)
            yield system
        finally:
            outside.kill()
    comes_about(lambda: not Path(f"/proc/{system.init}").exists())
    comes_about(lambda: not remaining(cgroups() - before))


def remaining(groups: set[Path]) -> set[Path]:
    """Those that cannot be removed yet, since a process in them is still on its way out."""
    for group in sorted(groups, reverse=True):
        with contextlib.suppress(OSError):
            group.rmdir()
    return {group for group in groups if group.is_dir()}


def comes_about(is_so: Callable[[], bool]) -> bool:
    with contextlib.suppress(GatewayError):
        return wait_until(is_so)
    return False


def need_systemd(request: pytest.FixtureRequest) -> None:
    if not INIT.exists():
        pytest.skip("systemd is not installed")
    if subprocess.run(["unshare", *NAMESPACES, "--fork", "true"], capture_output=True).returncode:
        request.applymarker(pytest.mark.machine)
        pytest.skip("this machine gives no private namespaces: they take root, and a kernel that allows them")


def lay_out(units: Path, words: Path) -> None:
    drop_ins = units / f"{UNIT}.d"
    drop_ins.mkdir(parents=True)
    for target in TARGETS:
        # A unit that another one knows of is not forgotten when it has ended: one can ask how.
        knows = f"After={UNIT}\n" if target == "default" else ""
        (units / f"{target}.target").write_text(f"[Unit]\nDefaultDependencies=no\n{knows}")
    (units / UNIT).write_text(shipped("system"))
    (drop_ins / "test.conf").write_text(DROP_IN % words)


def booted(outside: subprocess.Popen[bytes], words: Path, console: Path) -> System:
    children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
    comes_about(lambda: bool(children.read_text().strip()))
    system = System(int(children.read_text().split()[0]), words)
    up = comes_about(lambda: system.systemctl("is-system-running") in ("running", "degraded"))
    assert up, f"the private systemd did not come up:\n{console.read_text()}"
    return system


def cgroups() -> set[Path]:
    """What a manager makes for itself, in whichever hierarchies there are: below our own group, or below the root."""
    found = set[Path]()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, own = line.split(":", 2)
        for hierarchy in (names.removeprefix("name="), "unified"):
            for below in {own.lstrip("/")} if HOST_RUNS_SYSTEMD else {own.lstrip("/"), "."}:
                here = Path("/sys/fs/cgroup") / hierarchy / below
                found |= {here / "init.scope", *here.glob("system.slice/**/")}
    return {path for path in found if path.is_dir()}
