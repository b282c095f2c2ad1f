"""Spans from records: what is a part of what, what waits for a person, and what has no beginning."""

from collections.abc import Iterator

import pytest

from gateway.engine.interface import Record
from gateway.hooks.stats import CallTrace, HookCall
from gateway.messages.message import Address, Message, Reply
from gateway.messages.steps import JournalRecord, LlmStep, ToolFinished, ToolStarted
from gateway.messages.transcript import Entry, Usage
from gateway.records import records
from gateway.records.subjects import place_of, reply_subject_of, send_subject_of, session_subject_of
from gateway.traces.turn_spans import Span, TurnSpans
from gateway.web.turn_times import TurnTimes

KEY, TURN = "agent:main:terminal:dm:me", "t1"
MESSAGE = Message("m1", Address("terminal", "me"), "me", "hello")
USED = Usage(input_tokens=3, output_tokens=2, calls=1, model="m")


class Journal:
    """Each record a second after the one before it."""

    def __init__(self) -> None:
        self.spans = TurnSpans(lambda model: f"provider of {model}")
        self.now = 100.0

    def note(self, *written: JournalRecord) -> list[Span]:
        return list(self._note(*written))

    def _note(self, *written: JournalRecord) -> Iterator[Span]:
        for record in written:
            self.now += 1
            subject = session_subject_of("turn", KEY)
            yield from self.spans.note(Record(1, subject, records.encode(record), self.now))


@pytest.fixture
def journal() -> Journal:
    return Journal()


def come(journal: Journal) -> list[Span]:
    return journal.note(
        records.InboundMessage(session_key=KEY, message=MESSAGE), records.Claim(turn_id=TURN, by="here", on=1)
    )


def answer(turn_id: str) -> LlmStep:
    return LlmStep(turn_id=turn_id, hop=0, entry=Entry("assistant", "secret"), usage=USED, stop="stop")


def test_a_stage_lasts_from_one_record_to_the_next(journal: Journal) -> None:
    (wait,) = come(journal)
    (chat,) = journal.note(answer(TURN))
    (turn,) = journal.note(records.TurnEnded(upto=1, turn_id=TURN, usage=USED))
    assert [(one.name, one.begun, one.ended) for one in (wait, chat, turn)] == [
        ("wait", 101.0, 102.0),
        ("chat m", 102.0, 103.0),
        ("invoke_agent", 101.0, 104.0),
    ]
    assert (chat.parent, turn.parent) == (turn.of, "")
    assert chat.attributes["gen_ai.provider.name"] == "provider of m"
    assert turn.attributes["gen_ai.conversation.id"] == KEY


def test_an_answer_that_stands_in_the_end_of_its_turn_is_a_stage_too(journal: Journal) -> None:
    come(journal)
    ended = records.TurnEnded(upto=1, turn_id=TURN, usage=USED, answer=records.LastAnswer(1, "stop"))
    chat, turn = journal.note(ended)
    assert [(one.name, one.begun) for one in (chat, turn)] == [("chat m", 102.0), ("invoke_agent", 101.0)]
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["stop"]


def test_what_an_agent_does_that_was_called_is_a_part_of_that_call(journal: Journal) -> None:
    come(journal)
    inner = f"{TURN}/c1"
    chat, tool, after = journal.note(
        ToolStarted(turn_id=TURN, call_id="c1", name="delegate", args={"task": "secret"}),
        answer(inner),
        ToolFinished(turn_id=TURN, call_id="c1", entry=Entry("tool", "secret")),
        answer(TURN),
    )
    assert (chat.parent, tool.of, tool.parent, after.parent) == (inner, inner, TURN, TURN)
    assert len({span.turn for span in (chat, tool, after)}) == 1
    assert (chat.begun, chat.ended, after.begun, after.ended) == (103.0, 104.0, 105.0, 106.0)
    assert chat.attributes["turn"] == TURN


