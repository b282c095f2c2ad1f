"""`./x release`: the wheel and the source archive of the commit that is checked out, tried before they are published.

Both are built twice, at different places and times, and have to be the same to the byte. The wheel is installed with
an extra by pip, uv and pipx into fresh environments, the archive by pip, with each Python from 3.11 on that is there.
The gateway has to answer there, and a further extra has to come by the line that it says itself. In `build/release`
there is then, besides the two, what the gateway is made of (CycloneDX, from requirements.lock), and SHA256SUMS. A tag
`v1.2.3` on the commit has to be the version in pyproject.toml. `--short` is what CI runs: this Python alone. Exit 1
when something does not hold.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import uuid
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, product
from pathlib import Path

from gateway.testing.patience import Patience

ROOT = Path(__file__).parent.parent
INTO = ROOT / "build" / "release"
NAME = "hermes-gateway"
# What is found by nobody who imports: it has to be in both.
CARRIED = (
    *("gateway/cli/service/system.service", "gateway/cli/service/user.service"),
    *("gateway/cli/completions/hermes-gateway.bash", "gateway/cli/completions/_hermes-gateway"),
    *("gateway/cli/completions/hermes-gateway.fish", "gateway/schemas/HOOK.schema.json"),
    *("gateway/schemas/config.schema.json", "gateway/web/pages/index.html", "gateway/py.typed"),
    *("sample_hooks/index.json", "sample_hooks/shell-hook/hook.sh", "hooks_builtin/echo/HOOK.yaml"),
)
PINNED = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+?))? \\\n(?P<hashes>(?: +--hash.*\n)+)",
    re.MULTILINE,
)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
MINORS = range(11, 30)
PATIENCE = 60.0
# Extras that no fresh environment has: each is asked for where it is missed, and nothing else stands still.
LACKING = """\
mcp_servers: {files: {command: no-such-program}}
traces: {endpoint: "http://127.0.0.1:9/v1/traces"}
"""
LACKED = ("the extra `mcp`", "the extra `otel`")


class Failed(Exception):
    """A promise does not hold."""


@dataclass(frozen=True, slots=True)
class Build:
    """The built files of a commit."""

    wheel: Path
    sources: Path

    @property
    def digests(self) -> dict[str, str]:
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (self.wheel, self.sources)}


def ask(*command: "str | Path", cwd: Path = ROOT, environ: Mapping[str, str] | None = None) -> str:
    """Return a command's output; raise with all of it after a failure."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()
        raise Failed(f"{' '.join(map(str, command))} ended with {done.returncode}\n{said}")
    return done.stdout.strip()


def version_of(tags: str, project: str) -> str:
    """The project's version, which a tag of the commit has to name; without a tag it is tried all the same."""
    version = str(tomllib.loads(project)["project"]["version"])
    named = [tag for tag in tags.split() if re.match(r"v\d", tag)]
    if named and f"v{version}" not in named:
        raise Failed(f"the commit has the tag {', '.join(named)}, and pyproject.toml the version {version}")
    return version


def build(uv: str, place: Path, moment: str) -> Build:
    """Build from the commit's files alone."""
    tree, into = place / "tree", place / "built"
    tree.mkdir(parents=True)
    archive = place / "tree.tar"
    ask("git", "-c", "tar.umask=0022", "archive", "-o", archive, "HEAD")
    ask("tar", "-x", "-p", "-f", archive, "-C", tree)
    options: list[str | Path] = [
        "--no-config",
        "--build-constraints",
        tree / "bootstrap.lock",
        "--require-hashes",
        "-o",
        into,
    ]
    ask(uv, "build", "-q", *options, tree, environ={"SOURCE_DATE_EPOCH": moment, "UV_NO_PROGRESS": "1"})
    return Build(next(into.glob("*.whl")), next(into.glob("*.tar.gz")))


def list_lost(made: Build) -> list[str]:
    """List the required files that are missing."""
    wheel = set(zipfile.ZipFile(made.wheel).namelist())
    with tarfile.open(made.sources) as packed:
        sources = {name.partition("/")[2] for name in packed.getnames()}
    return [
        *(f"{made.wheel.name} has no {path}" for path in CARRIED if path not in wheel),
        *(f"{made.sources.name} has no {path}" for path in (*CARRIED, "x", "requirements.lock") if path not in sources),
    ]


def find_pythons() -> dict[str, Path]:
    """Each minor version from 3.11 on: the one that runs this, those on PATH, and those that pyenv keeps."""
    named = (shutil.which(f"python3.{minor}") for minor in MINORS)
    kept = Path.home().glob(".pyenv/versions/3.*/bin/python3")
    found: dict[str, Path] = {}
    for python in [Path(sys.executable), *map(Path, filter(None, named)), *sorted(kept)]:
        code = "import sys, ensurepip, venv; print(sys.version_info >= (3, 11), '%d.%d' % sys.version_info[:2])"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        fits, _, version = done.stdout.strip().partition(" ")
        if fits == "True":
            found.setdefault(version, python)
    return found


