"""`./x image`: builds the container image of the commit that is checked out, as far as one can without a registry.

The base is a Debian of our own making, since none can be fetched; every instruction of the Dockerfile runs on it. What
came of that is then run as Docker would: as process 1 of a system of its own, as the user of the image, on a root that
nobody can write, in the network of compose.yaml. It has to be well by the image's own health check, to let in nobody
but the host, to answer, and to end when it is told to. Root alone can do this. What it does not show: the named base,
Docker itself, limits of memory, other architectures.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.testing.patience import Patience

ROOT = Path(__file__).parent.parent
LARGEST = 225_000_000
PATIENCE = 60.0
SLIMMED = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man", "var/cache/apt", "var/lib/apt/lists")
NEEDS = {"buildah": "buildah", "debootstrap": "debootstrap", "ip": "iproute2", "nsenter": "util-linux"}
# As Docker has it: all of it read-only but for the volume and /tmp, which are empty.
BOOT = """
set -e
root=$1 user=$2 addresses=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root" && mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp" && mount -t tmpfs -o mode=755 tmpfs "$root/data"
chown "$user" "$root/data"
ip link set lo up
for address in $addresses; do ip address add "$address/29" dev lo; done
exec chroot --userspec="$user" "$root" "$@"
"""
OURS = "172.30.73.2"
# A hook that needs a package, and the package.
NEEDY = """
import zipfile
from pathlib import Path
hook = Path("/data/home/hooks/needy")
hook.mkdir(parents=True)
(hook / "HOOK.yaml").write_text("events: [agent:end]\\nrequires: {python: [word]}\\n")
(hook / "handler.py").write_text("import word\\ndef handle(event_type, context):\\n    print(word.SAID)\\n")
about = "word-1.dist-info/"
with zipfile.ZipFile("/tmp/word-1-py3-none-any.whl", "w") as wheel:
    wheel.writestr("word.py", "SAID = 'a word'\\n")
    wheel.writestr(about + "METADATA", "Metadata-Version: 2.1\\nName: word\\nVersion: 1\\n")
    wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(about + "RECORD", "")
"""


class Failed(Exception):
    """It is not as it has to be."""


def ask(*command: "str | Path") -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Store:
    """The store of buildah's files, which is removed with this run."""

    place: Path

    def ask(self, *words: "str | Path") -> str:
        kept: list[str | Path] = [
            "--storage-driver",
            "vfs",
            "--root",
            self.place / "root",
            "--runroot",
            self.place / "run",
        ]
        return ask("buildah", *kept, *words)

    def build(self, tree: Path, name: str, *options: "str | Path") -> None:
        self.ask("bud", "-q", "--isolation", "chroot", "--format", "docker", *options, "-t", name, tree)


def make_base(store: Store, place: Path) -> str:
    """A small Debian of the version that this machine has, without what the slim ones are without."""
    tree, codename = place / "base", ""
    for line in Path("/etc/os-release").read_text().splitlines():
        codename = line.partition("=")[2].strip('"') if line.startswith("VERSION_CODENAME=") else codename
    ask("debootstrap", "--variant=minbase", "--include=ca-certificates", codename, tree / "debian")
    for name in SLIMMED:
        shutil.rmtree(tree / "debian" / name, ignore_errors=True)
    left_out = "".join(f"path-exclude /{name}/*\n" for name in SLIMMED if name.startswith("usr/share"))
    (tree / "debian/etc/dpkg/dpkg.cfg.d/slim").write_text(left_out)
    (tree / "Dockerfile").write_text("FROM scratch\nCOPY debian /\n")
    store.build(tree, "localhost/base")
    return "localhost/base"


def build(store: Store, place: Path) -> dict[str, Any]:
    """Build the image from the commit's files, and return its description."""
    tree, archive = place / "tree", place / "tree.tar"
    ask("git", "-C", ROOT, "-c", "tar.umask=0022", "archive", "-o", archive, "HEAD")
    tree.mkdir()
    ask("tar", "-x", "-p", "-f", archive, "-C", tree)
    base = make_base(store, place)
    certificates = "/etc/ssl/certs:/etc/ssl/certs:ro"
    store.build(tree, "localhost/gateway", "--network", "host", "--build-arg", f"BASE={base}", "-v", certificates)
    found: dict[str, Any] = json.loads(store.ask("inspect", "--type", "image", "localhost/gateway"))["Docker"]["config"]
    return found


def measure(root: Path) -> int:
    """Return its size on a disk, including the base."""
    return int(ask("du", "-sxb", root).split()[0])


@dataclass(frozen=True, slots=True)
class Box:
    """The image as it runs: its first process, as the host counts, and how its words are run there."""

    root: Path
    init: int
    environ: Mapping[str, str]
    user: str

    def run(self, *words: str) -> str:
        """As `docker exec` does."""
        inside = ["nsenter", "-t", str(self.init), "--mount", "--pid", "--net", "chroot", f"--userspec={self.user}"]
        return ask(
            *inside, self.root, "env", "-i", *(f"{name}={value}" for name, value in self.environ.items()), *words
        )

    def fetch(self, source: str) -> str:
        """Return the page's answer to a client of the container's network with this address."""
        code = (
            "import http.client as h; c = h.HTTPConnection('{}', 8730, timeout=20, source_address=('{}', 0)); "
            "c.request('GET', '/health', headers={{'Host': '127.0.0.1:8730'}}); print(c.getresponse().status)"
        )
        return self.run("python3", "-c", code.format(OURS, source))


