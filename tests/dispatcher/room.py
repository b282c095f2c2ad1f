"""A room on a network of our own, with the real lanes, outbox, hooks and agent on a journal in memory."""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from gateway.access.access_control import AccessControl
from gateway.access.pairing import Pairings
from gateway.access.rules import AccessRules
from gateway.agent import Agent, Tool
from gateway.agent.media import DocumentText
from gateway.agent.model import Model
from gateway.agent.models.script import script
from gateway.agent.toolbox.workspace import Workspace
from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.chats.rules import ChatRules
from gateway.config.settings import SessionSettings, Settings
from gateway.daemon.nodes import EventRelay
from gateway.dispatcher.attachments import HookFiles, ReplyFiles
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.chat_names import ChatNames
from gateway.dispatcher.commands import CommandTable
from gateway.dispatcher.context import (
    ChatPlaces,
    DispatcherContext,
    DispatcherSettings,
    GatewayFacts,
    GatewayReports,
    SpokenWords,
    TurnAgents,
    TurnFiles,
)
from gateway.dispatcher.dispatcher import Dispatcher
from gateway.dispatcher.message_events import ReplyHooks
from gateway.dispatcher.turn_signs import TurnSigns
from gateway.files.agent_folders import HomeFolders
from gateway.hooks import HookRegistry
from gateway.hooks.manifests.reach import NO_LIMITS_KNOWN, HookLimits
from gateway.lanes.context import LaneSettings
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import NoteClaim, RunTurn
from gateway.lanes.turn_claim import write_decisions
from gateway.messages.files import HomeFiles
from gateway.messages.message import Address, Message, Receipt, Reply
from gateway.messages.roles import Role
from gateway.outbox.interface import LiveTransport
from gateway.outbox.outbox import Outbox
from gateway.records.activity import Activity
from gateway.records.names import KnownNames
from gateway.records.records import OwedReply
from gateway.sessions.repository import SessionRepository
from gateway.usage.totals import RunningTotals
from gateway.usage.usage_journal import UsageJournal
from tests.engine.memory_engine import MemoryEngine
from tests.spine import lane_settings, until

ROOM = Address("net", "room")
KEY = "agent:main:net:dm:room"
NO_FILES = Workspace(())


class Net(LiveTransport):
    """A chat network that keeps what it is sent."""

    platform = "net"
    doubt = "resend"
    can_edit = False

    def __init__(self) -> None:
        self.sent: list[Reply] = []
        self.shown: list[str] = []
        self.news = anyio.Event()

    def parts(self, reply: Reply) -> int:
        return 1

    def texts(self, reply: Reply) -> int:
        return 1

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        self.sent.append(reply)
        self.news.set()
        return (f"m{len(self.sent)}",)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        self.shown.append(reply.text)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None: ...

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        return None


class Chat:
    """A person in a room, and the gateway behind it."""

    def __init__(self, hooks: HookRegistry, net: Net, house: DispatcherContext, dispatcher: Dispatcher) -> None:
        self.hooks, self.net, self.house, self.dispatcher = hooks, net, house, dispatcher
        self.events: list[tuple[str, dict[str, Any]]] = []
        hooks.watch("*", lambda name, fields: self.events.append((name, dict(fields))))
        self._count = 0

    async def write(self, text: str, user: str = "7", **more: Any) -> Receipt:
        self._count += 1
        message = Message(str(self._count), more.pop("address", ROOM), user, text, **more)
        return await self.dispatcher.receive(message)

    async def hear(self, count: int = 1) -> str:
        """The text of the reply number `count`."""
        while len(self.net.sent) < count:
            self.net.news = anyio.Event()
            await self.net.news.wait()
        return self.net.sent[count - 1].text

    async def is_asked(self) -> bool:
        """Return True if a question is open, and not only on its way."""
        return (await self.house.sessions.open(KEY)).is_waiting

    async def when(self, name: str) -> list[dict[str, Any]]:
        """All events of this name, once there is one."""
        await until(lambda: any(heard == name for heard, _ in self.events))
        return await self.told(name)

    async def told(self, name: str) -> list[dict[str, Any]]:
        """Return all events of this name, when every event has been delivered."""
        await self.hooks.settled()
        return [fields for heard, fields in self.events if heard == name]


async def answer(text: str) -> str:
    return f"did {text}"


async def restart() -> None: ...


async def steer_nothing(_verb: str, _name: str) -> str:
    return "There is no chat network here."


async def no_tools(*_: Any) -> tuple[str, ...]:
    return ()


async def no_letters() -> str:
    return "no letters"


async def no_names() -> list[str]:
    return []


async def retry_nothing(_name: str) -> int:
    return 0


async def no_hooks(_role: Role) -> str:
    return "no hooks"


def make_usage(engine: MemoryEngine) -> UsageJournal:
    return UsageJournal(engine, RunningTotals(time.time))


async def open_page(role: str, person: str) -> str:
    return f"https://page/open?code={role}-{person}"


