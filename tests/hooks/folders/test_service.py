"""Folders become hooks, live: dropped, changed, renamed, removed, broken and mended, while events flow."""

import os
import shutil
from pathlib import Path

import anyio
import pytest

from gateway.config.settings import Hooks, HookSettings
from gateway.errors import HookError
from gateway.events import Deny, Pause
from gateway.hooks import HookRegistry
from tests.hooks.folders.workshop import Home, Yard, comes, hook_of, until

pytestmark = pytest.mark.process


async def test_what_is_there_at_the_start_is_told_of_everything_from_the_start(home: Home) -> None:
    home.note("first")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        registry.emit("my:event", n=1)
        await until(lambda: home.seen("first") == [["1", "my:event", 1]])
        status = await service.info("first")
    assert (status.state, status.reason, status.calls, status.failures) == ("loaded", "", 1, 0)
    assert status.pid
    assert status.memory > 0
    assert status.p50
    assert [trace.event for trace in status.traces] == ["my:event"]
    assert (status.origin, status.wire, status.events) == ("home", "worker", ("my:*",))


async def test_a_folder_that_is_dropped_is_live_within_a_second(yard: Yard) -> None:
    yard.note("new")
    with anyio.fail_after(1):
        await until(lambda: yard.registry.wants("my:event"))
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("new") == [["1", "my:event", 1]])


async def test_a_change_takes_over_with_no_event_lost_told_twice_or_out_of_order(yard: Yard) -> None:
    folder = yard.note("flow")
    await yard.state("flow", "loaded")
    for n in range(300):
        yard.registry.emit("my:event", n=n)
        if n in (50, 150):
            (folder / "handler.py").write_text(yard.noting("flow", str(n)))
        await anyio.sleep(0.003)
    await until(lambda: len(yard.seen("flow")) == 300)
    seen = yard.seen("flow")
    assert [n for _, _, n in seen] == list(range(300))
    versions = [version for version, _, _ in seen]
    assert versions == sorted(versions, key=["1", "50", "150"].index)
    assert set(versions) == {"1", "50", "150"}
    assert (await yard.status("flow")).restarts == 0


async def test_the_first_event_of_the_new_one_waits_for_the_last_of_the_old(yard: Yard) -> None:
    slow = yard.noting("slow", "old").replace("    with", "    import time; time.sleep(0.5)\n    with")
    folder = yard.plant("slow", "events: ['my:*']\n", slow)
    await yard.state("slow", "loaded")
    before = (await yard.status("slow")).loaded_at
    yard.registry.emit("my:event", n=1)
    await anyio.sleep(0.05)
    (folder / "handler.py").write_text(yard.noting("slow", "new"))
    yard.registry.emit("my:event", n=2)
    await until(lambda: yard.hook("slow").runner.loaded_at != before)
    assert yard.seen("slow") == []
    await until(lambda: len(yard.seen("slow")) == 2)
    assert yard.seen("slow") == [["old", "my:event", 1], ["new", "my:event", 2]]


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("handler.py", "def handle(e, c:\n", "bad/handler.py:1:"),
        ("handler.py", "import no_such_module\n", "No module named 'no_such_module'"),
        ("handler.py", "import os\nos._exit(1)\n", "does not start"),
        ("HOOK.yaml", "events: ['my:*'\n", "bad/HOOK.yaml:2:1"),
        ("HOOK.yaml", "events: ['my:*']\norder: high\n", "bad/HOOK.yaml:2:8"),
        ("HOOK.yaml", "events: ['my:*']\nrequires: {bins: [no-such-program]}\n", "no-such-program"),
    ],
)
async def test_a_broken_change_leaves_the_last_good_version_running(yard: Yard, file: str, text: str, why: str) -> None:
    folder = yard.note("bad")
    await yard.state("bad", "loaded")
    (folder / file).write_text(text)
    await until(lambda: why in yard.hook("bad").runner.reason)
    status = await yard.status("bad")
    assert status.state == "loaded"
    assert status.needs_attention
    assert "the version before runs on" in status.reason
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("bad") == [["1", "my:event", 1]])
    (folder / "HOOK.yaml").write_text("events: ['my:*']\n")
    (folder / "handler.py").write_text(yard.noting("bad", "2"))
    await until(lambda: not yard.hook("bad").runner.reason)
    yard.registry.emit("my:event", n=2)
    await until(lambda: yard.seen("bad")[1:] == [["2", "my:event", 2]])


async def test_a_folder_that_is_removed_is_gone_and_one_that_is_renamed_is_another(yard: Yard) -> None:
    folder = yard.note("one")
    await yard.state("one", "loaded")
    folder.rename(folder.parent / "two")
    await yard.state("two", "loaded")
    await until(lambda: list(yard.service._roster.hooks) == ["two"])
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("one") == [["1", "my:event", 1]])
    shutil.rmtree(folder.parent / "two")
    await until(lambda: not yard.registry.wants("my:event"))
    assert await yard.service.status() == []


