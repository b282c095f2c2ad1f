"""What the commands do. A verb looks at its call and says what came of it; it writes nothing by itself.

Verbs that wait for their place in the lane return the records that change the session; urgent ones act at once, on
what may be running, and return a text alone.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway import records
from gateway.access import Scope
from gateway.commands import Typed
from gateway.dispatcher import admission
from gateway.dispatcher import approvals as standing
from gateway.dispatcher.house import House
from gateway.errors import SessionError
from gateway.lanes import Lanes
from gateway.messages import Message
from gateway.sessions import Session, transitions

MORE = 20
DIGITS = 9  # a number of thousands of them is more than Python reads, and no session has that many turns
KEPT_SETTINGS = ("model", "approvals")
YES_FOR = {"": "yes", "once": "yes", "session": "session", "always": "always"}
ALONE = (
    "A code is not for the eyes of a group, and this one was let in nowhere. Write `/pairing approve CODE` to me in a "
    "direct message, or run `hermes-gateway pairing approve CODE` where the gateway runs."
)
MARK = "#"  # before what tells one question from another, in the value of a button


@dataclass(frozen=True, slots=True)
class Call:
    """One command, as somebody typed it and the hooks left it."""

    typed: Typed
    message: Message
    scope: Scope
    session: Session
    house: House

    @property
    def args(self) -> str:
        return self.typed.args

    @property
    def is_admin(self) -> bool:
        return self.scope in ("admin", "owner")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did: a text for the person, records for the session, and what the agent is to answer then."""

    text: str = ""
    changes: tuple[records.TurnRecord, ...] = ()
    then: str | None = None


Verb: TypeAlias = Callable[[Call], Awaitable[Ran]]


async def new(call: Call) -> Ran:
    opened = transitions.begin_session(call.session, time.time(), "new", message=call.message, keep=KEPT_SETTINGS)
    return Ran("A new session begins. I remember nothing of the one before; /resume brings it back.", (opened,))


async def retry(call: Call) -> Ran:
    said = transitions.find_last_request(call.session)
    return Ran(changes=(transitions.undo_turns(call.session),), then=said)


async def undo(call: Call) -> Ran:
    if call.args and not call.args.isdecimal():
        return Ran(f"/undo takes a number of turns, not {call.args!r}")
    undone = transitions.undo_turns(call.session, int(call.args[:DIGITS] or 1))
    return Ran(f"The last {'turn is' if undone.turns == 1 else f'{undone.turns} turns are'} forgotten.", (undone,))


async def title(call: Call) -> Ran:
    if not call.args:
        return Ran(f"This session is called: {call.session.title}" if call.session.title else "It has no title yet.")
    changed = transitions.change_title(call.args)
    return Ran(f"This session is now called: {changed.value}", (changed,))


async def model(call: Call) -> Ran:
    names = call.house.reports.models()
    if not call.args:
        now = call.session.model or f"{names[0]} (default)"
        return Ran(f"Model of this session: {now}\nThere are: {', '.join(names)}")
    changed = transitions.change_model(call.args)
    return Ran(f"Model of this session: {changed.value or f'{names[0]} (default)'}", (changed,))


async def sessions(call: Call) -> Ran:
    past = await call.house.sessions.read_all(call.session.key)
    rows = [
        f"{'*' if one.session_id == call.session.session_id else '-'} {one.session_id}  {one.title or first_words(one)}"
        for one in list(past.values())[-MORE:]
    ]
    return Ran("\n".join(rows) + "\n/resume ID goes back to one." if rows else "There is no session yet.")


async def resume(call: Call) -> Ran:
    past = await call.house.sessions.read_all(call.session.key)
    found = [one for one in past.values() if call.args and one.session_id.startswith(call.args)]
    if len(found) != 1:
        return Ran(f"{'No' if not found else 'More than one'} session begins with {call.args!r}; /sessions lists them.")
    opened = transitions.resume_session(call.session, found[0])
    return Ran(f"Back in {opened.session_id}: {found[0].title or first_words(found[0])}", (opened,))


async def approvals(call: Call) -> Ran:
    return Ran(await standing.listed(standing.approvals(call.house.engine, call.message, call.session), call.args))


async def branch(call: Call) -> Ran:
    opened = transitions.branch_session(call.session, call.session, time.time(), call.args)
    return Ran(f"This is a copy now, {opened.session_id}; /resume {call.session.session_id} goes back.", (opened,))


