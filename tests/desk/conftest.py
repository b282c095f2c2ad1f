"""A gateway with an owner on a network, and a home on a desk that is connected to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.desk.desk_program import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= {name: value for name, value in wire.environ.items() if "TOKEN" not in name}
            access = f"access: {{owners: {{telegram: ['{ANN}']}}, admins: {{telegram: ['{BEN}']}}}}\n"
            gateway.script({"user": "", "text": "Hello."}, settings=access)
            gateway.home.env.write_text(f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
            gateway.home.env.chmod(0o600)
            (tmp_path / "desk").mkdir()
            desk = Desk(gateway, wire, tmp_path / "desk")
            await desk.connect()
            await to_thread.run_sync(gateway.start)
            yield desk
            await to_thread.run_sync(gateway.kill)  # while the network still sees its connections end
