"""A hook's failures affect the hook itself and what it guards, and nothing else."""

import os
import signal
import time

import pytest

from gateway.config.settings import HooksSettings
from gateway.events import Deny
from gateway.hooks import HookRegistry
from gateway.hooks.stats import Breaker, DecisionFailures, MissedDecisions
from tests.hooks.folders.workshop import Home, Yard, hook_of
from tests.hooks.wires.workshop import pid_of
from tests.spine import until

pytestmark = pytest.mark.process

FAILS = "def handle(e, c): raise ValueError('nope')\n"


def test_what_was_not_decided_is_told_until_a_person_has_seen_it() -> None:
    now, kept = [0.0], [MissedDecisions()]
    failures = DecisionFailures(kept.append, clock=lambda: now[0])
    assert failures.describe("gate") == ""
    failures.add("the first")
    now[0] += 800_000
    failures.add("the second")
    after_restart = DecisionFailures(kept.append, kept[-1])
    said = after_restart.describe("gate")
    assert said.startswith("did not decide 2 times, last ")
    assert said.endswith(": the second; when you have seen it: hermes-gateway hooks reset gate")
    after_restart.forget()
    assert after_restart.describe("gate") == ""
    assert DecisionFailures(kept.append, kept[-1]).describe("gate") == ""


def test_a_breaker_opens_lets_one_probe_through_and_waits_longer_each_time() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0], threshold=3, pause=10, longest=30)
    for _ in range(2):
        assert breaker.admits()
        assert not breaker.failed()
    assert breaker.failed()
    assert (breaker.state, breaker.remaining, breaker.admits()) == ("open", 10, False)
    for pause in (20, 30, 30):
        now[0] += breaker.remaining
        assert breaker.state == "half-open"
        assert breaker.admits()
        assert not breaker.admits()
        assert breaker.failed()
        assert breaker.remaining == pause
    now[0] += 30
    assert breaker.admits()
    breaker.left()
    assert breaker.admits()
    assert breaker.succeeded()
    assert (breaker.state, breaker.failures) == ("closed", 0)
    assert not breaker.succeeded()


def test_failures_of_calls_from_before_the_trip_tell_nothing_new() -> None:
    breaker = Breaker(lambda: 0.0, threshold=1, pause=10)
    assert breaker.failed()
    assert not breaker.failed()
    assert breaker.remaining == 10


async def test_the_breaker_of_a_remote_hook_counts_what_was_sent_alone(yard: Yard) -> None:
    """What is never sent (`model:create`, and what a dialect has no word for) is no success between two failures."""
    yard.plant("theirs", "intercepts: ['handoff:*', 'model:*']\nurl: http://127.0.0.1:1/\ndialect: sherma\n")
    yard.plant("ours", "intercepts: ['handoff:*', 'model:*']\nurl: http://127.0.0.1:1/\n")
    for name in ("theirs", "ours"):
        await yard.state(name, "loaded")
    for n in range(6):
        await yard.registry.run("handoff:before", kind="call", input=str(n))
        await yard.registry.run("handoff:before" if n % 2 else "model:create", kind="transfer", input=str(n))
    for name in ("theirs", "ours"):
        assert (await yard.state(name, "tripped")).state == "tripped"


async def test_a_hook_that_fails_again_and_again_is_left_alone_and_can_be_reset(yard: Yard) -> None:
    told: list[tuple[str, str]] = []
    yard.registry.watch("hook:*", lambda name, event: told.append((name, event["hook"])))
    folder = yard.plant("fails", "events: ['my:*']\n", FAILS)
    yard.note("well")
    for name in ("fails", "well"):
        await yard.state(name, "loaded")
    for n in range(8):
        yard.registry.emit("my:event", n=n)
    status = await yard.state("fails", "tripped")
    await until(lambda: len(yard.seen("well")) == 8)
    await yard.registry.settled()
    status = await yard.status("fails")
    assert (status.failures, status.skipped, status.breaker) == (5, 3, "open")
    assert "failed 5 times in a row" in status.reason
    assert "ValueError: nope" in status.reason
    assert status.last_error
    assert "handler.py" in status.last_error.traceback
    assert ("hook:tripped", "fails") in told
    assert told.count(("hook:failed", "fails")) == 1
    await yard.service.reset("fails")
    assert (await yard.status("fails")).state == "loaded"
    (folder / "handler.py").write_text(yard.noting("fails", "2"))
    await until(lambda: (now := yard.hook("fails").current) and now.digest != status.digest)
    yard.registry.emit("my:event", n=9)
    await until(lambda: yard.seen("fails") == [["2", "my:event", 9]])


