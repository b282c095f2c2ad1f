"""The changes of a session."""

import pytest

from gateway.errors import SessionError
from gateway.messages.transcript import Entry, Usage
from gateway.records import records
from gateway.sessions import transitions
from gateway.sessions.session import Session, apply_record
from tests.spine import message


def after(session: Session, *kept: records.TurnRecord) -> Session:
    for one in kept:
        session = apply_record(session, one, session.seq + 1, 7.0)
    return session


def spoken(*texts: str, key: str = "k") -> Session:
    """A session with a turn for each text."""
    session = after(Session(key), transitions.begin_session(Session(key), 0.0, message=message("hi")))
    for number, text in enumerate(texts):
        entries = (Entry("user", text), Entry("assistant", f"re {text}"))
        session = after(
            session, records.TurnEnded(upto=number, entries=entries, usage=Usage(calls=1), bag={"n": number})
        )
    return session


def test_a_new_session_forgets_all_but_the_settings_that_are_to_stay() -> None:
    old = after(spoken("a"), transitions.change_title("old"), transitions.change_model("big"))
    new = after(old, transitions.begin_session(old, 60.0, "new", keep=("model",)))
    assert (new.entries, new.bag, new.usage, new.title, new.model) == ((), {}, Usage(), "", "big")
    assert (new.replaced_id, new.reason) == (old.session_id, "new")
    assert (new.platform, new.user_id) == ("net", "ann")


def test_the_first_session_ends_no_other() -> None:
    assert spoken().replaced_id == ""


def test_an_earlier_session_goes_on_where_it_was() -> None:
    old = after(spoken("a"), transitions.change_title("old"))
    new = after(old, transitions.begin_session(old, 60.0, "new"))
    again = after(new, transitions.resume_session(new, old))
    assert again.session_id == old.session_id
    assert (again.entries, again.bag, again.title, again.usage) == (old.entries, old.bag, "old", old.usage)
    assert again.previous == (new.session_id,)
    with pytest.raises(SessionError, match="current"):
        transitions.resume_session(again, old)


def test_a_session_of_another_key_is_branched_not_resumed() -> None:
    here, there = spoken("a"), spoken("b", key="other")
    with pytest.raises(SessionError, match="branch"):
        transitions.resume_session(here, there)
    branch = after(here, transitions.branch_session(here, there, 60.0))
    assert branch.entries == there.entries
    assert branch.key == "k"


def test_a_branch_is_a_copy_with_an_id_and_a_title_of_its_own() -> None:
    old = after(spoken("a", "b"), transitions.change_title("trip"))
    branch = after(old, transitions.branch_session(old, old, 60.0))
    assert branch.session_id != old.session_id
    assert (branch.entries, branch.turns, branch.title) == (old.entries, old.turns, "trip (branch)")
    shorter = after(branch, transitions.undo_turns(branch))
    assert (len(shorter.entries), len(old.entries)) == (2, 4)
    assert after(old, transitions.branch_session(old, old, 60.0, "plan B")).title == "plan B"


def test_a_retry_takes_the_last_turn_back_and_says_its_words_again() -> None:
    session = spoken("a", "b")
    assert transitions.find_last_request(session).content == "b"
    session = after(session, transitions.undo_turns(session))
    assert transitions.find_last_request(session).content == "a"


@pytest.mark.parametrize("turns", [0, -1])
def test_undo_wants_a_number_of_turns(turns: int) -> None:
    with pytest.raises(SessionError, match="1 or more"):
        transitions.undo_turns(spoken("a"), turns)


def test_there_may_be_nothing_to_undo_or_to_retry() -> None:
    with pytest.raises(SessionError, match="nothing to undo"):
        transitions.undo_turns(spoken())
    with pytest.raises(SessionError, match="no message"):
        transitions.find_last_request(spoken())


def test_a_title_is_one_line_and_a_model_goes_back_to_the_default() -> None:
    session = after(spoken(), transitions.change_title("  a\n title "), transitions.change_model("big"))
    assert (session.title, session.model) == ("a title", "big")
    session = after(session, transitions.change_title(" "), transitions.change_model("default"))
    assert (session.title, session.model) == ("", "")
