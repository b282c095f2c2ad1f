"""What the commands do. A verb looks at its call and says what came of it; it writes nothing by itself.

Verbs that wait for their place in the lane return the records that change the session; urgent ones act at once, on
what may be running, and return a text alone.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway import records
from gateway.access import AccessLevel, is_admin
from gateway.commands import ParsedCommand
from gateway.dispatcher import pairing_commands
from gateway.dispatcher import tool_approvals as standing
from gateway.dispatcher.context import DispatcherContext
from gateway.errors import SessionError
from gateway.lanes import Lanes
from gateway.messages import Message
from gateway.sessions import Session, transitions

MOST_LISTED = 20
MOST_DIGITS = 9  # a number of thousands of them is more than Python reads, and no session has that many turns
KEPT_SETTINGS = ("model", "approvals")
APPROVE_ANSWERS = {"": "yes", "once": "yes", "session": "session", "always": "always"}
NOT_IN_GROUPS = (
    "A code is not for the eyes of a group, and this one was let in nowhere. Write `/pairing approve CODE` to me in a "
    "direct message, or run `hermes-gateway pairing approve CODE` where the gateway runs."
)
QUESTION_SIGN = "#"  # before what tells one question from another, in the value of a button


@dataclass(frozen=True, slots=True)
class CommandCall:
    """One command, as somebody typed it and the hooks left it."""

    typed: ParsedCommand
    message: Message
    scope: AccessLevel
    session: Session
    house: DispatcherContext

    @property
    def args(self) -> str:
        return self.typed.args

    @property
    def is_admin(self) -> bool:
        return is_admin(self.scope)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did: a text for the person, records for the session, and what the agent is to answer then."""

    text: str = ""
    changes: tuple[records.TurnRecord, ...] = ()
    then: str | None = None


RunChatCommand: TypeAlias = Callable[[CommandCall], Awaitable[CommandResult]]


async def begin_session(call: CommandCall) -> CommandResult:
    opened = transitions.begin_session(call.session, time.time(), "new", message=call.message, keep=KEPT_SETTINGS)
    return CommandResult(
        "A new session begins. I remember nothing of the one before; /resume brings it back.", (opened,)
    )


async def retry_turn(call: CommandCall) -> CommandResult:
    said = transitions.find_last_request(call.session)
    return CommandResult(changes=(transitions.undo_turns(call.session),), then=said)


async def undo_turns(call: CommandCall) -> CommandResult:
    if call.args and not call.args.isdecimal():
        return CommandResult(f"/undo takes a number of turns, not {call.args!r}")
    undone = transitions.undo_turns(call.session, int(call.args[:MOST_DIGITS] or 1))
    return CommandResult(
        f"The last {'turn is' if undone.turns == 1 else f'{undone.turns} turns are'} forgotten.", (undone,)
    )


async def set_title(call: CommandCall) -> CommandResult:
    if not call.args:
        return CommandResult(
            f"This session is called: {call.session.title}" if call.session.title else "It has no title yet."
        )
    changed = transitions.change_title(call.args)
    return CommandResult(f"This session is now called: {changed.value}", (changed,))


async def set_model(call: CommandCall) -> CommandResult:
    names = call.house.reports.models()
    if not call.args:
        now = call.session.model or f"{names[0]} (default)"
        return CommandResult(f"Model of this session: {now}\nThere are: {', '.join(names)}")
    changed = transitions.change_model(call.args)
    return CommandResult(f"Model of this session: {changed.value or f'{names[0]} (default)'}", (changed,))


async def list_sessions(call: CommandCall) -> CommandResult:
    past = await call.house.sessions.read_all(call.session.key)
    rows = [
        f"{'*' if one.session_id == call.session.session_id else '-'} {one.session_id}  "
        f"{one.title or first_words_of(one)}"
        for one in list(past.values())[-MOST_LISTED:]
    ]
    return CommandResult("\n".join(rows) + "\n/resume ID goes back to one." if rows else "There is no session yet.")


async def resume_session(call: CommandCall) -> CommandResult:
    past = await call.house.sessions.read_all(call.session.key)
    found = [one for one in past.values() if call.args and one.session_id.startswith(call.args)]
    if len(found) != 1:
        return CommandResult(
            f"{'No' if not found else 'More than one'} session begins with {call.args!r}; /sessions lists them."
        )
    opened = transitions.resume_session(call.session, found[0])
    return CommandResult(f"Back in {opened.session_id}: {found[0].title or first_words_of(found[0])}", (opened,))


async def run_approvals(call: CommandCall) -> CommandResult:
    return CommandResult(
        await standing.run_approvals_command(
            standing.approvals_of(call.house.engine, call.message, call.session), call.args
        )
    )


async def branch_session(call: CommandCall) -> CommandResult:
    opened = transitions.branch_session(call.session, call.session, time.time(), call.args)
    return CommandResult(
        f"This is a copy now, {opened.session_id}; /resume {call.session.session_id} goes back.", (opened,)
    )


