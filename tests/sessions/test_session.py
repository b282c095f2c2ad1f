"""The fold of a chain: pure, the same in one go or in pieces, and never confused by a record out of place."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages.transcript import Entry, ToolCall, Usage
from gateway.records import records
from gateway.sessions.session import Session, apply_record

TURNS = st.sampled_from(["t1", "t2"])
TEXTS = st.text(max_size=4)
ENTRIES = st.builds(Entry, st.sampled_from(["user", "assistant"]), TEXTS)
VALUES = st.dictionaries(st.sampled_from("ab"), st.integers(0, 3) | st.none() | TEXTS, max_size=2)
USAGES = st.builds(Usage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 3))
CARRIED = st.builds(
    lambda sizes, settings: records.InitialState(
        entries=tuple(Entry("user", str(n)) for n in range(sum(sizes))), turns=tuple(sizes), settings=settings
    ),
    st.lists(st.integers(1, 3), max_size=3),
    VALUES,
)
NODES = st.sampled_from(["n1", "n2"])
KEPT = st.one_of(
    st.builds(records.SessionOpened, session_id=st.sampled_from(["s1", "s2", "s3"]), carried=st.none() | CARRIED),
    st.builds(records.Claim, turn_id=TURNS, by=NODES, on=st.integers(1, 20), attempt=st.integers(1, 4)),
    st.builds(records.LlmStep, turn_id=TURNS, hop=st.integers(0, 3), entry=ENTRIES),
    st.builds(records.ToolStarted, turn_id=TURNS, call_id=st.just("c"), name=st.just("tool"), args=VALUES),
    st.builds(records.ToolFinished, turn_id=TURNS, call_id=st.just("c"), entry=ENTRIES),
    st.builds(records.InterimReply, turn_id=TURNS, reply_id=TEXTS),
    st.builds(records.ClaimReleased, turn_id=TURNS),
    st.builds(
        records.QuestionsAsked,
        turn_id=TURNS,
        questions=st.dictionaries(st.sampled_from("qr"), TEXTS, min_size=1),
        until=st.floats(0, 99),
    ),
    st.builds(records.QuestionAnswered, turn_id=TURNS, name=st.sampled_from("qr"), answer=st.booleans() | st.none()),
    st.builds(
        records.TurnEnded,
        upto=st.integers(0, 20),
        turn_id=TURNS,
        status=st.sampled_from(["ok", "failed", "interrupted", "forgotten"]),
        entries=st.lists(ENTRIES, max_size=3).map(tuple),
        usage=USAGES,
        bag=st.none() | VALUES,
    ),
    st.builds(records.SettingChanged, name=st.sampled_from(["title", "model"]), value=st.none() | TEXTS),
    st.builds(records.TurnsUndone, turns=st.integers(1, 3)),
)
CHAINS = st.lists(KEPT, max_size=25)


def folded(kept: list[records.JournalRecord], session: Session | None = None) -> Session:
    session = session or Session("k")
    for one in kept:
        session = apply_record(session, one, session.seq + 1, 5.0)
    return session


@given(CHAINS, st.integers(0, 25))
def test_folding_in_pieces_is_folding_in_one_go(kept: list[records.JournalRecord], cut: int) -> None:
    assert folded(kept[cut:], folded(kept[:cut])) == folded(kept)


@given(CHAINS, st.integers(0, 25))
def test_a_state_that_was_written_down_is_the_state(kept: list[records.JournalRecord], cut: int) -> None:
    half = folded(kept[:cut])
    again = msgspec.json.decode(msgspec.json.encode(half), type=Session)
    assert again == half
    assert folded(kept[cut:], again) == folded(kept)


@given(CHAINS, KEPT)
def test_a_fold_leaves_the_state_before_as_it_was(
    kept: list[records.JournalRecord], one: records.JournalRecord
) -> None:
    before = folded(kept)
    written = msgspec.json.encode(before)
    apply_record(before, one, before.seq + 1)
    assert msgspec.json.encode(before) == written


@given(CHAINS)
def test_what_a_session_says_of_itself_agrees(kept: list[records.JournalRecord]) -> None:
    session = Session("k")
    for one in kept:
        after = apply_record(session, one, session.seq + 1, 5.0)
        assert after.upto >= session.upto
        assert sum(after.turns) == len(after.entries)
        assert after.weight == sum(len(entry.content) + 200 for entry in after.entries)
        assert after.session_id not in after.previous
        assert not (after.turn and after.turn.by and after.turn.questions)
        session = after


def test_a_turn_that_runs_again_keeps_what_was_done_and_answered() -> None:
    call = ToolCall("c", "tool")
    session = folded(
        [
            records.SessionOpened(session_id="s1"),
            records.Claim(turn_id="t", by="n1", on=3),
            records.LlmStep(turn_id="t", hop=0, entry=Entry("assistant", tool_calls=(call,))),
            records.QuestionsAsked(turn_id="t", questions={"q": "may I?"}, until=9.0),
        ]
    )
    assert session.is_waiting
    session = folded([records.QuestionAnswered(turn_id="t", name="q", answer=True)], session)
    assert not session.is_waiting
    session = folded([records.Claim(turn_id="t", by="n2", on=3)], session)
    assert session.turn
    assert (len(session.turn.steps), session.turn.answers, session.turn.asked) == (1, {"q": True}, {"q": "may I?"})
    assert (session.turn.attempt, session.turn.first, session.turn.claimed) == (1, 2, 6)


def test_a_session_that_begins_takes_the_turn_away_from_whoever_runs_it() -> None:
    session = folded([records.Claim(turn_id="t", by="n", on=3), records.SessionOpened(session_id="s2")])
    assert session.turn is None
    assert session.upto == 0


def test_undo_takes_whole_turns_and_stops_at_the_first() -> None:
    done = [records.TurnEnded(upto=n, entries=(Entry("user", "q"), Entry("assistant", "a"))) for n in (1, 2, 3)]
    assert len(folded([*done, records.TurnsUndone(turns=2)]).entries) == 2
    assert folded([*done, records.TurnsUndone(turns=9)]).entries == ()
