"""The gateway's requests to its folder hooks: switch, call, try out and describe them."""

import os

import pytest

from gateway.config.settings import HookOverrides, HooksSettings
from gateway.errors import HookError
from gateway.events import Deny, Pause
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import add_memory
from tests.hooks.folders.workshop import Home, Yard
from tests.spine import until

pytestmark = pytest.mark.process


async def test_a_hook_that_needs_what_is_not_there_says_what(yard: Yard) -> None:
    manifest = """
        events: ['my:*']
        requires: {bins: [no-such-program], env: [API_KEY], python: [no-such-package], platforms: [discord]}
    """
    yard.plant("needy", manifest, yard.noting("needy", "1"))
    status = await yard.state("needy", "missing")
    for what in ("no-such-program", "API_KEY", "no-such-package", "discord", "hooks deps needy"):
        assert what in status.reason
    assert not yard.registry.wants("my:event")


async def test_a_hook_is_switched_off_and_on_and_stays_so(home: Home) -> None:
    home.note("one")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        await service.switch("one", False)
        assert (await service.info("one")).state == "disabled"
        assert not registry.wants("my:event")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        assert "hooks enable one" in (await service.info("one")).reason
        await service.switch("one", True)
        assert (await service.info("one")).state == "loaded"
    assert sorted(path.name for path in (home.hooks / "one").iterdir()) == ["HOOK.yaml", "handler.py"]


async def test_the_configuration_has_the_first_word(home: Home) -> None:
    home.note("one", manifest="events: ['my:*']\nenabled: false\n")
    home.note("two")
    settings = HooksSettings(disabled=("two",), each={"one": HookOverrides(enabled=True)})
    async with home.serving(HookRegistry(), settings=settings) as service:
        states = {status.name: status.state for status in await service.status()}
        assert states == {"one": "loaded", "two": "disabled"}
        for name, enabled in (("one", False), ("two", True)):
            with pytest.raises(HookError, match=r"config.yaml decides"):
                await service.switch(name, enabled)


async def test_memory_is_counted_for_whoever_asks_for_it(home: Home) -> None:
    home.note("one")
    async with home.serving(HookRegistry()) as service:
        assert [status.memory for status in await service.status()] == [0]
        assert (await add_memory(await service.status()))[0].memory > 1 << 20
        assert (await service.info("one")).memory > 1 << 20


async def test_hooks_of_the_gateway_itself_are_off_until_switched_on_and_may_be_replaced(home: Home) -> None:
    (home.root / "builtin").mkdir()
    for name in ("boot", "other"):
        home.note(name, manifest="events: ['my:*']\nenabled: false\n").rename(home.root / "builtin" / name)
    home.note("always").rename(home.root / "builtin" / "always")
    home.note("other", version="mine")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        states = {status.name: (status.state, status.origin) for status in await service.status()}
        assert states == {
            "always": ("loaded", "built in"),
            "boot": ("disabled", "built in"),
            "other": ("loaded", "home"),
        }
        await service.switch("boot", True)
        assert (await service.info("boot")).state == "loaded"


async def test_options_of_the_configuration_go_over_those_of_the_manifest(home: Home) -> None:
    manifest = "intercepts: ['my:*']\noptions: {a: 1, b: 2}\n"
    home.plant("opts", manifest, "def handle(e, c): return {'seen': c.options}\n")
    registry = HookRegistry()
    settings = HooksSettings(each={"opts": HookOverrides(options={"b": 3})})
    async with home.serving(registry, settings=settings):
        assert (await registry.run("my:event", seen=None))["seen"] == {"a": 1, "b": 3}


async def test_marked_functions_are_called_in_their_order_beside_handle(yard: Yard) -> None:
    source = """
        from gateway.hooks import Deny, on
        def handle(event_type, context): context["seen"] = context["seen"] + ["handle"]
        @on("my:event", order=-1)
        def first(event): return {"seen": event["seen"] + ["first"]}
        @on("my:*", order=1, when={"kind": "x"})
        async def last(event): return Deny("x")
        @on("other:event")
        def never(event): pass
    """
    yard.plant("marks", "intercepts: ['my:*']\n", source)
    status = await yard.state("marks", "loaded")
    assert (await yard.registry.run("my:event", seen=[]))["seen"] == ["first", "handle"]
    event = await yard.registry.run("my:event", seen=[], kind="x")
    assert event["seen"] == ["first", "handle"]
    assert isinstance(event.outcome, Deny)
    assert any("@on('other:event')" in finding for finding in status.findings)


async def test_a_command_and_a_one_shot_program_are_hooks_as_well(yard: Yard) -> None:
    lines = """
        #!/usr/bin/env python3
        import json, sys
        for line in sys.stdin:
            said = json.loads(line)
            if "id" in said:
                print(json.dumps({"id": said["id"], "result": {"seen": said["method"]}}), flush=True)
    """.replace("\n        ", "\n").lstrip()
    yard.plant("lines", "intercepts: ['a:*']\ncommand: [./run]\n", run=lines)
    yard.plant("once", "intercepts: ['b:*']\ncommand: [./run]\nprotocol: oneshot\n", run="#!/bin/sh\nexit 2\n")
    assert (await yard.state("lines", "loaded")).pid
    await yard.state("once", "loaded")
    assert (await yard.registry.run("a:event", seen=None))["seen"] == "a:event"
    assert isinstance((await yard.registry.run("b:event")).outcome, Deny)
    (yard.hooks / "once" / "run").write_text("#!/bin/sh\nexit 0\n")

    async def is_let_through() -> bool:
        return (await yard.registry.run("b:event")).outcome is None

    await until(is_let_through)


