"""A plugin uses our tools with the rights of the person whose event it received."""

import json
import shutil
from functools import partial
from pathlib import Path

from gateway.config.home import Home
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.discord_wire import DiscordWire
from tests.spine import until

PLUGIN = Path(__file__).parent / "plugins" / "path-guard"


def has_said(house: House, count: int) -> bool:
    return len(house.told("message:sent")) >= count


async def test_a_plugins_command_reaches_the_roots_for_the_owner_and_for_no_user(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    shutil.copytree(PLUGIN, home.plugins / "path-guard")
    home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["path-guard"]}}))
    wire = DiscordWire()
    settings = f"access: {{owners: {{discord: ['{wire.known_as(ANN)}']}}, rate: 100}}\n"
    async with wire.serving(), housed(wire, home.root, {"text": "x"}, settings=settings) as house:
        (home.own_folder / "workspace" / "kingfisher.txt").write_text("x")
        for number, (by, reaches) in enumerate(((ANN, True), (BEN, False), (ANN, True))):
            await wire.write("/path-list", by=by)
            await until(partial(has_said, house, number + 1), f"the answer to {by}", 60)
            said = house.told("message:sent")[-1]["text"]
            assert ("kingfisher" in said) is reaches
            assert ("no directory is open" in said) is not reaches