def list_faults(box: Box, health: list[str], host: str) -> Iterator[str]:
    """Yield the broken promises of a running image."""
    wait_until(lambda: box.run(*health) == "", "it does not become well")
    if f"NSpid:\t{box.init}\t1\n" not in Path(f"/proc/{box.init}/status").read_text():
        yield "it is not process 1"
    if (answer := box.run("hermes-gateway", "chat", "-m", "what is 12 * (3 + 4)")) != "The result is 84.":
        yield f"it answers {answer!r}"
    if not (link := box.run("hermes-gateway", "open")).startswith("http://127.0.0.1:8730/open?code="):
        yield f"the link to the page is {link!r}"
    for source, wanted in ((host, "200"), (OURS, "403")):
        if (found := box.fetch(source)) != wanted:
            yield f"{source} is answered with {found}"
    install_packages(box)
    if places := box.run("sh", "-c", "find / -xdev -writable ! -type l ! -path /data ! -path /tmp 2>/dev/null || true"):
        yield f"it can be written: {' '.join(places.splitlines()[:5])}"


def install_packages(box: Box) -> None:
    """Install a hook's package into the volume: from a wheel that is made there, as no registry can be reached."""
    box.run("python3", "-c", NEEDY)
    box.run("env", "PIP_NO_INDEX=1", "PIP_FIND_LINKS=/tmp", "hermes-gateway", "hooks", "deps", "needy")
    shown = box.run("hermes-gateway", "hooks", "test", "needy", "--event", "agent:end")
    if "a word" not in shown:
        raise Failed(f"a hook does not find the package that was installed for it: {shown}")


def wait_until(holds: Callable[[], bool], fault: str) -> None:
    patience = Patience(PATIENCE)
    while True:
        try:
            if holds():
                return
            said = ""
        except Failed as failed:
            said = str(failed)
        if patience.is_over():
            raise Failed(f"{fault}: {said}")
        time.sleep(0.2)


def try_out(root: Path, config: Mapping[str, Any], log: Path) -> list[str]:
    """From its start to its end."""
    service = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["gateway"]
    environ = dict(line.split("=", 1) for line in config["Env"]) | service["environment"] | {"HOME": "/data"}
    host = environ["GATEWAY_WEB_TRUSTED_PROXIES"]
    program = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environ.items())]
    words = ["unshare", "--fork", "--kill-child", "--pid", "--mount", "--net", "--ipc", "sh", "-c", BOOT, "boot"]
    words += [str(root), config["User"], f"{host} {OURS}", *program, *config["Entrypoint"], *config["Cmd"]]
    with log.open("wb") as said, subprocess.Popen(words, stdout=said, stderr=said) as outside:
        try:
            children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
            wait_until(lambda: bool(children.read_text().split()), "nothing was started")
            box = Box(root, int(children.read_text().split()[0]), environ, config["User"])
            faults = list(list_faults(box, config["Healthcheck"]["Test"][1:], host))
            os.kill(box.init, signal.SIGTERM)
            if outside.wait(PATIENCE):
                faults.append(f"told to end, it ended with {outside.returncode}")
            return faults
        except Failed as failed:
            raise Failed(f"{failed}\n{log.read_text('utf-8', 'replace')}") from None
        finally:
            outside.kill()


def can_run() -> bool:
    """Return True if this machine allows a system of one's own; most containers do not."""
    if subprocess.run(["unshare", "--pid", "--mount", "--net", "--fork", "true"], capture_output=True).returncode:
        print("it is built, and not run: there are no namespaces to be had here", flush=True)
        return False
    return True


def main() -> int:
    if missing := [package for program, package in NEEDS.items() if shutil.which(program) is None]:
        print(f"this takes what is not here: apt-get install {' '.join(missing)}", file=sys.stderr)
        return 1
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        store = Store(Path(folder) / "store")
        try:
            config = build(store, Path(folder))
            container = store.ask("from", "localhost/gateway")
            root = Path(store.ask("mount", container))
            size = measure(root)
            print(f"built, {size / 1e6:.1f} MB ({time.monotonic() - begun:.0f} s)", flush=True)
            faults = try_out(root, config, Path(folder) / "log") if can_run() else []
            faults += [f"it is larger than {LARGEST / 1e6:.0f} MB"] if size > LARGEST else []
            store.ask("umount", container)
        except Failed as failed:
            faults = [str(failed)]
    for fault in faults:
        print(f"not as it has to be: {fault}", file=sys.stderr)
    print(f"{'FAILED' if faults else 'the image holds'} ({time.monotonic() - begun:.0f} s)")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