async def test_a_folder_that_goes_while_it_starts_leaves_nothing_behind(yard: Yard) -> None:
    folder = yard.plant("gone", "events: ['my:*']\n", "import time\ntime.sleep(0.3)\n" + yard.noting("gone", "1"))
    await yard.state("gone", "starting")
    shutil.rmtree(folder)
    await until(lambda: not yard.registry.wants("my:event"))
    assert await yard.service.status() == []


async def test_a_change_while_it_starts_gives_the_start_up(yard: Yard) -> None:
    folder = yard.plant("twice", "events: ['my:*']\n", "import time\ntime.sleep(30)\n" + yard.noting("twice", "1"))
    await yard.state("twice", "starting")
    (folder / "handler.py").write_text(yard.noting("twice", "2"))
    await yard.state("twice", "loaded")
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("twice") == [["2", "my:event", 1]])


async def test_two_folders_of_one_label_both_run(yard: Yard) -> None:
    for name in ("one", "two"):
        yard.note(name, manifest="name: same\nevents: ['my:*']\n")
        await yard.state(name, "loaded")
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("one") == yard.seen("two") == [["1", "my:event", 1]])


async def test_a_hook_that_writes_into_its_own_folder_does_not_reload_itself(yard: Yard) -> None:
    folder = yard.note("busy")
    loaded_at = (await yard.state("busy", "loaded")).loaded_at
    for n in range(5):
        (folder / "data.json").write_text(str(n))
        await anyio.sleep(0.03)
    await anyio.sleep(0.1)
    assert (await yard.status("busy")).loaded_at == loaded_at


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