async def test_mended_code_closes_the_breaker(yard: Yard) -> None:
    folder = yard.plant("fails", "events: ['my:*']\n", FAILS)
    await yard.state("fails", "loaded")
    for n in range(5):
        yard.registry.emit("my:event", n=n)
    await yard.state("fails", "tripped")
    (folder / "handler.py").write_text(yard.noting("fails", "2"))
    await yard.state("fails", "loaded")


@pytest.mark.row("T27")
@pytest.mark.parametrize(
    "handler",
    [
        FAILS,
        "import os\ndef handle(e, c): os._exit(1)\n",
        "import sys\ndef handle(e, c): sys.exit(1)\n",
        "import asyncio\nasync def handle(e, c): await asyncio.sleep(60)\n",
        "import time\ndef handle(e, c): time.sleep(60)\n",
        "def handle(e, c): return 'yes, do it'\n",
        "def handle(e, c): return object()\n",
        "def handle(e, c): return {'decision': 'perhaps'}\n",
    ],
)
async def test_whatever_becomes_of_a_guard_what_it_guards_is_denied(yard: Yard, handler: str) -> None:
    yard.plant("guard", "intercepts: [tool:before]\non_error: deny\ntimeout: 0.2s\n", handler)
    await yard.state("guard", "loaded")
    outcome = (await yard.registry.run("tool:before", tool="shell", args={})).outcome
    assert isinstance(outcome, Deny)
    assert "guard" in outcome.text


@pytest.mark.row("T27")
async def test_a_guard_denies_while_it_is_broken_missing_tripped_or_not_up_yet(yard: Yard) -> None:
    async def is_denied() -> bool:
        return isinstance((await yard.registry.run("tool:before", tool="shell", args={})).outcome, Deny)

    manifest = "intercepts: [tool:before]\non_error: deny\n"
    assert not await is_denied()
    folder = yard.plant("guard", manifest, "import nothing_of_that_name\n")
    await yard.state("guard", "broken")
    assert await is_denied()
    (folder / "handler.py").write_text("def handle(e, c): ...\n")
    await yard.state("guard", "loaded")
    assert not await is_denied()
    folder.rename(yard.root / "away")
    await until(lambda: not yard.registry.wants("tool:before"))
    assert not await is_denied()
    yard.plant("guard", manifest + "order: high\n", "def handle(e, c): ...\n")
    await yard.state("guard", "broken")
    assert await is_denied()
    (folder / "HOOK.yaml").write_text(manifest + "requires: {bins: [no-such-program]}\n")
    await yard.state("guard", "missing")
    assert await is_denied()
    (folder / "HOOK.yaml").write_text(manifest)
    (folder / "handler.py").write_text(FAILS)
    await yard.state("guard", "loaded")
    for _ in range(6):
        assert await is_denied()
    assert (await yard.status("guard")).state == "tripped"
    assert (await yard.status("guard")).needs_attention
    await yard.service.switch("guard", False)
    assert not await is_denied()


@pytest.mark.row("T27")
async def test_a_guard_that_is_being_started_is_waited_for(home: Home) -> None:
    source = "import time\ntime.sleep(0.3)\nfrom gateway.hooks import Deny\ndef handle(e, c): return Deny('by it')\n"
    home.plant("guard", "intercepts: [tool:before]\non_error: deny\n", source)
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(eager=0)) as service:
        assert (await service.info("guard")).state == "registered"
        outcome = (await registry.run("tool:before", tool="shell", args={})).outcome
        assert isinstance(outcome, Deny)
        assert outcome.text == "by it"