async def test_a_handler_may_run_inside_where_the_configuration_says_so(home: Home) -> None:
    source = """
        import os
        from gateway.hooks import Deny
        async def handle(event_type, context):
            if context.get("deny"):
                raise Deny("no")
            return {"pid": os.getpid(), "seen": context.options["a"]}
    """
    home.plant("in", "intercepts: ['my:*']\nisolation: none\noptions: {a: 1}\n", source)
    registry = HookRegistry()
    settings = HooksSettings(each={"in": HookOverrides(isolation="none")})
    async with home.serving(registry, settings=settings):
        event = await registry.run("my:event", pid=0, seen=None)
        assert (event["pid"], event["seen"]) == (os.getpid(), 1)
        assert isinstance((await registry.run("my:event", deny=True)).outcome, Deny)
    registry = HookRegistry()
    async with home.serving(registry) as service:
        assert (await registry.run("my:event", pid=0, seen=None))["pid"] != os.getpid()
        assert any("`isolation: none` counts only" in finding for finding in (await service.info("in")).findings)


async def test_a_hook_asks_the_person_and_goes_on_with_the_answer(yard: Yard) -> None:
    source = "def handle(e, c): return {'seen': c.ask('May I?', name='may')}\n"
    yard.plant("asks", "intercepts: ['my:*']\n", source)
    await yard.state("asks", "loaded")
    scope = yard.registry.scope({}, {}, {})
    with pytest.raises(Pause) as paused:
        await scope.run("my:event", seen=None, id="e1")
    (question,) = paused.value.questions
    assert (question.prompt, question.hook) == ("May I?", "asks")
    again = yard.registry.scope({}, {}, {question.id: "yes"})
    assert (await again.run("my:event", seen=None, id="e1"))["seen"] == "yes"
    assert (await yard.status("asks")).failures == 0


async def test_bags_go_to_the_hook_and_come_back(yard: Yard) -> None:
    source = "def handle(e, c):\n    c.turn['n'] = c.turn.get('n', 0) + 1\n    c.session['last'] = e\n"
    yard.plant("bags", "intercepts: ['my:*']\n", source)
    await yard.state("bags", "loaded")
    session: dict[str, str] = {}
    scope = yard.registry.scope({"turn_id": "t"}, session, {})
    scope.bags.turn["live"] = object()
    for _ in range(2):
        await scope.run("my:event")
    assert scope.bags.turn["n"] == 2
    assert session == {"last": "my:event"}


async def test_what_a_handler_prints_is_in_its_log(yard: Yard) -> None:
    yard.plant("talks", "events: ['my:*']\n", "def handle(e, c): print('hello from', e)\n")
    await yard.state("talks", "loaded")
    yard.registry.emit("my:event")
    await until(lambda: "hello from my:event" in yard.log("talks"))


async def test_there_is_no_hook_of_that_name(yard: Yard) -> None:
    yard.note("weather")
    await yard.state("weather", "loaded")
    with pytest.raises(HookError, match="did you mean 'weather'"):
        await yard.service.info("wether")
    for name in ("../weather", "a\0b", "..", ".", "", "/etc", "x" * 300):
        with pytest.raises(HookError, match="not found"):
            await yard.service.reload(name or "nothing")


async def test_a_folder_that_came_this_moment_is_found(yard: Yard) -> None:
    for number in range(3):
        yard.note(f"new{number}")
        assert (await yard.service.info(f"new{number}")).state in ("registered", "loaded", "starting")


async def test_a_hook_can_be_reloaded_and_fired_and_tested(yard: Yard) -> None:
    source = """
        import os
        def handle(event_type, context):
            print("called for", event_type)
            context.gateway.send("here", "hi")
            return {"args": {"pid": os.getpid()}}
    """
    yard.plant("tried", "intercepts: ['tool:before']\nevents: [agent:end, 'command:*']\nuses: [send]\n", source)
    before = await yard.state("tried", "loaded")
    fired = await yard.service.fire("tried", "tool:before", {"tool": "shell"})
    assert fired.result == {"args": {"pid": before.pid}}
    trials = {trial.event: trial for trial in await yard.service.test("tried")}
    assert list(trials) == ["tool:before", "agent:end", "command:new"]
    trial = trials["tool:before"]
    assert trial.result["args"]["pid"] != before.pid
    assert trial.verb == "intercept"
    assert "called for tool:before" in trial.output
    assert trial.asked == ({"verb": "send", "to": "here", "text": "hi"},)
    assert not trial.error
    assert len(yard.granted) == 1
    (only,) = await yard.service.test("tried", "agent:end", {"response": "x"})
    assert only.verb == "observe"
    await yard.service.reload("tried")
    assert (await yard.status("tried")).pid != before.pid


async def test_what_fails_in_a_test_is_shown(yard: Yard) -> None:
    yard.plant("fails", "events: [agent:end]\n", "def handle(e, c): raise ValueError('nope')\n")
    await yard.state("fails", "loaded")
    (trial,) = await yard.service.test("fails")
    assert "nope" in trial.error
    assert "handler.py" in trial.traceback
