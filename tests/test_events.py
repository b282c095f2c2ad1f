"""The event that a hook receives, and the meaning of its answers."""

import copy
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.events.event
from gateway.events import (
    Bags,
    Deny,
    End,
    Event,
    Pause,
    Question,
    Retry,
    find_marked,
    is_yes,
    on,
    outcome_from,
    outcome_to_dict,
)


def tool_event(**more) -> Event:
    return Event("tool:before", {"tool": "shell", "args": {}, "hop": 1, **more}, frozenset({"tool", "args"}))


def test_an_event_is_the_dict_of_its_fields() -> None:
    event = tool_event()
    assert event == {"tool": "shell", "args": {}, "hop": 1}
    assert json.loads(json.dumps(event)) == {"tool": "shell", "args": {}, "hop": 1}
    assert repr(event) == "Event('tool:before', {'tool': 'shell', 'args': {}, 'hop': 1})"


@pytest.mark.row("STR-15")
@pytest.mark.parametrize(
    "write",
    [
        lambda event: event.__setitem__("hop", 2),
        lambda event: event.__setitem__("added", 2),
        lambda event: event.__delitem__("hop"),
        lambda event: event.update(tool="other", hop=2),
        lambda event: event.update({"hop": 2}),
        lambda event: event.__ior__({"hop": 2}),
        lambda event: event.setdefault("added", 2),
        lambda event: event.pop("hop"),
        lambda event: event.popitem(),
        lambda event: event.clear(),
    ],
)
def test_writing_a_field_that_is_not_writable_is_an_error_that_names_it(write) -> None:
    event = tool_event()
    with pytest.raises(KeyError, match=r"tool:before: a hook cannot change '(hop|added)', only args, tool"):
        write(event)
    assert event == tool_event(), "nothing was written, not even the fields beside it that could be"


def test_every_way_of_writing_reaches_the_fields_that_are_writable() -> None:
    event = tool_event()
    event["tool"] = "a"
    event.update({"args": {"x": 1}})
    event |= {"tool": "b"}
    assert event.setdefault("hop", 9) == 1
    assert event.pop("args") == {"x": 1}
    del event["tool"]
    assert event == {"hop": 1}


def test_an_event_that_is_not_in_the_catalogue_can_be_written_all_over() -> None:
    event = Event("my:event", {"a": 1})
    event["b"] = 2
    assert event.popitem() == ("b", 2)
    event.clear()
    assert event == {}


def test_a_copy_of_an_event_is_a_plain_dict() -> None:
    event = tool_event(args={"deep": [1]})
    copied = copy.deepcopy(event)
    assert type(copied) is dict
    copied["args"]["deep"].append(2)
    copied["hop"] = 9
    assert event == tool_event(args={"deep": [1]})


@pytest.mark.row("EDG-34")
@pytest.mark.row("EDG-35")
def test_the_bags_are_private_to_the_hook_shared_by_the_turn_and_kept_by_the_session() -> None:
    bags = Bags(session={"visits": 3})
    first, second = Event("a:b", {}, bags=bags, hook="first"), Event("c:d", {}, bags=bags, hook="second")
    first.own["n"], first.turn["t"], first.session["visits"] = 1, 2, 4
    assert second.own == {}
    assert (second.turn, second.session) == ({"t": 2}, {"visits": 4})
    assert Event("e:f", {}, bags=bags, hook="first").own == {"n": 1}


def test_an_event_outside_of_any_turn_has_bags_of_its_own() -> None:
    one, other = Event("a:b"), Event("a:b")
    one.turn["x"] = one.own["x"] = one.session["x"] = 1
    assert (other.turn, other.own, other.session) == ({}, {}, {})


@pytest.mark.row("STR-51")
def test_a_question_without_an_answer_is_a_pause_that_no_except_exception_swallows() -> None:
    event = Event("tool:before", {"id": "t1/tool:before/c1"}, hook="guard")
    assert not issubclass(Pause, Exception)
    with pytest.raises(Pause, match="Really") as pause:
        event.ask("Really?", name="sure")
    assert pause.value.questions == (Question("sure", "Really?", "guard", "t1/tool:before/c1/guard/sure"),)


