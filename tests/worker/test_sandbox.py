"""From inside a sandbox each way out is tried, by a real process against real servers outside.

The same tries are made without a sandbox, so that each is known to work where nothing holds it.
"""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from gateway.worker import landlock, seccomp
from gateway.worker.sandbox import Sandbox, SandboxSupport, find_needed_paths, find_support

pytestmark = [pytest.mark.process, pytest.mark.machine]

SUPPORT = find_support()
HOLDS_ALL = pytest.mark.skipif(bool(SUPPORT.missing), reason="; ".join(SUPPORT.missing))
ROOT = Path(__file__).parents[2]

# What the process inside runs: `try_it` notes for each name that it worked, or the error that it met.
INSIDE = """
import ctypes, errno, json, os, signal, socket, subprocess, sys
sys.path.insert(0, {root!r})
from gateway.worker.sandbox import Sandbox, restrict
place, start = json.loads(sys.argv[1]), json.loads(sys.argv[2])
found = {{}}
def try_it(function):
    try:
        function()
        found[function.__name__] = "done"
    except OSError as error:
        found[function.__name__] = errno.errorcode.get(error.errno, str(error))
if start is not None:
    restrict(Sandbox(**{{key: tuple(value) if isinstance(value, list) else value for key, value in start.items()}}))
{source}
print(json.dumps(found))
"""

NETWORK = """
@try_it
def tcp():
    socket.create_connection(("127.0.0.1", place["tcp"]), 5).sendall(b"tcp")
@try_it
def tcp_elsewhere():
    socket.create_connection(("127.0.0.1", place["elsewhere"]), 5).sendall(b"tcp")
@try_it
def bound():
    with socket.socket() as server: server.bind(("127.0.0.1", 0))
@try_it
def listening():
    with socket.socket() as server: server.listen()
@try_it
def mptcp():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as one:
        one.connect(("127.0.0.1", place["tcp"]))
@try_it
def fast_open():
    with socket.socket() as one:
        one.sendto(b"fast", 0x20000000, ("127.0.0.1", place["elsewhere"]))
@try_it
def fast_open_message():
    with socket.socket() as one:
        one.sendmsg([b"fast"], [], 0x20000000, ("127.0.0.1", place["elsewhere"]))
@try_it
def udp():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"udp", ("127.0.0.1", place["udp"]))
@try_it
def udp6():
    socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).close()
@try_it
def packets():
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
@try_it
def path_socket():
    with socket.socket(socket.AF_UNIX) as one: one.connect(place["path"])
@try_it
def path_messages():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one: one.sendto(b"path", place["messages"])
@try_it
def pair_to_path():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"pair", place["messages"])
@try_it
def abstract_socket():
    with socket.socket(socket.AF_UNIX) as one: one.connect(place["abstract"])
@try_it
def io_uring():
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(425, 4, ctypes.create_string_buffer(120))
    if ring < 0: raise OSError(ctypes.get_errno(), "io_uring")
    os.close(ring)
@try_it
def pair():
    ours, theirs = socket.socketpair()
    ours.sendall(b"x")
    assert theirs.recv(1) == b"x"
"""
WAYS_OUT = {
    "tcp", "tcp_elsewhere", "mptcp", "fast_open", "fast_open_message", "udp", "udp6", "packets", "bound", "listening",
    "path_socket", "path_messages", "pair_to_path", "abstract_socket",
}  # fmt: skip

Inside = Callable[..., dict[str, str]]


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    """`inside(source, sandbox)`: what became of each try."""

    def run(source: str, sandbox: Sandbox | None, **place: Any) -> dict[str, str]:
        program = INSIDE.format(root=str(ROOT), source=source)
        start = json.dumps(asdict(sandbox) if sandbox else None)
        command = [sys.executable, "-P", "-c", program, json.dumps({"folder": str(tmp_path), **place}), start]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found: dict[str, str] = json.loads(done.stdout)
        return found

    return run


