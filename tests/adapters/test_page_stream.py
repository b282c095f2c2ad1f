"""The display of a growing answer in the page's chat."""

import msgspec

from gateway.adapters.page.stream import LiveChat
from gateway.engine.interface import Record
from gateway.records import records


def make_piece(turn: str, text: str) -> Record:
    return Record(0, "", msgspec.json.encode({"turn_id": turn, "text": text}), 0.0)


def test_a_piece_that_comes_behind_the_end_of_its_turn_is_not_shown() -> None:
    chat = LiveChat()
    chat.note(make_piece("one", "It "))
    assert (chat.turn_id, chat.text) == ("one", "It ")
    chat.note(Record(1, "", records.encode(records.TurnEnded(turn_id="one", upto=1, status="ok")), 0.0))
    chat.note(make_piece("one", "is."))
    assert (chat.turn_id, chat.text) == ("", "")
    chat.note(make_piece("two", "Next"))
    assert (chat.turn_id, chat.text) == ("two", "Next")
