"""Two gateways on one journal: one serves the network, the turns run on the other, and people see no difference."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.adapters.verbs import SayRequest
from gateway.agent.skills import Skill, read_skill
from gateway.cluster.folder_journal import STORED
from gateway.cluster.nats.engine import open_nats
from gateway.config.loading import load_configuration
from gateway.config.permissions import prepare_home
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.startup import open_gateway_on
from gateway.errors import GatewayError
from gateway.events.verbs import TailParams
from gateway.hooks.stats import HookInfo
from gateway.records.subjects import EVENT_SUBJECTS
from gateway.sessions.removal import forget_sessions
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import GatewayParts
from gateway.testing.networks.suite_media import PICTURE
from gateway.testing.networks.wire import ANN, BEN, Wire
from tests.adapters.wires import WIRES
from tests.engine.nats_servers import run_servers
from tests.spine import until
from tests.web.signers import TOKEN, sign_token
from tests.web.test_chat_completions import AGENT, client_of, make_key, post

pytestmark = [pytest.mark.timeout(180)]

ROLES = {"network": "[ingress, web]", "turns": "[lanes, hooks]"}
KEEPS = {
    "HOOK.yaml": "events: [agent:end, message:sent]\ndelivery: durable\n",
    "handler.py": """import os, pathlib

def handle(event_type, context):
    for one in context.get("attachments", ()):
        (pathlib.Path(os.environ["HERMES_HOME"]) / "seen").write_bytes(pathlib.Path(one["path"]).read_bytes())
""",
}
COUNTS = {
    "handler.py": """import os, pathlib

def handle(event_type, context):
    with (pathlib.Path(os.environ["HERMES_HOME"]) / "seen").open("a") as seen:
        seen.write(str(context["n"]))
""",
}
RUN: dict[str, Any] = {"tool_calls": [{"name": "shell", "args": {"command": "echo it ran"}}]}
SHOW: dict[str, Any] = {"tool_calls": [{"name": "read_file", "args": {"path": "barn.png"}}]}
SEND: dict[str, Any] = {"tool_calls": [{"name": "send_file", "args": {"path": "barn.png", "caption": "The barn."}}]}
SLOW = {"user": "slow", "answers": [{"chunks": [f"word{number} " for number in range(20)], "delay": "150ms"}]}
SCRIPT: tuple[dict[str, Any], ...] = (
    SLOW,
    {"user": "barn", "answers": [SHOW, SEND, {"text": "Sent."}]},
    {"user": "do it", "answers": [RUN, {"text": "Did."}]},
    *({"user": "", "text": "I heard you."},) * 9,
)


class Pair:
    """`network` serves the wire's bot and the port; `turns` runs the turns, and tells durable hooks."""

    def __init__(self, wire: Any, network: GatewayParts, turns: GatewayParts, processes: list[GatewayProcess]) -> None:
        self.wire, self.network, self.turns = wire, network, turns
        self.processes = processes  # of their homes: how commands reach them
        self.events: list[tuple[str, dict[str, Any]]] = []
        for gateway in (network, turns):
            gateway.registry.watch("*", lambda name, fields: self.events.append((name, dict(fields))))

    async def shows(self, text: str) -> None:
        await until(lambda: any(text in one.text for one in self.wire.shown), f"{text!r}, not {self.wire.shown},")

    def told(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]


@asynccontextmanager
async def working(started: GatewayProcess, name: str, url: str, wire: Wire) -> AsyncIterator[GatewayParts]:
    owners = f"owners: {{{wire.network}: ['{wire.known_as(ANN)}']}}"
    rights = f"access: {{{owners}, tools: {{user: [shell]}}}}\n"
    settings = (
        f"node: {{name: {name}, roles: {ROLES[name]}}}\ndisplay: {{reactions: true}}\ntools: {{shell: ask}}\n{rights}"
    )
    hook = f"{{secret_env: TOKEN_SECRET, verify: token, session: '{wire.network}:{ANN}', template: 'Look: {{text}}'}}"
    settings += f"agents: {{{AGENT}: {{}}}}\nwebhooks: {{builds: {hook}}}\n"
    started.script(*SCRIPT, settings=settings + wire.settings)
    if not (started.home.hooks / "keeps").exists():  # else it has been at work before
        started.add_hook("keeps", KEEPS)
    people = {f"{wire.network.upper()}_ALLOWED_USERS": ",".join(map(wire.known_as, (ANN, BEN)))}
    environ: Mapping[str, str] = {**started.environ, **wire.environ, **people, "TOKEN_SECRET": TOKEN}
    configuration = load_configuration(load_settings_schema(), started.home, environ)
    prepare_home(started.home)
    async with (
        await open_nats(url) as engine,
        open_gateway_on(engine, started.home, configuration, Shutdown(2.5), build_verbs) as gateway,
    ):
        yield GatewayParts(gateway)