IN_LANE: Mapping[str, Verb] = {
    "new": new,
    "retry": retry,
    "undo": undo,
    "title": title,
    "model": model,
    "sessions": sessions,
    "resume": resume,
    "branch": branch,
    "approvals": approvals,
}


class Urgent:
    """The commands that act at once, also on a turn that is running."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.table: Mapping[str, Verb] = {
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

    async def help(self, call: Call) -> Ran:
        return Ran(call.house.commands.help(admin=call.is_admin))

    async def start(self, _call: Call) -> Ran:
        return Ran("Hello. Write what you want to know or have done; /help lists the commands.")

    async def status(self, call: Call) -> Ran:
        session = call.session
        standing = await self._lanes.standing(session.key)
        doing = "a turn is running" if standing.is_running else "waiting for you" if standing.is_waiting else "idle"
        rows = [f"session {session.session_id or 'not begun'}: {doing}, {len(session.entries)} entries"]
        return Ran("\n".join([call.house.reports.status(), *rows]))

    async def whoami(self, call: Call) -> Ran:
        at = call.message.address
        return Ran(f"{at.platform} user {call.message.user_id}, {call.scope}; session {call.session.key}")

    async def stop(self, call: Call) -> Ran:
        stopped = await self._lanes.interrupt(call.session.key)
        return Ran(
            {"running": "Stopped.", "waiting": "Stopped; the question is withdrawn."}.get(stopped, "Nothing runs.")
        )

    async def usage(self, call: Call) -> Ran:
        used = call.session.usage
        cost = f", for {used.cost:.4f}" if used.cost else ""
        return Ran(
            f"{used.input_tokens} tokens read, {used.output_tokens} written, in {used.calls} calls of the model{cost}."
        )

    async def queue(self, call: Call) -> Ran:
        standing = await self._lanes.standing(call.session.key)
        waiting = max(0, standing.messages - standing.is_running)
        return Ran(f"{waiting} messages wait in this session; {standing.lanes} sessions wait for their turn.")

    async def hooks(self, call: Call) -> Ran:
        return Ran(await call.house.reports.hooks())

    async def platform(self, call: Call) -> Ran:
        if not call.args:
            return Ran(call.house.reports.platforms())
        verb, _, name = call.args.partition(" ")
        return Ran(await call.house.reports.steer(verb, name.strip()))

    async def pairing(self, call: Call) -> Ran:
        at = call.message.address
        if at.chat_type != "dm" and call.args.startswith("approve"):
            return Ran(ALONE)
        by = f"{at.platform}:{call.message.user_id}"
        return Ran(await admission.command(call.house, call.args, by, at.platform))

    async def restart(self, call: Call) -> Ran:
        await call.house.reports.restart()
        return Ran("The gateway starts again; what is running is finished or taken up afterwards.")

    async def approve(self, call: Call) -> Ran:
        args, _, mark = call.args.partition(MARK)
        if args.strip() not in YES_FOR:
            return Ran(f"/approve takes nothing, `session` or `always`, not {args.strip()!r}")
        return await self._answer(call, mark, YES_FOR[args.strip()], "Approved.")

    async def deny(self, call: Call) -> Ran:
        return await self._answer(call, call.args.partition(MARK)[2], "deny", "Denied.")

    async def _answer(self, call: Call, mark: str, answer: str, said: str) -> Ran:
        """The question that is open; where a button carries the mark of one, that one alone."""
        turn = call.session.turn
        names = [name for name in (turn.questions if turn else ()) if turn and mark in ("", marked(turn.turn_id, name))]
        if not names and mark:
            return Ran("That question is no longer open.")
        if not names:
            raise SessionError("no question is open in this session")
        by = f"{call.message.address.platform}:{call.message.user_id}"
        answered = [await self._lanes.answer(call.session.key, name, answer, by) for name in names]
        return Ran(said if any(answered) else "That question is no longer open.")


def marked(turn_id: str, question: str) -> str:
    """What tells a question from all others: a button that was left standing must not answer the next one."""
    return records.token_of(f"{turn_id}:{question}")[:12]


def first_words(session: Session) -> str:
    """What a session without a title is known by."""
    said = next((entry.content for entry in session.entries if entry.role == "user"), "")
    return " ".join(said.split())[:60]
