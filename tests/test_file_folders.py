"""Each conversation has a folder of its own, whatever the ids look like that its network gives out."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.files.folders import UNCLAIMED, escape_id
from gateway.messages.message import Address

FILES = Path("/files")
IDS = st.text(st.characters(), max_size=300) | st.sampled_from(["", ".", "..", "%", "%2E", "chat", "chat.1", "~", "/"])
ADDRESSES = st.builds(
    Address, st.sampled_from(["telegram", "slack", "../x", ".unclaimed"]), IDS, st.sampled_from(["dm", "group"]), IDS
)


def conversation_of(address: Address, user: str) -> tuple[str, ...]:
    if address.chat_type == "dm":
        return (address.platform, user)
    return (address.platform, "chat", address.chat_id, address.thread_id)


@given(ADDRESSES, IDS, ADDRESSES, IDS)
def test_two_conversations_have_two_folders_and_one_has_one(one: Address, ann: str, other: Address, ben: str) -> None:
    is_same = conversation_of(one, ann) == conversation_of(other, ben)
    assert (one.find_folder(FILES, ann) == other.find_folder(FILES, ben)) is is_same


@given(IDS)
def test_an_id_is_one_safe_name(written: str) -> None:
    name = escape_id(written)
    assert PurePosixPath(name).parts == (name,)
    assert name.isascii()
    assert 0 < len(name) < 200
    assert not name.startswith((".", "~"))
    assert name != UNCLAIMED


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        (Address("telegram", "1001"), "telegram/1001"),
        (Address("slack", "D1", "dm", "17.5"), "slack/1001"),
        (Address("telegram", "-2001", "group"), "telegram/chat.-2001"),
        (Address("slack", "C1", "thread", "17.5"), "slack/chat.C1.17%2E5"),
    ],
)
def test_folders_are_called_by_the_person_or_the_chat(address: Address, folder: str) -> None:
    assert address.find_folder(FILES, "1001") == FILES / folder