def make_reports(restart: Callable[[], Awaitable[None]]) -> GatewayReports:
    return GatewayReports(
        status=lambda: "all is well",
        hooks=no_hooks,
        letters=no_letters,
        dead_hooks=no_names,
        retry=retry_nothing,
        platforms=lambda _role: "net: up",
        models=lambda: ["default"],
        restart=restart,
        steer=steer_nothing,
        open_page=open_page,
    )


class WithoutMedia:
    """Reads no pictures."""

    missing = "that needs what is not installed here"

    async def fit_picture(self, data: bytes) -> bytes:
        raise AssertionError("nobody asks whom something is missing")

    async def read_document(self, data: bytes, limit: int) -> DocumentText:
        raise AssertionError("nobody asks whom something is missing")

    async def render_page(self, data: bytes, number: int) -> bytes:
        raise AssertionError("nobody asks whom something is missing")


def make_rules(approvers: tuple[str, ...]) -> AccessRules:
    admins, users = {"net": frozenset({"1"})}, {"net": frozenset({"7", "8"})}
    return AccessRules("ignore", 30, admins=admins, users=users, approvers=frozenset(approvers))


async def find_files(workspace: Workspace, _outbound: OwedReply, _hook: str) -> HookFiles:
    return HookFiles(workspace, NO_FILES)


def build_context(given: Mapping[str, Any]) -> DispatcherContext:
    """Each part of this name goes where it belongs."""

    def make(kind: Any, **more: Any) -> Any:
        return kind(**{name: given[name] for name in kind.__struct_fields__ if name in given} | more)

    own = {"files": make(TurnFiles), "settings": make(DispatcherSettings), "voice": make(SpokenWords)}
    context: DispatcherContext = make(DispatcherContext, places=make(ChatPlaces), agents=make(TurnAgents), **own)
    return context


def no_limits(_hook: str) -> HookLimits:
    return NO_LIMITS_KNOWN


@asynccontextmanager
async def chat(
    *turns: Any,
    tools: tuple[Tool, ...] = (),
    about: Any = GatewayFacts,
    lanes: LaneSettings | None = None,
    workspace: Workspace = NO_FILES,
    approvers: tuple[str, ...] = ("admin", "asker"),
    commands: CommandTable | None = None,
    programs: Role | None = None,
    reach: float = 30.0,
    engine: MemoryEngine | None = None,
    net: Net | None = None,
    model: Model | None = None,
    **house_facts: Any,
) -> AsyncIterator[Chat]:
    engine, hooks, net = engine or MemoryEngine(), HookRegistry(), net or Net()
    sessions = SessionRepository(engine)

    agent = Agent("main", model or script(*turns), tools=tools)
    shared_files = HomeFiles(files := Path("/nowhere/files"))
    outbox, chats = Outbox(engine), ChatRules(ChatJournal(engine), Settings())
    given: dict[str, Any] = {
        "engine": engine,
        "registry": hooks,
        "sessions": sessions,
        "outbox": outbox,
        "chats": chats,
    }
    access = AccessControl(make_rules(approvers), Pairings(engine), find_program_role=lambda _user: programs)
    given |= {"access": access, "activity": Activity(engine), "usage": make_usage(engine), "find_limits": no_limits}
    given |= {"choose": lambda message, session: agent, "on_skill": no_tools, "media": WithoutMedia(), "folder": files}
    given |= {"shared": shared_files, "folders": HomeFolders(), "find_workspace": lambda _facts: workspace}
    given |= {"plugins": Path("/nowhere/plugins"), "keys": SessionSettings()}
    given |= {
        "run_id": "this run",
        "is_running": EventRelay().is_running,
        "unattended": lambda: 600.0,
        "too_old": math.inf,
    }
    given |= {"chat_names": ChatNames(KnownNames(engine), dict, dict)}
    given |= {"commands": commands or CommandTable(BUILT_IN), "reports": make_reports(restart), "about": about}
    house, heard = build_context(given | house_facts), HeardMessages(engine, chats.is_heard)
    async with hooks, anyio.create_task_group() as tasks:
        settings, signs, make = lanes or lane_settings(), TurnSigns(engine), partial(Lanes, engine, sessions)

        def make_lanes(work: RunTurn, note: NoteClaim) -> Lanes:
            return make(work, replace(settings, ports=replace(settings.ports, note=note)))

        dispatcher = Dispatcher(house, make_lanes, tasks, signs, heard, KnownNames(house.engine))
        files_of_replies = ReplyFiles(shared_files, partial(find_files, workspace))
        write, approvals = partial(write_decisions, engine, sessions), dispatcher.approvals
        unshown = dispatcher.refuse_unshown
        outbox.begin(ReplyHooks(hooks, files_of_replies, approvals.is_withdrawn, write, refuse_unshown=unshown))
        await tasks.start(dispatcher.lanes.run)
        await tasks.start(dispatcher.approvals.run, house.places.find_approvers(reach))
        await tasks.start(outbox.serve_platform, net)
        yield Chat(hooks, net, house, dispatcher)
        tasks.cancel_scope.cancel()
    await engine.close()