def allow(tmp_path: Path, **more: Any) -> Sandbox:
    return Sandbox(**{"read": (*find_needed_paths(), str(ROOT)), "write": (str(tmp_path / "own"),), **more})


class Outside:
    """Servers of every kind; `heard` is what reached one of them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.heard: set[str] = set()
        self._stack = stack
        self.place = {
            "tcp": self._listen("tcp", socket.AF_INET, ("127.0.0.1", 0)),
            "elsewhere": self._listen("elsewhere", socket.AF_INET, ("127.0.0.1", 0)),
            "udp": self._receive("udp", socket.AF_INET, ("127.0.0.1", 0)),
            "path": self._listen("path", socket.AF_UNIX, str(folder / "path.sock")),
            "messages": self._receive("messages", socket.AF_UNIX, str(folder / "messages.sock")),
            "abstract": self._listen("abstract", socket.AF_UNIX, f"\0sandbox-{os.getpid()}"),
        }

    def _bind(self, family: int, kind: int, address: Any) -> socket.socket:
        server = self._stack.enter_context(socket.socket(family, kind))
        server.bind(address)
        server.settimeout(0.2)
        return server

    def _listen(self, name: str, family: int, address: Any) -> Any:
        server = self._bind(family, socket.SOCK_STREAM, address)
        server.listen()

        def take_one() -> None:
            server.accept()[0].close()

        self._serve(name, take_one)
        return _address_of(server)

    def _receive(self, name: str, family: int, address: Any) -> Any:
        server = self._bind(family, socket.SOCK_DGRAM, address)
        self._serve(name, lambda: server.recv(100))
        return _address_of(server)

    def _serve(self, name: str, once: Callable[[], object]) -> None:
        def run() -> None:
            while not over.is_set():
                try:
                    once()
                except TimeoutError:
                    continue
                self.heard.add(name)

        over = threading.Event()
        thread = threading.Thread(target=run)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(over.set)


def _address_of(server: socket.socket) -> Any:
    name = server.getsockname()
    return name[1] if server.family == socket.AF_INET else name.decode() if isinstance(name, bytes) else name


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    with ExitStack() as stack:
        yield Outside(tmp_path, stack)


def refused(found: dict[str, str]) -> set[str]:
    return {name for name, became in found.items() if became in ("EACCES", "EPERM")}


def test_without_a_sandbox_each_way_is_open(inside: Inside, outside: Outside) -> None:
    """Save those that this very machine closes to everybody."""
    found = inside(NETWORK, None, **outside.place)
    closed_here = {name for name, became in found.items() if became not in ("done", "EINPROGRESS")}
    assert closed_here <= {"udp6", "packets", "io_uring", "mptcp", "fast_open", "fast_open_message"}
    assert outside.heard >= {"tcp", "udp", "path", "messages", "abstract"}


@HOLDS_ALL
def test_no_network_is_none_by_any_way(inside: Inside, outside: Outside, tmp_path: Path) -> None:
    found = inside(NETWORK, allow(tmp_path), **outside.place)
    assert refused(found) == WAYS_OUT | {"io_uring"}
    assert found["pair"] == "done"
    assert outside.heard == set()


@HOLDS_ALL
def test_a_list_of_ports_is_tcp_to_these(inside: Inside, outside: Outside, tmp_path: Path) -> None:
    found = inside(NETWORK, allow(tmp_path, net=(outside.place["tcp"],)), **outside.place)
    assert found["tcp"] == "done"
    assert refused(found) == (WAYS_OUT - {"tcp"}) | {"io_uring"}
    assert outside.heard == {"tcp"}


@HOLDS_ALL
def test_all_of_the_network_is_no_path_to_what_serves_here(inside: Inside, outside: Outside, tmp_path: Path) -> None:
    found = inside(NETWORK, allow(tmp_path, net=True), **outside.place)
    assert refused(found) == {
        "path_socket", "path_messages", "pair_to_path", "abstract_socket", "io_uring", "packets",
    }  # fmt: skip
    assert outside.heard >= {"tcp", "udp"}
    assert not outside.heard & {"path", "messages", "abstract"}


@HOLDS_ALL
def test_path_sockets_can_be_opened(inside: Inside, outside: Outside, tmp_path: Path) -> None:
    sandbox = allow(tmp_path, sockets=True, read=("/",))
    found = inside(NETWORK, sandbox, **outside.place)
    assert found["path_socket"] == found["path_messages"] == "done"
    assert found["tcp"] == found["udp"] == "EACCES"


FILES = """
folder = place["folder"]
@try_it
def read_own():
    open(folder + "/own/mine").read()
