"""Every command, verb of the socket and of the page, and request of a hook, against each author: one table, walked.

Whoever adds a command says here whose words may bring it about, and of a verb in its row (`authors`, `role`).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from anyio import to_thread

from gateway.access.access_control import API, INTERNAL
from gateway.agent import Agent, ToolContext, tool
from gateway.agent.models.script import script
from gateway.daemon.callers import refuse_verb
from gateway.daemon.groups.turns import find_hook_files
from gateway.daemon.verb_table import VERBS
from gateway.dispatcher.chat_commands import BUILT_IN, CommandCall
from gateway.dispatcher.commands import Command, CommandResult, CommandTable
from gateway.dispatcher.hook_requests import HookRequests
from gateway.dispatcher.turn_chat import TurnChat
from gateway.errors import AgentError, HookError
from gateway.hermes.plugin_host import PluginGrants
from gateway.hermes.plugin_manifest import PLUGIN_RIGHTS
from gateway.hooks.cause import use_rights
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.reach import NO_LIMITS_KNOWN, HookLimits, HookReach
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.services import STORE_VERBS, check_request
from gateway.jobs.messages import JOB_MESSAGE
from gateway.lanes.context import is_same_person_continuing
from gateway.messages import authors
from gateway.messages.message import Address, Message, Reply
from gateway.messages.roles import ROLES, Role, rank_of
from gateway.records import records, subjects
from gateway.testing.live_gateway import gateway_in
from gateway.verbs import Authors
from tests.dispatcher.room import KEY, ROOM, Chat, chat
from tests.spine import until
from tests.web.visits import send

# Who may bring a command about: a hook in place of a person's words too, or people alone.
HARMLESS, PEOPLE = "hooks and people", "people"
COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("help", "start", "status", "whoami", "stop", "new", "retry", "undo", "title", "model"), HARMLESS),
    **dict.fromkeys(("voice", "sessions", "resume", "branch", "usage", "queue", "hooks"), HARMLESS),
    **dict.fromkeys(("open", "approve", "deny", "approvals", "pairing", "settings", "platform"), PEOPLE),
    **dict.fromkeys(("letters", "restart", "jobs"), PEOPLE),
}
# What a program's key of an operator commands besides, as an operator does: a key is made by the owner alone.
OPERATORS = {"letters", "platform"}
SOCKET: Mapping[str, Authors] = {name: verb.authors for name, verb in VERBS.items()}
PAGE: Mapping[str, Role] = {name: verb.role for name, verb in VERBS.items() if verb.page}
# The word of `uses` that a request needs; none of them approves, answers, pairs, switches or restarts.
REQUESTS: Mapping[str, str] = {
    **{name: name for name in ("send", "submit", "emit", "llm", "tool", "session")},  # the last three are plugins'
    "facts": "",
    **{f"{STORE_VERBS}{one}": "store" for one in ("get", "set", "delete", "keys")},
}
PERSONS: Mapping[str, str] = dict(zip(ROLES, ("1", "2", "3", "4", "5"), strict=True))
OTHERS = ("hook:placed", "hook:restricted", "webhook:feed", "api:key", "desk:ann", "job")
CALLS = "agent:main:api:dm:key"
MOST_TURNS = 20  # that one command is tried with


def test_the_tables_have_a_line_for_everything() -> None:
    assert COMMANDS.keys() == {command.name for command in BUILT_IN}
    assert {one.name for one in BUILT_IN if one.is_for("operator") and not one.is_for("user")} == OPERATORS


def message_of(author: str, text: str, number: int) -> Message:
    """Make a text of an author who is no person, as it comes to a lane."""
    if author == "job":
        return Message(f"job-{number}", ROOM, PERSONS["owner"], text, session=KEY, is_job=True)
    if author.startswith(authors.PROGRAM):
        return Message(f"call-{number}", Address(API, "key"), "key", text, kind="call", session=CALLS)
    return Message(f"other-{number}", ROOM, author, text, kind="internal", session=KEY, role="owner")


class Walk:
    """A room in which commands only say that they were run."""

    def __init__(self, room: Chat, ran: list[str]) -> None:
        self.room, self.ran = room, ran
        self._count = 0

    async def try_text(self, author: str, text: str) -> str:
        """Try a text: returns the command that ran, `agent` if the agent got it as a text, else `refused`."""
        self._count += 1
        before, turns, ended = len(self.ran), self._count_turns(), await self._count_ended()
        if author in PERSONS:
            await self.room.write(text, PERSONS[author])
        else:
            message = message_of(author, text, self._count)
            await self.room.dispatcher.lanes.accept(message, message.session)

        async def is_over() -> bool:
            return await self._count_ended() > ended

        await until(is_over)
        await self.room.hooks.settled()
        if len(self.ran) > before:
            return self.ran[-1]
        return "agent" if self._count_turns() > turns else "refused"

    def _count_turns(self) -> int:
        return [name for name, _ in self.room.events].count("agent:start")

    async def _count_ended(self) -> int:
        """The answers to people in the room, and the turns of the program, whom no network answers."""
        chain = subjects.session_subject_of("turn", CALLS)
        calls = [1 async for _ in records.read_all(self.room.house.engine, chain, records.TurnEnded)]
        return len(self.room.net.sent) + len(calls)


@asynccontextmanager
async def walking() -> AsyncIterator[Walk]:
    ran: list[str] = []

    def record(command: Command) -> Command:
        async def run(_call: CommandCall) -> CommandResult:
            ran.append(command.name)
            return CommandResult(f"{command.name} has run")

        return msgspec.structs.replace(command, run=run)

    commands = CommandTable(map(record, BUILT_IN))
    answers = ["a text"] * MOST_TURNS * len(BUILT_IN)
    async with chat(*answers, commands=commands, programs="operator") as room:
        rules = room.house.access.rules
        named: Mapping[str, Role] = {f"net:{PERSONS[role]}": role for role in ROLES}
        room.house.access.rules = msgspec.structs.replace(rules, rate=10_000, admins={}, users={}, named=named)
        yield Walk(room, ran)


@pytest.mark.timeout(120)
async def test_a_command_is_a_person_s_own_word_and_no_other_author_s() -> None:
    async with walking() as walk:
        for command in BUILT_IN:
            for role in ROLES:
                wanted = command.name if command.is_for(role) else "refused"
                assert await walk.try_text(role, f"/{command.name}") == wanted, (role, command.name)
            for author in OTHERS:
                wanted = "agent"
                if author.startswith(authors.PROGRAM):
                    wanted = command.name if command.is_for("operator") else "refused"
                assert await walk.try_text(author, f"/{command.name}") == wanted, (author, command.name)


@pytest.mark.timeout(120)
async def test_a_hook_puts_harmless_commands_in_place_of_a_person_s_words() -> None:
    puts = ["help"]
    async with walking() as walk:
        walk.room.hooks.on("message:received", lambda _event: {"text": f"/{puts[0]}"}, key="rewriter")
        walk.room.hooks.on("command:whoami", lambda _event: {"command": puts[0]}, key="rewriter")
        for command in BUILT_IN:
            puts[0] = command.name
            wanted = command.name if COMMANDS[command.name] == HARMLESS else "refused"
            for text in ("good morning", "/whoami"):
                assert await walk.try_text("owner", text) == wanted, (text, command.name)
            assert await walk.try_text("hook:rewriter", "good morning") == "agent", command.name
        done, _ = await walk.room.house.activity.read(0, 0.0)
        assert {one["who"] for one in done} == {"the hook rewriter"}
        assert {one["what"] for one in done} == {f"/{command.name}" for command in BUILT_IN}


@tool(asks=True, subject=lambda args: str(args["command"]))
async def wipe(command: str) -> str:
    """Run a command."""
    raise AssertionError(f"nobody has allowed {command}")


async def test_an_open_question_is_answered_by_people_alone() -> None:
    asks = {"user": "go", "answers": [{"tool_calls": [{"name": "wipe", "args": {"command": "x"}}]}, {"text": "left"}]}
    async with chat(asks, *["a text"] * 20, tools=(wipe,)) as room:
        room.hooks.on("message:received", lambda _event: {"text": "yes"}, when={"text": "good morning"})
        await room.write("go", "7")
        await until(room.is_asked)
        for author in OTHERS:
            for number, text in enumerate(("yes", "always", "/approve", "/approve always")):
                message = message_of(author, text, number)
                await room.dispatcher.lanes.accept(message, message.session)
        await room.write("good morning", "8", address=Address("net", "elsewhere"))  # a turn that begins after all that
        await until(lambda: any(one.address.chat_id == "elsewhere" for one in room.net.sent))
        assert await room.is_asked()
        await room.write("/deny", "7")
        await until(lambda: any(one.text == "left" for one in room.net.sent))


async def test_what_the_agent_says_is_no_command() -> None:
    said = [f"/{command.name}" for command in BUILT_IN]
    async with chat(*said) as room:
        for number, text in enumerate(said, 1):
            await room.write("good morning", "1")
            assert await room.hear(number) == text
        await room.hooks.settled()
        assert [name for name, _ in room.events if name.startswith("command:")] == []


@tool()
async def tell_others(context: ToolContext) -> str:
    """Say it elsewhere."""
    assert context.chat
    return await context.chat.say("elsewhere", "net:other", "a")


async def test_a_retry_makes_nobody_s_words_those_of_a_person() -> None:
    tells = [{"tool_calls": [{"name": "tell_others", "args": {}}]}, {"text": "told"}]
    async with chat({"user": "a reminder", "answers": tells * 2}, *["a text"] * 9, tools=(tell_others,)) as room:
        for count, author in enumerate(("hook:placed", "webhook:feed")):
            await room.dispatcher.lanes.accept(message_of(author, "let me in", count), KEY)
            await room.hear(2 * count + 1)
            await room.write("/retry", PERSONS["owner"])
            assert f"is of {author}" in await room.hear(2 * count + 2)
        assert len(await room.told("agent:start")) == 2
        await room.dispatcher.lanes.accept(replace(message_of("job", "a reminder", 9), id=f"{JOB_MESSAGE}9"), KEY)
        assert await room.hear(5) == "told"
        await room.write("/retry", PERSONS["owner"])
        assert await room.hear(6) == "told", "a reminder is done again, and sends nothing elsewhere"


def version_of(tmp_path: Path, *uses: Any, is_restricted: bool) -> HookVersion:
    manifest = Manifest(folder="one", name="one", uses=uses)
    reach = HookReach("it was installed") if is_restricted else None
    return HookVersion("one", tmp_path / "one", FolderSource(tmp_path, "home"), manifest=manifest, reach=reach)


def test_a_verb_of_the_socket_is_for_people_unless_its_line_says_otherwise(tmp_path: Path) -> None:
    who: Mapping[str, tuple[HookVersion | None, tuple[str, ...]]] = {
        "what a tool, a command or a server has started": (None, ("all",)),
        "a restricted hook": (version_of(tmp_path, is_restricted=True), ("all",)),
        "one that sends": (version_of(tmp_path, "send", "submit", is_restricted=True), ("all", "send")),
        "a placed hook": (version_of(tmp_path, is_restricted=False), ("all", "send", "placed")),
    }
    for name, (hook, lines) in who.items():
        for verb, line in SOCKET.items():
            assert (refuse_verb(hook, verb) == "") == (line in lines), (name, verb)


@pytest.mark.timeout(120)
async def test_a_verb_of_the_page_is_for_logins_of_its_role(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home") as live:
        assert live.gateway.web
        url, key = (
            live.gateway.web.port.local_url,
            await live.gateway.groups.people.keys.create("program", "operator", ""),
        )
        for role in ROLES:
            found = [verb for verb in PAGE if rank_of(role) >= rank_of(PAGE[verb])]
            token = await live.gateway.groups.people.logins.redeem(
                await live.gateway.groups.people.logins.open_link(role)
            )
            me = await to_thread.run_sync(partial(send, url, "/api/me", "GET", b"", X_Token=token))
            assert all((f'"{verb}"'.encode() in me.body) == (verb in found) for verb in PAGE), role
        for verb in PAGE:
            for headers in ({"Authorization": f"Bearer {key}"}, {"X_Token": str(key)}, {"X_Token": "hook:one"}):
                for method in ("GET", "POST"):
                    asked = partial(send, url, f"/api/{verb}", method, b"", **headers)
                    assert (await to_thread.run_sync(asked)).status == 403, (verb, headers)


async def test_a_request_of_a_hook_needs_its_word_and_decides_nothing(tmp_path: Path) -> None:
    async with chat() as room:
        requests = HookRequests(room.house, room.dispatcher.lanes)
        house = room.house
        more = PluginGrants(
            requests,
            lambda _place: Agent("main", script("a text"), ""),
            room.hooks,
            house.sessions,
            house.access.fit_tool,
            house.usage,
            house.agents.find_limits,
        )
        assert REQUESTS.keys() == {*requests.verbs, *more.verbs}
        assert {*REQUESTS.values()} == {*PLUGIN_RIGHTS, ""}
        with pytest.raises(HookError, match="no `approve` for hooks"):
            await more("one", "approve", {}, "")
    for is_restricted in (False, True):
        for verb, word in REQUESTS.items():
            without = version_of(tmp_path, is_restricted=is_restricted).manifest
            having = version_of(tmp_path, *([word] if word else []), is_restricted=is_restricted).manifest
            assert without
            assert having
            if word:
                with pytest.raises(HookError, match="may not"):
                    check_request(without, verb, {"name": "a:b"})
            check_request(having, verb, {"name": "a:b"})


async def test_who_began_a_turn_says_whether_it_sends_to_other_chats() -> None:
    limits = {"sender": HookLimits(("send",)), "placed": HookLimits(("submit",))}
    sends = {"hook:sender": True, "hook:placed": False, "hook:gone": False, "webhook:feed": False, "job": False}
    sends |= {"api:key": False, "desk:ann": False, "owner": True, "guest": True}
    async with chat(find_limits=lambda hook: limits.get(hook, NO_LIMITS_KNOWN)) as room:
        for author, may in sends.items():
            said: list[Reply] = []
            message = message_of(author, "x", 1) if author not in PERSONS else Message("1", ROOM, PERSONS[author], "x")
            assert (message.author or author) == author
            found = TurnChat(turn_that_says(said), message, "owner", room.house, room.dispatcher.jobs)
            await found.say("here", "", "a")
            if may:
                await found.say("there", "net:other", "b")
            else:
                with pytest.raises(AgentError, match=author):
                    await found.say("there", "net:other", "b")
            assert [one.address.chat_id for one in said[1:]] == (["other"] if may else []), author


def turn_that_says(said: list[Reply]) -> Any:
    async def say(reply: Reply) -> None:
        said.append(reply)

    return SimpleNamespace(turn_id="t", say=say)


RESTRICTED, PLACED = HookLimits(("submit",), reads=()), HookLimits(("submit",))


@pytest.mark.parametrize(("limits", "role"), [(RESTRICTED, "user"), (NO_LIMITS_KNOWN, "user"), (PLACED, "owner")])
async def test_work_of_a_restricted_hook_has_at_most_the_rights_of_a_user(limits: HookLimits, role: Role) -> None:
    async with chat("done", find_limits=lambda _hook: limits) as room:
        with use_rights("owner", {}):
            await HookRequests(room.house, room.dispatcher.lanes)("one", "submit", {"text": "/restart"}, "")
        (ended,) = await room.when("agent:end")
        assert (ended["role"], ended["platform"]) == (role, INTERNAL)


async def test_a_hook_that_submits_has_the_answer_sent_if_it_may_send() -> None:
    limits = {"one": RESTRICTED, "placed": PLACED, "sender": HookLimits(("submit", "send"))}
    async with chat("hi", "done", "sent", find_limits=lambda hook: limits.get(hook, NO_LIMITS_KNOWN)) as room:
        await room.write("hello", "1")
        await room.hear()
        requests = HookRequests(room.house, room.dispatcher.lanes)
        for hook in ("one", "placed", "gone"):
            for more in ({"deliver": "net:other"}, {"session": KEY}):
                with pytest.raises(HookError, match="send"):
                    await requests(hook, "submit", {"text": "tell", **more}, "")
        await requests("placed", "submit", {"text": "tell nobody"}, "")
        await requests("sender", "submit", {"text": "tell", "deliver": "net:other"}, "")
        assert await room.hear(2)
        assert room.net.sent[1].address.chat_id == "other"


async def test_a_hook_that_is_gone_puts_no_file_beside_a_reply(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home") as live:
        private = live.gateway.home.own_folder / "workspace" / "private.txt"
        private.parent.mkdir(parents=True, exist_ok=True)
        private.write_text("the owner's")
        owed = records.OwedReply(reply=Reply("r", Address("net", "1"), "x", role="owner"), session_key="", turn_id="t")
        files = await live.gateway.groups.bind(find_hook_files)(owed, "gone")
        with pytest.raises(AgentError):
            files.resolve(str(private))


def test_messages_of_two_authors_are_never_one_text() -> None:
    typed = Message("1", ROOM, PERSONS["owner"], "good morning")
    assert is_same_person_continuing(typed, replace(typed, id="2"))
    assert not is_same_person_continuing(typed, due := replace(typed, id="reminder-1", is_job=True))
    assert not is_same_person_continuing(due, replace(due, id="reminder-2")), "each moment has its own answer"
