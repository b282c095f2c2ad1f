"""Files outside of a sandbox stay as they are, down to modes, owners and times; work inside goes on.

Each case is one real process: of root or of a plain user, on this kernel as it is or where it refuses namespaces, or
knows no Landlock.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.worker import mounts
from gateway.worker.sandbox import find_support

pytestmark = [
    pytest.mark.process,
    pytest.mark.machine,
    pytest.mark.skipif(bool(find_support().missing), reason="this kernel does not hold all that is tried here"),
]
ROOT = Path(__file__).parents[2]
PLAIN = 65534
USERS = ["root", "plain"] if os.geteuid() == 0 else ["plain"]
NEEDS_NAMESPACES = pytest.mark.skipif(not mounts.can_restrict(), reason="this machine gives no mounts of one's own")
KERNELS = [pytest.param("whole", marks=NEEDS_NAMESPACES), "without namespaces", "without Landlock", "without both"]

START = """
import ctypes, errno, json, os, shutil, signal, socket, stat, subprocess, sys
sys.path.insert(0, {root!r})
from gateway.worker import kernel, landlock, seccomp
from gateway.worker.sandbox import Sandbox, find_needed_paths, restrict
at = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
for name in ("getpwuid",): __import__("pwd").getpwuid(0)
calls = {{"namespaces": (272 if os.uname().machine == "x86_64" else 97,), "Landlock": (444, 445, 446)}}
lost = [number for name, numbers in calls.items() if name in at["kernel"] or at["kernel"] == "without both"
        for number in numbers]
if at["user"] == "plain" and os.geteuid() == 0:
    os.setgroups([]); os.setgid({plain}); os.setuid({plain}); kernel._prctl(kernel.PR_SET_DUMPABLE, 1)
if lost:
    kernel.refuse_new_rights()
    program = [(seccomp.LOAD_WORD, 0, 0, seccomp.NUMBER_AT)]
    for number in lost:
        program += [(seccomp.IF_EQUAL, 0, 1, number), (seccomp.RETURN, 0, 0, seccomp.REFUSE | errno.EPERM)]
    seccomp.apply_filter([*program, (seccomp.RETURN, 0, 0, seccomp.ALLOW)])
if "hidden" in at:
    from gateway.worker.readable_paths import find_withheld, list_pieces
    read = list_pieces("/", find_withheld([at["hidden"]]))
else:
    read = find_needed_paths() if at["reads_little"] else ("/",)
restrict(Sandbox(read=read, write=tuple(at["write"]), net=False, modes=at["modes"]))
"""

PROBES = """
out, own = at["out"], at["own"]
kept, folder, link = out + "/kept", out + "/folder", out + "/link"
def call(number, *arguments):
    found = libc.syscall(ctypes.c_long(number), *(a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments))
    if found < 0: raise OSError(ctypes.get_errno(), "syscall")
    return found
