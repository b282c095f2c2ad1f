"""A gateway in the test's own loop, behind a network's wire: real journal, lanes, hooks, outbox and library."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.adapters.shared.adapter import PresenceFacts
from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home
from gateway.config.loading import find_schema, load_configuration
from gateway.config.permissions import prepare_home
from gateway.config.platform_settings import list_accounts
from gateway.config.schema import ending_of
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.parts import PartStatus
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.startup import open_gateway
from gateway.messages.message import name_of_account
from gateway.messages.parts import MessagePart
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import GatewayParts, until
from gateway.testing.networks.wire import ANN, BEN, Shown, Wire

SCRIPT = ({"user": "what is", "answers": [{"text": "It is 42."}]}, *({"text": "I heard you."},) * 20)


@dataclass
class House:
    """A test's view of a gateway: the wire in front of it, and the events in it."""

    wire: Wire
    gateway: GatewayParts
    events: list[tuple[str, dict[str, Any]]]
    account: str = ""

    @property
    def name(self) -> str:
        """The name of the bot."""
        return name_of_account(self.wire.network, self.account)

    @property
    def presence(self) -> PresenceFacts:
        return next(one.presence.facts for one in self.gateway.platforms if one.name == self.name)

    @property
    def part(self) -> PartStatus:
        return next(one.part.facts for one in self.gateway.platforms if one.name == self.name)

    @property
    def native_parts(self) -> tuple[type[MessagePart], ...]:
        """The parts, neither text nor file, that the network shows natively."""
        known = list_accounts(self.gateway.settings.platforms)
        return next((type(one.settings).NATIVE_PARTS for one in known if one.name == self.name), ())

    def told(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name, of this network."""
        return [fields for event, fields in self.events if event == name and self._is_ours(fields)]

    async def hears(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait for that many events of a name, and check that no more came."""
        await until(lambda: len(self.told(name)) >= count, f"{count} x {name}")
        assert len(self.told(name)) == count, self.told(name)
        return self.told(name)

    async def shows(self, text: str, count: int = 1) -> list[Shown]:
        """Wait until the chats show that many messages with this text in them."""
        await until(lambda: len(self.with_text(text)) >= count, f"{count} x {text!r}, not {self.wire.shown},")
        return self.with_text(text)

    async def shows_all(self, message_ids: Sequence[str]) -> None:
        """Wait until the chats show exactly these messages: a network shows a message later than it takes it."""
        await until(lambda: len(self.wire.shown) >= len(message_ids), f"{message_ids}, not {self.wire.shown},")
        assert [one.id for one in self.wire.shown] == list(message_ids)

    def with_text(self, text: str) -> list[Shown]:
        return [one for one in self.wire.shown if text in one.text]

    async def is_up(self) -> None:
        """Wait until the network is connected, if one is behind the wire."""
        if any(one.name == self.name for one in self.gateway.platforms):
            await until(lambda: self.presence.up, "the network")

    def _is_ours(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("platform") == self.wire.network


def variables_of(wire: Wire, account: str, home: Home) -> dict[str, str]:
    """Return the variables of a wire, for a bot that has this name beside the network's own."""
    schema = find_schema(load_settings_schema(), home, wire.environ)
    shared, ending = schema.platforms[wire.network].settings.SHARED, ending_of(account)
    named = schema.list_account_variables(wire.network, account)
    theirs = {one.variable for one in named if one.path[-1] not in shared}
    found = {f"{name}{ending}" if f"{name}{ending}" in theirs else name: it for name, it in wire.environ.items()}
    return {**found, schema.account_lists[wire.network]: account}


@asynccontextmanager
async def housed(
    wire: Wire,
    root: Path,
    *script: Mapping[str, Any],
    settings: str = "",
    environ: Mapping[str, str] | None = None,
    beside: Sequence[Wire] = (),
    account: str = "",
) -> AsyncIterator[House]:
    """Run a gateway that serves the wire, up and connected; `settings` is YAML, with a model or for the script's.

    It serves the wires `beside` too, and does not wait for them. The wire's bot is the network's `account`.
    """
    started = GatewayProcess(root)
    settings += "".join(one.settings for one in (wire, *beside))
    if any(line.startswith("model:") for line in settings.splitlines()):
        started.configure(settings)
    else:
        started.script(*(script or SCRIPT), settings=settings)
    served = dict(started.environ)
    for one in (wire, *beside):
        people = ",".join(one.known_as(person) for person in (ANN, BEN))
        found = variables_of(one, account, started.home) if account and one is wire else one.environ
        served |= {f"{one.network.upper()}_ALLOWED_USERS": people, **found}
    configuration = load_configuration(load_settings_schema(), started.home, {**served, **(environ or {})})
    prepare_home(started.home)
    events: list[tuple[str, dict[str, Any]]] = []
    async with open_gateway(started.home, configuration, Shutdown(2.5), build_verbs) as gateway:
        remove = gateway.base.registry.watch("*", lambda name, fields: events.append((name, dict(fields))))
        house = House(wire, GatewayParts(gateway), events, account)
        await house.is_up()
        yield house
        remove()
