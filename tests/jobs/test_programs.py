"""Commands of jobs: each moment runs once, a crash is told, and the output is the answer."""

from contextlib import nullcontext
from typing import Any

import anyio
import pytest

from gateway.agent.toolbox.shell import NO_OUTPUT, CommandOutput
from gateway.errors import AccessError, AgentError
from gateway.events import Deny, Event, Pause, Question
from gateway.hooks import HookRegistry
from gateway.jobs.job import Job
from gateway.jobs.programs import ASKED, CHANGED, MAY_HAVE_RUN, check_command
from gateway.jobs.runner import JobPorts
from gateway.messages.roles import Role
from gateway.records import records
from tests.dispatcher.room import ROOM
from tests.engine.memory_engine import MemoryEngine
from tests.jobs.house import NOON, House
from tests.spine import until


class Machine(House):
    """A house whose commands end when the test says so."""

    def __init__(self, engine: MemoryEngine) -> None:
        super().__init__(engine)
        self.begun: list[tuple[str, Role]] = []
        self.ends = anyio.Event()
        self.output: CommandOutput | Exception = CommandOutput("12 %")

    def ports(self) -> JobPorts:
        return super().ports()._replace(run_program=self.run_program)

    async def run_program(self, job: Job, role: Role) -> CommandOutput:
        self.begun.append((job.command, role))
        await self.ends.wait()
        if isinstance(self.output, Exception):
            raise self.output
        return self.output

    async def replies(self) -> list[tuple[str, str]]:
        kept = [records.decode(one.data) for one in await self.engine.read("gw.>", limit=100)]
        return [(one.reply.address.chat_id, one.reply.text) for one in kept if isinstance(one, records.OwedReply)]


@pytest.fixture
async def machine() -> Any:
    async with MemoryEngine() as engine:
        yield Machine(engine)


@pytest.mark.parametrize(
    ("output", "row", "said"),
    [
        (CommandOutput("12 %"), ("ran", ""), ["12 %"]),
        (CommandOutput(NO_OUTPUT), ("ran", ""), []),
        (CommandOutput("[SILENT]\n"), ("ran", ""), []),
        (CommandOutput("oh\n[exit code 3]", 3), ("failed", "exit code 3"), ["oh\n[exit code 3]"]),
        (CommandOutput("[ended]", None), ("failed", "took longer than 10m"), ["[ended]"]),
        (AccessError("it has no shell"), ("skipped", "it has no shell"), []),
        (AgentError("the fork server ended"), ("failed", "the fork server ended"), []),
    ],
)
async def test_its_output_is_the_answer(machine: Machine, output: Any, row: Any, said: list[str]) -> None:
    job = await machine.add(command="df /", text="")
    machine.now, machine.output = NOON + 3600, output
    machine.ends.set()
    await machine.run_until_all_ended()
    await machine.run_until_all_ended()
    assert await machine.rows(job) == [(1, *row)]
    assert machine.begun == [("df /", "user")]
    assert await machine.replies() == [(ROOM.chat_id, text) for text in said]
    assert machine.came == []


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_crash_in_the_middle_is_told_and_repeats_what_is_repeatable(machine: Machine, repeatable: bool) -> None:
    job = await machine.add(command="df /", text="", repeatable=repeatable)
    machine.now = NOON + 3600
    async with anyio.create_task_group() as tasks:
        await tasks.start(machine.runner().run)
        await until(lambda: bool(machine.begun))
        tasks.cancel_scope.cancel()  # as a crash: nothing is written
    machine.ends.set()
    await machine.run_until_all_ended()
    assert await machine.rows(job) == [(1, "ran", "") if repeatable else (1, "failed", MAY_HAVE_RUN)]
    assert len(machine.begun) == 1 + repeatable


async def test_a_queued_command_begins_when_the_one_before_has_ended(machine: Machine) -> None:
    job = await machine.add(command="df /", text="", overlap="queue")
    async with anyio.create_task_group() as tasks:
        runner = machine.runner()
        await tasks.start(runner.run)
        for hour in (1, 2):
            machine.now = NOON + hour * 3600
            await runner.look()
        await until(lambda: bool(machine.begun))
        assert await machine.rows(job) == [(1, "running", ""), (2, "running", "")]
        assert len(machine.begun) == 1
        machine.ends.set()
        await machine.settle()
        tasks.cancel_scope.cancel()
    assert await machine.rows(job) == [(1, "ran", ""), (2, "ran", "")]
    assert len(machine.begun) == 2


@pytest.mark.parametrize(("does", "reason"), [("deny", "not at night"), ("ask", ASKED), ("change", CHANGED), ("", "")])
async def test_a_guard_of_the_shell_decides_about_the_command_of_a_job(does: str, reason: str) -> None:
    async with HookRegistry() as registry:

        @registry.on("tool:before", when={"tool": "shell"})
        def guard(event: Event) -> Deny | None:
            if does == "deny":
                return Deny("not at night")
            if does == "ask":
                raise Pause((Question("q", "really?", "guard", "q"),))
            if does == "change":
                event["args"]["command"] = "df /tmp"
            return None

        with pytest.raises(AccessError, match=reason) if reason else nullcontext():
            await check_command("df /", registry.scope({}, answers={}))
