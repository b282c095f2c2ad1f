"""In a turn that answers several messages, the words of one can go while those of the others stay, in any order."""

from itertools import permutations

import pytest

from gateway.messages.message import Address, Attachment, Message, MessageKind
from gateway.messages.pieces import DELETED, MessageName, delete_pieces, find_pieces, put_pieces
from gateway.messages.transcript import Entry, Picture

FILE = Attachment("image", "/files/cat.png", "cat.png", "image/png", 3)
PICTURE = Picture("image", "/files/cat.png", "0" * 64, 3, "image/png")


def said(number: str, text: str, *files: Attachment, kind: MessageKind = "text") -> Message:
    return Message(number, Address("net", "room"), "1", text, attachments=files, kind=kind)


def name(number: str) -> MessageName:
    return MessageName("net", "room", number)


@pytest.mark.parametrize("order", list(permutations(["1", "2", "3"])))
def test_each_goes_for_itself(order: tuple[str, ...]) -> None:
    left = {"1": "one", "2": "the second of them", "3": "three"}
    messages, text = [said(*one) for one in left.items()], "\n\n".join(left.values())
    entries: tuple[Entry, ...] = (Entry("user", text), Entry("assistant", "well"))
    pieces = find_pieces(messages, text)
    for number in order:
        entries, pieces = delete_pieces(entries, pieces, {name(number)})
        left[number] = DELETED
        assert entries == (Entry("user", "\n\n".join(left.values())), Entry("assistant", "well"))
        assert name(number) not in {one.name for one in pieces}


def test_a_message_alone_goes_with_what_is_said_of_its_files_and_with_its_pictures() -> None:
    text = "look\n[attached image: cat.png, in /files/cat.png]"
    pieces = find_pieces([said("1", "look", FILE)], text)
    entries, left = delete_pieces((Entry("user", text, parts=(PICTURE,)),), pieces, {name("1")})
    assert (entries, left) == ((Entry("user", DELETED),), ())


def test_files_of_one_of_several_go_with_it_and_not_with_another() -> None:
    text = "look\n\nwhat is it?\n[attached image: cat.png, in /files/cat.png]"
    messages = [said("1", "look", FILE), said("2", "what is it?")]
    entry, pieces = Entry("user", text, parts=(PICTURE,)), find_pieces(messages, text)
    (without_first,), _ = delete_pieces((entry,), pieces, {name("1")})
    assert without_first == Entry("user", f"{DELETED}\n\nwhat is it?")
    (without_second,), left = delete_pieces((entry,), pieces, {name("2")})
    assert without_second.content == f"look\n\n{DELETED}\n[attached image: cat.png, in /files/cat.png]"
    (without_both,), _ = delete_pieces((without_second,), left, {name("1")})
    assert without_both == Entry("user", f"{DELETED}\n\n{DELETED}")


def test_what_hooks_put_in_other_words_goes_whole() -> None:
    made = Entry("user", "one\n\ntwo")
    pieces = find_pieces([said("1", "one"), said("2", "two")], made.content)
    became = (Entry("user", "HOOKED one two"), Entry("assistant", "well"))
    placed = put_pieces(pieces, made, became)
    assert delete_pieces(became, placed, {name("2")})[0] == (Entry("user", DELETED), became[1])


def test_an_edit_is_the_same_message_and_a_button_is_none() -> None:
    pieces = find_pieces(
        [said("1:edit5", "other", kind="edit"), said("7:pressed", "yes", kind="button")], "other\n\nyes"
    )
    assert [one.name for one in pieces] == [name("1")]


def test_what_it_does_not_know_changes_nothing() -> None:
    entries, pieces = (Entry("user", "one"),), find_pieces([said("1", "one")], "one")
    elsewhere = {MessageName("net", "other room", "1"), MessageName("web", "room", "1"), name("2")}
    assert delete_pieces(entries, pieces, elsewhere) == (entries, pieces)