def test_who_waits_for_a_person_is_one_turn_that_shows_it(journal: Journal) -> None:
    come(journal)
    journal.note(records.QuestionsAsked(turn_id=TURN, questions={"q": "May I?"}, until=1.0))
    (waited,) = journal.note(records.Claim(turn_id=TURN, by="here", on=1, attempt=2))
    (turn,) = journal.note(records.TurnEnded(upto=1, turn_id=TURN, status="failed"))
    assert (waited.name, waited.begun, waited.ended) == ("wait for an answer", 103.0, 104.0)
    assert (turn.begun, turn.error) == (101.0, "failed")


def test_a_reply_is_under_way_until_the_network_has_it_or_never_will(journal: Journal) -> None:
    owed = records.OwedReply(reply=Reply("r1", MESSAGE.address, "secret"), session_key=KEY, turn_id=TURN)
    later = records.SendFailed(out=1, reply_id="r1", error="secret", permanent=False)
    assert journal.note(owed, later) == []
    (sent,) = journal.note(records.SendSucceeded(out=1, reply_id="r1", attempts=2))
    assert (sent.name, sent.begun, sent.ended, sent.attributes["attempts"]) == ("send terminal", 101.0, 103.0, 2)
    (failed,) = journal.note(owed, records.SendFailed(out=1, reply_id="r1", error="secret"))
    assert failed.error == "send"


def test_what_has_no_beginning_and_what_cannot_be_read_is_passed_over(journal: Journal) -> None:
    assert journal.note(records.TurnEnded(upto=1, turn_id="of the process before")) == []
    assert list(journal.spans.note(Record(1, "gw.turn.x", b'{"kind": 7}', 1.0))) == []


def test_the_call_of_a_hook_that_failed_says_so_and_not_how() -> None:
    fields = {"id": "e1", "turn_id": f"{TURN}/c1", "session_key": KEY, "call_id": "c2", "text": "secret"}
    trace = CallTrace(50.0, "tool:before", 2.0, "timeout", "secret")
    span = TurnSpans(str).note_call(HookCall("guard", "tool:before", fields, trace))
    assert (span.turn, span.parent, span.begun, span.ended, span.error) == (TURN, f"{TURN}/c1", 48.0, 50.0, "timeout")
    assert "secret" not in str(span)


def test_each_node_tells_of_the_turns_that_it_runs() -> None:
    here, there = (TurnSpans(str, node) for node in ("here", "there"))
    times = {node: TurnTimes(node) for node in ("here", "there")}
    told = dict[str, list[str]](here=[], there=[])

    def note(at: float, written: JournalRecord, subject: str = session_subject_of("turn", KEY)) -> None:
        record = Record(1, subject, records.encode(written), at)
        for node, spans in (("here", here), ("there", there)):
            told[node] += [span.name for span in spans.note(record)]
            times[node].note(record)

    note(1, records.InboundMessage(session_key=KEY, message=MESSAGE))
    note(2, records.Claim(turn_id=TURN, by="there", on=1))
    note(3, answer(TURN))
    note(4, records.Claim(turn_id=TURN, by="here", on=1, attempt=2))  # the other one was killed
    note(5, answer(TURN))
    reply = Reply("r1", MESSAGE.address, "hello")
    note(6, records.OwedReply(reply=reply, session_key=KEY, turn_id=TURN, at=6), reply_subject_of(reply.address, KEY))
    note(7, records.TurnEnded(upto=1, turn_id=TURN, usage=USED))
    sent = records.SendSucceeded(out=1, reply_id="r1", message_ids=(("m",),), at=8)
    note(8, sent, send_subject_of(place_of(reply.address)))
    assert told == {"there": ["wait", "chat m"], "here": ["chat m", "invoke_agent", "send terminal"]}
    assert [sum(one.turns.values()) for one in times.values()] == [1, 0]
    assert [sum(one.sends.values()) for one in times.values()] == [1, 0]
    assert times["here"].stages["turn"].count == 1
    assert times["there"].stages["model"].count == 1
