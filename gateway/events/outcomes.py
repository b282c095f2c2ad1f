"""The meaning of an outcome for the operation that it was decided about. Ask here; do not look at its class.

Deny    the operation does not happen, and the text of the hook, or the caller's, replaces it
End     the operation does not happen, the turn ends, and the hook's reply is its answer
Retry   the operation happens again, and the model reads the hook's message first
"""

from collections.abc import Mapping
from typing import Any

from gateway.events.event import OUTCOMES, Deny, End, Outcome, Retry


def find_refusal(outcome: object, silent: str = "") -> str | None:
    """Return the reason of a Deny, or `silent` if the hook gave none; None if the outcome is not a Deny."""
    return outcome.text or silent if isinstance(outcome, Deny) else None


def find_end(outcome: object) -> End | None:
    """Return the outcome if it ends the turn."""
    return outcome if isinstance(outcome, End) else None


def find_retry(outcome: object) -> Retry | None:
    """Return the outcome if it asks for another try."""
    return outcome if isinstance(outcome, Retry) else None


def find_reply(outcome: object, silent: str = "") -> str | None:
    """Return the text that replaces a prevented operation; None if the operation goes on."""
    return outcome.reply if isinstance(outcome, End) else find_refusal(outcome, silent)


def is_decision(answer: Any) -> bool:
    """Return True if the answer of a hook decides something, rather than changes fields."""
    return isinstance(answer, OUTCOMES) or (isinstance(answer, Mapping) and "decision" in answer)


def words_of(outcome: Outcome) -> str:
    """Return the reason that the hook gave for its decision."""
    if isinstance(outcome, Deny):
        return outcome.text
    return outcome.reason or outcome.reply if isinstance(outcome, End) else outcome.message or ""
