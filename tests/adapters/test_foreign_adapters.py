"""Adapters that others wrote: found by a directory or an entry point, loaded when they are wanted, and never trusted to
be well. Whatever one of them does, the pigeons beside it fly.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.thorough

PIGEON = Path(__file__).parent.parent.parent / "docs" / "adapters" / "pigeon"
SETTINGS = """
from gateway.adapters import PlatformSettings, PlatformSpec


class OwlSettings(PlatformSettings, frozen=True, kw_only=True):
    "Owls."

    nest: str = ""


SPEC = PlatformSpec(OwlSettings, "such as O1", "O[0-9]+", "O[0-9]+", {"OWL_NEST": "platforms.owl.nest"})
"""
ADAPTER = """
import anyio
import sys


class OwlAdapter:
    def __init__(self, settings, context):
        pass

    async def serve(self, presence):
        {does}


ADAPTER = OwlAdapter
"""


class Aviary(GatewayProcess):
    """A gateway with pigeons, and owls beside them."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.place = root.parent / "adapters"
        self.owl = self.place / "owl"
        self.loft = root.parent / "loft"
        self.loft.mkdir()
        shutil.copytree(PIGEON, self.place / "pigeon", ignore=shutil.ignore_patterns("__pycache__"))
        self.place.chmod(0o755)
        self.environ |= {"PIGEON_LOFT": str(self.loft), "PIGEON_RING": "ring-abcdefgh", "PIGEON_ALLOWED_USERS": "P1"}

    def settle(self, files: Mapping[str, str], owl: str = "{enabled: true}") -> None:
        """Put the owls there, and configure."""
        self.owl.mkdir(exist_ok=True)
        for name, text in files.items():
            (self.owl / name).write_text(text)
        self.script(
            {"text": "coo"},
            settings=f"adapters: {{dirs: ['{self.place}']}}\nplatforms: {{pigeon: {{enabled: true}}, owl: {owl}}}\n",
        )

    def pigeons_fly(self) -> None:
        (self.loft / "letter.new").write_text("are you there?")
        (self.loft / "letter.new").rename(self.loft / "letter.in")
        self.until(lambda: any("coo" in one.read_text() for one in self.loft.glob("*.out")), 60)

    def why_off(self, name: str) -> str:
        return str(self.call("status")["platforms_off"].get(name, ""))

    def detail(self, name: str) -> str:
        return str(self.call("status")["platforms"][name]["detail"])


@pytest.fixture
def aviary(tmp_path: Path) -> Iterator[Aviary]:
    with Aviary(tmp_path / "home") as gateway:
        yield gateway


@pytest.mark.process
@pytest.mark.parametrize(
    ("settings", "what", "remedy"),
    [
        ("import nothing_of_that_name\n", "settings.py:1", "install what has nothing_of_that_name"),
        ("x = (\n", "settings.py:1", "correct it"),
        ("raise RuntimeError('the owl is ill')\n", "RuntimeError: the owl is ill", "correct it"),
        ("import sys\nsys.exit('no')\n", "SystemExit: no", "correct it"),
        ("SPEC = 7\n", "SPEC is not a PlatformSpec", "correct it"),
        (SETTINGS.replace("platforms.owl.nest", "web.listen"), "and not web.listen", "correct it"),
    ],
)
def test_one_that_cannot_be_loaded_is_told_with_its_place_and_disturbs_nobody(
    aviary: Aviary, settings: str, what: str, remedy: str
) -> None:
    aviary.settle({"settings.py": settings}, "{enabled: true, nest: tree}")
    said = aviary.cli("config", "check")
    assert said.returncode == 0
    assert what in said.stdout
    assert remedy in said.stdout
    assert f"{aviary.home.config}:4:" in said.stdout
    aviary.start()
    aviary.pigeons_fly()
    assert what in aviary.why_off("owl")
    assert "owl is switched on and not served" in " ".join(aviary.cli("doctor").stdout.split())


