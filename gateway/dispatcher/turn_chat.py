"""The acts of tools in the chat of a turn: send a text, a file, a poll or a place, or set a reminder."""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from gateway.agent.toolbox.shell import SHELL
from gateway.agent.tools import JobQuestion, ScheduleAction, ScheduledWork, find_tool
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.message_events import build_turn_fields
from gateway.errors import AdapterError, AgentError
from gateway.jobs.job import BY_HAND, IN_CHAT, Job, describe_end, describe_job, describe_moment, digest_of, parse_time
from gateway.jobs.journal import JobJournal
from gateway.jobs.messages import OWN_SESSION
from gateway.jobs.programs import check_command
from gateway.lanes.turn import LaneTurn
from gateway.messages.authors import can_send, find_hook
from gateway.messages.message import Address, Message, Reply, attachment_from
from gateway.messages.parts import Location, MessagePart, Poll, add_words
from gateway.messages.roles import Role, is_admin
from gateway.records import subjects
from gateway.threads import run_in_thread

SHOWN_MOMENTS = 20
SHOWN_JOBS = 50


class TurnChat(msgspec.Struct, eq=False):
    """Sends texts, files and parts for a turn, and sets and changes reminders.

    Each reply is part of the turn's step in the journal, and is sent once, however often the turn runs.
    """

    turn: LaneTurn
    message: Message
    role: Role
    context: DispatcherContext
    jobs: JobJournal

    async def say(self, text: str, to: str, key: str) -> str:
        """Send a text to the chat of the turn, or to another chat (`to`).

        Raises:
            AgentError: the chat was not found, or the author of the turn may not send to other chats.
        """
        address = self._find_target(to) if to else self.message.address
        await self.turn.say(Reply(f"{self.turn.turn_id}:say:{key}", address, text, role=self.role))
        return "It is being sent."

    def bind(self, to: str) -> str:
        """Return the chat that a name means now, by its id; any other destination stays as it is.

        Raises:
            AgentError: no chat has that name here.
        """
        places = self.context.places
        return places.chat_names.show(self._find_place(to)) if places.is_name(to) else to

    async def send_file(self, path: Path, caption: str, key: str) -> str:
        """Send a file to the chat of the turn; a repeated call with the same `key` sends it once.

        Raises:
            AgentError: the file is gone.
        """
        try:
            file = await run_in_thread(attachment_from, path)
        except OSError as error:
            raise AgentError(f"{path.name}: {error.strerror}") from None
        reply = Reply(f"{self.turn.turn_id}:file:{key}", self.message.address, caption, (file,), role=self.role)
        await self.turn.say(await self.context.files.shared.share(reply, self.turn.session.key))
        return f"{file.name} ({file.size:,} bytes) is being sent."

    async def send_part(self, part: Poll | Location, key: str) -> str:
        """Send a poll or a place to the chat of the turn; a repeated call with the same `key` sends it once."""
        name, text = f"{self.turn.turn_id}:part:{key}", add_words("", (part,))
        await self.turn.say(Reply(name, self.message.address, text, role=self.role, parts=(part,)))
        return "It is being sent."

    def can_show(self, kind: type[MessagePart]) -> bool:
        return self.context.chats.can_show(self.message.address, kind)

    def check_shell(self) -> None:
        """Raise AgentError unless the agent and the person have the tool `shell`."""
        tool = find_tool(self.context.agents.choose(self.message, self.turn.session).tools, SHELL)
        if tool is None or self.context.access.fit_tool(tool, self.role) is None:
            raise AgentError("a command needs the tool `shell`, which you do not have here")

    async def schedule(self, work: ScheduledWork, when: str, key: str) -> str:
        """Make a job of this conversation in the name of the turn's author; the same `key` makes a single job.

        A job that answers elsewhere runs in a session of its own.

        Raises:
            AgentError: the time is none, the author has too many jobs, or may not run commands or send elsewhere.
            AccessError: a hook did not allow the command.
        """
        if work.command:
            self.check_shell()
            agent, role = self.context.agents.choose(self.message, self.turn.session), self.message.role or self.role
            fields = build_turn_fields(self.turn, self.message, role, agent.name)
            await check_command(work.command, self.context.registry.scope(fields, answers={}))
        jobs, clock, turn, said = self.jobs, self.context.engine.clock, self.turn, self.message
        zone, now = self.context.settings.timezone(), jobs.clock()
        at, ahead = parse_time(when, zone, now, clock.calculate_difference)
        whole, here = subjects.token_of(f"{turn.turn_id}/{key}"), said.address
        number = whole[:6]  # its name, which is the maker's own; histories of all makers lie side by side
        place = self._find_target(work.to) if work.to else here
        session = turn.session.key if place == here else OWN_SESSION.format(whole)
        job = Job(whole, number, said.payer, when, work.text, place, here, session, said.user_id, now)
        job = replace(job, role=said.role or self.role, is_internal=said.kind == "internal", person=said.person)
        job = replace(job, zone=zone, at=at, ahead=ahead, named=find_name(work.to, place))
        job = replace(job, command=work.command, allowed=digest_of(work.command) if work.is_allowed else "")
        await jobs.add(job)
        due = describe_moment(job.find_next() or at, zone)
        return f"Reminder {number} is set for {due}{'' if at else f', and repeats: {when}'}."

    async def list_scheduled(self, name: str) -> str:
        """List the jobs of this conversation, or the latest due times of the job `name`, with their results."""
        if not name:
            return "\n".join(map(describe_job, await self._list()))
        job = await self._find(name)
        return await describe_history(self.jobs, job)

    async def read_jobs(self, verb: JobQuestion, name: str) -> str:
        """List the jobs of all conversations that the turn may see, or describe one.

        Raises:
            AgentError: the job was not found.
        """
        if verb == "list":
            found = await self.jobs.list_all(self._sees)
            more = [f"... and {len(found) - SHOWN_JOBS} more"] if len(found) > SHOWN_JOBS else []
            return "\n".join([*map(describe_job, found[:SHOWN_JOBS]), *more]) or "No jobs."
        job = (await self.jobs.find(name, self._sees)).job
        if verb == "show":
            return describe_job(job)
        return await describe_history(self.jobs, job)

    async def change_scheduled(self, name: str, action: ScheduleAction) -> None:
        """Remove, pause or resume a job of this conversation."""
        job = await self._find(name)
        if job.paused == BY_HAND and action != "remove":
            raise AgentError(f"the reminder {name!r} was paused by hand; to go on: hermes-gateway jobs resume")
        if action == "remove":
            await self.jobs.remove(job)
        else:
            await self.jobs.pause(job, IN_CHAT if action == "pause" else "")

    def _find_target(self, to: str) -> Address:
        """Return another chat, to which the turn sends. Raises AgentError if its author may not send to other chats."""
        author = self.message.author
        if not can_send(author, self.context.agents.find_limits(find_hook(author)).uses):
            helps = "; `uses: [send]` in its HOOK.yaml allows it" if find_hook(author) else ""
            raise AgentError(f"this turn was begun by `{author}` and sends nothing to other chats{helps}")
        return self._find_place(to)

    def _find_place(self, to: str) -> Address:
        try:
            return self.context.places.resolve_destination(to, role=self.message.role or self.role)
        except AdapterError as error:
            raise AgentError(str(error)) from None

    async def _list(self) -> list[Job]:
        """List the jobs that the turn's author made in this conversation; an admin sees all jobs made here."""
        found = await self.jobs.list_of(self.turn.session.key, self.message.address)
        return [one for one in found if self._sees(one)]

    def _sees(self, job: Job) -> bool:
        """Return True for a job of the turn's author; an admin sees every job."""
        return job.maker == self.message.payer or is_admin(self.message.role or self.role)

    async def _find(self, name: str) -> Job:
        found = [one for one in await self._list() if one.name == name]
        if not found:
            raise AgentError(f"the reminder {name!r} was not found; `scheduled` lists them")
        return found[0]


def find_name(to: str, place: Address) -> str:
    """Return the name by which a chat was found, as `bind` has it behind the id; "" if it was not."""
    name = to.partition(" (")[2].removesuffix(")")
    return f"{place.served_as}:{name}" if name else ""


async def describe_history(jobs: JobJournal, job: Job) -> str:
    """Say how the last moments of a job ended, a line each."""
    history = await jobs.read_history(job, SHOWN_MOMENTS)
    return "\n".join(describe_end(one, job.zone) for one in history) or "None of its times has come."
