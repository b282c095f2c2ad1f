"""Servers of tools by MCP: real processes, reached by stdio and by HTTP through the official library."""

import os
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

import anyio
import pytest

from gateway.agent.mcp.client import McpSpec, make_tool_name
from gateway.agent.mcp.servers import McpServers
from gateway.agent.tools import choose_sources
from gateway.config.fields import Secret
from gateway.config.settings import McpServerSettings
from gateway.errors import AgentError
from tests.agent.mcp.snapshots import MemorySnapshots
from tests.spine import until

pytestmark = pytest.mark.process

SERVER = Path(__file__).parent / "toolserver.py"


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


class UnusedParser:
    """No message here is long."""

    async def compact(self, message: bytes, limit: int) -> bytes:
        raise AssertionError(f"{len(message)} bytes are not a long message")


PARSER = UnusedParser()


def spec(name="shop", output_limit=64_000, **settings):
    settings.setdefault("trust", "all")
    for secrets in ("env", "headers"):
        settings[secrets] = {key: Secret(value) for key, value in settings.get(secrets, {}).items()}
    return McpSpec(name, McpServerSettings(**settings), Path.cwd(), output_limit, PARSER)


@pytest.fixture
def program(notes):
    """A server that is a program: `program(timeout=1)`."""

    def program(**more):
        given = {"command": sys.executable, "args": (str(SERVER), "stdio", str(notes)), "env": {"GIVEN": "1"}}
        return spec(**(given | more))

    return program


@pytest.fixture
async def keep():
    """`servers = await keep(spec, ...)`: kept until the test ends."""
    async with anyio.create_task_group() as tasks:

        async def keep(*specs):
            servers = McpServers(specs, MemorySnapshots())
            await tasks.start(servers.run)
            return servers

        yield keep
        tasks.cancel_scope.cancel()


def calling(name, **args):
    return {"tool_calls": [{"name": name, "args": args, "id": "c"}]}


def sources(servers):
    return tuple(servers.servers.values())


def lines(notes):
    return notes.read_text().splitlines() if notes.exists() else []


async def until_tools(server):
    async def find():
        with suppress(AgentError):
            return await server.tools()

    return await until(find, "its tools")


async def test_the_tools_of_a_program_are_tools_of_the_agent(stage, keep, program):
    servers = await keep(program())
    agent = stage.agent(calling("mcp_shop_price", article="tea", pieces=3), "15.", sources=sources(servers))
    result = await stage.play(agent)
    assert [entry.content for entry in result.entries][2:] == ["tea: 15 francs", "15."]
    offered = {tool.name: tool for tool in stage.sent(0).tools}
    assert "mcp_shop_price" in offered
    assert offered["mcp_shop_price"].description == "What an article costs."
    assert set(offered["mcp_shop_price"].schema["properties"]) == {"article", "pieces"}
    assert [name for name in stage.names if name.startswith("tool:")] == ["tool:before", "tool:after"]


async def test_a_program_is_started_when_a_turn_wants_it_and_ended_with_us(stage, program, notes):
    async with anyio.create_task_group() as tasks:
        servers = McpServers([program()], MemorySnapshots())
        await tasks.start(servers.run)
        await stage.play(stage.agent("no tools here"))
        assert lines(notes) == []
        await stage.play(stage.agent("with tools", sources=sources(servers)))
        (started,) = lines(notes)
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.split()[1]), 0)


async def test_wrong_arguments_are_refused_by_the_servers_schema_and_its_errors_reach_the_model(stage, keep, program):
    servers = await keep(program())
    agent = stage.agent(
        calling("mcp_shop_price", article=7), calling("mcp_shop_refuse"), "ok", sources=sources(servers)
    )
    result = await stage.play(agent)
    told = [entry for entry in result.entries if entry.role == "tool"]
    assert "expected string at $.article" in told[0].content
    assert "we are closed" in told[1].content
    assert all(entry.error for entry in told)


