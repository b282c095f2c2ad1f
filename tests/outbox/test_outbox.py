"""Pending replies are sent: once, in order, part after part; failures are retried, given up, and reported once."""

import logging
from dataclasses import replace

import anyio
import msgspec
import pytest
from msgspec import structs

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import Address, Reply
from gateway.messages.steps import VERSION
from gateway.outbox.interface import DeliveryCallbacks, DeliveryReport, OutboxSettings, ReplyWithheld
from gateway.outbox.outbox import Outbox
from gateway.outbox.place_sender import PlaceSender
from gateway.outbox.platform_sender import PlatformSender
from gateway.outbox.send_journal import read_position
from gateway.records import records, subjects
from tests.audit import audit
from tests.engine.memory_engine import MemoryEngine
from tests.outbox.net import QUICK, Net, posted
from tests.spine import SetClock, chain, until


async def test_a_reply_goes_out_in_parts_and_is_reported_once(engine: Engine) -> None:
    async with posted(engine) as post:
        await post.say("hello world")
        await post.ended(1)
        assert post.net.in_chat() == ["hello", " worl", "d"]
        (delivery,) = post.sent
        assert (delivery.message_ids, delivery.attempts, delivery.error) == ((("1",), ("2",), ("3",)), 1, "")
    journal = [type(one).__name__ for one in await chain(engine, "gw.sent.>")]
    assert journal == ["SendIntent", "SendSucceeded"] * 3
    assert (await audit(engine, is_over=False, is_sent=True)).faults == []


async def test_replies_to_a_place_keep_their_order_whatever_session_they_belong_to(engine: Engine) -> None:
    at = Address("net", "group", "group")
    for first in (0, 10):  # the process that goes on sends nothing twice
        async with posted(engine) as post:
            for number in range(first, first + 10):
                await post.outbox.post(Reply(str(number), at, f"{number:02}"), f"session {number % 3}")
            await post.ended(10)
            assert post.net.in_chat("group") == [f"{number:02}" for number in range(first, first + 10)]
    assert (await audit(engine, is_over=False, is_sent=True)).faults == []


async def test_a_position_that_0_1_0_kept_for_each_shard_is_refused(engine: Engine) -> None:
    kept = records.SendSucceeded(out=7, settled=[3, 1 << 40])
    await engine.append(NewRecord(subjects.send_subject_of("place"), records.encode(kept)))
    with pytest.raises(EngineError, match="in shards"):
        await read_position(engine, "place")


async def test_a_slow_place_does_not_delay_another(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("slow down", retry_after=0.2)]
        await post.say("first")
        await until(lambda: post.net.calls != [])
        await post.say("other", "2")
        await post.ended(1)
        assert post.texts == ["other"]
        await post.ended(2)