@dataclass(frozen=True, slots=True)
class Installed:
    """The program in an environment of its own, and the variables with which that is changed."""

    program: Path
    environ: Mapping[str, str]

    @property
    def python(self) -> Path:
        return self.program.resolve().parent / "python"


def by_pip(wanted: str, python: Path, place: Path, limits: Path) -> Installed:
    ask(python, "-m", "venv", place)
    ask(place / "bin/python", "-m", "pip", "install", "-q", "-c", limits, wanted)
    return Installed(place / "bin" / NAME, {"PIP_CONSTRAINT": str(limits)})


def by_uv(wanted: str, python: Path, place: Path, limits: Path) -> Installed:
    environ = {"UV_TOOL_DIR": str(place), "UV_TOOL_BIN_DIR": str(place / "bin")}
    options: list[str | Path] = ["-q", "--no-config", "--python", python, "-c", limits]
    ask(os.environ["UV"], "tool", "install", *options, wanted, environ=environ)
    path = f"{Path(os.environ['UV']).parent}:{os.environ['PATH']}"
    return Installed(place / "bin" / NAME, {**environ, "PATH": path, "UV_CONSTRAINT": str(limits)})


def by_pipx(wanted: str, python: Path, place: Path, limits: Path) -> Installed:
    """By the pipx that .ci/pipx.lock names."""
    own, environ = place / "own", {"PIPX_HOME": str(place), "PIPX_BIN_DIR": str(place / "bin")}
    ask(os.environ["UV"], "venv", "-q", "--no-project", "--python", sys.executable, own)
    into: list[str | Path] = ["--no-config", "--python", own / "bin/python"]
    ask(os.environ["UV"], "pip", "install", "-q", *into, "--require-hashes", "-r", ROOT / ".ci/pipx.lock")
    pipx = own / "bin" / "pipx"
    ask(pipx, "install", "--python", python, "--pip-args", f"-c {limits}", wanted, environ=environ)
    path = f"{pipx.parent}:{os.environ['PATH']}"
    return Installed(place / "bin" / NAME, {**environ, "PATH": path, "PIP_CONSTRAINT": str(limits)})


INSTALLERS = {"pip": by_pip, "uv": by_uv, "pipx": by_pipx, "sdist": by_pip}
BRINGS = {
    "pip": "/bin/python -m pip install mcp",
    "uv": "/hermes-gateway/bin/python mcp",
    "pipx": "pipx inject hermes-gateway mcp",
    "sdist": "/bin/python -m pip install mcp",
}
"""What brings an extra there, as the gateway itself says it."""


def name_wanted(made: Build, installer: str) -> str:
    """Return the requirement as a person would write it: the wheel with an extra, the archive without."""
    return str(made.sources) if installer == "sdist" else f"{NAME}[media] @ {made.wheel.as_uri()}"


def write_limits(lock: str, place: Path) -> Path:
    """The versions of the lock: what is tried does not depend on the day on which it is."""
    limits = place / "limits.txt"
    limits.write_text("".join(f"{one['name']}=={one['version']}\n" for one in PINNED.finditer(lock)))
    return limits


def list_faults(installed: Installed, brings: str, version: str, home: Path) -> Iterator[str]:
    """What a newcomer would do with it, and what does not come of that."""
    home.mkdir()
    program = installed.program
    environ = {"HERMES_HOME": str(home), "GATEWAY_WEB_LISTEN": "127.0.0.1:0", "HOME": str(home), "NO_COLOR": "1"}
    said = {
        ("--version",): f"{NAME} {version}",
        ("completions", "fish"): "complete -c hermes-gateway",
        ("hooks", "schema"): '"hermes-gateway: HOOK.yaml"',
        ("hooks", "install", "prompt-guardrail", "--yes"): "decides on  agent:start",
    }
    for words, wanted in said.items():
        if wanted not in (told := ask(program, *words, environ=environ, cwd=home)):
            yield f"{' '.join(words)} says {told[:200]!r}"
    (home / "hermes-gateway").mkdir(exist_ok=True)
    (home / "hermes-gateway/config.yaml").write_text(LACKING, "utf-8")
    with running(program, environ, home):
        answer = ask_when_ready(program, environ, home)
        if answer != "The result is 84.":
            yield f"it answers {answer!r}"
        lacks = read_attention(program, environ)
        if not all(any(words in line for line in lacks) for words in (*LACKED, brings)):
            yield f"of what it lacks it says {lacks!r}"
            return
    line = next(line for line in lacks if brings in line).partition("installs with: ")[2]
    ask(*shlex.split(line), environ={**environ, **installed.environ})
    with running(program, environ, home):
        ask_when_ready(program, environ, home)
        if LACKED[0] in "\n".join(left := read_attention(program, environ)):
            yield f"after {line!r} it says {left!r}"


def read_attention(program: Path, environ: Mapping[str, str]) -> list[str]:
    found: list[str] = json.loads(ask(program, "status", "--json", environ=environ))["attention"]
    return found


