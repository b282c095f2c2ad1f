"""Installed programs, the wheels of other versions, and a home with a network and a hook on it."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.daemon.home_lock import lock_holder_of
from gateway.testing import GatewayProcess
from tests.siege.processes import end, left_behind
from tests.upgrade.programs import ROOT, Program, make_wheel

PATIENCE = 180.0
FEW_SECONDS = {"gateway/cli/upgrade/__init__.py": "\nUP_PATIENCE = 15.0\n"}
PIGEONS = """
adapters: {{dirs: ["{adapters}"]}}
platforms: {{pigeon: {{enabled: true, loft: "{loft}"}}}}
access: {{owners: {{pigeon: [P1]}}}}
"""
HOOK = """import time
from importlib.metadata import version

time.sleep(version("hermes-gateway") == "0.3.0")
assert version("hermes-gateway") != "0.3.0"


def handle(event_type, context):
    pass
"""
FLIGHT = "    async def serve(self, presence: Presence) -> None:\n"
LAME = '        if __version__ == "0.4.0":\n            raise AdapterError("the pigeon is lame")\n'


class InstalledGateway(GatewayProcess):
    """A home that an installed program serves, with pigeons and a hook; whoever starts it, it ends with the test."""

    def __init__(self, folder: Path, program: Program) -> None:
        super().__init__(folder / "home")
        self.program, self.loft = program, folder / "loft"
        self.environ |= program.environ
        self.loft.mkdir()
        shutil.copytree(ROOT / "docs" / "adapters" / "pigeon", folder / "adapters" / "pigeon")
        adapter = folder / "adapters" / "pigeon" / "adapter.py"
        text = adapter.read_text().replace(FLIGHT, FLIGHT + LAME)
        adapter.write_text(text.replace("import anyio\n", "import anyio\n\nfrom gateway import __version__\n", 1))
        self.configure(PIGEONS.format(adapters=folder / "adapters", loft=self.loft))
        self.home.env.write_text("PIGEON_RING=ring-abcdefghij\n")
        self.home.env.chmod(0o600)
        self.add_hook("watch", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": HOOK})

    def __exit__(self, *error: object) -> None:
        """One that waits for the home takes it when the other is killed."""
        super().kill()
        for pid in left_behind(self.home.root):
            end(pid)

    def start(self, *args: str, environ: Mapping[str, str] | None = None) -> None:
        self.kill()  # it has ended, by an upgrade
        super().start(*args, environ=environ)

    @property
    def pid(self) -> int:
        found = re.search(r"pid (\d+)", lock_holder_of(self.home.lock))
        return int(found[1]) if found else 0

    @property
    def version(self) -> str:
        return str(self.call("status")["version"])

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        told = {**self.environ, **(environ or {})}
        pipe = subprocess.PIPE
        return subprocess.Popen([str(self.program.path), *args], env=told, stdout=pipe, stderr=pipe, text=True)

    def cli(self, *args: str, timeout: float = PATIENCE) -> "subprocess.CompletedProcess[str]":
        return super().cli(*args, timeout=timeout)

    def upgrade(self, wheel: Path, cut: str = "") -> "subprocess.CompletedProcess[str]":
        """`cut`: before what it is killed, as `programs.CUT` says."""
        words = [str(self.program.path), "upgrade", "--yes", "--from", str(wheel)]
        told = {**self.environ, "UPGRADE_CUT": cut}
        return subprocess.run(words, env=told, capture_output=True, text=True, check=False)

    def write(self, number: int, text: str) -> None:
        (self.loft / f"{number}.new").write_text(text)
        (self.loft / f"{number}.new").rename(self.loft / f"{number}.in")

    def letters(self) -> list[str]:
        return sorted(path.read_text() for path in self.loft.glob("*.out"))

    def wait_for_letters(self, *texts: str) -> None:
        self.until(lambda: self.letters() == sorted(texts))

    def is_pigeon_up(self) -> bool:
        return bool(self.call("status")["platforms"]["pigeon"]["up"])


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By version: with 0.3.0 a hook does not run, with 0.4.0 no pigeon flies, and 0.5.0 is broken."""
    folder = tmp_path_factory.mktemp("wheels")
    broken = {"gateway/cli/output.py": '\nraise RuntimeError("broken")\n'}
    faults = {"0.1.0": FEW_SECONDS, "0.5.0": broken}
    versions = ("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0")
    return {version: make_wheel(folder, version, faults.get(version)) for version in versions}


@pytest.fixture
def gateway(tmp_path: Path, wheels: dict[str, Path]) -> Iterator[InstalledGateway]:
    """Version 0.1.0, which runs."""
    with InstalledGateway(tmp_path, Program(tmp_path, wheels["0.1.0"])) as installed:
        installed.start()
        installed.until(installed.is_pigeon_up)
        yield installed
