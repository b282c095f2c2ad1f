"""Errors as hooks see them, as plain fields, and what a person is told of them."""

from collections.abc import Mapping
from typing import Any

from gateway.agent.tools import ArgumentError
from gateway.errors import AgentError, ModelError

APOLOGIES: Mapping[str, str] = {
    "auth": "I could not reach my language model: it does not accept the key that I was given. "
    "The person who runs me has to check it (`hermes-gateway doctor`).",
    "quota": "My language model's account has no credit left. The person who runs me has to see to it.",
    "rate": "My language model is getting too many requests just now. Please try again in a minute.",
    "overload": "My language model is overloaded just now. Please try again in a few minutes.",
    "context": "This conversation has become too long for my language model. Start a new one with /new.",
    "network": "I could not reach my language model. Please try again in a moment.",
    "timeout": "My language model took too long to answer. Please try again.",
    "filter": "My language model's provider refused to answer this.",
    "missing": "The language model that I am set to use does not exist. The person who runs me has to check its name.",
    "request": "My language model did not understand my request. The person who runs me finds it in the log.",
    "response": "My language model sent an answer that I could not read. Please try again.",
    "script": "My script has no answer to this.",
}
APOLOGY = "Something went wrong and I could not finish. Please try again; the person who runs me finds it in the log."


def error_as_fields(error: BaseException | None) -> dict[str, Any] | None:
    """The error as a plain dict: `type`, `message`, and `kind` where it has one."""
    if error is None:
        return None
    fields: dict[str, Any] = {"type": type(error).__name__, "message": str(error) or type(error).__name__}
    if isinstance(error, ModelError):
        fields["kind"] = error.kind
    elif isinstance(error, ArgumentError):
        fields |= {"kind": "arguments", "parameters": dict(error.parameters)}
    return fields


def error_from_fields(left: Any, error: Exception | None, told: Mapping[str, Any] | None) -> Exception | None:
    """The error that hooks left: the same one, none, or another in its place, raised from the old one."""
    if left is None or left == told:
        return None if left is None else error
    other: Exception
    if isinstance(left, Exception):
        other = left
    elif isinstance(left, Mapping):
        kind = left.get("kind")
        text = str(left.get("message") or left)
        other = ModelError(text, kind=str(kind)) if kind in APOLOGIES else AgentError(text)
    else:
        other = AgentError(str(left))
    other.__cause__ = error
    return other


def apologise(error: BaseException) -> str:
    """What the person is told: never the error's own text, which may hold what is not theirs to see."""
    return APOLOGIES.get(error.kind, APOLOGY) if isinstance(error, ModelError) else APOLOGY
