"""The denials of our own hooks when they fail without `on_error`; an older home is notified of the change."""

import json
import time

import pytest

from gateway.config.settings import HookOverrides, HooksSettings
from gateway.events import Deny
from gateway.hooks import HookRegistry
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import until

pytestmark = pytest.mark.process

FAILS = "def handle(event_type, context):\n    return context['no such field']\n"
MAY_DENY = f"from gateway.hooks import Deny\n{FAILS}"
URL = "url: http://127.0.0.1:1/hooks\n"
CASES = {
    "before-a-tool": ("intercepts: [tool:before]", FAILS, "tool:before", True),
    "before-a-batch": ("intercepts: [tools:before]", FAILS, "tools:before", True),
    "glob-before": ("intercepts: ['tool:*']", FAILS, "tool:before", True),
    "glob-after": ("intercepts: ['tool:*']", FAILS, "tool:after", False),
    "everything": ("intercepts: ['*']", FAILS, "llm:before", False),
    "says-skip": ("intercepts: [tool:before]\non_error: skip", FAILS, "tool:before", False),
    "may-deny-a-message": ("intercepts: [message:received]", MAY_DENY, "message:received", True),
    "changes-a-message": ("intercepts: [message:received]", FAILS, "message:received", False),
    "may-deny-a-turn": ("intercepts: [agent:start]", MAY_DENY, "agent:start", True),
    "may-deny-a-reply": ("intercepts: [message:sending]", MAY_DENY, "message:sending", False),
    "runs-elsewhere": (f"intercepts: [message:received]\n{URL}", "", "message:received", True),
    "speaks-sherma": (f"intercepts: [tool:before]\ndialect: sherma\n{URL}", "", "tool:before", False),
    "broken": ("intercepts: [tool:before]\ntimeout: soon", FAILS, "tool:before", True),
}


async def list_denied(home: Home, settings: HooksSettings | None = None) -> list[str]:
    registry = HookRegistry()
    async with home.serving(registry, settings=settings):
        found = []
        for name, (_, _, event, _) in CASES.items():
            outcome = (await registry.run(event, role=name, tool=name, args={})).outcome
            found += [name] if isinstance(outcome, Deny) and name in outcome.text else []
        return found


def plant(home: Home) -> None:
    for name, (manifest, handler, event, _) in CASES.items():
        field = "tool" if event.startswith("tool:") else "role"
        home.plant(name, f"{manifest}\nwhen: {{{field}: {name}}}\n", handler)


async def test_a_failure_denies_what_the_hook_stands_before_and_nothing_else(home: Home) -> None:
    plant(home)
    assert await list_denied(home) == [name for name, (*_, is_denied) in CASES.items() if is_denied]


async def test_the_configuration_goes_before_the_default(home: Home) -> None:
    plant(home)
    skips = HooksSettings(each={name: HookOverrides(on_error="skip") for name in CASES})
    assert await list_denied(home, skips) == []


async def test_a_home_of_an_earlier_version_is_told_once_which_hooks_this_changes(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.plant("fails", "intercepts: [tool:before]\n", FAILS)
    home.plant("says", "intercepts: [tool:before]\non_error: skip\n", FAILS)
    async with home.serving(HookRegistry()):
        pass
    assert "now denies it" not in caplog.text, "a new home has nothing that changes"
    index = home.root / "state" / "index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "v": 12}))
    for _ in range(2):
        async with home.serving(HookRegistry()):
            pass
    assert caplog.text.count("now denies it: fails; to keep one as it was, write `on_error: skip`") == 1


async def test_a_failed_decision_stands_until_a_person_has_seen_it_also_after_a_restart(home: Home) -> None:
    home.plant("fails", "intercepts: [llm:before]\n", FAILS)
    registry = HookRegistry()
    async with home.serving(registry) as service:
        await registry.run("llm:before")
        (status,) = await service.status()
        assert status.needs_attention
        assert "llm:before went on without its decision" in status.undecided
    async with home.serving(HookRegistry()) as service:
        (status,) = await service.status()
        assert status.needs_attention
        await service.reset("fails")
        (status,) = await service.status()
        assert not status.needs_attention


async def test_a_guard_whose_code_has_no_word_to_deny_by_is_warned_of(home: Home) -> None:
    home.plant("never", "intercepts: [tool:before]\n", FAILS)
    home.plant("can", "intercepts: [tool:before]\n", MAY_DENY)
    home.plant("looks-on", "intercepts: [tool:before]\non_error: skip\n", FAILS)
    async with home.serving(HookRegistry()) as service:
        warned = [one.name for one in await service.status() if any("can never deny" in said for said in one.findings)]
    assert warned == ["never"]


async def test_after_a_timeout_a_guard_has_two_seconds_until_it_was_in_time_once(home: Home) -> None:
    gate = home.root / "gate"
    waits = f"import os, time\ndef handle(event_type, context):\n    while not os.path.exists({str(gate)!r}):\n"
    home.plant("slow", "intercepts: [tool:before]\ntimeout: 7s\n", f"{waits}        time.sleep(0.05)\n")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        took = []
        for _ in range(2):
            begun = time.monotonic()
            assert isinstance((await registry.run("tool:before", tool="x")).outcome, Deny)
            took.append(time.monotonic() - begun)
        assert took[1] < took[0] - 2
        gate.touch()
        await service.reset("slow")
        await until(lambda: hook_of(service, "slow").is_up)
        assert (await registry.run("tool:before", tool="x")).outcome is None
        assert not hook_of(service, "slow").calls._is_late
