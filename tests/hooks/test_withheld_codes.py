"""Codes are cut from what hooks read, no more than them, and come back where no hook has a say in it."""

import re

import pytest

from gateway.events import Event, Pause
from gateway.hooks import HookRegistry
from gateway.hooks.withheld_codes import CodeKind, compile_words, restore_codes

CODE = "ABCDEFGH"
OTHER = "HGFEDCBA"


@pytest.fixture
def withholding() -> HookRegistry:
    hooks = HookRegistry()
    hooks.withheld.kinds = (CodeKind(compile_words("[A-Za-z0-9]{8}"), str.upper, lambda: {CODE, OTHER}),)
    return hooks


@pytest.mark.parametrize(
    "text",
    [f"{CODE}.", f"({CODE.lower()})", f"?start={CODE}&x", f"%3D{CODE}", f"\\n{CODE}", f"_{CODE}_", f"{OTHER} {CODE}"],
)
async def test_a_hook_reads_no_code_and_all_that_stands_around_it(withholding: HookRegistry, text: str) -> None:
    seen: list[object] = []
    withholding.on("mine", lambda event: seen.append([event["texts"], event["other"]]))
    other = object()
    texts = {"a": [text, ({"b": text},)]}
    event = await withholding.run("mine", texts=texts, other=other)
    cut = re.sub(f"{CODE}|{OTHER}", "…", text, flags=re.IGNORECASE)
    assert seen == [[{"a": [cut, ({"b": cut},)]}, other]]
    assert event["texts"] is texts


async def test_a_field_that_a_hook_changes_keeps_the_sign(withholding: HookRegistry) -> None:
    withholding.on("mine", lambda event: event["args"].update(to="somebody else"))
    event = await withholding.scope({}).run("mine", args={"to": "Bob", "text": CODE}, text=CODE)
    assert event["args"] == {"to": "somebody else", "text": "…"}
    assert event["text"] == CODE


async def test_an_approval_is_for_the_call_with_its_code(withholding: HookRegistry) -> None:
    def ask(event: Event) -> None:
        event.ask(f"May I run {event['args']['command']}?")

    withholding.on("tool:before", ask)
    args = {"command": f"rm -rf /;{CODE}"}
    with pytest.raises(Pause) as paused:
        await withholding.scope({}, answers={}).run("tool:before", tool="shell", call_id="1", args=args)
    (question,) = paused.value.questions
    assert question.prompt == "May I run rm -rf /;…?"
    assert [(one.args, one.changed_by) for one in question.calls] == [(args, ())]


REPLY = f"Here it is:\nhttps://gate.example.org/?code={CODE}\nIt is good once."
CUT = REPLY.replace(CODE, "…")


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (CUT, REPLY),
        (f"{CUT} (checked)", f"{REPLY} (checked)"),
        ("Hello!", "Hello!"),
        ("[Open](https://evil.example/?c=…)", REPLY),
        (f"Look: {CUT.splitlines()[1]}", REPLY),
        (CUT.replace("…", " … "), REPLY),
        (CUT.replace("gate", "evil"), REPLY),
    ],
)
def test_a_reply_has_its_code_in_lines_that_hooks_left_alone(left: str, shown: str) -> None:
    assert restore_codes(left, REPLY, [CODE]) == shown
