"""`/jobs`: whose jobs a person sees and steers in a chat."""

from gateway.dispatcher.chat_commands import CommandCall
from gateway.dispatcher.commands import ParsedCommand
from gateway.dispatcher.job_commands import run_jobs
from gateway.jobs.job import Job
from gateway.messages.message import Address, Message
from gateway.messages.roles import Role
from gateway.sessions.session import Session
from tests.dispatcher.room import KEY, ROOM, Chat, chat


async def say(room: Chat, args: str, user: str = "7", role: Role = "user", at: Address = ROOM) -> str:
    message = Message("m", at, user, f"/jobs {args}")
    call = CommandCall(ParsedCommand("jobs", args), message, role, Session(KEY), room.house, room.dispatcher.lanes)
    return (await run_jobs(call)).text


async def add(room: Chat, *makers: str) -> None:
    for maker in makers:
        await room.dispatcher.jobs.add(Job(maker, "tea", maker, "@daily", "make tea", ROOM, ROOM, KEY, "7", 0.0))


async def test_each_sees_and_steers_their_own_and_an_operator_no_text() -> None:
    async with chat() as room:
        assert await say(room, "") == "No jobs."
        await add(room, "net:7", "net:8")
        own = await say(room, "")
        assert own.startswith("tea: ")
        assert own.endswith("@daily: make tea")
        assert "net:8" not in own
        assert "make tea" not in await say(room, "", at=Address("net", "team", chat_type="group"))
        seen = await say(room, "", "9", "operator")
        assert [line.partition(": ")[0] for line in seen.splitlines()] == ["net:7/tea", "net:8/tea"]
        assert "make tea" not in seen
        assert (await say(room, "", "1", "admin")).count("make tea") == 2
        assert await say(room, "pause net:8/tea") == "The job 'net:8/tea' was not found."
        assert "several jobs 'tea'; write one of net:7/tea, net:8/tea" in await say(room, "pause tea", "9", "operator")
        assert await say(room, "remove tea") == "/jobs takes `pause NAME`, `resume NAME`, or nothing."


async def test_a_person_does_not_resume_what_an_operator_has_paused() -> None:
    async with chat() as room:
        await add(room, "net:7")
        assert (await say(room, "pause tea")).startswith("The job tea is paused")
        assert "paused" in await say(room, "")
        assert await say(room, "resume tea") == "The job tea goes on."
        assert (await say(room, "pause tea", "9", "operator")).startswith("The job net:7/tea is paused")
        refused = "The job tea was paused by an operator, who can resume it."
        assert await say(room, "pause tea") == refused
        assert await say(room, "resume tea") == refused
        assert await say(room, "resume tea", "9", "operator") == "The job net:7/tea goes on."


async def test_it_is_a_command_of_the_chat() -> None:
    async with chat() as room:
        await room.write("/jobs")
        assert await room.hear(1) == "No jobs."
