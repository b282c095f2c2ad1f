"""The line from a module that a handler imported to the gateway, and what is said once of what cannot be served."""

import sys
from typing import Any, NoReturn

from gateway.worker.capabilities import GatewayRequests

_WARNED: set[str] = set()  # by this process, which serves one hook


def ask_gateway(verb: str, **params: Any) -> Any:
    """What the gateway answers; waited for even in a coroutine, since Hermes's functions are plain ones.

    Raises:
        RuntimeError: it refuses, and says why.
    """
    if GatewayRequests.own is None:
        raise RuntimeError("this module works in the process of a hook alone")
    return GatewayRequests.own.ask(verb, params)


async def begin_request(verb: str, **params: Any) -> Any:
    """As `ask_gateway`, without holding up the loop that it is awaited in, whichever that is."""
    if GatewayRequests.own is None:
        raise RuntimeError("this module works in the process of a hook alone")
    return await GatewayRequests.own.make(verb, params)


def get_facts() -> dict[str, Any]:
    """How the gateway is set up."""
    return dict(ask_gateway("facts"))


def refuse_attribute(owner: str, name: str, why: str) -> NoReturn:
    """Somebody looks for what is not offered: told once in the hook's log, and an AttributeError."""
    if not name.startswith("__"):
        warn_once(f"{owner} has no {name} here: {why}")
    raise AttributeError(f"{owner} has no {name!r} here: {why}")


def note_patch(name: str) -> None:
    """Somebody changes a thing of Hermes's."""
    warn_once(f"{name} is patched, which changes nothing outside this hook")
    if GatewayRequests.own is not None:
        GatewayRequests.own.patches[name] = None


def warn_once(text: str) -> None:
    """Into the hook's log, the first time."""
    if text not in _WARNED:
        _WARNED.add(text)
        print(f"warning: {text}", file=sys.stderr)  # noqa: T201 - the hook's own log