@pytest.mark.row("HRM-1", "HRM-2", "HRM-27")
@pytest.mark.row("T27")
async def test_an_observer_that_hangs_or_dies_delays_nobody(yard: Yard) -> None:
    yard.plant("hangs", "events: ['my:*']\n", "import time\ndef handle(e, c): time.sleep(3600)\n")
    yard.plant("dies", "events: ['my:*']\n", "import os\ndef handle(e, c): os._exit(1)\n")
    yard.note("well")
    for name in ("hangs", "dies", "well"):
        await yard.state(name, "loaded")
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("well") == [["1", "my:event", 1]])


async def test_a_worker_that_dies_is_started_again_and_what_waited_is_told(yard: Yard) -> None:
    source = yard.noting("mortal", "1").replace(
        "    with", "    if context['n'] == 2: __import__('os')._exit(7)\n    with"
    )
    yard.plant("mortal", "events: ['my:*']\n", source)
    first = await yard.state("mortal", "loaded")
    for n in range(1, 5):
        yard.registry.emit("my:event", n=n)
    await until(lambda: len(yard.seen("mortal")) == 3)
    assert [n for _, _, n in yard.seen("mortal")] == [1, 3, 4]
    status = await yard.status("mortal")
    assert (status.state, status.restarts, status.failures) == ("loaded", 1, 1)
    assert status.pid != first.pid
    assert status.last_error
    assert "7" in status.last_error.message


async def test_one_that_dies_over_and_over_is_started_less_and_less_often(yard: Yard) -> None:
    source = "import asyncio, os\nasyncio.get_event_loop().call_later(0.02, os._exit, 1)\ndef handle(e, c): ...\n"
    yard.plant("again", "events: ['my:*']\n", source)
    await until(lambda: "again" in yard.service._set.hooks and yard.hook("again").process.restarts >= 4)
    assert yard.hook("again").process.restarts <= 6
    await until(lambda: yard.hook("again").process.state == "waiting")
    assert yard.hook("again").process._due - time.monotonic() <= 0.05 * 2**7


async def test_one_that_died_while_its_files_were_broken_is_broken(yard: Yard) -> None:
    folder = yard.plant("dies", "events: ['my:*']\n", "import os\ndef handle(e, c): os._exit(1)\n")
    await yard.state("dies", "loaded")
    (folder / "handler.py").write_text("def handle(:\n")
    await until(lambda: "does not count" in yard.hook("dies").process.reason)
    yard.registry.emit("my:event")
    status = await yard.state("dies", "broken")
    assert "dies/handler.py:1:12" in status.reason


async def test_a_fork_server_that_dies_costs_a_moment(home: Home) -> None:
    home.note("well")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        os.kill(pid_of(service._services.fork_server), signal.SIGKILL)
        await until(lambda: hook_of(service, "well").process.restarts == 1)
        registry.emit("my:event", n=1)
        await until(lambda: home.seen("well") == [["1", "my:event", 1]])


async def test_a_hook_whose_start_a_dying_fork_server_took_along_is_started_again(home: Home) -> None:
    home.plant("slow", "intercepts: ['my:*']\non_error: deny\n", "import time\ntime.sleep(1)\ndef handle(e, c): ...\n")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        fork_server = service._services.fork_server
        dead = {pid_of(fork_server)}
        os.kill(pid_of(fork_server), signal.SIGKILL)
        for _ in range(3):
            await until(
                lambda: hook_of(service, "slow").process.state == "starting" and pid_of(fork_server) not in dead
            )
            dead.add(pid_of(fork_server))
            os.kill(pid_of(fork_server), signal.SIGKILL)
        await until(lambda: hook_of(service, "slow").process.state == "loaded")
        assert (await registry.run("my:event")).outcome is None


async def test_a_hook_that_somebody_kills_as_it_starts_is_started_again(yard: Yard) -> None:
    source = "import os\nfrom pathlib import Path\nseen = Path(__file__).with_name('seen')\n"
    source += "if not seen.exists():\n    seen.touch()\n    os.kill(os.getpid(), 9)\n"
    yard.plant("starts", "events: ['my:*']\n", f"{source}def handle(e, c): ...\n")
    await yard.state("starts", "loaded")


