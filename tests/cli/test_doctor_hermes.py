"""`doctor --hermes`: what of an existing home works here, told from its files alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process


def plant(place: Path, **files: str) -> None:
    place.mkdir(parents=True)
    for name, text in files.items():
        (place / name.replace("__dot__", ".")).write_text(text)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    gateway = GatewayProcess(tmp_path_factory.mktemp("d") / "home")
    root = gateway.home.root
    handler = "def handle(event_type, context): pass\n"
    yaml, py = "HOOK__dot__yaml", "handler__dot__py"
    plant(root / "hooks" / "good", **{yaml: "events: [agent:end]\nauthor: me\n", py: handler})
    plant(root / "hooks" / "patcher", **{yaml: "events: [agent:end]\n", py: f"from gateway.run import X\n{handler}"})
    plant(root / "hooks" / "lost", **{yaml: "events: [agent:end]\n", py: f"import hermes_state\n{handler}"})
    plant(root / "hooks" / "borrows", **{yaml: "events: [agent:end]\n", py: f"import agent.prompts\n{handler}"})
    plant(root / "hooks" / "broken", **{yaml: "events: [agent:end]\n", py: "def handle(:\n"})
    register = (
        "def register(ctx):\n    ctx.register_hook('on_room_member_activity', print)\n    ctx.register_platform()\n"
    )
    for name in ("on", "off"):
        plant(root / "plugins" / name, plugin__dot__yaml="name: x\n", __init____dot__py=register)
    guard = "def stop(tool_name, **_):\n    return {'action': 'block'} if tool_name in ('terminal', 'bash') else None\n"
    guard += "def register(ctx):\n    ctx.register_hook('pre_tool_call', stop)\n"
    plant(root / "plugins" / "guard", plugin__dot__yaml="name: guard\n", __init____dot__py=guard)
    mixed = (
        "def register(ctx):\n    ctx.register_hook('post_tool_call', print)\n    ctx.register_middleware('x', print)\n"
    )
    plant(root / "plugins" / "mixed", plugin__dot__yaml="name: mixed\n", __init____dot__py=mixed)
    wraps = "import model_tools\n\ndef register(ctx):\n    model_tools.handle_function_call = print\n"
    plant(root / "plugins" / "wraps", plugin__dot__yaml="name: wraps\n", __init____dot__py=wraps)
    plant(root / "hooks" / "squeezes", **{yaml: "events: ['command:compress', 'command:reset']\n", py: handler})
    typed = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hermes_state import SessionDB\n{handler}"
    plant(root / "hooks" / "typed", **{yaml: "events: [agent:end]\n", py: typed})
    (root / "shell-hooks-allowlist.json").write_text('{"approvals": []}')
    (root / "config.yaml").write_text(
        "plugins: {enabled: [on, guard, mixed, wraps]}\nmodel: {default: x}\nskin: {a: 1}\n"
        "hooks: {pre_tool_call: [{command: x.sh, matcher: terminal|run_it}, {command: y.sh, matcher: terminal}],\n"
        "  kanban_task_claimed: [{command: y.sh}], "
        "outbound: [{url: 'https://example.org/told', events: [on_session_end]}]}\n"
    )
    (root / ".env").write_text("TELEGRAM_HOME_CHANNEL=5\nSLACK_ALLOW_ALL_USERS=1\nMY_KEY=secret-value\n")
    (root / ".env").chmod(0o600)
    (root / "BOOT.md").write_text("look around")
    before = snapshot(root)
    said = gateway.cli("doctor", "--hermes", "--json")
    assert said.returncode == 0, said.stderr
    assert "secret-value" not in said.stdout
    assert snapshot(root) == before, "it touches nothing"
    rows = json.loads(said.stdout)["hermes"]
    return {(row["what"], row["name"]): (row["verdict"], " | ".join(row["why"])) for row in rows}


def snapshot(root: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(root.rglob("*"))}


@pytest.mark.parametrize(
    ("what", "name", "verdict", "why"),
    [
        ("hook", "good", "works", ""),
        ("hook", "patcher", "degrades", "gateway.run.X is inside Hermes: patching it has no effect here"),
        ("hook", "lost", "broken", "hermes_state is inside Hermes: importing it fails here; catch ImportError"),
        ("hook", "borrows", "broken", "agent.prompts is inside Hermes: importing it fails here"),
        ("hook", "broken", "broken", "broken/handler.py:1"),
        ("plugin", "on", "without effect", "ctx.register_platform is not offered here"),
        ("plugin", "on", "without effect", "says nowhere how far it has read"),
        ("plugin", "on", "without effect", "on_room_member_activity never fires here"),
        ("plugin", "mixed", "degrades", "ctx.register_middleware is not offered here; the rest of it works"),
        ("plugin", "mixed", "degrades", "its x is never called: what it would stop or change goes on as it is"),
        ("plugin", "wraps", "without effect", "it patches model_tools.handle_function_call"),
        ("hook", "squeezes", "works", "command:compress never happens: there is no /compress here"),
        ("hook", "squeezes", "works", "command:reset never happens; /reset is told as command:new"),
        ("hook", "typed", "works", ""),
        ("plugin", "guard", "works", "guard/__init__.py:2:1: its guard names a tool that is not here: bash"),
        ("shell hook", "shell-pre_tool_call-x", "pending", "a tool that is not here: run_it"),
        (
            "shell hook",
            "shell-pre_tool_call-y",
            "pending",
            "shell-hooks-allowlist.json of Hermes does not approve it as it is now",
        ),
        ("shell hook", "shell-pre_tool_call-y", "pending", "hermes-gateway hooks trust shell-pre_tool_call-y"),
        ("shell hook", "shell-kanban_task_claimed-y", "without effect", "never fires here"),
        ("webhook", "webhook-example.org-told", "works", ""),
        ("config.yaml", "hooks", "pending", "a shell hook that Hermes has not approved as it is now"),
        ("plugin", "off", "off", "hermes-gateway hooks enable off"),
        ("config.yaml", "plugins", "works", "count as in Hermes"),
        ("config.yaml", "model", "degrades", "our own config.yaml"),
        ("config.yaml", "skin", "off", "nothing here reads it"),
        (".env", "TELEGRAM_HOME_CHANNEL", "works", "is platforms.telegram.home_channel"),
        (".env", "SLACK_ALLOW_ALL_USERS", "works", "opens slack to everybody"),
        (".env", "MY_KEY", "works", "hooks that name it get it"),
        ("file", "BOOT.md", "works", "hooks info boot-md"),
    ],
)
def test_each_thing_of_the_home_is_judged_with_a_reason(
    told: dict[tuple[str, str], Any], what: str, name: str, verdict: str, why: str
) -> None:
    assert told[what, name][0] == verdict
    assert why in told[what, name][1]


def test_people_get_a_table_and_a_sum(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    plant(
        gateway.home.hooks / "good", HOOK__dot__yaml="events: [agent:end]\n", handler__dot__py="def handle(e, c): 0\n"
    )
    said = gateway.cli("doctor", "--hermes")
    assert ["hook", "good", "works"] in [line.split() for line in said.stdout.splitlines()]
    assert (
        "1 works, 0 degrades, 0 pending, 0 broken, 0 off, 0 without effect; nothing was changed or run" in said.stderr
    )


def test_that_a_group_may_write_to_all_folders_is_said_once(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    for name in ("one", "two", "three"):
        folder = gateway.home.hooks / name
        plant(folder, HOOK__dot__yaml="events: [agent:end]\n", handler__dot__py="def handle(a, b): pass\n")
        folder.chmod(0o775)
    said = gateway.cli("doctor", "--hermes").stdout
    assert said.count("its group may write") == 1, said
    assert "of 3 hooks and plugins: its group may write to it" in " ".join(said.split())
