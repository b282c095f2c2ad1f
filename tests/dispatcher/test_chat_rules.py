"""The rules of a chat, from all places where they can be set: the strongest of each, and its origin."""

from typing import Any

import msgspec
import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.chats.journal import ChatJournal
from gateway.chats.rules import ChatDisplay, ChatRules
from gateway.messages.message import Address
from tests.engine.memory_engine import MemoryEngine

GROUP, TOPIC, WORK = (
    Address("telegram", "-1", "group"),
    Address("telegram", "-1", "forum", "7"),
    Address("telegram", "-1", "group", account="work"),
)


async def make_rules(settings: dict[str, Any], **kept: dict[str, str]) -> ChatRules:
    journal = ChatJournal(MemoryEngine())
    for chat, values in kept.items():
        await journal.write(chat, values)
    return ChatRules(journal, msgspec.convert(settings, load_settings_schema().settings))


CASES: dict[str, tuple[dict[str, Any], dict[str, dict[str, str]], Address, str, bool]] = {
    "nothing is said": ({}, {}, GROUP, "mention", False),
    "the network": ({"platforms": {"telegram": {"require_mention": False}}}, {}, GROUP, "always", False),
    "the account's own section": (
        {"platforms": {"telegram": {"accounts": {"work": {"require_mention": False}}}}},
        {},
        WORK,
        "always",
        False,
    ),
    "not that of another account": (
        {"platforms": {"telegram": {"accounts": {"work": {"require_mention": False}}}}},
        {},
        GROUP,
        "mention",
        False,
    ),
    "a list of the network names it": (
        {"platforms": {"telegram": {"free_response_channels": ["-1"]}}},
        {"telegram:-1": {"answer": "never"}},
        GROUP,
        "always",
        True,
    ),
    "an admin": ({}, {"telegram:-1": {"answer": "never"}}, GROUP, "never", False),
    "an admin, of another bot": ({}, {"telegram:-1": {"answer": "never"}}, WORK, "mention", False),
    "an admin, for its threads too": ({}, {"telegram:-1": {"answer": "never"}}, TOPIC, "never", False),
    "an admin, in the thread": (
        {},
        {"telegram:-1": {"answer": "never"}, "telegram:-1:7": {"answer": "always"}},
        TOPIC,
        "always",
        False,
    ),
    "the file wins": (
        {"chats": {"telegram:-1": {"answer": "mention"}}},
        {"telegram:-1": {"answer": "always"}},
        GROUP,
        "mention",
        True,
    ),
    "the file's word on the chat over the admin's on a thread": (
        {"chats": {"telegram:-1": {"answer": "mention"}}},
        {"telegram:-1:7": {"answer": "always"}},
        TOPIC,
        "mention",
        True,
    ),
    "the file's word on the thread": (
        {"chats": {"telegram:-1": {"answer": "mention"}, "telegram:-1:7": {"answer": "always"}}},
        {},
        TOPIC,
        "always",
        True,
    ),
    "what no version knows does not count": ({}, {"telegram:-1": {"answer": "sing"}}, GROUP, "mention", False),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_strongest_place_has_the_word(case: str) -> None:
    settings, kept, address, value, is_fixed = CASES[case]
    rule = (await make_rules(settings, **kept)).find(address)["answer"]
    assert (rule.value, rule.is_fixed) == (value, is_fixed), rule


async def test_routes_are_rules_of_their_chats() -> None:
    routes = [
        {"agent": "science", "user": "5"},
        {"agent": "sales", "chat": "-1"},
        {"agent": "all", "platform": "telegram"},
    ]
    settings: dict[str, Any] = {"agents": {"science": {}, "sales": {}, "all": {}}, "routes": routes}
    rules = await make_rules(settings, **{"telegram:-1": {"agent": "main"}, "telegram:-2": {"agent": "sales"}})
    assert rules.find(GROUP, "5")["agent"][::2] == ("science", True)
    assert rules.find(GROUP, "6")["agent"][::2] == ("sales", True)
    assert rules.find(Address("telegram", "-2"), "6")["agent"][::2] == ("sales", False)
    assert rules.find(Address("telegram", "-3"), "6")["agent"][::2] == ("all", False)
    assert rules.find(Address("discord", "-3"), "6")["agent"][::2] == ("main", False)


async def test_a_chat_that_is_answered_always_or_quiet_wants_a_bot_that_sees_all() -> None:
    for answer, wants in {"mention": False, "never": False, "quiet": True, "always": True}.items():
        assert (await make_rules({}, **{"telegram:-1": {"answer": answer}})).wants_all("telegram") is wants
    settings: dict[str, Any] = {"platforms": {"telegram": {"accounts": {"work": {}}}}}
    rules = await make_rules(settings, **{"telegram:work:-1": {"answer": "always"}})
    assert (rules.wants_all("telegram"), rules.wants_all("telegram:work")) == (False, True)


async def test_a_quiet_chat_is_answered_as_by_mention_and_heard_besides() -> None:
    rules = await make_rules({}, **{"telegram:-1": {"answer": "quiet"}, "telegram:-1:7": {"answer": "mention"}})
    heard = {address: rules.is_heard(address) for address in (GROUP, TOPIC, WORK, Address("telegram", "-1"))}
    assert list(heard.values()) == [True, False, False, False]
    assert not rules.is_answered(GROUP, is_called=False, is_command=False)
    assert rules.is_answered(GROUP, is_called=True, is_command=False)
    assert rules.is_answered(GROUP, is_called=False, is_command=True)


async def test_what_was_set_is_there_after_a_start_and_goes_when_it_is_taken_back() -> None:
    engine = MemoryEngine()
    before = ChatJournal(engine)
    await before.write("telegram:-1", {"answer": "always", "language": "de"})
    await before.write("telegram:-1", {"language": "de"})
    after = ChatJournal(engine)
    await after.load()
    assert after.chats == {"telegram:-1": {"language": "de"}}
    await after.write("telegram:-1", {})
    await before.load()
    assert not before.chats["telegram:-1"]


async def test_what_a_chat_is_shown_is_said_for_all_for_a_network_and_for_the_chat() -> None:
    settings: dict[str, Any] = {
        "display": {"progress": "tools", "typing": False},
        "platforms": {"telegram": {"reactions": True, "accounts": {"work": {"progress": "all", "typing": True}}}},
        "chats": {"telegram:-1:7": {"progress": "off"}},
    }
    rules = await make_rules(settings, **{"telegram:-1": {"reactions": "off", "progress": "all"}})
    assert rules.find_display(GROUP) == ChatDisplay("all", reactions=False, typing=False)
    assert rules.find_display(TOPIC) == ChatDisplay("off", reactions=False, typing=False)
    assert rules.find_display(WORK) == ChatDisplay("all", reactions=False, typing=True)
    assert rules.find_display(Address("telegram", "-2")) == ChatDisplay("tools", reactions=True, typing=False)
    assert rules.find_display(Address("discord", "-2")) == ChatDisplay("tools", reactions=False, typing=False)
    assert rules.find(Address("discord", "-2"))["typing"] == ("off", "config.yaml: display.typing", False)
    usual = (await make_rules({"platforms": {"telegram": {}}})).find(Address("telegram", "-2"))
    assert {one.origin for one in usual.values()} == {"default"}, "config.yaml says nothing of it"
    assert (usual["answer"].value, usual["typing"].value) == ("mention", "on")