async def test_what_came_before_any_gateway_ran_turns_is_counted_and_answered(tmp_path: Path) -> None:
    wire: Wire = WIRES["discord"](tmp_path / "wire")
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with wire.serving(), AsyncExitStack() as stack:
            first, later = (GatewayProcess(tmp_path / name / "home") for name in ("network", "turns"))
            network = await stack.enter_async_context(working(first, "network", server.url, wire))
            await until(lambda: network.platforms[0].presence.facts.up, "the network")
            await wire.write("hello")

            async def is_counted() -> bool:
                return await network.groups.turns.lanes.depth() == 1

            await until(is_counted, "the message")
            await stack.enter_async_context(working(later, "turns", server.url, wire))
            await until(lambda: [one.text for one in wire.shown] == ["I heard you."], "the answer")


async def test_what_a_home_lacks_is_named_and_its_durable_hook_is_told_all_the_same(tmp_path: Path) -> None:
    wire: Wire = WIRES["discord"](tmp_path / "wire")
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with wire.serving(), AsyncExitStack() as stack:
            lacks, has = (GatewayProcess(tmp_path / name / "home") for name in ("network", "turns"))
            folder = has.add_hook(
                "counts", {**COUNTS, "HOOK.yaml": "version: 1.4\nevents: ['my:*']\ndelivery: durable\n"}
            )
            async with working(has, "turns", server.url, wire) as turns:
                await until(lambda: has_written(turns, "turns", "counts"), "what it has")
            network = await stack.enter_async_context(working(lacks, "network", server.url, wire))
            network.registry.emit("my:event", n=1)
            async with working(has, "turns", server.url, wire) as turns:
                seen = has.home.root / "seen"
                await until(seen.exists, "what happened while it was away")
                network.registry.emit("my:event", n=2)
                await until(lambda: seen.read_text() == "12", "each once")
                await until(partial(is_named, lacks, r"counts is 1\.4 \([0-9a-f]{12}\) on turns and missing here"))
                await turns.groups.hooks.skill_hooks.changed("s1", "load", write_skill(has))
                await until(
                    partial(is_named, lacks, "this gateway lacks skills that conversations have loaded: coffee; ")
                )
                await until(partial(is_named, has, "network lacks skills that conversations have loaded: coffee; "))
                write_skill(lacks)
                await until(partial(is_named, lacks, "coffee", is_said=False), "that the skill is there")
                await until(partial(has_hook, lacks, "grinds"), "its hook")
                folder.rename(tmp_path / "away")
                await until(lambda: not has_written(network, "turns", "counts"), "that it is gone")
                before = await turns.engine.read(EVENT_SUBJECTS)
                network.registry.emit("my:event", n=3)
                await network.registry.settled()
                assert await turns.engine.read(EVENT_SUBJECTS) == before, "nobody wants it any more"


def write_skill(gateway: GatewayProcess) -> Skill:
    folder = gateway.home.skills / "coffee"
    hook = folder / "hooks" / "grinds"
    hook.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: coffee\ndescription: How coffee is made.\n---\nGrind it.\n")
    (hook / "HOOK.yaml").write_text("intercepts: [tool:before]\n")
    (hook / "handler.py").write_text("def handle(event_type, context): pass\n")
    skill = read_skill(folder, [])
    assert skill
    return skill


async def is_named(gateway: GatewayProcess, words: str, *, is_said: bool = True) -> bool:
    """Return True if `status` names it, or does not, under what needs attention."""
    told = await anyio.to_thread.run_sync(gateway.call, "status")
    return any(re.search(words, one) for one in told["attention"]) == is_said


