"""A network is its folder and a row: an invented one is added to the table, and appears wherever networks do."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.adapters import ADAPTERS
from gateway.adapters.shared.folder import load_settings_schema
from gateway.testing import GatewayProcess

ROOT = Path(__file__).parent.parent.parent
RING = "ring-abcdefghij"
ADAPTERS_DIR = ROOT / "docs" / "adapters"
ON = "platforms: {pigeon: {enabled: true}}\n"


class PigeonProcess(GatewayProcess):
    """A gateway whose owner has the pigeons of the documentation."""

    def configure(self, text: str) -> None:
        super().configure(f"adapters: {{dirs: ['{ADAPTERS_DIR}']}}\n{text}")


@pytest.fixture
def pigeons(tmp_path: Path) -> Iterator[PigeonProcess]:
    (tmp_path / "loft").mkdir()
    with PigeonProcess(tmp_path / "home") as gateway:
        gateway.script({"text": "coo"}, settings=ON)
        gateway.environ |= {"PIGEON_LOFT": str(tmp_path / "loft"), "PIGEON_ALLOWED_USERS": "P1"}
        yield gateway


@pytest.mark.process
def test_the_configuration_knows_it(pigeons: PigeonProcess) -> None:
    pigeons.configure("platforms: {pigeon: {enabled: true, lofty: 1}}\naccess: {chats: {pigeon: [Fred]}}\n")
    said = pigeons.cli("config", "check").stdout
    assert "`platforms.pigeon.lofty` is not known" in said
    assert "entry 1 of `access.chats.pigeon` is not an id" in said
    pigeons.configure("platforms: {pigeon: {enabled: true}}\n")
    said = pigeons.cli("config", "check").stdout
    assert "pigeon cannot be used: PIGEON_RING is not set; run: hermes-gateway setup pigeon" in said
    pigeons.configure("platforms: {pigeon: {enabled: true, ring_token: ring-x}}\n")
    assert "`platforms.pigeon.ring_token` is a secret" in pigeons.cli("config", "check").stdout
    schema = json.loads(pigeons.cli("config", "schema").stdout)["properties"]
    assert schema["platforms"]["properties"]["pigeon"]["description"] == "Carrier pigeons, by a loft."
    assert "pigeon" in schema["access"]["properties"]["everybody"]["items"]["enum"]
    assert schema["access"]["properties"]["users"]["properties"]["pigeon"]["description"] == "such as P1"


@pytest.mark.process
def test_the_environment_sets_it_and_its_token_stays_hidden(pigeons: PigeonProcess) -> None:
    pigeons.environ |= {"PIGEON_RING": RING, "GATEWAY_PLATFORMS_PIGEON_STREAMING": "off", "PIGEON_ALLOW_ALL_USERS": "1"}
    settings = json.loads(pigeons.cli("config", "show", "--json").stdout)["settings"]
    assert settings["platforms"]["pigeon"]["ring_token"] == "[secret]"
    assert settings["platforms"]["pigeon"]["streaming"] == "off"
    assert settings["access"]["users"]["pigeon"] == ["P1"]
    assert settings["access"]["everybody"] == ["pigeon"]


@pytest.mark.process
def test_the_command_line_names_it(pigeons: PigeonProcess) -> None:
    assert "it runs inside the gateway" in pigeons.cli("setup", "--help").stdout
    assert "build a loft for carrier pigeons" in pigeons.cli("setup", "pigeon", "--help").stdout
    assert "telegram, discord, slack, matrix or pigeon" in pigeons.cli("pairing", "revoke", "--help").stdout
    assert "telegram, discord, slack, matrix or pigeon" in pigeons.cli("platform", "pause", "--help").stdout
    pigeons.configure("platforms: {pigeon: {enabled: true}}\n")
    assert "pigeon cannot be used: PIGEON_RING is not set" in pigeons.cli("doctor").stdout


@pytest.mark.process
def test_setup_tries_its_token_and_writes_it(pigeons: PigeonProcess) -> None:
    assert "does not look like one" in pigeons.cli("setup", "pigeon", "--ring", "feather").stderr
    done = pigeons.cli("setup", "pigeon", "--ring", RING)
    assert "a pigeon of /" in done.stdout
    assert f"PIGEON_RING={RING}" in pigeons.home.env.read_text()


@pytest.mark.process
def test_it_is_served_and_what_looks_like_its_token_is_not_logged(pigeons: PigeonProcess, tmp_path: Path) -> None:
    loft = tmp_path / "loft"
    pigeons.environ["PIGEON_RING"] = RING
    pigeons.add_hook("loud", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": LOUD})
    pigeons.start()
    (loft / "letter").write_text("are you there?")
    (loft / "letter").rename(loft / "letter.in")
    pigeons.until(lambda: any("coo" in answer.read_text() for answer in loft.glob("*.out")))
    listed = pigeons.cli("platform", "list", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)["platforms"]] == ["pigeon"]
    assert "pigeon is paused" in pigeons.cli("platform", "pause", "pigeon").stdout
    pigeons.until(lambda: "the ring is [secret]" in pigeons.home.log.read_text())
    assert "ring-zyxwvuts" not in pigeons.home.log.read_text()


LOUD = """
def handle(event_type, context):
    raise ValueError("the ring is ring-zyxwvuts")
"""


@pytest.mark.process
def test_what_is_known_of_a_network_needs_no_library() -> None:
    """Settings and questions are read by commands that serve nobody."""
    libraries = {name for spec in load_settings_schema().platforms.values() for name in spec.libraries}
    program = f"""
import sys
from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.folder import load_settings_schema, load_setup
load_settings_schema()
print(*[load_setup(place).summary for place in list_places(None).values()])
floors = ("gateway.engine", "gateway.hooks", "gateway.outbox", "gateway.sessions", "gateway.access")
print([name for name in sys.modules if name.split(".")[0] in {libraries!r} or name.startswith(floors)], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == "[]\n"
    assert len(done.stdout.split("connect a")) == len(ADAPTERS) + 1