async def test_what_a_later_version_owes_waits_for_it_and_no_other_place_does(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    async with posted(engine) as post:
        put = records.make_reply_put(Reply("new", Address("net", "1"), "new"), "key", "", 0.0)
        newer = structs.replace(records.decode(put.data), v=VERSION + 1)
        await engine.append(structs.replace(put, data=records.encode(newer)))
        await post.say("behind it")
        await post.say("elsewhere", "2")
        await post.ended(1)
        await until(lambda: "1 were left to a later version" in post.outbox.describe_too_new())
        assert post.texts == ["elsewhere"]

        async def rings_once() -> bool:  # what was sent has been told to the journal by then
            return await post.outbox.depths() == {"net": 1}

        await until(rings_once, "one doorbell for the place")
    assert [one.levelname for one in caplog.records if one.levelno >= logging.WARNING] == ["WARNING"]


async def test_platforms_do_not_wait_for_each_other(engine: Engine) -> None:
    net, other = Net(gate=anyio.Event()), Net("other")
    async with posted(engine, net) as post:
        await post.tasks.start(post.outbox.serve_platform, other)
        for chat in "123456789":
            await post.say("stuck", chat)
        await post.outbox.post(Reply("x", Address("other", "1"), "free"))
        await until(lambda: other.in_chat() == ["free"])
        assert net.shown == {}
        assert net.gate
        net.gate.set()
        await post.ended(10)


async def test_a_platform_takes_only_so_many_calls_at_a_time(engine: Engine) -> None:
    async with posted(engine, Net(gate=anyio.Event()), msgspec.structs.replace(QUICK, senders=3)) as post:
        for chat in "123456":
            await post.say("hi", chat)
        await until(lambda: post.net.now == 3)
        await anyio.sleep(0.01)
        assert post.net.gate
        post.net.gate.set()
        await post.ended(6)
        assert post.net.most == 3


async def test_what_fails_for_now_is_tried_again_from_its_part(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("off"), AdapterError("off")]
        await post.say("hello world")
        await post.say("next")
        await post.ended(2)
        assert post.net.in_chat() == ["hello", " worl", "d", "next"]
        assert post.net.calls[:3] == ["send hello"] * 3
        assert post.sent[0].attempts == 3
    failed = [one for one in await chain(engine, "gw.sent.>") if isinstance(one, records.SendFailed)]
    assert [(one.error, one.attempts, one.permanent) for one in failed] == [("off", 1, False), ("off", 2, False)]


async def test_the_networks_own_pause_is_kept_to(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("too fast", retry_after=0.05)]
        began = anyio.current_time()
        await post.say("hi")
        await post.ended(1)
        assert anyio.current_time() - began >= 0.05


async def test_pauses_grow_to_a_limit_and_are_never_the_same() -> None:
    sender = PlatformSender(MemoryEngine(), Net(), OutboxSettings(), DeliveryCallbacks(), SetClock(), PlaceSender)
    for attempts, longest in ((1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (500, 300), (100_000, 300)):
        pauses = {sender.next_pause(attempts, None) for _ in range(20)}
        assert len(pauses) > 1
        assert all(longest / 2 <= pause <= longest for pause in pauses)


async def test_what_is_refused_for_good_is_reported_and_lets_the_next_pass(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("bad request", permanent=True)]
        await post.say("bad")
        await post.say("good")
        await post.ended(2)
        assert post.net.in_chat() == ["good"]
        (failed,) = post.failed
        assert (failed.reply.text, failed.error, failed.attempts) == ("bad", "bad request", 1)


async def test_a_place_that_refuses_everything_is_tried_rarely_and_comes_back(engine: Engine) -> None:
    clock, net = SetClock(), Net(deaf={"1"})
    async with posted(engine, net, clock=clock) as post:
        for number in range(5):
            await post.say(str(number))
        await post.ended(5)
        assert net.calls == ["send 0", "send 1", "send 2"]
        assert "refused 3 replies in a row" in post.failed[-1].error
        assert post.failed[-1].attempts == 0
    async with posted(engine, net, clock=clock) as post:
        await post.say("5")
        await post.ended(1)
        assert len(net.calls) == 3, "remembered over a restart"
        clock.now += 3601
        await post.say("6")
        await post.say("7")
        await post.ended(3)
        assert net.calls[3:] == ["send 6"], "one try, then silence again"
        clock.now += 3601
        net.deaf.clear()
        await post.say("8")
        await post.say("9")
        await post.ended(5)
        assert net.in_chat() == ["8", "9"]
        net.ills = [AdapterError("bad request", permanent=True)]
        await post.say("a")
        await post.say("b")
        await post.ended(7)
        assert net.in_chat() == ["8", "9", "b"], "the strikes began anew"


async def test_a_reply_that_was_owed_for_a_day_is_given_up_without_a_strike(engine: Engine) -> None:
    clock = SetClock()
    async with posted(engine, clock=clock) as post:
        post.net.ills = [AdapterError("off")] * 1000
        await post.say("stale")
        await until(lambda: len(post.net.calls) >= 2)
        clock.now += 86401
        post.net.ills = [AdapterError("off")]
        await post.say("fresh")
        await post.ended(2)
        assert (post.failed[0].reply.text, post.failed[0].error) == ("stale", "off")
        assert post.texts == ["fresh"]
    (gone,) = [one for one in await chain(engine, "gw.sent.>") if isinstance(one, records.SendFailed) and one.permanent]
    assert gone.strikes == 0


async def test_a_fault_of_the_sdk_is_tried_some_times_only(engine: Engine) -> None:
    async with posted(engine, settings=msgspec.structs.replace(QUICK, odd_attempts=3)) as post:
        post.net.ills = [KeyError("oops")] * 3
        await post.say("unlucky")
        await post.say("lucky")
        await post.ended(2)
        assert (post.failed[0].error, post.failed[0].attempts) == ("KeyError: 'oops'", 3)
        assert post.texts == ["lucky"]


async def test_what_was_owed_while_the_platform_was_away_goes_out_when_it_is_back(engine: Engine) -> None:
    async with posted(engine) as post:
        pass
    await post.say("hi")
    async with posted(engine) as post:
        await post.ended(1)
        assert post.texts == ["hi"]


async def test_a_reply_is_looked_at_once_before_it_goes(engine: Engine) -> None:
    seen: list[str] = []

    def change(reply: Reply) -> Reply:
        seen.append(reply.text)
        if reply.text == "secret":
            raise ReplyWithheld("a hook denied it")
        return replace(reply, text=reply.text.upper())

    async with posted(engine, change=change) as post:
        post.net.ills = [AdapterError("off")]
        await post.say("hi")
        await post.say("secret")
        await post.say("bye")
        await post.ended(3)
        assert post.net.in_chat() == ["HI", "BYE"]
        assert seen == ["hi", "secret", "bye"], "once, however many tries"
        assert [one.error for one in post.failed] == ["a hook denied it"]
        assert (post.sent[0].reply.text, post.sent[0].outbound.reply.text) == ("HI", "hi")


async def test_a_listener_that_fails_does_not_stop_the_post(engine: Engine) -> None:
    class Failing(DeliveryCallbacks):
        def sent(self, delivery: DeliveryReport) -> None:
            raise RuntimeError("listener")

    outbox, net = Outbox(engine, QUICK), Net()
    outbox.begin(Failing())
    async with anyio.create_task_group() as tasks:
        await tasks.start(outbox.serve_platform, net)
        for text in ("a", "b"):
            await outbox.post(Reply(text, Address("net", "1"), text))
        await until(lambda: net.in_chat() == ["a", "b"])
        tasks.cancel_scope.cancel()


async def test_a_drain_waits_for_what_can_go_and_not_for_what_cannot(engine: Engine) -> None:
    async with posted(engine, settings=msgspec.structs.replace(QUICK, longest_pause=300.0, first_pause=300.0)) as post:
        post.net.ills = [AdapterError("off")]
        await post.say("later")
        await until(lambda: post.net.calls != [])
        for number in range(50):
            await post.say(f"{number:02}", "2")
        assert await post.outbox.drain(5)
        assert len(post.net.in_chat("2")) == 50
        post.net.gate = anyio.Event()
        await post.say("stuck", "3")
        assert not await post.outbox.drain(0.05)


@pytest.mark.parametrize("calls", ["end in time", "hang"])
async def test_a_call_that_has_begun_may_end_when_the_gateway_stops(engine: Engine, calls: str) -> None:
    net = Net(after=anyio.Event())
    async with posted(engine, net) as post:
        await post.say("hello")
        await until(lambda: net.shown != {})
        post.tasks.cancel_scope.cancel()
        if calls == "end in time":
            assert net.after
            net.after.set()
    net.after = None
    assert len(post.sent) <= 1
    async with posted(engine, net) as post:
        await post.say("next")
        await post.ended(1)
        await until(lambda: net.in_chat()[-1] == "next")
    again = ["hello"] if calls == "end in time" else ["hello", "hello"]
    assert net.in_chat() == [*again, "next"]


async def test_a_reply_that_alone_fails_for_long_lets_the_others_in_its_place_go(engine: Engine) -> None:
    """The network takes what goes elsewhere, so it is this reply, and not worth a day of silence in its chat."""
    clock = SetClock()
    async with posted(engine, Cursed("9"), clock=clock) as post:
        await post.say("bad", "9")
        await post.say("next", "9")
        await until(lambda: len(post.net.calls) > 3)
        clock.now += QUICK.stubborn - 1
        await post.say("fine", "2")
        await post.ended(1)
        assert post.texts == ["fine"]
        clock.now += 2
        await post.ended(2)
        assert [(one.reply.text, "melted" in one.error) for one in post.failed] == [("bad", True)]
        assert isinstance(post.net, Cursed)
        post.net.curse = ""
        await post.ended(3)
        assert post.texts == ["fine", "next"]


async def test_while_the_network_takes_nothing_at_all_every_reply_is_kept(engine: Engine) -> None:
    clock = SetClock()
    async with posted(engine, Cursed("9"), clock=clock) as post:
        await post.say("kept", "9")
        await until(lambda: len(post.net.calls) > 3)
        clock.now += QUICK.give_up / 2
        calls = len(post.net.calls)
        await until(lambda: len(post.net.calls) > calls + 3)
        assert isinstance(post.net, Cursed)
        post.net.curse = ""
        await post.ended(1)
        assert (post.texts, post.failed) == (["kept"], [])


class Cursed(Net):
    """A network that fails for one chat, with an error that says nothing."""

    def __init__(self, curse: str) -> None:
        super().__init__()
        self.curse = curse

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        if reply.address.chat_id == self.curse:
            self.calls.append("failed")
            raise AdapterError("the server melted")
        return await super().send(reply, part, nonce)
