"""The chat networks that are switched on, each a part of its own: none waits for another, and the start for none.

A network's library is imported when it is needed, in a thread, so that the rest of the gateway is there at once.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from anyio import to_thread

from gateway.adapters import NETWORKS
from gateway.adapters.shared import Adapter, AdapterContext, Presence
from gateway.config.platforms import Network, Platforms
from gateway.daemon.parts import Part, single
from gateway.errors import AdapterError

PAUSED = "paused"


class ServedNetwork:
    """One network that is switched on: its part, and how it fares."""

    def __init__(self, name: str, settings: Network, ground: AdapterContext) -> None:
        self.name = name
        self.part = Part(name, self._serve)
        self.presence = Presence(name, ground.registry, self.part.up)
        self.settings = settings
        self._ground = ground

    async def _serve(self, _part: Part) -> None:
        module: Any = await to_thread.run_sync(import_module, NETWORKS[self.name])
        adapter: Adapter = module.adapter(self.settings, self._ground)
        try:
            await adapter.serve(self.presence)
        except Exception as error:
            self.presence.down(str(single(error)))
            raise
        finally:
            if self.part.is_paused:
                self.presence.down(PAUSED)


def served(platforms: Platforms, ground: AdapterContext) -> list[ServedNetwork]:
    """The networks that are served."""
    return [ServedNetwork(name, getattr(platforms, name), ground) for name in on(platforms)]


def on(platforms: Platforms) -> list[str]:
    """The names of the networks that are switched on."""
    return [name for name in platforms.__struct_fields__ if not why_off(name, getattr(platforms, name))]


def why_off(name: str, network: Network) -> str:
    """Why a network is not served; empty: it is."""
    if network.enabled is False:
        return "switched off"
    tokens = [name for name in network.__struct_fields__ if name.endswith("token") and not getattr(network, name)]
    if tokens:
        return f"no {' and no '.join(tokens)}".replace("_", " ")
    return "" if name in NETWORKS else "not offered by this version"


def steer(networks: Sequence[ServedNetwork], verb: str, name: str) -> str:
    """Pause, resume or restart one network, and no other; what was done, in words.

    Raises:
        AdapterError: there is no such network, or nothing of that kind can be done with it.
    """
    network = next((one for one in networks if one.name == name), None)
    if network is None:
        there = ", ".join(one.name for one in networks)
        raise AdapterError(
            f"there is no network {name!r} here; " + (f"there is {there}" if there else "none is served")
        )
    match verb:
        case "pause":
            network.part.pause()
            return f"{name} is paused: nothing is read or sent there; what is owed waits."
        case "resume":
            network.part.resume()
            return f"{name} goes on."
        case "restart":
            network.part.restart()
            return f"{name} is connected anew."
    raise AdapterError(f"a network can be paused, resumed and restarted, not {verb!r}")
