"""Times turns of one agent in this interpreter: `python turns.py WHO URL MODEL COUNT`. Prints one JSON object.

Runs under the interpreter of the peer's own environment and imports nothing of ours but, for `gateway`, the gateway.
"""

# ruff: noqa: PLC0415 - each target is imported in the environment that has it

import asyncio
import json
import os
import sys
import tempfile
import time


def strands(url, model):
    from strands import Agent
    from strands import tool as as_tool
    from strands.models.openai import OpenAIModel

    @as_tool
    def noop() -> str:
        """Do nothing."""
        return "ok"

    provider = OpenAIModel(client_args={"base_url": url, "api_key": "key"}, model_id=model)
    agent = Agent(model=provider, tools=[noop], callback_handler=None, system_prompt="You help.")
    return agent.invoke_async


def pydantic_ai(url, model):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = Agent(
        OpenAIChatModel(model, provider=OpenAIProvider(base_url=url, api_key="key")), system_prompt="You help."
    )

    @agent.tool_plain
    def noop() -> str:
        """Do nothing."""
        return "ok"

    history = None

    async def turn(text):
        nonlocal history
        async with agent.run_stream(text, message_history=history) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                pass
            history = result.all_messages()

    return turn


def hermes(url, model):
    os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="turns")
    from run_agent import AIAgent

    agent = AIAgent(
        base_url=url, api_key="key-of-no-use", provider="custom", model=model, quiet_mode=True, tool_delay=0.0,
        enabled_toolsets=["todo"],
    )  # fmt: skip
    history = []

    async def turn(text):
        nonlocal history
        history = (await asyncio.to_thread(agent.run_conversation, text, None, history))["messages"]

    return turn


def sdk(url, model):
    import openai

    client = openai.AsyncOpenAI(base_url=url, api_key="key", max_retries=0)

    async def turn(text):
        asked = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True}
        async for _ in await client.chat.completions.create(**asked, stream_options={"include_usage": True}):
            pass

    return turn


def ours(url, model):
    from gateway.agent import ModelRequest
    from gateway.agent.models.openai import OpenAIModel
    from gateway.messages.transcript import Entry

    client = OpenAIModel(model, api_key="key", base_url=url)

    async def turn(text):
        async for _ in client.stream(ModelRequest((Entry("user", text),))):
            pass

    return turn


def gateway(url, model):
    from gateway.agent import Agent, Ports, run_turn, tool
    from gateway.agent.models.openai import OpenAIModel
    from gateway.hooks import HookRegistry
    from gateway.messages.transcript import Entry

    @tool(repeatable=True)
    async def noop() -> str:
        """Do nothing."""
        return "ok"

    agent = Agent("main", OpenAIModel(model, api_key="key", base_url=url), "You help.", tools=(noop,))
    registry = HookRegistry()
    for name in ("agent:start", "agent:step", "agent:end", "llm:before", "llm:after", "tool:after"):
        registry.watch(name, lambda *_: None)
    history, opened = [], False

    async def turn(text):
        nonlocal opened
        if not opened:
            await registry.__aenter__()
            opened = True
        scope = registry.scope({"turn_id": "t", "platform": "bench", "user_id": "u"}, {}, {})
        ports = Ports(run=scope.run, emit=scope.emit, wants=scope.wants, turn_id="t")
        result = await run_turn(agent, history, Entry("user", text), ports)
        assert result.status == "ok", result.error
        history.extend(result.entries)

    return turn


TARGETS = {target.__name__: target for target in (sdk, ours, gateway, strands, pydantic_ai, hermes)}


async def main(who, url, model, count):
    began = time.perf_counter()
    turn = TARGETS[who](url, model)
    await turn("hello")
    first = time.perf_counter() - began
    times, busy = [], []
    for number in range(count):
        cpu, began = time.process_time(), time.perf_counter()
        await turn(f"hello {number}")
        times.append(time.perf_counter() - began)
        busy.append(time.process_time() - cpu)
    sys.__stdout__.write("\n" + json.dumps({"times": times, "cpu": busy, "first": first}) + "\n")
    sys.__stdout__.flush()
    os._exit(0)  # peers leave threads and clients behind


if __name__ == "__main__":
    sys.stdout = sys.stderr
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
