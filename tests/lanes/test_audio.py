"""Audio is transcribed before its turn is claimed: once, with a limit, and it can be stopped."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from gateway.engine.interface import Engine
from gateway.errors import VoiceError
from gateway.lanes.audio import AudioWords
from gateway.lanes.context import LaneSettings
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Attachment, Message
from gateway.records.subjects import AUDIO_SUBJECTS, session_subject_of
from gateway.sessions.session import Session
from tests.lanes.desk import Desk, Watched, served
from tests.spine import chain, key, lane_settings, message, turn_chain, until

LONG = 3600.0


@dataclass
class Listener:
    """A transcriber that returns the file's name; `hang` never ends, `fail` has no words, `stop` gets a `/stop`."""

    heard: list[str] = field(default_factory=list)
    stop: Callable[[], Awaitable[object]] | None = None
    patience: float = LONG

    def wants(self, message: Message) -> bool:
        return message.kind == "text"

    async def listen(self, message: Message, file: Attachment, session: Session) -> AudioWords:
        self.heard.append(file.name)
        if file.name == "hang":
            await anyio.sleep_forever()
        if file.name == "fail":
            raise VoiceError("no ears")
        if file.name == "stop" and self.stop:
            await self.stop()
        return AudioWords(file.name)


def listening(listener: Listener) -> LaneSettings:
    return lane_settings(pauses=(0.001,), grace=0.1, release=0.1, lease=0.3, listener=listener)


async def speak(desk: Desk, *names: str, text: str = "", chat: str = "1") -> int | None:
    files = tuple(Attachment("voice", f"/files/{name}", name, "audio/ogg", 1) for name in names)
    said = message(text, chat)
    spoken = Message(said.id, said.address, said.user_id, text, attachments=files)
    return await desk.lanes.accept(spoken, key(chat))


async def test_words_stand_before_the_claim_and_in_the_turn(engine: Engine) -> None:
    listener = Listener()
    async with served(engine, settings=listening(listener)) as desk:
        session = await desk.answered(await speak(desk, "one", "two", text="see"))
        assert [entry.content for entry in session.entries] == ["see\n\none\n\ntwo", "re see\n\none\n\ntwo"]
    found = await engine.read(session_subject_of("audio", key()), 0, 100)
    (claimed,) = [one for one in await engine.read(session_subject_of("turn", key()), 0, 100) if b"claim" in one.data]
    assert max(one.seq for one in found) < claimed.seq
    assert [(one.file, one.state, one.text) for one in await chain(engine, AUDIO_SUBJECTS)] == [
        (0, "begun", ""),
        (0, "done", "one"),
        (1, "begun", ""),
        (1, "done", "two"),
    ]


async def test_who_listens_for_too_long_is_not_waited_for_nor_asked_again(engine: Engine) -> None:
    listener = Listener(patience=0.3)
    async with served(engine, settings=listening(listener)) as desk:
        session = await desk.answered(await speak(desk, "hang", "two"))
        lost = "[{} could not be made into words: it took more than 0 s]"
        assert session.entries[0].content == f"{lost.format('hang')}\n\n{lost.format('two')}"
    assert set(listener.heard) <= {"hang"}
    assert len(listener.heard) <= 1  # a machine that is busy may be late for the first try


async def test_a_restart_does_not_listen_again_to_what_was_heard(engine: Engine) -> None:
    listener, work = Listener(), Watched()
    work.acts["one"] = work.hold
    async with served(engine, work, listening(listener), node="first") as desk:
        seq = await speak(desk, "one")
        await desk.running(1)
    async with served(engine, settings=listening(listener), node="first") as desk:
        session = await desk.answered(seq)
        assert session.entries[0].content == "one"
    assert listener.heard == ["one"]


async def test_a_restart_in_good_order_takes_no_try_and_a_failure_does(engine: Engine) -> None:
    listener = Listener()
    for lives in range(1, 4):
        async with served(engine, settings=listening(listener), node="first") as desk:
            if lives == 1:
                await speak(desk, "hang")
            await until(lambda lives=lives: len(listener.heard) == lives, "a try")  # type: ignore[misc]
    async with served(engine, settings=listening(listener), node="first") as desk:
        await desk.answered(await speak(desk, "fail", chat="2"), "2")
    assert listener.heard.count("fail") == 2


async def test_stop_ends_it_and_what_came_later_is_answered(engine: Engine) -> None:
    async def is_told_to_stop(turn: LaneTurn) -> LaneResult:
        with turn.scope:
            await anyio.sleep_forever()
        return LaneResult(status="interrupted")

    listener, work = Listener(), Watched({"": is_told_to_stop})
    async with served(engine, work, listening(listener)) as desk:
        first = await speak(desk, "hang")
        await until(lambda: listener.heard, "a try")
        assert await desk.lanes.interrupt(key()) == "running"
        await desk.answered(first)
        session = await desk.answered(await desk.say("hello"))
        assert session.entries[-1].content == "re hello"
    ends = [one.status for one in await turn_chain(engine) if getattr(one, "status", "")]
    assert ends == ["interrupted", "ok"]
    assert listener.heard == ["hang"]


async def test_a_stop_counts_also_as_the_last_word_is_heard(engine: Engine) -> None:
    async def is_told_to_stop(turn: LaneTurn) -> LaneResult:
        with turn.scope:
            await anyio.sleep_forever()
        return LaneResult(status="interrupted")

    listener, work = Listener(), Watched({"stop": is_told_to_stop, "": is_told_to_stop})
    async with served(engine, work, listening(listener)) as desk:
        listener.stop = lambda: desk.lanes.interrupt(key())
        await desk.answered(await speak(desk, "stop"))
    assert [one.status for one in await turn_chain(engine) if getattr(one, "status", "")] == ["interrupted"]


async def test_what_is_said_behind_a_stop_is_no_part_of_what_was_stopped(engine: Engine) -> None:
    """Though both wait, and would be one text in pieces."""

    async def is_told_to_stop(turn: LaneTurn) -> LaneResult:
        with turn.scope:
            await anyio.sleep_forever()
        return LaneResult(status="interrupted")

    listener, work, behind = Listener(), Watched({"stop": is_told_to_stop, "": is_told_to_stop}), list[int | None]()
    async with served(engine, work, listening(listener)) as desk:

        async def stop_and_go_on() -> None:
            with anyio.CancelScope(shield=True):  # from the stop, so that the lane finds both at once
                await desk.lanes.interrupt(key())
                behind.append(await speak(desk, "two"))

        listener.stop = stop_and_go_on
        await speak(desk, "stop")
        await until(lambda: behind, "what comes behind")
        session = await desk.answered(behind[0])
        assert session.entries[-1].content == "re two"
    assert [one.status for one in await turn_chain(engine) if getattr(one, "status", "")] == ["interrupted", "ok"]


async def test_what_hangs_takes_no_slot_of_a_turn(engine: Engine) -> None:
    listener = Listener()
    async with served(engine, settings=listening(listener)) as desk:
        for chat in range(20):
            await speak(desk, "hang", chat=f"hanging {chat}")
        await desk.answered(await desk.say("hello", "other"), "other")
