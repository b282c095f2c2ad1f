"""The requests of a handler's imported modules to the gateway, and the warnings about unsupported parts, once each."""

import sys
from typing import Any, NoReturn

from gateway.worker.capabilities import GatewayRequests

_WARNED: set[str] = set()  # the warnings of this process, which serves one hook


def ask_gateway(verb: str, **params: Any) -> Any:
    """Return the gateway's answer; this blocks even a coroutine, since Hermes's functions are plain ones.

    Raises:
        RuntimeError: the gateway refuses, with the reason.
    """
    if GatewayRequests.own is None:
        raise RuntimeError("this module works in the process of a hook alone")
    return GatewayRequests.own.ask(verb, params)


async def begin_request(verb: str, **params: Any) -> Any:
    """Request as `ask_gateway` does, without blocking the caller's loop, whichever that is."""
    if GatewayRequests.own is None:
        raise RuntimeError("this module works in the process of a hook alone")
    return await GatewayRequests.own.make(verb, params)


def get_facts() -> dict[str, Any]:
    """Return how the gateway is set up."""
    return dict(ask_gateway("facts"))


def refuse_attribute(owner: str, name: str, why: str) -> NoReturn:
    """Raise AttributeError for a part that is not offered, and warn once in the hook's log."""
    if not name.startswith("__"):
        warn_once(f"{owner} has no {name} here: {why}")
    raise AttributeError(f"{owner} has no {name!r} here: {why}")


def note_patch(name: str) -> None:
    """Note that the hook patches a part of Hermes."""
    warn_once(f"{name} is patched, which changes nothing outside this hook")
    if GatewayRequests.own is not None:
        GatewayRequests.own.patches[name] = None


def warn_once(text: str) -> None:
    """Write a warning into the hook's log, the first time."""
    if text not in _WARNED:
        _WARNED.add(text)
        print(f"warning: {text}", file=sys.stderr)  # noqa: T201 - the hook's own log
