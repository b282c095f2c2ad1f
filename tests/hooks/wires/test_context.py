"""The content of a handler's context, and the changes that come back."""

from typing import Any

import pytest

from gateway.hooks.wires.wire import BagDelta, HookAnswer, HookFailed
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import Make

pytestmark = pytest.mark.process

DECIDES = CallMeta(decides=True, answers={})


async def result(make: Make, source: str, meta: CallMeta = DECIDES, **spec: Any) -> Any:
    worker = await make(source, **spec)
    return (await worker.call("tool:before", {"tool": "shell"}, meta, 60)).result


async def test_an_observers_result_is_nobodys_business(make: Make) -> None:
    assert await result(make, "def handle(e, c): return object()", CallMeta()) is None


async def changes(make: Make, body: str, writable: tuple[str, ...] | None) -> HookAnswer:
    worker = await make(f"def handle(e, c):\n    {body}")
    return await worker.call("x", {"a": [1], "b": {"k": 1}, "r": 1}, CallMeta(decides=True, writable=writable), 60)


async def test_changed_fields_come_back_and_unchanged_do_not(make: Make) -> None:
    answer = await changes(make, "c['a'].append(2); c['b'] = {'k': 1}", ("a", "b"))
    assert answer.changed == {"a": [1, 2]}


async def test_a_read_only_field_is_not_changed_and_that_is_told(make: Make) -> None:
    worker = await make("def handle(e, c): c['r'] = 2; c['a'] = 1")
    for _ in range(3):
        answer = await worker.call("x", {"a": 0, "r": 1}, CallMeta(decides=True, writable=("a",)), 60)
        assert (answer.changed, answer.refused) == ({"a": 1}, ("r",))


async def test_outside_of_the_catalogue_every_field_can_be_changed_and_added(make: Make) -> None:
    answer = await changes(make, "c['r'] = 2; c['new'] = 'x'; del c['a']", None)
    assert answer.changed == {"r": 2, "new": "x", "a": None}


async def test_a_handler_that_returns_its_context_has_only_changed_it(make: Make) -> None:
    answer = await changes(make, "c['a'] = 7; return c", ("a",))
    assert (answer.result, answer.changed) == (None, {"a": 7})


async def test_what_has_no_form_in_json_is_named(make: Make) -> None:
    with pytest.raises(HookFailed, match="the field 'a' is not JSON: object has no form in JSON"):
        await changes(make, "c['a'] = object()", ("a",))


async def test_the_kinds_that_handlers_use_have_a_form_in_json(make: Make) -> None:
    source = """
    import datetime, decimal, enum, pathlib, uuid
    class Word(str): pass
    class Colour(enum.Enum): RED = "red"
    def handle(e, c):
        return {"path": pathlib.Path("/x"), "word": Word("w"), "when": datetime.date(2026, 1, 2), "set": {1},
                "tuple": (1, 2), "colour": Colour.RED, "bytes": b"x", "number": decimal.Decimal("1.5")}
    """
    assert await result(make, source) == {
        "path": "/x", "word": "w", "when": "2026-01-02", "set": [1],
        "tuple": [1, 2], "colour": "red", "bytes": "eA==", "number": "1.5",
    }  # fmt: skip


async def test_keys_added_at_the_turns_begin_are_there_at_its_end(make: Make) -> None:
    worker = await make(
        """
        def handle(e, c):
            if e == "agent:start": c["_recall"] = {"object": object}
            return [k for k in c if k.startswith("_")]
        """
    )

    async def told(name: str, turn: str) -> Any:
        return (await worker.call(name, {"message": "hi"}, CallMeta(decides=True, writable=(), turn=turn), 60)).result

    await told("agent:start", "t1")
    assert await told("tool:before", "t1") == []
    assert await told("agent:end", "t2") == []
    assert await told("agent:end", "t1") == ["_recall"]


async def test_an_added_key_never_covers_a_field(make: Make) -> None:
    worker = await make(
        "def handle(e, c):\n  if e == 'agent:start': c['response'] = 'mine'\n  return c.get('response')"
    )
    meta = CallMeta(decides=True, writable=(), turn="t")
    await worker.call("agent:start", {}, meta, 60)
    assert (await worker.call("agent:end", {"response": "the agent's"}, meta, 60)).result == "the agent's"


async def test_bags(make: Make) -> None:
    """Own lives here, a turn long; turn and session are carried, and only what was done to them comes back."""
    worker = await make(
        """
        def handle(e, c):
            c.own["calls"] = c.own.get("calls", 0) + 1
            c.turn["seen"].append(e)
            c.session.pop("old", None)
            c.session["new"] = c.own["calls"]
            return c.own["calls"]
        """
    )

    async def told(turn: str) -> HookAnswer:
        turns, sessions = {"seen": [], "kept": 1}, {"old": 1, "kept": 1}
        meta = CallMeta(decides=True, turn=turn, turn_bag=turns, session_bag=sessions)
        return await worker.call("x", {}, meta, 60)

    assert [(await told(turn)).result for turn in ("t1", "t1", "t2")] == [1, 2, 1]
    answer = await told("t3")
    assert answer.turn_bag == BagDelta({"seen": ["x"]})
    assert answer.session_bag == BagDelta({"new": 1}, ("old",))
    bag = {"old": 1, "kept": 1}
    answer.session_bag.apply_to(bag)
    assert bag == {"kept": 1, "new": 1}


async def test_without_a_turn_own_is_empty_each_time(make: Make) -> None:
    worker = await make("def handle(e, c):\n  c.own['n'] = c.own.get('n', 0) + 1\n  return c.own['n']")
    assert [(await worker.call("x", {}, DECIDES, 60)).result for _ in range(2)] == [1, 1]


async def test_ask_ends_the_call_and_the_answer_is_there_when_it_runs_again(make: Make) -> None:
    worker = await make(
        """
        async def handle(e, c):
            try: return [c.ask("Delete it?"), c.ask("Sure?", name="sure")]
            except Exception: return "swallowed"
        """
    )
    first = await worker.call("tool:before", {"call_id": "c1"}, DECIDES, 60)
    assert first.ask is not None
    assert (first.ask.name, first.ask.prompt, first.ask.hook) == ("Delete it?", "Delete it?", "probe")
    second = await worker.call("tool:before", {}, CallMeta(decides=True, answers={"Delete it?": "yes"}), 60)
    assert second.ask is not None
    assert second.ask.name == "sure"
    both = CallMeta(decides=True, answers={"Delete it?": "yes", "sure": False})
    assert (await worker.call("tool:before", {}, both, 5)).result == ["yes", False]


async def test_a_question_counts_even_where_the_pause_is_swallowed(make: Make) -> None:
    worker = await make("def handle(e, c):\n  try: c.ask('Well?')\n  except BaseException: return 'swallowed'")
    answer = await worker.call("x", {}, DECIDES, 60)
    assert answer.ask is not None
    assert answer.result is None


async def test_an_observer_cannot_ask(make: Make) -> None:
    worker = await make("def handle(e, c): c.ask('Well?')")
    with pytest.raises(HookFailed, match="only observes x"):
        await worker.call("x", {}, CallMeta(), 60)