async def has_hook(gateway: GatewayProcess, name: str) -> bool:
    listed = await anyio.to_thread.run_sync(gateway.call, "hooks.list")
    return name in {hook["name"] for hook in listed["hooks"]}


def has_written(gateway: GatewayParts, node: str, hook: str) -> bool:
    """Return True if this gateway knows that the node has this hook."""
    known = gateway.folder_hooks.others.find(node)
    return known is not None and hook in known.folders


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    wire: Wire = WIRES["discord"](tmp_path / "wire")
    with run_servers(tmp_path / "nats", 1) as (server,):
        async with wire.serving(), AsyncExitStack() as stack:
            homes = [GatewayProcess(tmp_path / name / "home") for name in ("network", "turns")]
            network = await stack.enter_async_context(working(homes[0], "network", server.url, wire))
            await until(lambda: network.platforms[0].presence.facts.up, "the network")
            turns = await stack.enter_async_context(working(homes[1], "turns", server.url, wire))
            yield Pair(wire, network, turns, homes)


async def test_people_see_no_difference(pair: Pair) -> None:
    wire = pair.wire
    slow = await wire.write("slow")
    await pair.shows("word3")
    assert not any("word19" in one.text for one in wire.shown), "it grows while it is written"
    assert wire.signs(ANN) > 0
    await until(lambda: wire.reactions.get(slow) == ["🤔"], "being answered")
    await pair.shows("word19")
    await until(lambda: wire.reactions.get(slow) == ["✅"], "answered")
    assert len(wire.shown) == 1
    assert pair.told("agent:end")

    await wire.write("do it", by=BEN)
    await until(lambda: any(one.buttons for one in wire.shown), "the question")
    (question,) = [one for one in wire.shown if one.buttons]
    assert question.chat == ANN
    await wire.press(question, "Yes", by=ANN)
    await pair.shows("Did.")
    await until(lambda: not question.buttons and "Allowed by" in question.text, "its end")

    async def is_told_of_all() -> bool:
        return len(pair.told("agent:end")) + len(pair.told("message:sent")) == (await info(pair.turns)).calls

    await until(is_told_of_all, "a durable hook being told of what happened on both, once")
    assert {*map(len, map(pair.told, ("agent:end", "message:sent")))} & {0} == set()
    assert (await info(pair.network)).calls == 0


async def info(gateway: GatewayParts) -> HookInfo:
    return await gateway.folder_hooks.info("keeps")


async def test_each_does_what_its_roles_say(pair: Pair) -> None:
    (discord,) = pair.turns.platforms
    assert discord.state == "standby"
    await until(lambda: discord.served_by == "network", "who serves it")
    await discord.part.wait_until_ended()
    assert await pair.turns.groups.presence.steering.steer("restart", discord.name) == "discord is connected again."
    assert pair.turns.web is None
    assert {"lanes", "schedule"} & {part.name for part in pair.network.groups.run.parts} == set()
    for process, told in zip(pair.processes, ("network", "turns"), strict=True):
        status = await anyio.to_thread.run_sync(process.call, "status")
        assert [line for line in status["attention"] if line.startswith("no node")] == []
        roles = {one["name"]: one["roles"] for one in status["nodes"]}
        assert roles == {"network": ["ingress", "web"], "turns": ["lanes", "hooks"]}
        assert next(iter(roles)) == told

    async def is_shared_out() -> bool:
        nodes = (await anyio.to_thread.run_sync(pair.processes[0].call, "status"))["nodes"]
        alone = {one["name"]: {*one["alone"]} - {"tends the journal"} for one in nodes}
        return alone == {"network": {"discord"}, "turns": {"calls hooks when they are due"}}

    await until(is_shared_out, "what each does for all")
    shown = await anyio.to_thread.run_sync(pair.processes[1].cli, "status", "--parts")
    assert re.search(r"network .*ingress, web +discord", shown.stdout)
    with pytest.raises(GatewayError, match="does not do `web`"):
        await anyio.to_thread.run_sync(pair.processes[1].call, "web.open")