@pytest.mark.row("STR-53")
@pytest.mark.parametrize("answer", [True, False, "yes", "", 0, {"a": 1}])
def test_any_answer_but_none_spares_the_question(answer) -> None:
    by_id = Bags(answers={"e1/guard/sure": answer})
    by_name = Bags(answers={"sure": answer})
    fields = {"id": "e1"}
    assert Event("a:b", fields, bags=by_id, hook="guard").ask("Really?", "sure") == answer
    assert Event("a:b", fields, bags=by_name, hook="guard").ask("Really?", "sure") == answer
    assert Event("a:b", fields, hook="guard").ask("Really?", "sure", answer=answer) == answer


def test_an_answer_for_one_operation_is_none_for_another() -> None:
    bags = Bags(answers={"t1/tool:before/c1/guard/sure": True})
    assert Event("tool:before", {"id": "t1/tool:before/c1"}, bags=bags, hook="guard").ask("?", "sure") is True
    with pytest.raises(Pause):
        Event("tool:before", {"id": "t1/tool:before/c2"}, bags=bags, hook="guard").ask("?", "sure")
    with pytest.raises(Pause):
        Event("tool:before", {"id": "t1/tool:before/c1"}, bags=bags, hook="other").ask("?", "sure")


@pytest.mark.row("STR-54")
def test_a_hook_that_asks_twice_under_one_name_is_wrong_and_two_hooks_are_not() -> None:
    event = Event("a:b", {}, bags=Bags(answers={"sure": True}), hook="one")
    event.ask("Really?", "sure")
    with pytest.raises(ValueError, match=r"one asks 'sure' twice at a:b"):
        event.ask("Really, really?", "sure")
    event.hook = "two"
    assert event.ask("Really?", "sure") is True


def test_where_hooks_cannot_ask_to_ask_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="watcher only observes a:b"):
        Event("a:b", bags=Bags(answers=None), hook="watcher").ask("Really?")


@pytest.mark.parametrize(
    ("outcome", "data"),
    [
        (End("bye", "done"), {"decision": "end", "reply": "bye", "reason": "done"}),
        (Deny("no"), {"decision": "deny", "message": "no", "soft": False}),
        (Deny("hm", soft=True), {"decision": "deny", "message": "hm", "soft": True}),
        (Retry("again", 2), {"decision": "retry", "message": "again", "delay": 2}),
        (Retry(), {"decision": "retry", "message": None, "delay": 0}),
    ],
)
def test_an_outcome_as_data_is_the_same_outcome_when_it_comes_back(outcome, data) -> None:
    assert outcome_to_dict(outcome) == data
    back = outcome_from(json.loads(json.dumps(data)))
    assert type(back) is type(outcome)
    assert vars(back) == vars(outcome)


def test_nothing_and_a_pause_have_their_data_too() -> None:
    assert outcome_to_dict(None) is None
    pause = Pause((Question("sure", "Really?", "h", "i"),))
    assert outcome_to_dict(pause) == {"decision": "ask", "name": "sure", "prompt": "Really?"}


@pytest.mark.row("STR-66")
@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (None, None),
        ({"args": 1}, {"args": 1}),
        ({}, {}),
        ({"decision": "allow"}, None),
        ({"decision": " ALLOW ", "args": 1}, {"args": 1}),
        ({"decision": "handled", "message": "done"}, {"result": "done"}),
        ({"decision": "handled"}, {"result": ""}),
        ({"decision": "rewrite", "command_name": "/new", "raw_args": "x"}, {"command": "new", "args": "x"}),
        ({"decision": "rewrite", "command_name": " / "}, None),
        ({"decision": "rewrite", "text": "other"}, {"text": "other"}),
        ({"decision": "ask", "prompt": "Ok?"}, Question("Ok?", "Ok?", "", "")),
        ({"decision": "ask", "prompt": "Ok?", "name": "n"}, Question("n", "Ok?", "", "")),
    ],
)
def test_what_plain_data_means(answer, meaning) -> None:
    assert outcome_from(answer) == meaning


@pytest.mark.parametrize("key", ["message", "text", "reason"])
def test_a_denial_as_data_may_say_its_text_under_several_names(key) -> None:
    outcome = outcome_from({"decision": "deny", key: "no"})
    assert isinstance(outcome, Deny)
    assert outcome.text == "no"


@pytest.mark.row("EDG-9")
@pytest.mark.parametrize("answer", [True, False, 1, "text", ["a"], object(), Deny])
def test_an_answer_that_means_nothing_is_refused(answer) -> None:
    with pytest.raises(TypeError, match="a hook answers None, a mapping, End, Deny or Retry"):
        outcome_from(answer)