@try_it
def write_own():
    open(folder + "/own/new", "w").write("x"); os.rename(folder + "/own/new", folder + "/own/newer")
@try_it
def read_shown():
    open(folder + "/shown/page").read()
@try_it
def write_shown():
    open(folder + "/shown/page", "w")
@try_it
def read_secret():
    open(folder + "/secret").read()
@try_it
def read_by_link():
    os.symlink(folder + "/secret", folder + "/own/link"); open(folder + "/own/link").read()
@try_it
def read_by_hard_link():
    os.link(folder + "/secret", folder + "/own/hard"); open(folder + "/own/hard").read()
@try_it
def list_outside():
    os.listdir(folder)
@try_it
def move_out():
    os.rename(folder + "/own/newer", folder + "/out")
@try_it
def remove_secret():
    os.unlink(folder + "/secret")
@try_it
def truncate_secret():
    os.truncate(folder + "/secret", 0)
@try_it
def make_device():
    os.mknod(folder + "/own/disk", 0o60600, os.makedev(8, 0))
@try_it
def read_environment_outside():
    open(f"/proc/{os.getppid()}/environ").read()
@try_it
def signal_outside():
    os.kill(os.getppid(), 0)
@try_it
def run_program():
    assert subprocess.run(["sh", "-c", "ls / > /dev/null; echo $((1+1))"], capture_output=True).stdout == b"2\\n"
@try_it
def read_secret_by_program():
    if subprocess.run(["cat", folder + "/secret"], capture_output=True).returncode: raise PermissionError(13, "cat")
@try_it
def verify_certificates():
    import ssl; ssl.create_default_context()
