"""The chat networks that are switched on. Each network is a part: neither the start nor a network waits for another.

Each bot of a network is a part of its own, called `telegram` or, with its account, `telegram:work`.

A thread imports the library of a network when the network needs it, so the rest of the gateway starts at once.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import anyio.abc

from gateway.adapters.shared.adapter import Adapter, AdapterContext, Presence
from gateway.adapters.shared.adapter_loading import describe_fault, load_part
from gateway.config.loading import Configuration
from gateway.config.platform_settings import PlatformAccount, PlatformPlace, PlatformSettings, list_accounts
from gateway.config.settings import AllPlatformSettings
from gateway.daemon.nodes import BOT, Nodes
from gateway.errors import AdapterError, GatewayError, unwrap_error
from gateway.threads import run_in_thread

PAUSED_REASON = "paused"
PROBE_SECONDS = 10.0
SILENCE_SECONDS = 60.0
NOT_HERE = "on standby: this node serves no networks (`node.roles`)"
SILENT = "it has not said that it is up within {seconds:.0f} s; its code is {origin}"


class PlatformPart:
    """One bot of a network that is switched on: its part and its state."""

    def __init__(self, served: PlatformAccount, context: AdapterContext, place: PlatformPlace, nodes: Nodes) -> None:
        self.name = served.name
        self._nodes, self.key = nodes, f"{BOT}{self.name}"
        self.part = nodes.make_part(self.name, self._serve, self.key, self._rest, self._load)
        parts, told = context.parts, (served.account, place.origin)
        self.presence = Presence(
            served.platform, parts.registry, self.part.up, parts.settings.redact, context.unreadable, *told
        )
        self.home_channel = served.settings.home_channel
        self._served = served
        self._place = place
        self.presence.on_answer = self.part.attempts.reset
        self.presence.certain_for = partial(nodes.certain_for, self.key)
        self._context = context.bind(served.name)

    @property
    def state(self) -> str:
        """Return the state of the part; `down` if the part runs and the network cannot be reached."""
        state = self.part.facts.state
        return "down" if state == "up" and not self.presence.facts.up else state

    @property
    def served_by(self) -> str:
        """Return the other node that serves this bot; "" if this node serves it, or no node does."""
        return self._nodes.others.find_holder(self.key)

    @property
    def works(self) -> bool:
        """Return True if the bot is connected, on this node or another."""
        return self.presence.facts.up or any(self.key in one.works for one in self._nodes.others.list_living())

    async def probe(self) -> float:
        """Send the network a small request now, and return the seconds until its answer.

        Raises:
            AdapterError: the network is not connected, or does not answer.
        """
        if self.presence.probe is None:
            raise AdapterError(f"{self.name} is not connected: {self.presence.facts.detail or self.state}")
        began = time.monotonic()
        with anyio.move_on_after(PROBE_SECONDS) as timer:
            await self.presence.probe()
        if timer.cancelled_caught:
            raise AdapterError(f"{self.name} has not answered within {PROBE_SECONDS:.0f} s")
        self.presence.answered()
        return time.monotonic() - began

    async def _serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:  # noqa: ARG002 - up when connected
        try:
            await (self._serve_foreign() if self._place.origin else self._serve_own())
        except Exception as error:
            self.presence.down(str(unwrap_error(error)))
            raise
        finally:
            self.presence.probe = None
            if self.part.is_paused:
                self.presence.down(PAUSED_REASON)

    def leave(self) -> None:
        """Leave the network to other nodes."""
        self.part.leave(NOT_HERE)
        self._rest(NOT_HERE)

    def _rest(self, reason: str) -> None:
        self.presence.rest(reason)

    async def _load(self) -> None:
        """Load the library in advance, during standby, since loading is slow. `_serve` reports the errors."""
        if not self._place.origin:
            with suppress(ImportError):
                await run_in_thread(load_part, self._place, "adapter")

    async def _serve_own(self) -> None:
        module = await run_in_thread(load_part, self._place, "adapter")
        adapter: Adapter = module.ADAPTER(self._served.settings, self._context)
        await adapter.serve(self.presence)

    async def _serve_foreign(self) -> None:
        """Serve with foreign code, whose errors do not end the gateway.

        Raises:
            AdapterError: the foreign code failed; the message names the place in the code.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell_silence)
            try:
                await self._serve_own()
            except AdapterError:
                raise
            except (Exception, SystemExit) as error:
                if isinstance(unwrap_error(error), GatewayError):
                    raise
                raise AdapterError(describe_fault(self._place, unwrap_error(error))) from error
            tasks.cancel_scope.cancel()

    async def _tell_silence(self) -> None:
        """Report a network that has not come up in time, with the reason."""
        await anyio.sleep(SILENCE_SECONDS)
        if not self.presence.facts.up:
            self.presence.down(SILENT.format(seconds=SILENCE_SECONDS, origin=self._place.origin))


def build_platforms(configuration: Configuration, context: AdapterContext, nodes: Nodes) -> list[PlatformPart]:
    """Build the parts of the bots that are switched on; one node at a time serves each bot."""
    enabled, places = list_enabled(configuration.settings.platforms), configuration.schema.places
    return [PlatformPart(one, context, places[one.platform], nodes) for one in enabled]


def list_enabled(platforms: AllPlatformSettings) -> list[PlatformAccount]:
    """List the bots that are switched on."""
    return [one for one in list_accounts(platforms) if not why_not_served(one.settings)]


def why_not_served(network: PlatformSettings) -> str:
    """Return why a network is not served, or an empty text."""
    if network.why_unusable:
        return network.why_unusable
    if network.enabled is False:
        return "switched off"
    missing = network.missing_tokens
    return f"no {' and no '.join(missing)}".replace("_", " ") if missing else ""


def list_links(platforms: Sequence[PlatformPart]) -> list[tuple[str, str]]:
    """List the networks that were reached since the start, with instructions for people who have an invitation."""
    return [(one.name, one.presence.way_in) for one in platforms if one.presence.way_in]


def find_platform(platforms: Sequence[PlatformPart], name: str) -> PlatformPart:
    """Return the network with this name. Raises AdapterError if the network was not found."""
    network = next((one for one in platforms if one.name == name), None)
    if network is None:
        there = ", ".join(one.name for one in platforms)
        raise AdapterError(f"network {name!r} not found; " + (f"there is {there}" if there else "none is served"))
    return network


def steer_platform(platforms: Sequence[PlatformPart], verb: str, name: str) -> str:
    """Pause, resume or restart one network, and return the result in words.

    Raises:
        AdapterError: the network was not found, or the verb does not apply to it.
    """
    network = find_platform(platforms, name)
    match verb:
        case "pause":
            network.part.pause()
            return f"{name} is paused: nothing is read or sent there; pending replies wait."
        case "resume":
            network.part.resume()
            return f"{name} goes on."
        case "restart":
            network.part.restart()
            return f"{name} is connected again."
    raise AdapterError(f"a network can be paused, resumed and restarted, not {verb!r}")
