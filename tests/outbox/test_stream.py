"""An answer that is shown while it is written: one message that grows, and becomes the reply."""

import anyio
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.errors import AdapterError
from gateway.messages.message import Address, Reply
from gateway.outbox.interface import ReplyWithheld, nonce_of
from gateway.outbox.outbox import Outbox
from gateway.outbox.stream import write_shown_part
from gateway.outbox.stream_writer import StreamWriter
from gateway.records import records, subjects
from tests.outbox.net import QUICK, Net, Post, posted
from tests.spine import until

TURN = "t1"


def stream(post: Post, name: str = "r", claimed: int = 0) -> StreamWriter:
    return post.outbox.stream(Reply(name, Address("net", "1"), ""), claimed)


async def shown(post: Post, *texts: str) -> None:
    await until(lambda: post.net.in_chat() == list(texts), f"{texts}")


async def whole(post: Post, text: str) -> None:
    await until(lambda: "".join(post.net.in_chat()) == text, text)


async def test_the_placeholder_grows_and_becomes_the_reply(engine: Engine) -> None:
    async with posted(engine) as post:
        live = stream(post)
        await live.add("ab")
        await shown(post, "ab")
        await live.add("cd")
        await shown(post, "abcd")
        await until(lambda: post.outbox.shows_words(Address("net", "1"), 60), "a growing answer")
        assert not post.outbox.shows_words(Address("net", "2"), 60)
        assert not post.outbox.shows_words(Address("net", "1"), 0)
        await post.say("abc!", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["abc!"]
        assert [call.split()[0] for call in post.net.calls] == ["send", "edit", "edit"]
        assert post.sent[0].message_ids == (("1",),)
        assert len(await engine.read("gw.sent.>", 0, 100)) == 1, "the stream's notes are gone"


async def test_a_text_that_outgrows_a_message_goes_on_in_the_next(engine: Engine) -> None:
    async with posted(engine) as post:
        live = stream(post)
        for text in ("hello", "hello wor", "hello world, how"):
            await live.add(text, anew=True)
            await whole(post, text)
        await post.say("hello there", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["hello", " ther", "e"]
        assert "delete" in post.net.calls, "the fourth part was too much"


async def test_of_texts_that_come_too_fast_the_last_is_shown(engine: Engine) -> None:
    async with posted(engine) as post:
        live = stream(post)
        for number in range(1000):
            await live.add(f"{number:04}", anew=True)
        await shown(post, "0999")
        assert len(post.net.calls) < 10


async def test_a_stream_goes_on_in_its_placeholder_after_a_crash(engine: Engine) -> None:
    net = Net()
    async with posted(engine, net) as post:
        await stream(post).add("ab", anew=True)
        await shown(post, "ab")
    async with posted(engine, net) as post:
        live = stream(post)
        await live.add("again", anew=True)
        await shown(post, "again")
    async with posted(engine, net) as post:
        await post.say("done", name="r", turn_id=TURN)
        await post.ended(1)
    assert net.in_chat() == ["done"]


async def test_what_was_found_on_the_network_once_need_not_be_found_again(engine: Engine) -> None:
    """A life ended in the call that began it. Grown or ended, it may not look like what is looked for any more."""
    net, place = Net(doubt="lookup"), subjects.place_of(Address("net", "1"))
    await write_shown_part(engine, place, records.SendIntent(out=0, reply_id="r", part=0, message_ids=()))
    net.shown["1"], net.nonces[nonce_of("r", 0)] = ("1", "ab"), "1"
    async with posted(engine, net) as post:
        await stream(post).add("again", anew=True)
        await shown(post, "again")
        net.nonces.clear()
        await post.say("done", name="r", turn_id=TURN)
        await post.ended(1)
    assert net.in_chat() == ["done"]


async def test_a_placeholder_that_a_person_deleted_is_sent_anew(engine: Engine) -> None:
    async with posted(engine) as post:
        await stream(post).add("ab", anew=True)
        await shown(post, "ab")
        post.net.shown.clear()
        await post.say("done", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["done"]


async def test_a_network_that_fails_while_one_writes_does_not_disturb_the_reply(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("flood", retry_after=0.01), KeyError("oops")]
        live = stream(post)
        await live.add("a", anew=True)
        await until(lambda: len(post.net.ills) == 1)
        await live.add("ab", anew=True)
        await until(lambda: post.net.ills == [])
        await live.add("abc", anew=True)
        await post.say("abcd", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["abcd"]


async def test_a_stream_in_the_middle_of_a_call_is_waited_for(engine: Engine) -> None:
    async with posted(engine, Net(after=anyio.Event())) as post:
        await stream(post).add("a", anew=True)
        await until(lambda: post.net.shown != {})
        await post.say("ab", name="r", turn_id=TURN)
        await anyio.sleep(0.01)
        assert post.net.after
        post.net.after.set()
        await post.ended(1)
        assert post.net.in_chat() == ["ab"]


async def test_where_nothing_can_be_edited_nothing_is_streamed(engine: Engine) -> None:
    async with posted(engine, Net(can_edit=False)) as post:
        await stream(post).add("h")
        await anyio.sleep(0.01)
        await post.say("hi", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.calls == ["send hi"]


async def test_a_stream_does_not_overtake_what_was_owed_before(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("slow down", retry_after=0.05)]
        await post.say("older")
        await until(lambda: post.net.calls != [])
        live = stream(post)
        await live.add("newer", anew=True)
        await post.ended(1)
        await shown(post, "older", "newer")
        await post.say("newest", name="r", turn_id=TURN)
        await post.ended(2)
        assert post.net.in_chat() == ["older", "newes", "t"]


async def test_a_stream_that_must_wait_for_ever_does_not_hold_up_its_reply(engine: Engine) -> None:
    async with posted(engine) as post:
        post.net.ills = [AdapterError("slow down", retry_after=0.1)]
        await post.say("older")
        await until(lambda: post.net.calls != [])
        await stream(post).add("newer", anew=True)
        await post.say("newer", name="r", turn_id=TURN)
        await post.ended(2)
        assert post.net.in_chat() == ["older", "newer"]


async def test_what_is_shown_in_full_is_not_edited_once_more(engine: Engine) -> None:
    async with posted(engine) as post:
        await stream(post).add("hello world")
        await whole(post, "hello world")
        await anyio.sleep(0.01)
        before = list(post.net.calls)
        await post.say("hello world", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.calls == before
        assert post.sent[0].message_ids == (("1",), ("2",), ("3",))


async def test_an_answer_that_is_whole_at_once_is_sent_once(engine: Engine) -> None:
    async with posted(engine, settings=replace(QUICK, stream_after=30.0)) as post:
        live = stream(post)
        await live.add("he")
        await live.add("llo")
        await post.say("hello", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.calls == ["send hello"]


async def test_what_waits_for_somebody_is_ended_as_it_stands(engine: Engine) -> None:
    async with posted(engine, settings=replace(QUICK, stream_rests=0.01)) as post:
        live = stream(post)
        await live.add("abc")
        await shown(post, "abc")
        await live.rest()
        await until(lambda: post.net.closed == ["1"], "the end")
        live = stream(post, claimed=1)
        await live.add("abcd", anew=True)
        await shown(post, "abcd")
        await post.say("abcd!", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["abcd!"]


async def test_a_stream_that_begins_anew_waits_for_the_one_before(engine: Engine) -> None:
    async with posted(engine, Net(after=anyio.Event())) as post:
        await stream(post).add("a")
        await until(lambda: post.net.shown != {})
        await stream(post, claimed=1).add("again")
        assert post.net.after
        post.net.after.set()
        await shown(post, "again")


async def test_what_is_withheld_grows_no_more(engine: Engine) -> None:
    def withhold(_reply: Reply) -> Reply:
        raise ReplyWithheld("not this one")

    async with posted(engine, change=withhold) as post:
        await stream(post).add("abc")
        await shown(post, "abc")
        await post.say("abcd", name="r", turn_id=TURN)
        await post.ended(1)
        assert (post.net.in_chat(), post.net.closed) == (["abc"], ["1"])


async def test_parts_that_are_too_many_in_the_end_are_ended_and_deleted(engine: Engine) -> None:
    async with posted(engine) as post:
        await stream(post).add("hello world")
        await whole(post, "hello world")
        await post.say("hi", name="r", turn_id=TURN)
        await post.ended(1)
        assert (post.net.in_chat(), post.net.closed) == (["hi"], ["3"])


async def test_what_was_begun_anew_is_shown_whole_in_the_end(engine: Engine) -> None:
    async with posted(engine) as post:
        live = stream(post)
        await live.add("hello world")
        await whole(post, "hello world")
        await live.add("bye", anew=True)
        await anyio.sleep(0.01)
        await live.add("bye bye world", anew=True)
        await until(lambda: post.net.in_chat()[-1] == "rld")
        await post.say("bye bye world", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["bye b", "ye wo", "rld"]


async def test_a_draft_is_shown_again_in_time_and_is_no_message(engine: Engine) -> None:
    async with posted(engine, Net(can_draft=True), replace(QUICK, draft_lasts=0.02)) as post:
        live = stream(post)
        await live.add("abc")
        await until(lambda: post.net.drafts[:3] == ["abc"] * 3, "the draft, again and again")
        await live.rest()
        assert (post.net.in_chat(), await engine.read("gw.sent.>", 0, 100)) == ([], [])
        await post.say("abcd", name="r", turn_id=TURN)
        await post.ended(1)
        assert post.net.in_chat() == ["abcd"]
        before = len(post.net.drafts)
        await post.say("more", turn_id="t2")
        await post.ended(2)
        assert len(post.net.drafts) == before


async def test_where_drafts_are_refused_it_goes_on_as_a_message(engine: Engine) -> None:
    async with posted(engine, Net(can_draft=True)) as post:
        live = stream(post)
        await live.add("abc")
        await until(lambda: post.net.drafts != [])
        post.net.can_draft = False
        await live.add("d")
        await shown(post, "abcd")


async def test_what_a_node_without_networks_writes_is_shown_and_goes_on_behind_a_gap(engine: Engine) -> None:
    live = Outbox(engine).stream(Reply("r", Address("net", "1"), ""), 1)
    await live.add("lost, ")
    async with posted(engine) as post:
        await live.add("ab")
        await anyio.sleep(0.01)
        assert post.net.calls == [], "nobody knows what came before"
        await live.repeat()
        await whole(post, "lost, ab")
        await live.add("c")
        await whole(post, "lost, abc")


async def test_of_two_nodes_that_write_the_later_claim_counts(engine: Engine) -> None:
    async with posted(engine) as post:
        earlier, later = stream(post, claimed=1), stream(post, claimed=2)
        await earlier.add("old")
        await shown(post, "old")
        await later.add("new")
        await shown(post, "new")
        await earlier.add("er", anew=True)
        await later.add("er")
        await whole(post, "newer")


async def test_what_comes_after_the_reply_shows_nothing(engine: Engine) -> None:
    async with posted(engine) as post:
        await post.say("done", name="r", turn_id=TURN)
        await post.ended(1)
        await stream(post).add("don")
        await anyio.sleep(0.02)
        assert post.net.calls == ["send done"]


async def test_a_writer_that_is_gone_is_not_waited_for(engine: Engine) -> None:
    async with posted(engine, settings=replace(QUICK, stream_rests=0, stream_silence=0.05)) as post:
        live = stream(post)
        await live.add("abc")
        await shown(post, "abc")
        await until(lambda: post.net.closed == ["1"], "the end of what grew")
        await live.repeat()
        await live.add("d")
        await shown(post, "abcd")
