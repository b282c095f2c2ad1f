"""The conversation of the present call: the part of `gateway.session_context` that Hermes's handlers use."""

import os
from collections.abc import Mapping, Sequence
from contextvars import Token

from gateway.worker.context import session_variables

PREFIX = "HERMES_SESSION_"


def get_session_env(name: str, default: str = "") -> str:
    """Return a fact of the conversation by its full name (`HERMES_SESSION_PLATFORM`), or else a variable."""
    value = session_variables.get().get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None
    if value is None:
        value = os.environ.get(name)  # noqa: TID251 - in a worker this is what its hook declared
    return default if value is None else value


def set_session_vars(**values: object) -> list[Token[Mapping[str, str]]]:
    """Set facts in the running context (`platform=...`, `session_key=...`); return tokens for `clear_session_vars`."""
    named = {name.removeprefix("session_").upper(): str(value) for name, value in values.items() if value is not None}
    return [session_variables.set({**session_variables.get(), **named})]


def clear_session_vars(tokens: Sequence[Token[Mapping[str, str]]]) -> None:
    """Restore the facts from before."""
    for token in reversed(tokens):
        session_variables.reset(token)


def reset_session_vars() -> None:
    """Remove all facts."""
    session_variables.set({})


def set_current_session_id(session_id: str) -> None:
    session_variables.set({**session_variables.get(), "ID": session_id})


def enter_session(session: Mapping[str, str]) -> None:
    """Set the newest conversation in the environment, as Hermes does, also for programs that the hook runs."""
    if session.get("ID"):
        os.environ[f"{PREFIX}ID"] = session["ID"]  # noqa: TID251 - of this worker, and what it starts


def session_context_engaged() -> bool:
    return True


def async_delivery_supported() -> bool:
    """Return True: later messages reach the chat."""
    return True
