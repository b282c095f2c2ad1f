"""A process that dies in the very call that sends leaves one doubt, and the network's policy settles it."""

import anyio
import pytest

from gateway.engine.interface import Engine
from gateway.outbox.interface import DoubtPolicy
from gateway.records import records
from tests.audit import audit
from tests.late import Gate, Late
from tests.outbox.net import Net, posted
from tests.spine import chain, until


async def dies_in_the_call(engine: Engine, net: Net, *, arrived: bool) -> None:
    """The second of three parts is being sent when the process is killed; the network may have it or not."""
    gate = Gate()
    net.hangs = "after" if arrived else "before"
    async with posted(Late(engine, gate), net) as post:
        await post.say("hello world")
        await net.is_hanging.wait()
        gate.pause()
        post.tasks.cancel_scope.cancel()
    net.hangs = ""


@pytest.mark.parametrize(
    ("doubt", "arrived", "shown"),
    [
        ("resend", True, ["hello", " worl", " worl", "d"]),
        ("resend", False, ["hello", " worl", "d"]),
        ("drop", True, ["hello", " worl", "d"]),
        ("drop", False, ["hello", "d"]),
        ("nonce", True, ["hello", " worl", "d"]),
        ("nonce", False, ["hello", " worl", "d"]),
        ("lookup", True, ["hello", " worl", "d"]),
        ("lookup", False, ["hello", " worl", "d"]),
    ],
)
async def test_the_policy_settles_the_doubt(
    engine: Engine, doubt: DoubtPolicy, arrived: bool, shown: list[str]
) -> None:
    net = Net(doubt=doubt)
    await dies_in_the_call(engine, net, arrived=arrived)
    async with posted(engine, net) as post:
        await post.ended(1)
        await post.say("next")
        await post.ended(2)
    assert net.in_chat() == [*shown, "next"]
    assert len(post.sent[0].message_ids) == 3
    assert net.asked == (1 if doubt == "lookup" else 0)
    assert (await audit(engine, is_over=False, is_sent=True)).faults == []


async def test_where_a_call_does_nothing_there_is_no_doubt_and_no_intent(engine: Engine) -> None:
    async with posted(engine, Net(doubt="none")) as post:
        await post.say("hello world")
        await post.ended(1)
        kept = [records.decode(one.data) for one in await engine.read("gw.sent.>")]
        assert [type(one) for one in kept] == [records.SendSucceeded] * 3
        assert post.net.in_chat() == ["hello", " worl", "d"]


async def test_where_one_can_look_one_looks_before_every_second_try(engine: Engine) -> None:
    """A network that answered with a fault may have shown the message all the same."""

    class Treacherous(Net):
        async def send(self, reply, part, nonce):
            ids = await super().send(reply, part, nonce)
            if len(self.calls) == 1:
                raise TimeoutError("no answer")
            return ids

    async with posted(engine, Treacherous(doubt="lookup")) as post:
        await post.say("hi")
        await post.ended(1)
        assert post.net.in_chat() == ["hi"]


async def test_a_second_sender_of_a_place_is_fenced(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """A sender that was paused in the middle of a reply does not go on with it when another did; that is no fault."""
    gate, net = Gate(), Net()
    hangs = net.after = anyio.Event()
    async with posted(Late(engine, gate), net) as old:
        await old.say("hello world")
        await until(lambda: len(net.shown) == 1)
        gate.pause()
        net.after = None
        async with posted(engine, net) as new:
            await new.say("poke")
            await new.ended(2)
            count = len(net.calls)
            hangs.set()
            gate.go_on()
            await new.say("more")
            await until(lambda: "more" in net.in_chat())
        assert old.texts in ([], ["more"])
        assert len(net.calls) == count + 1
    assert net.in_chat() == ["hello", "hello", " worl", "d", "poke", "more"]
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
    outs = [one.out for one in await chain(engine, "gw.sent.>")]
    assert outs == sorted(outs)
