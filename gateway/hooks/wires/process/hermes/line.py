"""The line from a module that a handler imported to the gateway, and what is said once of what cannot be served."""

import sys
from typing import Any

from gateway.hooks.wires.process.capabilities import Requests

_said: set[str] = set()  # by this process, which serves one hook


def ask(verb: str, **params: Any) -> Any:
    """What the gateway answers; waited for even in a coroutine, since Hermes's functions are plain ones.

    Raises:
        RuntimeError: it refuses, and says why.
    """
    if Requests.own is None:
        raise RuntimeError("this module works in the process of a hook alone")
    return Requests.own.ask(verb, params)


def facts() -> dict[str, Any]:
    """How the gateway is set up."""
    return dict(ask("facts"))


def warn_once(text: str) -> None:
    """Into the hook's log, the first time."""
    if text not in _said:
        _said.add(text)
        print(f"warning: {text}", file=sys.stderr)  # noqa: T201 - the hook's own log