@contextmanager
def running(program: Path, environ: Mapping[str, str], home: Path) -> Generator[None, None, None]:
    """The gateway. Failed: it does not end well."""
    with (home / "log").open("wb") as log:
        daemon = subprocess.Popen([program, "run"], env={**os.environ, **environ}, cwd=home, stdout=log, stderr=log)
    try:
        yield
        daemon.send_signal(signal.SIGTERM)
        if status := daemon.wait(PATIENCE):
            raise Failed(f"it ended with {status}")
    finally:
        daemon.kill()
        daemon.wait()


def ask_when_ready(program: Path, environ: Mapping[str, str], home: Path) -> str:
    patience = Patience(PATIENCE)
    while True:
        try:
            return ask(program, "chat", "-m", "what is 12 * (3 + 4)", environ=environ, cwd=home)
        except Failed as failed:
            if patience.is_over():
                raise Failed(f"{failed}\n{(home / 'log').read_text('utf-8', 'replace')}") from None
            time.sleep(0.2)


def make_bill(lock: str, version: str, digests: Mapping[str, str], moment: str) -> str:
    """List the components, as CycloneDX; equal for equal commits."""
    own = {"type": "application", "name": NAME, "version": version, "purl": f"pkg:pypi/{NAME}@{version}"}
    own["bom-ref"] = own["purl"]
    components = []
    for one in PINNED.finditer(lock):
        purl = f"pkg:pypi/{one['name'].lower().replace('_', '-')}@{one['version']}"
        component = {"type": "library", "name": one["name"], "version": one["version"], "purl": purl, "bom-ref": purl}
        component["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in HASH.findall(one["hashes"])]
        if one["marker"]:
            component["properties"] = [{"name": f"{NAME}:only-where", "value": one["marker"].strip()}]
        components.append(component)
    number = uuid.uuid5(uuid.NAMESPACE_URL, " ".join(digests.values()))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
        },
        "components": components,
    }
    return json.dumps(bill, indent=2) + "\n"


def build_twice(uv: str, place: Path, moment: str) -> Build:
    """At two places of which one lets others read what is written, and the other not."""
    made = []
    for umask, name in ((0o022, "one"), (0o077, "another/further/down")):
        before = os.umask(umask)
        try:
            made.append(build(uv, place / name, moment))
        finally:
            os.umask(before)
    first, second = made
    if first.digests != second.digests:
        raise Failed(f"built twice, it is not the same: {first.digests} and {second.digests}")
    return first


def try_installers(made: Build, version: str, pythons: Mapping[str, Path], place: Path) -> list[str]:
    """Each in an environment that is new, two at a time; a line of each as it is done."""
    limits = write_limits((ROOT / "requirements.lock").read_text("utf-8"), place)

    def try_one(minor: str, name: str) -> list[str]:
        begun, fresh = time.monotonic(), place / f"{name}-{minor}"
        try:
            installed = INSTALLERS[name](name_wanted(made, name), pythons[minor], fresh, limits)
            if name != "sdist":
                ask(installed.python, "-c", "import PIL, pypdfium2")
            faults = list(list_faults(installed, BRINGS[name], version, place / f"home-{name}-{minor}"))
        except Failed as failed:
            faults = [str(failed)]
        shutil.rmtree(fresh, ignore_errors=True)
        said = f"{len(faults)} faults" if faults else "works"
        print(f"{name:<5} python {minor:<5} {said:<9} {time.monotonic() - begun:5.1f} s", flush=True)
        return [f"{name}, python {minor}: {fault}" for fault in faults]

    with ThreadPoolExecutor(2) as pool:
        return list(chain.from_iterable(pool.map(try_one, *zip(*product(pythons, INSTALLERS), strict=True))))


def put(made: Build, version: str, moment: str, into: Path) -> None:
    """All that belongs to a release, and nothing of one before."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for file in (made.wheel, made.sources):
        shutil.copy(file, into)
    bill = make_bill((ROOT / "requirements.lock").read_text("utf-8"), version, made.digests, moment)
    (into / f"hermes_gateway-{version}.cdx.json").write_text(bill, "utf-8")
    files = sorted(into.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (into / "SHA256SUMS").write_text("".join(sums), "utf-8")
    print("".join(sums), end="")


def release(pythons: Mapping[str, Path], into: Path) -> None:
    if changed := ask("git", "status", "--porcelain", "--untracked-files=no"):
        raise Failed(f"what is released is the commit, and these are not as it has them:\n{changed}")
    tags = ask("git", "tag", "--points-at", "HEAD")
    version = version_of(tags, (ROOT / "pyproject.toml").read_text("utf-8"))
    moment = ask("git", "log", "-1", "--format=%ct")
    print(f"{NAME} {version}, commit {ask('git', 'rev-parse', '--short', 'HEAD')}, tag {tags or 'none'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        place = Path(folder)
        made = build_twice(os.environ["UV"], place, moment)
        faults = [*list_lost(made), *try_installers(made, version, pythons, place)]
        if faults:
            raise Failed("\n".join(faults))
        put(made, version, moment, into)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="what CI runs: this Python alone")
    options = parser.parse_args(words)
    pythons = find_pythons()
    if options.short:
        pythons = dict(list(pythons.items())[:1])
    try:
        release(pythons, INTO)
    except Failed as failed:
        print(f"not released: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
