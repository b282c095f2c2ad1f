"""What other nodes ask of the one that serves a network."""

import pytest

from gateway.engine import Engine
from gateway.errors import AdapterError
from gateway.messages import Address, Button, Reply
from gateway.outbox import Outbox
from tests.outbox.net import posted

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


async def test_a_network_is_served_as_long_as_somebody_serves_it(engine: Engine) -> None:
    elsewhere = Outbox(engine)
    for _ in range(2):
        assert not await elsewhere.is_served("net")
        async with posted(engine):
            assert await elsewhere.is_served("net")
            assert not await elsewhere.is_served("net:work")
    with pytest.raises(AdapterError, match="net is not connected"):
        await elsewhere.close_question(QUESTION, (("1",),), "A")
