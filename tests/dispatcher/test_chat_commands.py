"""Which commands are for whom."""

import msgspec

from gateway.dispatcher.chat_commands import find_command
from gateway.messages.roles import Role
from tests.dispatcher.room import Chat, chat


def found(room: Chat, word: str, role: Role) -> str | None:
    command = find_command(room.house, word, role)
    return command.name if command else None


async def test_users_have_all_commands_but_those_of_admins() -> None:
    async with chat() as room:
        assert [found(room, word, "user") for word in ("undo", "reset", "help")] == ["undo", "new", "help"]
        assert found(room, "restart", "user") is None
        assert [found(room, "restart", role) for role in ("admin", "owner")] == ["restart", "restart"]
        assert found(room, "nonsense", "owner") is None


async def test_a_list_of_users_commands_counts_in_place_of_the_rows() -> None:
    async with chat() as room:
        rules = room.house.access.rules
        room.house.access.rules = msgspec.structs.replace(rules, user_commands=frozenset({"new", "platform"}))
        assert [found(room, word, "user") for word in ("new", "platform")] == ["new", "platform"]
        assert found(room, "undo", "user") is None
        assert [found(room, word, "user") for word in ("help", "whoami", "start")] == ["help", "whoami", "start"]
        assert found(room, "undo", "admin") == "undo"
