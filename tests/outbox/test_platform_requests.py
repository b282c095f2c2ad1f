"""Requests of other nodes to the one that serves a network."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from gateway.adapters.page.places import PLATFORM, subject_of
from gateway.adapters.page.transport import PageTransport
from gateway.cluster.nats.engine import open_nats
from gateway.engine.interface import Engine
from gateway.errors import AdapterError
from gateway.messages.message import Address, Button, Reply
from gateway.outbox.outbox import Outbox
from gateway.records import records
from tests.engine.nats_servers import run_servers
from tests.outbox.net import posted
from tests.spine import until

QUESTION = Reply("q", Address("net", "1"), "ok?", buttons=(Button("Yes", "/approve #x"),))


async def test_a_question_is_closed_from_a_node_without_networks(engine: Engine) -> None:
    elsewhere = Outbox(engine)
    async with posted(engine) as post:
        await post.outbox.post(QUESTION)
        await post.ended(1)
        ids = post.sent[0].message_ids
        post.net.ills = [
            AdapterError("flood", retry_after=3.0),
            AdapterError("it is gone", permanent=True),
            KeyError("a fault of a library"),
        ]
        with pytest.raises(AdapterError, match="flood") as refused:
            await elsewhere.close_question(QUESTION, ids, "A")
        assert (refused.value.retry_after, refused.value.permanent) == (3.0, False)
        with pytest.raises(AdapterError, match="it is gone") as refused:
            await elsewhere.close_question(QUESTION, ids, "A")
        assert refused.value.permanent
        with pytest.raises(AdapterError, match="a fault of a library"):
            await elsewhere.close_question(QUESTION, ids, "A")
        await elsewhere.close_question(QUESTION, ids, "A")
        assert post.net.in_chat() == ["A"]


async def test_of_the_page_several_nodes_serve_a_question_is_closed_once(tmp_path: Path) -> None:
    at = Address(PLATFORM, "owner")
    question = replace(QUESTION, address=at)
    async with AsyncExitStack() as stack:
        (server,) = stack.enter_context(run_servers(tmp_path, 1))
        engines = [await stack.enter_async_context(await open_nats(server.url)) for _ in range(3)]
        tasks = await stack.enter_async_context(anyio.create_task_group())
        for engine in engines[:2]:
            await tasks.start(Outbox(engine).serve_platform, PageTransport(engine))
        elsewhere = Outbox(engines[2])
        await elsewhere.post(question)
        await until(lambda: read_shown(engines[2], at, 1), "the question")
        await elsewhere.close_question(question, (("q",),), "Allowed.")
        await anyio.sleep(0.5)  # for the other node
        shown = await read_shown(engines[2], at, 2)
        assert [one.text for one in shown] == ["ok?", "ok?\n\nAllowed."]
        tasks.cancel_scope.cancel()


async def read_shown(engine: Engine, at: Address, count: int) -> list[Reply]:
    """Nothing where it is not so many."""
    found = [records.decode(one.data) for one in await engine.read(subject_of(at))]
    replies = [one.reply for one in found if isinstance(one, records.ShownMessage) and one.reply]
    return replies if len(replies) >= count else []


async def test_a_network_is_served_as_long_as_somebody_serves_it(engine: Engine) -> None:
    elsewhere = Outbox(engine)
    for _ in range(2):
        assert not await elsewhere.is_served("net")
        async with posted(engine):
            assert await elsewhere.is_served("net")
            assert not await elsewhere.is_served("net:work")
    with pytest.raises(AdapterError, match="net is not connected"):
        await elsewhere.close_question(QUESTION, (("1",),), "A")