def child_of(flags):
    pid = call(56 if os.uname().machine == "x86_64" else 220, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
def by_descriptor(function):
    handle = os.open(kept, os.O_RDONLY)
    try: function(handle)
    finally: os.close(handle)
def by_folder(function):
    handle = os.open(out, os.O_PATH)
    try: function(handle)
    finally: os.close(handle)
def enter(kind): os.close(libc.setns(os.open(f"/proc/{os.getppid()}/ns/{kind}", os.O_RDONLY), 0))
x86 = os.uname().machine == "x86_64"
probes = {
    "chmod": lambda: os.chmod(kept, 0o777), "chmod folder": lambda: os.chmod(folder, 0),
    "chmod top": lambda: os.chmod(out, 0), "chmod by link": lambda: os.chmod(link, 0o4755),
    "fchmodat": lambda: by_folder(lambda at: os.chmod("kept", 0, dir_fd=at)),
    "fchmodat2": lambda: call(452, -100, kept.encode(), 0, 0),
    "fchmod": lambda: by_descriptor(lambda file: os.fchmod(file, 0)),
    "chmod by /proc": lambda: by_folder(lambda at: os.chmod(f"/proc/self/fd/{at}", 0)),
    "chmod by root": lambda: os.chmod(f"/proc/{os.getppid()}/root{kept}", 0),
    "chown": lambda: os.chown(kept, 1, 1), "lchown": lambda: os.lchown(link, 1, 1),
    "chown own": lambda: os.chown(kept, os.getuid(), os.getgid()),
    "fchown": lambda: by_descriptor(lambda file: os.fchown(file, 1, 1)),
    "utime": lambda: os.utime(kept, (1, 1)), "utime now": lambda: os.utime(kept),
    "lutime": lambda: os.utime(link, (1, 1), follow_symlinks=False),
    "utime at": lambda: by_folder(lambda at: os.utime("kept", (1, 1), dir_fd=at)),
    "setxattr": lambda: os.setxattr(kept, "user.x", b"1"),
    "fsetxattr": lambda: by_descriptor(lambda file: os.setxattr(file, "user.x", b"1")),
    "write": lambda: open(kept, "a").write("x"), "truncate": lambda: os.truncate(kept, 0),
    "unlink": lambda: os.unlink(kept), "rename": lambda: os.rename(kept, out + "/other"),
    "make": lambda: open(out + "/new", "w"), "mkdir": lambda: os.mkdir(out + "/new"),
    "hard link": lambda: os.link(kept, own + "/hard"), "move in": lambda: os.rename(kept, own + "/moved"),
    "node": lambda: os.mknod(out + "/disk", 0o60600, os.makedev(8, 0)),
    "new users": lambda: kernel.call_kernel("unshare", 0x10000000),
    "new mounts": lambda: kernel.call_kernel("unshare", 0x20000),
    "child in new users": lambda: child_of(0x10000000), "child in new mounts": lambda: child_of(0x20000),
    "clone3": lambda: call(435, bytes(88), 88), "enter": lambda: enter("mnt"),
    "mount": lambda: kernel.call_kernel("mount", b"tmpfs", out.encode(), b"tmpfs", 0, None),
    "writable again": lambda: call(442, -100, b"/", 0x8000, (0).to_bytes(8, "little") + (1).to_bytes(8, "little")
                                   + bytes(16), 32),
    "unmount": lambda: kernel.call_kernel("umount2", own.encode(), 2),
    "keyring": lambda: call(250 if x86 else 219, 0, -3, 1),
    "key": lambda: call(248 if x86 else 217, b"user", b"x", b"y", 1, -3),
    "shared memory": lambda: call(29 if x86 else 194, 0x5eed, 4096, 0o1600),
    "limit": lambda: call(302 if x86 else 261, os.getppid(), 7, 0, bytes(16)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid())),
    "priority of a user": lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)),
    "processors": lambda: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid())),
    "turns": lambda: os.sched_setscheduler(os.getppid(), os.SCHED_OTHER, os.sched_param(0)),
    "disk turns": lambda: call(251 if x86 else 30, 1, os.getppid(), 2 << 13 | 4),
    "io_uring": lambda: call(425, 4, bytes(120)), "trace": lambda: call(101 if x86 else 117, 16, os.getppid(), 0, 0),
}
found = {}
for name, probe in probes.items():
    try: found[name] = f"done {probe()}"
    except OSError as error: found[name] = errno.errorcode.get(error.errno, str(error))
print(json.dumps(found))
"""

NEVER = (
    "new users", "new mounts", "child in new users", "child in new mounts", "clone3", "enter", "mount", "unmount",
    "writable again", "keyring", "key", "shared memory", "io_uring", "trace",
    "limit", "priority", "priority of a user", "processors", "turns", "disk turns",
)  # fmt: skip


def run_inside(source: str, **facts: Any) -> "subprocess.CompletedProcess[str]":
    program = START.format(root=str(ROOT), plain=PLAIN) + source
    command = [sys.executable, "-P", "-c", program, json.dumps(facts)]
    return subprocess.run(command, capture_output=True, text=True, cwd="/")


@pytest.fixture
def places() -> Iterator[dict[str, str]]:
    """A folder of one's own and one outside, of the user who tries it; pytest's own are closed to other users."""
    with tempfile.TemporaryDirectory() as place:
        out, own = Path(place, "out"), Path(place, "own")
        for folder in (out, own, out / "folder"):
            folder.mkdir()
        (out / "kept").write_text("kept")
        (out / "link").symlink_to("kept")
        Path(place).chmod(0o755)
        yield {"out": str(out), "own": str(own)}


def give(places: dict[str, str], user: str) -> None:
    if user == "plain" and os.geteuid() == 0:
        subprocess.run(["chown", "-hR", str(PLAIN), *places.values()], check=True)


def look(folder: str) -> dict[str, object]:
    """All that is known of what lies there, but when it was read."""
    found: dict[str, object] = {}
    for path in (Path(folder), *sorted(Path(folder).rglob("*"))):
        known = path.lstat()
        said = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (known.st_mode, known.st_uid, known.st_gid, known.st_mtime_ns, known.st_ctime_ns, said)
    return found


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_hook_that_may_nothing_changes_nothing_outside(user: str, kernel: str, places: dict[str, str]) -> None:
    give(places, user)
    before = look(places["out"])
    facts = {"user": user, "kernel": kernel, "modes": False, "write": [], "reads_little": True, **places}
    done = run_inside(PROBES, **facts)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name for name in NEVER if found[name].startswith("done")} == set()
    assert found["clone3"] == "ENOSYS"
    if kernel == "without both":  # contents are not held then, and `doctor` says so
        assert [found[name] for name in ("chmod", "fchmod", "chown", "lchown", "utime")] == ["done None"] * 5
        return
    assert look(places["out"]) == before


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kernel", KERNELS[:2])
@pytest.mark.parametrize("is_hook", [True, False])
def test_no_flag_of_a_file_changes_by_its_reader(user: str, kernel: str, is_hook: bool, places: dict[str, str]) -> None:
    """Root could make what it reads unchangeable for all."""
    give(places, user)
    facts = {"user": user, "kernel": kernel, "modes": not is_hook, "write": [], "reads_little": False, **places}
    source = """