@try_it
def resolve():
    import pwd; pwd.getpwuid(0); socket.getaddrinfo("localhost", 80)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("own", "shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / "mine").write_text("mine")
    (tmp_path / "shown" / "page").write_text("page")
    (tmp_path / "secret").write_text("secret")
    return tmp_path


@HOLDS_ALL
def test_files_elsewhere_are_out_of_reach(inside: Inside, folder: Path) -> None:
    sandbox = allow(folder, read=(*find_needed_paths(), str(ROOT), str(folder / "shown"), str(folder / "missing")))
    found = inside(FILES, sandbox)
    worked = {"read_own", "write_own", "read_shown", "run_program", "verify_certificates", "resolve"}
    assert {name for name, became in found.items() if became == "done"} == worked
    assert (folder / "secret").read_text() == "secret"


@HOLDS_ALL
@pytest.mark.skipif(os.getuid() != 0, reason="only root may look at all processes")
def test_root_inside_sees_no_environment_of_outsiders(inside: Inside, folder: Path) -> None:
    """Though /proc itself was granted."""
    sandbox = allow(folder, read=(*find_needed_paths(), str(ROOT), "/proc"))
    look = """
    @try_it
    def {name}():
        open(f"/proc/{{os.getppid()}}/{file}", "rb").read(1)
    """
    source = "".join(look.format(name=file, file=file).replace("\n    ", "\n") for file in ("environ", "maps", "mem"))
    assert set(inside(source, sandbox).values()) == {"EACCES"}


@HOLDS_ALL
def test_a_sandbox_can_only_be_made_smaller(inside: Inside, folder: Path) -> None:
    source = """
restrict(Sandbox(read=("/",), write=("/",), net=True, sockets=True))
@try_it
def read_secret():
    open(place["folder"] + "/secret").read()
@try_it
def tcp():
    socket.socket()
"""
    assert inside(source, allow(folder)) == {"read_secret": "EACCES", "tcp": "EACCES"}


def test_the_numbers_of_another_machine_are_refused() -> None:
    """Run by hand: each filter is asked for an answer as the kernel would."""
    for name, machine in seccomp.MACHINES.items():
        program = seccomp.build_filter(machine, net=False, sockets=False, modes=False)
        other = seccomp.MACHINES["aarch64" if name == "x86_64" else "x86_64"]
        assert answer(program, other.mark, 0) == seccomp.REFUSE | errno.EPERM
        assert answer(program, machine.mark, 0) == seccomp.ALLOW
        for family in (1, 2, 10, 16, 17, 40):
            assert answer(program, machine.mark, machine.socket, family, 1) == seccomp.REFUSE | errno.EACCES
        for number, place in machine.sends:
            arguments = [0] * place + [seccomp.FAST_OPEN | 0x4000]
            assert answer(program, machine.mark, number, *arguments) == seccomp.REFUSE | errno.EACCES
            assert answer(program, machine.mark, number) == seccomp.ALLOW
        assert answer(program, machine.mark, machine.times, 3, 0) == seccomp.ALLOW
        for path in (0x1000, 1 << 40):
            assert answer(program, machine.mark, machine.times, 3, path) == seccomp.REFUSE
    x86 = seccomp.MACHINES["x86_64"]
    program = seccomp.build_filter(x86, net=True, sockets=True, modes=True)
    assert answer(program, x86.mark, seccomp.X32 | x86.socket, 2, 1) == seccomp.REFUSE | errno.EPERM
    ports = seccomp.build_filter(x86, net=(80,), sockets=False, modes=True)
    kinds = {(2, 1, 0), (2, 1, 6), (10, 1 | 0x80800, 0), (2, 2, 0), (10, 1, 262), (1, 1, 0), (2, 3, 1)}
    allowed = {kind for kind in kinds if answer(ports, x86.mark, x86.socket, *kind) == seccomp.ALLOW}
    assert allowed == {(2, 1, 0), (2, 1, 6), (10, 1 | 0x80800, 0)}


def answer(program: seccomp.Program, machine: int, number: int, *arguments: int) -> int:
    """What the filter says to this call."""
    facts = {seccomp.MACHINE_AT: machine, seccomp.NUMBER_AT: number}
    for at, value in enumerate(arguments):
        place = seccomp.FIRST_ARGUMENT_AT + 8 * at
        facts |= {place: value & 0xFFFFFFFF, place + 4: value >> 32}
    held = at = 0
    while True:
        code, if_so, if_not, value = program[at]
        at += 1
        match code:
            case seccomp.LOAD_WORD:
                held = facts.get(value, 0)
            case seccomp.MASK:
                held &= value
            case seccomp.IF_EQUAL:
                at += if_so if held == value else if_not
            case seccomp.IF_ANY_BIT:
                at += if_so if held & value else if_not
            case seccomp.RETURN:
                return value


def test_what_a_kernel_lacks_is_said() -> None:
    assert SandboxSupport(landlock.OUTSIDERS, has_filter=True).missing == ()
    assert "no Landlock" in SandboxSupport(0, has_filter=True).missing[0]
    older = SandboxSupport(landlock.TRUNCATES, has_filter=False).missing
    assert [text.split(":")[0] for text in older] == [
        "a list of TCP ports cannot be held, all ports are open to a hook that names one",
        "processes outside can be signalled",
        "network and sockets are not restricted",
    ]
