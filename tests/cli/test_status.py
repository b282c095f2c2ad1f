"""`status` prints ten lines while all is well, and one more for each thing that needs a person."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"text": "well"})
        gateway.start()
        yield gateway


def has_problems(gateway: GatewayProcess, count: int) -> bool:
    return len(gateway.call("status")["attention"]) == count


def test_what_is_well_is_ten_lines_and_what_is_not_one_more(gateway: GatewayProcess) -> None:
    names = [line.split()[0] for line in gateway.cli("status").stdout.splitlines()]
    fields = ["gateway", "home", "model", "networks", "hooks", "turns", "owner", "page", "journal", "backup"]
    assert [name for name in names if name != "-"] == fields
    for count, name in enumerate(("one", "two"), 1):
        gateway.add_hook(name, {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "this is not Python"})
        gateway.until(partial(has_problems, gateway, count))
    marked = [line for line in gateway.cli("status").stdout.splitlines() if line.startswith("!")]
    assert [name in line for name, line in zip(("one", "two"), marked, strict=True)] == [True, True], marked


def test_each_part_is_named_in_words_where_somebody_asks_for_it(gateway: GatewayProcess) -> None:
    parts = gateway.call("status")["parts"]
    shown = gateway.cli("status", "--parts").stdout
    for part in parts:
        assert part["does"] in shown
        assert "network" not in part["does"], f"PART_WORDS has no words for {part['name']}, and no network is served"


def test_a_configuration_that_a_power_cut_emptied_is_named(gateway: GatewayProcess) -> None:
    gateway.home.config.write_bytes(b"")
    assert "(config.yaml of 0 bytes)" in gateway.cli("status").stdout