@pytest.mark.process
@pytest.mark.parametrize(
    ("adapter", "said"),
    [
        ("import nothing_of_that_name\n", "install what has nothing_of_that_name"),
        (ADAPTER.format(does="raise RuntimeError('the owl is ill')"), "RuntimeError: the owl is ill"),
        (ADAPTER.format(does="sys.exit(3)"), "SystemExit: 3"),
        ("def ADAPTER(settings, context):\n    return settings / context\n", "TypeError: unsupported operand"),
    ],
)
def test_one_that_fails_at_work_is_told_with_its_place_and_disturbs_nobody(
    aviary: Aviary, adapter: str, said: str
) -> None:
    aviary.settle({"settings.py": SETTINGS, "adapter.py": adapter})
    aviary.start()
    aviary.until(lambda: said in aviary.detail("owl"), 60)
    assert "adapter.py:" in aviary.detail("owl")
    aviary.pigeons_fly()
    listed = {one["name"]: one for one in json.loads(aviary.cli("platform", "list", "--json").stdout)["platforms"]}
    assert (listed["owl"]["up"], listed["pigeon"]["up"]) == (False, True)
    assert listed["owl"]["origin"] == str(aviary.owl)


@pytest.mark.process
def test_one_that_never_ends_being_loaded_is_left_behind(aviary: Aviary) -> None:
    aviary.settle({"settings.py": "import time\ntime.sleep(3600)\n"})
    aviary.start()
    aviary.pigeons_fly()
    assert "is not loaded within" in aviary.why_off("owl")
    code, _, _ = aviary.stop()
    assert code == 0


@pytest.mark.process
def test_one_that_never_connects_is_told_as_down_and_ends_with_the_gateway(aviary: Aviary) -> None:
    aviary.settle({"settings.py": SETTINGS, "adapter.py": ADAPTER.format(does="await anyio.sleep_forever()")})
    aviary.start()
    aviary.pigeons_fly()
    shown = aviary.cli("status").stdout
    assert f"runs inside the gateway, from {aviary.owl}" in shown
    assert "networks  owl down (" in shown
    code, _, _ = aviary.stop()
    assert code == 0


