"""Of which conversation is this call? The part of `gateway.session_context` that Hermes's handlers use."""

import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token

PREFIX = "HERMES_SESSION_"
_session: ContextVar[Mapping[str, str]] = ContextVar("HERMES_SESSION", default={})  # noqa: B039 - never written to


def get_session_env(name: str, default: str = "") -> str:
    """A fact of the conversation by its full name (`HERMES_SESSION_PLATFORM`), else of the environment."""
    value = _session.get().get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if value is None:
        value = os.environ.get(name)  # noqa: TID251 - in a worker this is what its hook declared
    return default if value is None else value


def set_session(values: Mapping[str, str]) -> None:
    """For the running context alone; the names are without their prefix."""
    _session.set(values)


def set_session_vars(**values: object) -> list[Token[Mapping[str, str]]]:
    """From now on, in the running context, these hold (`platform=...`, `session_key=...`); for `clear_session_vars`."""
    named = {name.removeprefix("session_").upper(): str(value) for name, value in values.items() if value is not None}
    return [_session.set({**_session.get(), **named})]


def clear_session_vars(tokens: Sequence[Token[Mapping[str, str]]]) -> None:
    """What held before holds again."""
    for token in reversed(tokens):
        _session.reset(token)


def async_delivery_supported() -> bool:
    """Whether what is done later reaches the chat: here always."""
    return True
