"""An answer shown in pieces, and calls that are forgotten."""

from pathlib import Path

import pytest
from msgspec import structs

from gateway.engine.interface import NewRecord, Record
from gateway.records import records, subjects
from gateway.testing.live_gateway import GatewayParts, gateway_in
from gateway.web.openai.calls import NewCall, ProgramCalls, ShownText

FINAL = "The answer is 5."


def shown(*told: str | None, final: str = FINAL) -> str:
    """All that a stream shows: pieces as they come, `None` where the answer begins anew, `=TEXT` where one is whole."""
    text, out = ShownText(), ""
    for one in told:
        if one is None:
            out += text.add({"text": "", "void": True})
        elif one.startswith("="):
            text.note_step(one[1:])
        else:
            out += text.add({"text": one})
    return out + text.complete(final)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((), FINAL),
        (("The answer", " is 5."), FINAL),
        (("The answer",), FINAL),
        (("The answer is 5.", f"={FINAL}"), FINAL),
        ((f"={FINAL}", "The answer is 5."), FINAL),
        (("I look.", "=I look.", "The answer is 5."), f"I look.\n\n{FINAL}"),
        (("I ", "=I look.", "look.", "The", " answer is 5."), f"I look.\n\n{FINAL}"),
        (("=", "The answer is 5."), FINAL),
        (("I look.", "=I look."), f"I look.\n\n{FINAL}"),
        (("The ans", None, "The answer is 5."), f"The ans\n\n{FINAL}"),
        (("Something else",), f"Something else\n\n{FINAL}"),
    ],
)
def test_a_stream_ends_with_the_answer_and_parts_what_stood_before(told: tuple[str | None, ...], expected: str) -> None:
    assert shown(*told) == expected


async def test_calls_without_a_user_are_forgotten_after_a_day_and_sessions_stay(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home", {"user": "hello", "text": "Good day."}) as live:
        gateway = live.gateway
        calls = ProgramCalls(
            gateway.engine,
            gateway.sessions,
            gateway.groups.turns.dispatcher.receive,
            gateway.groups.turns.lanes.interrupt,
        )
        await gateway.groups.people.keys.create("app", "user", "main")
        (key,) = gateway.groups.people.keys.keys
        for number, user in enumerate(("", "ann")):
            watcher = await calls.begin(NewCall(f"c{number}", key, "hello", "", user=user, is_named=True))
            assert (await watcher.wait_answer()).text == "Good day."
        (before,) = await gateway.engine.read(subjects.call_patterns_of("app", "c1")[0])
        await gateway.engine.append(replace_call(before, "c2"))
        found = await calls.find(key, "c2")
        assert found is not None
        assert found.call.user == "ann"
        assert await calls.sweep_once(gateway.engine.clock.read() - 60) == 0
        assert await calls.sweep_once(gateway.engine.clock.read() + 60) == 3
        assert [await calls.find(key, one) for one in ("c0", "c1", "c2")] == [None, None, None]
        left = [one.session_key for one in await sessions_of(gateway)]
        assert left == ["agent:main:api:dm:app:ann"]
        for kind in ("in", "turn", "shown", "sum"):
            subject = subjects.session_subject_of(kind, "agent:main:api:call:app:c0")
            assert await gateway.engine.read(subject) == []
        again = await calls.begin(NewCall("c0", key, "hello", "", is_named=True))
        assert (await again.wait_answer()).text == "Good day."


def replace_call(record: Record, call_id: str) -> NewRecord:
    """The same call under another id, where calls stood before they were under their conversations."""
    call = records.decode(record.data)
    assert isinstance(call, records.ProgramCall)
    subject = subjects.call_patterns_of(call.key, call_id)[-1]
    return NewRecord(subject, records.encode(structs.replace(call, id=call_id)))


async def sessions_of(gateway: GatewayParts) -> list[records.SessionOpened]:
    found = records.read_all(gateway.engine, subjects.TURN_SUBJECTS, records.SessionOpened)
    return [one async for _, one in found]
