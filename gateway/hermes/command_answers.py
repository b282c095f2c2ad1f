"""How Hermes reads what a handler answers at `command:*`: it takes four words, and passes over all else.

A handler that answers other things too has worked there for years; here it must not be taken for one that fails.
"""

from collections.abc import Mapping
from typing import Any

DECISIONS = frozenset({"allow", "deny", "handled", "rewrite"})


def decision_of(answer: Any) -> dict[str, Any] | None:
    """The decision in it, if Hermes would see one; a message that is no text is none."""
    if not isinstance(answer, Mapping):
        return None
    word = str(answer.get("decision", "")).strip().lower()
    if word not in DECISIONS:
        return None
    told = {key: answer[key] for key in ("command_name", "raw_args") if key in answer and word == "rewrite"}
    if isinstance(message := answer.get("message"), str) and message:
        told["message"] = message
    return None if word == "allow" else {"decision": word, **told}