LANE_COMMANDS: Mapping[str, RunChatCommand] = {
    "new": begin_session,
    "retry": retry_turn,
    "undo": undo_turns,
    "title": set_title,
    "model": set_model,
    "sessions": list_sessions,
    "resume": resume_session,
    "branch": branch_session,
    "approvals": run_approvals,
}


class UrgentCommands:
    """The commands that act at once, also on a turn that is running."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.table: Mapping[str, RunChatCommand] = {
            "help": self.help,
            "start": self.start,
            "status": self.status,
            "whoami": self.whoami,
            "stop": self.stop,
            "usage": self.usage,
            "queue": self.queue,
            "hooks": self.hooks,
            "approve": self.approve,
            "deny": self.deny,
            "platform": self.platform,
            "pairing": self.pairing,
            "restart": self.restart,
        }

    async def help(self, call: CommandCall) -> CommandResult:
        return CommandResult(call.house.commands.help(admin=call.is_admin))

    async def start(self, _call: CommandCall) -> CommandResult:
        return CommandResult("Hello. Write what you want to know or have done; /help lists the commands.")

    async def status(self, call: CommandCall) -> CommandResult:
        session = call.session
        standing = await self._lanes.queue_position(session.key)
        doing = "a turn is running" if standing.is_running else "waiting for you" if standing.is_waiting else "idle"
        rows = [f"session {session.session_id or 'not begun'}: {doing}, {len(session.entries)} entries"]
        return CommandResult("\n".join([call.house.reports.status(), *rows]))

    async def whoami(self, call: CommandCall) -> CommandResult:
        at = call.message.address
        return CommandResult(f"{at.platform} user {call.message.user_id}, {call.scope}; session {call.session.key}")

    async def stop(self, call: CommandCall) -> CommandResult:
        stopped = await self._lanes.interrupt(call.session.key)
        return CommandResult(
            {"running": "Stopped.", "waiting": "Stopped; the question is withdrawn."}.get(stopped, "Nothing runs.")
        )

    async def usage(self, call: CommandCall) -> CommandResult:
        used = call.session.usage
        cost = f", for {used.cost:.4f}" if used.cost else ""
        return CommandResult(
            f"{used.input_tokens} tokens read, {used.output_tokens} written, in {used.calls} calls of the model{cost}."
        )

    async def queue(self, call: CommandCall) -> CommandResult:
        standing = await self._lanes.queue_position(call.session.key)
        waiting = max(0, standing.messages - standing.is_running)
        return CommandResult(f"{waiting} messages wait in this session; {standing.lanes} sessions wait for their turn.")

    async def hooks(self, call: CommandCall) -> CommandResult:
        return CommandResult(await call.house.reports.hooks())

    async def platform(self, call: CommandCall) -> CommandResult:
        if not call.args:
            return CommandResult(call.house.reports.platforms())
        verb, _, name = call.args.partition(" ")
        return CommandResult(await call.house.reports.steer(verb, name.strip()))

    async def pairing(self, call: CommandCall) -> CommandResult:
        at = call.message.address
        if at.chat_type != "dm" and call.args.startswith("approve"):
            return CommandResult(NOT_IN_GROUPS)
        by = f"{at.platform}:{call.message.user_id}"
        return CommandResult(await pairing_commands.run_pairing_command(call.house, call.args, by, at.platform))

    async def restart(self, call: CommandCall) -> CommandResult:
        await call.house.reports.restart()
        return CommandResult("The gateway starts again; what is running is finished or taken up afterwards.")

    async def approve(self, call: CommandCall) -> CommandResult:
        args, _, mark = call.args.partition(QUESTION_SIGN)
        if args.strip() not in APPROVE_ANSWERS:
            return CommandResult(f"/approve takes nothing, `session` or `always`, not {args.strip()!r}")
        return await self._answer(call, mark, APPROVE_ANSWERS[args.strip()], "Approved.")

    async def deny(self, call: CommandCall) -> CommandResult:
        return await self._answer(call, call.args.partition(QUESTION_SIGN)[2], "deny", "Denied.")

    async def _answer(self, call: CommandCall, mark: str, answer: str, said: str) -> CommandResult:
        """The question that is open; where a button carries the mark of one, that one alone."""
        turn = call.session.turn
        names = [
            name
            for name in (turn.questions if turn else ())
            if turn and mark in ("", question_token_of(turn.turn_id, name))
        ]
        if not names and mark:
            return CommandResult("That question is no longer open.")
        if not names:
            raise SessionError("no question is open in this session")
        by = f"{call.message.address.platform}:{call.message.user_id}"
        answered = [await self._lanes.answer(call.session.key, name, answer, by) for name in names]
        return CommandResult(said if any(answered) else "That question is no longer open.")


def question_token_of(turn_id: str, question: str) -> str:
    """What tells a question from all others: a button that was left standing must not answer the next one."""
    return records.token_of(f"{turn_id}:{question}")[:12]


def first_words_of(session: Session) -> str:
    """What a session without a title is known by."""
    said = next((entry.content for entry in session.entries if entry.role == "user"), "")
    return " ".join(said.split())[:60]
