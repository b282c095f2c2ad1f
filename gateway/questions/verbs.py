"""The verbs of approvals and of other questions."""

from typing import Annotated, Literal

import msgspec

from gateway.verbs import NoParams, Verb

TEXT_LIMIT = 100_000


class ApprovalAnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision on the approval of this id, and how long it lasts; `digest` says what was shown of it."""

    id: str
    allowed: bool
    lasts: Literal["once", "session", "always"] = "once"
    digest: str = ""

    @property
    def word(self) -> str:
        """As the record of activity has it."""
        lasts = "" if self.lasts == "once" else f" {self.lasts}"
        return f"{'allow' if self.allowed else 'deny'}{lasts}"


class QuestionAnswerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to the question of this id; `digest` says what was shown of it."""

    id: str
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_LIMIT)]
    digest: str = ""


VERBS = (
    Verb("approvals.list", "List open approvals and questions.", NoParams, "admin", page="personal", raw=True),
    Verb(
        "approvals.answer",
        "Approve or deny a call.",
        ApprovalAnswerParams,
        "admin",
        on="{word} {id}",
        page=("id", "allowed", "lasts", "digest"),
        raw=True,
    ),
    Verb(
        "questions.answer",
        "Answer a question.",
        QuestionAnswerParams,
        "admin",
        on="{id}",
        page=("id", "text", "digest"),
        raw=True,
    ),
)