async def test_one_that_is_killed_at_each_start_is_broken(yard: Yard) -> None:
    yard.plant("never", "events: ['my:*']\n", "import os\nos.kill(os.getpid(), 9)\ndef handle(e, c): ...\n")
    status = await yard.state("never", "broken")
    assert "ended by SIGKILL" in status.reason


async def test_a_fork_server_that_hangs_is_replaced_and_holds_nobody_up(home: Home) -> None:
    home.plant("slow", "intercepts: ['my:*']\ntimeout: 0.2s\n", "import time\ndef handle(e, c): time.sleep(60)\n")
    home.note("well")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        os.kill(pid_of(service._services.fork_server), signal.SIGSTOP)
        await registry.run("my:event", n=1)
        await until(lambda: hook_of(service, "well").process.restarts == 1)
        registry.emit("my:event", n=2)
        await until(lambda: ["1", "my:event", 2] in home.seen("well"))


async def test_a_limit_of_time_is_a_failure_with_where_it_hung(yard: Yard) -> None:
    source = "import time\ndef handle(e, c):\n    time.sleep(60)  # here\n"
    yard.plant("slow", "intercepts: ['my:*']\ntimeout: 2s\n", source)
    await yard.state("slow", "loaded")
    event = await yard.registry.run("my:event")
    assert event.outcome is None
    error = (await yard.status("slow")).last_error
    assert error
    assert "over its 2 s" in error.message
    assert "handler.py" in error.traceback + (await yard.status("slow")).hangs


async def test_one_that_ran_out_of_memory_gets_a_fresh_process(home: Home) -> None:
    home.plant("eats", "intercepts: ['my:*']\n", "def handle(e, c): return {'n': len(bytearray(c['n']))}\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(memory=200_000_000)) as service:

        async def is_another() -> bool:
            return (await service.info("eats")).pid not in (0, before)

        before = (await service.info("eats")).pid
        assert (await registry.run("my:event", n=1000))["n"] == 1000
        await registry.run("my:event", n=1_000_000_000)
        await until(is_another)
        assert (await registry.run("my:event", n=5))["n"] == 5


async def test_parallel_observers_run_side_by_side(yard: Yard) -> None:
    source = """
        import asyncio
        running = 0
        async def handle(event_type, context):
            global running
            running += 1
            while running < 3:
                await asyncio.sleep(0.01)
            print("together:", running)
    """
    yard.plant("side", "events: ['my:*']\nmode: parallel\nmax: 3\n", source)
    await yard.state("side", "loaded")
    for n in range(3):
        yard.registry.emit("my:event", n=n)
    await until(lambda: "together: 3" in yard.log("side"))


async def test_stopping_waits_for_what_has_begun_and_no_longer(home: Home) -> None:
    source = "import time\ndef handle(e, c):\n    print('begun', flush=True)\n    time.sleep(3600)\n"
    home.plant("slow", "events: ['my:*']\n", source)
    registry = HookRegistry(grace=0.1)
    async with home.serving(registry):
        registry.emit("my:event")
        await until(lambda: "begun" in home.log("slow"))


@pytest.mark.parametrize("way", ["c['text'] = {'a': 1}", "c['text'] = None", "return {'text': 5}"])
async def test_what_cannot_stand_in_a_field_is_the_failure_of_the_hook_that_put_it_there(yard: Yard, way: str) -> None:
    yard.plant("odd", "intercepts: [message:received]\norder: -1\n", f"def handle(e, c): {way}\n")
    yard.plant("even", "intercepts: [message:received]\n", "def handle(e, c): c['text'] += '!'\n")
    for name in ("odd", "even"):
        await yard.state(name, "loaded")
    event = await yard.registry.run("message:received", text="hi")
    assert event["text"] == "hi!"
    assert "which takes string" in str((await yard.status("odd")).last_error)
    assert (await yard.status("even")).failures == 0