import fcntl
handle = os.open(at["out"] + "/kept", os.O_RDONLY)
had = int.from_bytes(fcntl.ioctl(handle, 0x80086601, bytes(8)), "little")
def change(flags): fcntl.ioctl(handle, 0x40086602, flags.to_bytes(8, "little"))
for flag in (0x10, 0x40):
    try: change(had | flag)
    except OSError as error: print(errno.errorcode[error.errno])
    else: print("done"); change(had)
"""
    done = run_inside(source, **facts)
    assert (done.returncode, done.stderr) == (0, "")
    unchangeable, other = done.stdout.split()
    assert unchangeable != "done"
    assert (other == "done") is (not is_hook and kernel != "whole")


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kernel", [*KERNELS[:2]])
def test_a_command_changes_no_mode_outside_where_mounts_hold_it(user: str, kernel: str, places: dict[str, str]) -> None:
    give(places, user)
    before = look(places["out"])
    facts = {"user": user, "kernel": kernel, "modes": True, "write": [places["own"]], "reads_little": False, **places}
    source = """
os.chmod(at["own"], 0o711)
for change in (lambda: os.chmod(at["out"] + "/kept", 0), lambda: os.utime(at["out"] + "/kept", (1, 1))):
    try: change()
    except OSError as error: print(errno.errorcode[error.errno])
"""
    done = run_inside(source, **facts)
    assert (done.returncode, done.stderr) == (0, "")
    is_held = kernel == "whole"
    assert done.stdout.split() == (["EROFS"] * 2 if is_held else [])
    assert (look(places["out"]) == before) is is_held
    assert Path(places["own"]).stat().st_mode & 0o777 == 0o711


GIT = "git -c user.name=me -c user.email=me@example.org -c safe.directory=*"
WORK = {
    "shutil.copy": "{python} -c \"import shutil as s; s.copy('tool', 'copy'); s.copy2('tool', 'copy2')\" && ./copy",
    "git clone": f"git init -q a && cd a && echo x > y && {GIT} add y && {GIT} commit -qm x && cd .. && "
    f"{GIT} clone -q a b && cat b/y",
    "python -m venv": "{python} -m venv --without-pip env && ./env/bin/python -c 'print(1)'",
    "gcc": "printf 'int main(void){{return 0;}}' > m.c && gcc -o m m.c && ./m",
    "npm i": 'mkdir -p p && echo \'{{"name":"p","version":"1.0.0","bin":"run.js"}}\' > p/package.json && '
    "printf '#!/usr/bin/env node\\n' > p/run.js && echo '{{}}' > package.json && npm i ./p --offline --install-links "
    "--no-audit --no-fund && ./node_modules/.bin/p",
    "tar": "tar cf a.tar tool && mkdir t && tar xpf a.tar -C t && ./t/tool",
    "sed -i": "cp tool s && sed -i s/true/false/ s; ./s && exit 1 || exit 0",
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kernel", KERNELS[:2])
@pytest.mark.parametrize("what", WORK)
def test_work_inside_goes_on_as_before(what: str, kernel: str, user: str, places: dict[str, str]) -> None:
    tool = Path(places["own"], "tool")
    tool.write_text("#!/bin/sh\ntrue\n")
    tool.chmod(0o755)
    give(places, user)
    path = os.environ["PATH"] if user == "root" else "/usr/local/bin:/usr/bin:/bin"
    needed = {"git clone": "git", "gcc": "gcc", "npm i": "npm"}.get(what, "sh")
    python = shutil.which("python3", path=path)
    if python is None or shutil.which(needed, path=path) is None:
        pytest.skip(f"{needed} is not there for {user}")
    command = WORK[what].format(python=python)
    facts = {"user": user, "kernel": kernel, "modes": True, "write": [places["own"]], "reads_little": False, **places}
    source = f"""
env = {{"PATH": {path!r}, "HOME": at["own"], "TMPDIR": at["own"]}}
done = subprocess.run(["/bin/sh", "-ec", {command!r}], cwd=at["own"], env=env, capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
"""
    done = run_inside(source, **facts)
    assert done.stdout.startswith("0 "), done.stdout + done.stderr


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kernel", KERNELS[:2])
@pytest.mark.parametrize("closed", ["folder", "."])
def test_what_is_hidden_stays_so_though_it_cannot_be_read_when_a_command_begins(
    user: str, kernel: str, closed: str, places: dict[str, str]
) -> None:
    keys = Path(places["out"], "folder")
    (keys / "id").write_text("the key")
    give(places, user)
    shut = Path(places["out"], closed)
    shut.chmod(0)
    facts = {"user": user, "kernel": kernel, "modes": True, "write": [places["own"]], "hidden": str(keys), **places}
    source = """
os.system(f"chmod 700 {at['out']} {at['hidden']} 2>&1; cat {at['hidden']}/id 2>&1")
"""
    done = run_inside(source, **facts)
    shut.chmod(0o755)
    assert (done.returncode, "the key" in done.stdout) == (0, False), done.stderr
    assert "denied" in done.stdout