async def test_a_program_sees_of_our_environment_what_is_named(stage, keep, program, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_GATEWAY", "x")
    servers = await keep(program())
    result = await stage.play(stage.agent(calling("mcp_shop_environment"), "ok", sources=sources(servers)))
    assert result.entries[2].content == "GIVEN, PATH"


async def test_a_call_that_is_stopped_is_stopped_at_the_server_too(stage, keep, program, notes):
    servers = await keep(program())
    ports = stage.ports()
    agent = stage.agent(calling("mcp_shop_wait"), sources=sources(servers))

    async def stop():
        await until(lambda: "waiting" in lines(notes))
        ports.stop.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        result = await stage.play(agent, stop=ports.stop)
    assert result.status == "interrupted"
    await until(lambda: "cancelled" in lines(notes))
    assert (
        await stage.play(stage.agent(calling("mcp_shop_price", article="tea"), "ok", sources=sources(servers)))
    ).reply


async def test_a_call_has_its_limit(stage, keep, program, notes):
    servers = await keep(program(timeout=0.3))
    result = await stage.play(stage.agent(calling("mcp_shop_wait"), "ok", sources=sources(servers)))
    assert "took longer than 0.3 seconds" in result.entries[2].content
    await until(lambda: "cancelled" in lines(notes))


async def test_a_server_that_dies_is_told_to_the_model_and_started_again(stage, keep, program, notes):
    servers = await keep(program())
    (server,) = sources(servers)
    agent = stage.agent(calling("mcp_shop_die"), "I see.", sources=(server,))
    result = await stage.play(agent)
    assert (result.reply, result.entries[2].error) == ("I see.", True)
    assert "broke off" in result.entries[2].content
    assert "unknown" in result.entries[2].content
    await until_tools(server)
    assert len([line for line in lines(notes) if line.startswith("started")]) == 2


async def test_a_server_that_dies_between_calls_is_noticed(keep, program, notes):
    servers = await keep(program())
    (server,) = sources(servers)
    await server.tools()
    os.kill(int(lines(notes)[0].split()[1]), 9)
    await until(lambda: server.state == "down")
    assert server.reason.startswith("it ended")


async def test_a_server_that_cannot_be_started_is_told_to_the_model_and_holds_up_nothing(stage, keep):
    servers = await keep(spec("nowhere", command="/no/such/program"))
    result = await stage.play(stage.agent("I do without.", sources=sources(servers)))
    assert result.reply == "I do without."
    assert "The tools of nowhere cannot be used now: program" in stage.sent().system


async def test_the_last_words_of_a_program_that_fails_are_part_of_the_reason(keep, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import sys; sys.exit('TOKEN is missing')")
    servers = await keep(spec("broken", command=sys.executable, args=(str(script),)))
    with pytest.raises(AgentError, match="TOKEN is missing"):
        await sources(servers)[0].tools()


async def test_tools_that_a_server_brings_later_are_there_in_the_next_turn(stage, keep, program):
    servers = await keep(program())
    (server,) = sources(servers)
    await server.tools()
    await anyio.sleep(0.05)
    await stage.play(stage.agent(calling("mcp_shop_grow"), "ok", sources=(server,)))

    async def has_grown():
        return "mcp_shop_grown" in {tool.name for tool in await server.tools()}

    await until(has_grown)


async def test_only_the_tools_that_are_configured_are_offered(keep, program):
    servers = await keep(program(tools=("price",)))
    assert [tool.name for tool in await sources(servers)[0].tools()] == ["mcp_shop_price"]
    (some,) = choose_sources(sources(servers), ("read_file", "mcp_shop_price"))
    (every,) = choose_sources(sources(servers), ("mcp_shop",))
    assert len(await some.tools()) == len(await every.tools()) == 1
    assert choose_sources(sources(servers), ("read_file",)) == ()


async def test_another_configuration_ends_what_changed_and_lets_the_rest_go_on(keep, program, notes):
    servers = await keep(program())
    (server,) = sources(servers)
    await server.tools()
    servers.update([program()])
    assert sources(servers) == (server,)
    servers.update([program(timeout=5)])
    assert sources(servers) != (server,)
    await until(lambda: server.state == "down")
    assert await sources(servers)[0].tools()


async def test_a_server_at_an_address_is_used_the_same_way_and_found_again_after_it_was_away(stage, keep, notes):
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    servers = await keep(spec("shop", url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "k"}))
    (server,) = sources(servers)
    with pytest.raises(AgentError, match="cannot be used now"):
        await server.tools()
    for _ in range(2):
        command = [sys.executable, str(SERVER), "http", str(port), str(notes)]
        async with await anyio.open_process(command, stdout=None, stderr=None) as process:
            await until_tools(server)
            played = await stage.play(stage.agent(calling("mcp_shop_price", article="tea"), "ok", sources=(server,)))
            assert played.entries[2].content == "tea: 5 francs"
            process.kill()
        stopped = await stage.play(stage.agent(calling("mcp_shop_price", article="tea"), "ok", sources=(server,)))
        assert stopped.reply == "ok"
        assert stopped.entries[2].error


def test_names_are_such_as_models_allow_and_stay_apart():
    assert make_tool_name("git hub", "create.issue").startswith("mcp_git_hub_create_issue_")
    assert make_tool_name("a", "x.y") != make_tool_name("a", "x:y")
    assert len(make_tool_name("server", "t" * 200)) == 64