@pytest.mark.process
def test_nothing_of_one_that_is_not_enabled_is_loaded(aviary: Aviary, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    files = {"settings.py": f"open({str(trace)!r}, 'w').close()\n{SETTINGS}"}
    aviary.settle(files, "{nest: tree, home_channel: O1}")
    assert aviary.cli("config", "check").returncode == 0
    assert "it runs inside the gateway" in aviary.cli("setup", "--help").stdout
    aviary.start()
    assert aviary.why_off("owl") == "switched off"
    aviary.stop()
    assert not trace.exists()
    aviary.settle(files, "{enabled: true, nets: tree}")
    said = aviary.cli("config", "check").stdout
    assert f"{aviary.home.config}:4:59: error: `platforms.owl.nets` is not known" in said
    assert trace.exists()


@pytest.mark.process
def test_what_others_could_have_written_is_not_loaded(aviary: Aviary, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    aviary.settle({"settings.py": f"open({str(trace)!r}, 'w').close()\n{SETTINGS}", "more.py": "x = 1\n"})
    for path, mode in ((aviary.owl / "more.py", 0o646), (aviary.owl, 0o707), (aviary.place, 0o757)):
        before = path.stat().st_mode
        path.chmod(mode)
        said = aviary.cli("config", "check").stdout
        assert f"{path}: warning: everybody on this machine can change it; run: chmod o-w {path}" in said
        path.chmod(before)
    (aviary.owl / "more.py").unlink()
    (aviary.owl / "more.py").symlink_to(tmp_path / "elsewhere.py")
    assert "is a link that leads out of the folder" in aviary.cli("config", "check").stdout
    assert not trace.exists()
    (aviary.owl / "more.py").unlink()
    assert "is right" in aviary.cli("config", "check").stdout
    assert trace.exists()


@pytest.mark.process
def test_a_directory_in_which_nothing_can_be_found_is_told(aviary: Aviary, tmp_path: Path) -> None:
    aviary.configure(f"adapters: {{dirs: ['{tmp_path / 'nowhere'}', '{aviary.place / 'pigeon'}']}}\n")
    done = aviary.cli("config", "check")
    assert done.returncode == 0
    for said in (
        f"{aviary.home.config}:1:18: warning: adapters.dirs: directory {tmp_path / 'nowhere'} not found; make it",
        f"{aviary.place / 'pigeon'} is an adapter, and adapters.dirs names directories that contain adapters; ",
        f"write {aviary.place}\n",
    ):
        assert said in done.stdout
    found = json.loads(aviary.cli("doctor", "--json").stdout)
    assert len(found["checks"]["configuration"]) == 2


@pytest.mark.process
def test_doctor_and_audit_say_whose_code_runs_inside(aviary: Aviary) -> None:
    aviary.settle({"settings.py": SETTINGS}, "{enabled: false}")
    inside = f"pigeon runs inside the gateway, from {aviary.place / 'pigeon'}"
    found = json.loads(aviary.cli("doctor", "--json").stdout)
    assert (found["ok"], found["origins"]) == (True, {"pigeon": str(aviary.place / "pigeon")})
    assert inside in " ".join(aviary.cli("doctor").stdout.split())
    told = json.loads(aviary.cli("security", "audit", "--json").stdout)
    assert [one["what"].startswith(inside) for one in told["notices"] if one["id"] == "adapters.in-process"] == [True]


@pytest.mark.process
def test_one_that_calls_itself_like_another_is_passed_over(aviary: Aviary) -> None:
    aviary.settle({"settings.py": SETTINGS})
    for name in ("telegram", "web", "desk", "internal", "Night-Owl", "class"):
        shutil.copytree(aviary.owl, aviary.place / name)
    said = aviary.cli("config", "check")
    assert said.returncode == 0
    for name in ("telegram", "web", "desk", "internal", "Night-Owl", "class"):
        assert f"{aviary.place / name} is not a valid name for a network" in said.stdout


@pytest.mark.process
def test_a_package_with_an_entry_point_is_found(aviary: Aviary, tmp_path: Path) -> None:
    aviary.settle({"settings.py": SETTINGS, "adapter.py": ADAPTER.format(does="await anyio.sleep_forever()")})
    packages = tmp_path / "packages"
    shutil.copytree(aviary.owl, packages / "owl_post")
    shutil.rmtree(aviary.owl)
    (packages / "owl_post" / "__init__.py").write_text('"""Owls."""\n')
    about = packages / "owl_post-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: owl-post\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hermes_gateway.adapters]\nowl = owl_post\n")
    aviary.environ["PYTHONPATH"] = str(packages)
    assert "owl" in aviary.cli("setup", "--help").stdout
    aviary.start()
    assert aviary.call("status")["platforms"]["owl"]["origin"] == "the package owl-post 1.0"


@pytest.mark.process
def test_the_agent_reaches_no_code_of_adapters(aviary: Aviary) -> None:
    aviary.settle({"settings.py": SETTINGS}, "{enabled: false}")
    writes = {"name": "write_file", "args": {"path": str(aviary.owl / "settings.py"), "content": "x = 1"}}
    reads = {"name": "read_file", "args": {"path": str(aviary.owl / "settings.py")}}
    aviary.script(
        {"user": "write", "answers": [{"tool_calls": [writes, reads]}, {"text": "I tried."}]},
        settings=f"adapters: {{dirs: ['{aviary.place}']}}\ntools: {{roots: ['{aviary.place.parent}']}}\n",
    )
    aviary.start()
    assert aviary.say("write")["reply"] == "I tried."
    shown = json.dumps(aviary.call("sessions.show", {"session": "agent:main:terminal:dm:main"}))
    assert shown.count("is not open to the agent") == 2
    assert (aviary.owl / "settings.py").read_text() == SETTINGS