def test_a_decision_that_is_misspelt_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match="unknown decision 'dney'; did you mean 'deny'"):
        outcome_from({"decision": "dney"})
    with pytest.raises(ValueError, match="unknown decision 7; there are allow, deny"):
        outcome_from({"decision": 7})
    with pytest.raises(ValueError, match="needs a prompt"):
        outcome_from({"decision": "ask"})


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())))
def test_whatever_mapping_comes_back_is_understood_or_refused(answer) -> None:
    try:
        meaning = outcome_from(answer)
    except (TypeError, ValueError):
        return
    assert meaning is None or isinstance(meaning, (End, Deny, Retry, Question, dict))


@pytest.mark.parametrize("yes", [True, "y", "Yes", " YES ", "true", "once", "session", "always"])
def test_a_yes(yes) -> None:
    assert is_yes(yes)


@pytest.mark.parametrize("no", [False, None, "", "no", "yes please", 1, "ok", ["yes"]])
def test_whatever_is_not_clearly_a_yes_is_none(no) -> None:
    assert not is_yes(no)


@pytest.mark.row("WEB-17")
def test_an_error_of_ones_own_can_be_an_outcome() -> None:
    class RateLimit(Deny):
        text = "too fast"

        def __init__(self, seconds: int) -> None:
            self.seconds = seconds

    class Busy(Deny):
        text, soft = "busy", True

    assert outcome_to_dict(RateLimit(3)) == {"decision": "deny", "message": "too fast", "soft": False}
    assert outcome_to_dict(Busy()) == {"decision": "deny", "message": "busy", "soft": True}
    assert outcome_to_dict(Deny()) == {"decision": "deny", "message": "", "soft": False}


class Parent:
    @on("a:b")
    def first(self, event): ...

    @on("a:b", order=3)
    def replaced(self, event): ...

    @on("a:b")
    def silenced(self, event): ...


class Child(Parent):
    @on("e:f")
    @on("c:d", when={"x": 1}, on_error="deny", timeout=2)
    def twice(self, event): ...

    @on("g:h")
    def replaced(self, event): ...

    def silenced(self, event): ...

    @staticmethod
    @on("s:t")
    def static(event): ...


@pytest.mark.row("STR-17")
@pytest.mark.row("EDG-4")
@pytest.mark.row("WEB-3")
@pytest.mark.row("SHE-2")
def test_marked_methods_are_found_parents_first_and_as_they_are_overridden() -> None:
    child = Child()
    found = [(function.__name__, mark.names) for function, mark in find_marked(child)]
    assert found == [
        ("first", ("a:b",)),
        ("replaced", ("g:h",)),
        ("twice", ("e:f",)),
        ("twice", ("c:d",)),
        ("static", ("s:t",)),
    ]
    *_, mark = (mark for function, mark in find_marked(child) if function.__name__ == "twice")
    assert mark.options == {"order": 0, "when": {"x": 1}, "on_error": "deny", "timeout": 2}
    first, _ = next(find_marked(child))
    assert first == child.first
    assert first != Child().first


def test_marked_functions_of_a_module_are_found_in_the_order_they_are_written() -> None:
    module = ModuleType("handler")
    code = "from gateway.events import on\n@on('z:z', 'y:y')\ndef z(e): ...\n@on('a:a')\nasync def a(e): ..."
    exec(code, vars(module))
    assert [(function.__name__, mark.names) for function, mark in find_marked(module)] == [
        ("z", ("z:z", "y:y")),
        ("a", ("a:a",)),
    ]


@pytest.mark.parametrize("names", [(), ("",), (3,), (["a:b"],)])
def test_a_mark_needs_names(names) -> None:
    with pytest.raises(ValueError, match="@on needs the name of an event"):
        on(*names)


def test_the_module_needs_the_standard_library_alone() -> None:
    """It is loaded by its path into the processes that hooks run in, where nothing of ours is installed."""
    path = Path(gateway.events.event.__file__)
    code = (
        "import sys, importlib.util as u\n"
        f"s = u.spec_from_file_location('gateway.events', {str(path)!r})\n"
        "m = u.module_from_spec(s); sys.modules['gateway.events'] = m; s.loader.exec_module(m)\n"
        "assert m.Event('a:b', {'x': 1})['x'] == 1\n"
        "print(sorted(n for n in sys.modules if n.startswith('gateway')))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['gateway.events']"