@pytest.mark.row("T22")
async def test_nothing_is_imported_by_looking(home: Home) -> None:
    canary = home.root / "canary"
    home.plant("trap", "events: ['my:*']\nenabled: false\n", f"open({str(canary)!r}, 'w')\ndef handle(e, c): ...\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=Hooks(eager=0)) as service:
        await service.status()
        await service.info("trap")
        (home.hooks / "trap" / "HOOK.yaml").write_text("events: ['my:*']\n")
        await until(lambda: registry.wants("my:event"))
        assert (await service.info("trap")).state == "registered"
        assert not canary.exists()
        registry.emit("my:event")
        await until(canary.exists)


async def test_beyond_the_eager_ones_hooks_start_at_their_first_event(home: Home) -> None:
    for name in ("a", "b", "c"):
        home.note(name, manifest=f"events: ['my:{name}']\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=Hooks(eager=2)) as service:
        states = {status.name: status.state for status in await service.status()}
        assert states == {"a": "loaded", "b": "loaded", "c": "registered"}
        registry.emit("my:c", n=1)
        await until(lambda: home.seen("c") == [["1", "my:c", 1]])
        assert (await service.info("c")).state == "loaded"


async def test_what_is_beyond_the_eager_ones_is_checked_to_the_end_all_the_same(home: Home) -> None:
    home.plant("a", "events: ['my:a']\n", "def handle(:\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=Hooks(eager=0)) as service:
        status = await service.info("a")
    assert status.state == "broken"
    assert "a/handler.py:1:12" in status.reason


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
    settings = Hooks(disabled=("two",), each={"one": HookSettings(enabled=True)})
    async with home.serving(HookRegistry(), settings=settings) as service:
        states = {status.name: status.state for status in await service.status()}
        assert states == {"one": "loaded", "two": "disabled"}
        for name, enabled in (("one", False), ("two", True)):
            with pytest.raises(HookError, match=r"config.yaml decides"):
                await service.switch(name, enabled)


async def test_hooks_of_the_gateway_itself_are_off_until_switched_on_and_may_be_replaced(home: Home) -> None:
    (home.root / "builtin").mkdir()
    for name in ("boot", "other"):
        home.note(name).rename(home.root / "builtin" / name)
    home.note("other", version="mine")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        states = {status.name: (status.state, status.origin) for status in await service.status()}
        assert states == {"boot": ("disabled", "built in"), "other": ("loaded", "home")}
        await service.switch("boot", True)
        assert (await service.info("boot")).state == "loaded"


async def test_options_of_the_configuration_go_over_those_of_the_manifest(home: Home) -> None:
    manifest = "intercepts: ['my:*']\noptions: {a: 1, b: 2}\n"
    home.plant("opts", manifest, "def handle(e, c): return {'seen': c.options}\n")
    registry = HookRegistry()
    settings = Hooks(each={"opts": HookSettings(options={"b": 3})})
    async with home.serving(registry, settings=settings):
        assert (await registry.run("my:event", seen=None))["seen"] == {"a": 1, "b": 3}


@pytest.mark.row("T26")
async def test_a_hook_sees_the_environment_that_it_declares(home: Home) -> None:
    source = "import os\ndef handle(e, c): return {'seen': dict(os.environ)}\n"
    home.plant("env", "intercepts: ['my:*']\nenv: [API_KEY]\n", source)
    registry = HookRegistry()
    async with home.serving(registry, API_KEY="k", BOT_TOKEN="secret", HTTPS_PROXY="p") as service:
        seen = (await registry.run("my:event", seen=None))["seen"]
        assert set(seen) == {"PATH", "HOME", "HERMES_HOME", "API_KEY", "HTTPS_PROXY"}
        assert (await service.info("env")).found == ()


@pytest.mark.row("T26")
async def test_a_hook_written_for_hermes_gets_what_stands_in_its_source(home: Home) -> None:
    source = """
        import os
        def handle(event_type, context):
            token = os.getenv("BOT_TOKEN")
            return {"decision": "handled", "message": token or "none"}
    """
    home.plant("old", "events: ['command:*']\n", source)
    for env, said in (("lenient", "secret"), ("strict", "none")):
        registry = HookRegistry()
        async with home.serving(registry, settings=Hooks(env=env), BOT_TOKEN="secret") as service:
            event = await registry.run("command:new", command="new", args="", result=None)
            assert event["result"] == said
            assert (await service.info("old")).found == (("BOT_TOKEN",) if env == "lenient" else ())


async def test_a_hook_may_do_what_its_manifest_uses_and_nothing_else(yard: Yard) -> None:
    source = "def handle(e, c):\n    c.gateway.send('here', 'hi')\n    return {'seen': 'sent'}\n"
    yard.plant("may", "intercepts: ['may:*']\nuses: [send]\n", source)
    yard.plant("not", "intercepts: ['not:*']\n", source)
    for name in ("may", "not"):
        await yard.state(name, "loaded")
    event = await yard.registry.run("may:event", seen=None)
    assert event["seen"] == "sent"
    assert yard.granted == [("may", "send", {"to": "here", "text": "hi"}, event["id"])]
    assert (await yard.registry.run("not:event", seen=None))["seen"] is None
    error = (await yard.status("not")).last_error
    assert error
    assert "not may not send: add `uses: [send]` to its HOOK.yaml" in error.message


async def test_events_that_hooks_emit_know_their_cause_and_end_after_eight(yard: Yard) -> None:
    source = "async def handle(e, c):\n    await c.gateway.emit('my:echo', n=c['n'] + 1)\n"
    yard.plant("echo", "events: ['my:*']\nuses: [emit]\n", source)
    await yard.state("echo", "loaded")
    seen: list[tuple[int, str]] = []
    yard.registry.watch("my:*", lambda name, event: seen.append((event["n"], event["cause"])))
    yard.registry.emit("my:event", n=0)
    await until(lambda: len(seen) >= 9)
    await anyio.sleep(0.05)
    assert [n for n, _ in seen] == list(range(len(seen)))
    assert 9 <= len(seen) <= 10
    assert seen[0][1] is None
    assert all(cause for _, cause in seen[1:])


async def test_a_hook_that_only_the_gateway_may_tell_of_cannot_be_emitted(yard: Yard) -> None:
    source = "async def handle(e, c):\n    await c.gateway.emit('message:received', text='forged')\n"
    yard.plant("forger", "events: ['my:*']\nuses: [emit]\n", source)
    await yard.state("forger", "loaded")
    yard.registry.emit("my:event")
    await until(lambda: yard.hook("forger").calls.record.last_error)
    error = (await yard.status("forger")).last_error
    assert error
    assert "told by the gateway alone" in error.message


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

    await comes(is_let_through)


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
    settings = Hooks(each={"in": HookSettings(isolation="none")})
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
        with pytest.raises(HookError, match="there is no hook"):
            await yard.service.reload(name or "nothing")


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


async def test_the_index_makes_a_second_start_read_nothing(home: Home, tmp_path: Path) -> None:
    home.note("one")
    async with home.serving(HookRegistry()):
        pass
    assert (home.root / "state" / "index.json").exists()
    (home.root / "state" / "index.json").write_text("nonsense")
    async with home.serving(HookRegistry()) as service:
        assert (await service.info("one")).state == "loaded"


@pytest.mark.row("T23")
async def test_where_trust_is_pinned_only_what_was_trusted_runs(home: Home) -> None:
    canary = home.root / "canary"
    home.plant("one", "events: ['my:*']\n", f"open({str(canary)!r}, 'w')\n" + home.noting("one", "1"))
    registry = HookRegistry()
    async with home.serving(registry, settings=Hooks(trust="pinned")) as service:
        status = await service.info("one")
        assert status.state == "pending"
        assert "hooks trust one" in status.reason
        assert not canary.exists()
        await service.trust("one")
        assert (await service.info("one")).state == "loaded"
        (home.hooks / "one" / "handler.py").write_text(home.noting("one", "2"))
        await until(lambda: "not trusted" in hook_of(service, "one").runner.reason)
        registry.emit("my:event", n=1)
        await until(lambda: home.seen("one") == [["1", "my:event", 1]])
    async with home.serving(HookRegistry(), settings=Hooks(trust="pinned")) as service:
        assert (await service.info("one")).state == "pending"
