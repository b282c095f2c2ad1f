"""An owner answers a proposal in a direct chat of a network, and only the first answer counts."""

import time
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as changed

from gateway.errors import Conflict, SessionError
from gateway.messages.message import Address, Message
from gateway.messages.roles import ROLES
from gateway.questions.proposals import Proposal, ProposalJournal, answer_proposal, find_fault
from tests.engine.memory_engine import MemoryEngine

TYPED = Message("m", Address("telegram", "1"), "1", "/approve #aa")


@pytest.mark.parametrize("platform", ["web", "terminal", "api", "internal"])
def test_no_platform_of_ours_answers(platform: str) -> None:
    assert find_fault(replace(TYPED, address=Address(platform, "1")), "owner")


@pytest.mark.parametrize("chat_type", ["group", "forum", "channel", "thread"])
def test_no_chat_of_several_answers(chat_type: Any) -> None:
    assert find_fault(replace(TYPED, address=Address("telegram", "-1", chat_type)), "owner")


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "internal"},
        {"kind": "edit"},
        {"kind": "reaction"},
        {"kind": "call"},
        {"is_job": True},
        {"person": "x:1"},
    ],
)
def test_nothing_that_the_owner_did_not_type_answers(other: dict[str, Any]) -> None:
    assert find_fault(replace(TYPED, **other), "owner")


def test_an_owner_alone_answers() -> None:
    assert [role for role in ROLES if not find_fault(TYPED, role)] == ["owner"]


async def test_the_first_answer_counts_and_none_counts_later() -> None:
    engine = MemoryEngine()
    journal, now = ProposalJournal(engine), time.time()
    made = Proposal(
        id="p", kind="settings", name="x", by="ann", place="page", node="n", run="r", at=now, until=now + 60, mark="aa"
    )
    seq, _ = await journal.write(made, 0)
    with pytest.raises(Conflict):
        await journal.write(made, 0)
    assert await answer_proposal(engine, TYPED, "owner", "", "yes") is None
    assert await answer_proposal(engine, TYPED, "owner", "bb", "yes") is None
    for role, answer in (("admin", "yes"), ("owner", "always"), ("owner", "session")):
        told = await answer_proposal(engine, TYPED, role, "aa", answer)  # type: ignore[arg-type]
        assert told is not None
        assert told.text
    found = await journal.find("aa")
    assert (found is not None, found and found.seq) == (True, seq)
    assert found is not None
    told = await answer_proposal(engine, TYPED, "owner", "aa", "deny")
    assert told is not None
    assert told.text == "Refused."
    with pytest.raises(SessionError, match="not open any more"):
        await journal.answer(found, allowed=True, by="telegram:1")
    assert await answer_proposal(engine, TYPED, "owner", "aa", "yes") is None
    _, refused = await journal.read("ann")
    assert refused is not None
    assert (refused.state, refused.answered_by) == ("refused", "telegram:1")
    late = changed(made, until=now - 1)
    await journal.write(late, (await journal.read("ann"))[0])
    assert await answer_proposal(engine, TYPED, "owner", "aa", "yes") is None