async def test_a_terminal_and_whoever_watches_see_what_happens_elsewhere(pair: Pair) -> None:
    seen, pieces = list[dict[str, Any]](), list[dict[str, Any]]()

    async def note(_kind: str, event: Any) -> None:
        seen.append(event)

    async def hear(kind: str, said: dict[str, Any]) -> None:
        if kind == "delta":
            pieces.append(said)

    tail: Any = build_verbs(pair.network.groups.find)["events.tail"].answer
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tail, TailParams(("agent:end",)), note)
        said = await pair.network.groups.turns.terminal.say(SayRequest("slow"), hear)
        assert "word19" in said.reply
        assert len(pieces) > 3
        await until(lambda: [one["node"] for one in seen] == ["turns"], "the event")
        await anyio.Path(pair.turns.home.own_folder / "workspace" / "barn.png").write_bytes(PICTURE)
        shown = (await pair.network.groups.turns.terminal.say(SayRequest("what is in the barn", "other"), hear)).reply
        (path,) = re.findall(r"\[file barn\.png: (.*)\]", shown)
        assert Path(path).is_relative_to(pair.network.home.files)
        assert await anyio.Path(path).read_bytes() == PICTURE
        tasks.cancel_scope.cancel()


async def test_programs_and_webhooks_are_answered_from_elsewhere(pair: Pair) -> None:
    key = await anyio.to_thread.run_sync(make_key, pair.processes[0], "app")
    client = await anyio.to_thread.run_sync(client_of, pair.processes[0], key)

    def ask() -> list[str]:
        asked: Any = [{"role": "user", "content": "slow"}]
        answer = client.chat.completions.create(model=AGENT, messages=asked, stream=True)
        return [piece.choices[0].delta.content or "" for piece in answer if piece.choices]

    pieces = await anyio.to_thread.run_sync(ask)
    assert "word19" in "".join(pieces)
    assert len(pieces) > 3, "it comes as it is written"
    body = b'{"text": "a build"}'
    signed = {name.replace("-", "_"): value for name, value in sign_token(body).items()}
    visit = await anyio.to_thread.run_sync(partial(post, pair.processes[0], body, "/webhooks/builds", **signed))
    assert visit.status == 202
    await pair.shows("I heard you.")
    assert len(pair.told("agent:end")) == 2


def shown_files(pair: Pair, gateway: GatewayParts) -> list[tuple[Path, bytes]]:
    """Return the pictures that a model last saw, by their paths at the gateway that called it."""
    messages = pair.told("llm:before")[-1]["messages"]
    paths = [Path(part["path"]) for message in messages for part in message.get("parts", ())]
    assert all(path.is_relative_to(gateway.home.files) for path in paths), paths
    return [(path, path.read_bytes()) for path in paths]


async def test_files_come_and_go_between_them(pair: Pair) -> None:
    wire, photo, letter = pair.wire, PICTURE + b"\0", b"Dear Ann" * 100_000
    workspace = pair.turns.home.own_folder / "workspace"
    await anyio.Path(workspace / "barn.png").write_bytes(PICTURE)
    await wire.upload(("roof.jpg", photo), ("letter.txt", letter), caption="what is in the barn")
    await pair.shows("Sent.")
    await pair.shows("The barn.")
    assert [one.file for one in wire.shown if one.file] == [PICTURE]
    assert [data for _, data in shown_files(pair, pair.turns)] == [photo, PICTURE]

    seen = pair.turns.home.root / "seen"
    await until(lambda: seen.exists() and seen.read_bytes() == PICTURE, "a hook being told of it")
    copies = [path for path, _ in shown_files(pair, pair.turns)]
    copies += [path for path in pair.network.home.files.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in copies].count(PICTURE) == 2, "what a tool gave, and what was sent"
    key = pair.told("message:received")[-1]["session_key"]
    assert await forget_sessions(pair.network.engine, pair.network.sessions, key)
    await until(lambda: not any(path.exists() for path in copies), "the end of all files")
    assert pair.network.engine.files
    left = await pair.network.engine.files.list()
    assert [one for one in left if not one.key.startswith(STORED)] == [], "the workspace stays"
