"""Of which conversation is this call? The part of `gateway.session_context` that Hermes's handlers use."""

import os
from collections.abc import Mapping, Sequence
from contextvars import Token

from gateway.worker.context import session_variables

PREFIX = "HERMES_SESSION_"


def get_session_env(name: str, default: str = "") -> str:
    """A fact of the conversation by its full name (`HERMES_SESSION_PLATFORM`), else of the environment."""
    value = session_variables.get().get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if value is None:
        value = os.environ.get(name)  # noqa: TID251 - in a worker this is what its hook declared
    return default if value is None else value


def set_session_vars(**values: object) -> list[Token[Mapping[str, str]]]:
    """From now on, in the running context, these hold (`platform=...`, `session_key=...`); for `clear_session_vars`."""
    named = {name.removeprefix("session_").upper(): str(value) for name, value in values.items() if value is not None}
    return [session_variables.set({**session_variables.get(), **named})]


def clear_session_vars(tokens: Sequence[Token[Mapping[str, str]]]) -> None:
    """What held before holds again."""
    for token in reversed(tokens):
        session_variables.reset(token)


def reset_session_vars() -> None:
    """As if none had ever been set."""
    session_variables.set({})


def set_current_session_id(session_id: str) -> None:
    session_variables.set({**session_variables.get(), "ID": session_id})


def enter_session(session: Mapping[str, str]) -> None:
    """As in Hermes, the environment has the conversation that was last begun with, also for programs that are run."""
    if session.get("ID"):
        os.environ[f"{PREFIX}ID"] = session["ID"]  # noqa: TID251 - of this worker, and what it starts


def session_context_engaged() -> bool:
    return True


def async_delivery_supported() -> bool:
    """Whether what is done later reaches the chat: here always."""
    return True
