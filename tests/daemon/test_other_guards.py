"""A guard whose folder one of several gateways has: what it guards happens on none of them."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.engine.nats_servers import NatsServer, run_servers

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

GUARD = {
    "HOOK.yaml": "intercepts: [tool:before]\nwhen: {tool: shell}\non_error: deny\n",
    "handler.py": """
def handle(event_type, context):
    if "forbidden" in context["args"]["command"]:
        return {"decision": "deny", "message": "The guard says no."}
""",
}
LENIENT = {
    "HOOK.yaml": "intercepts: [tool:before]\non_error: skip\n",
    "handler.py": "def handle(event_type, context): pass\n",
}
PLUGIN = {
    "plugin.yaml": "name: plugged\n",
    "__init__.py": """
def guard(tool_name, args, **_):
    if "forbidden" in str(args):
        return {"action": "block", "message": "The plugin says no."}

def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
""",
}
TOOLS = "tools: {shell: allow, sandbox: {mode: 'off'}}\n"
SAYS_NO, CANNOT_ANSWER = "The guard says no.", "guard guards this and cannot answer"
TURNS_EACH, AT_A_TIME = 10, 6


class Cluster:
    """Gateways on one journal, by name. Their shells write into files that all of them reach."""

    def __init__(self, folder: Path, server: NatsServer, names: tuple[str, ...]) -> None:
        self.folder = folder
        self.sessions = itertools.count()
        self.gateways = {name: GatewayProcess(folder / name / "home") for name in names}
        for name, gateway in self.gateways.items():
            turns = [self._make_turn(word) for word in ("forbidden", "harmless")]
            settings = f"engine: {server.url}\nnode: {{name: {name}}}\n{TOOLS}"
            gateway.script(*turns, settings=settings)

    def _make_turn(self, word: str) -> dict[str, Any]:
        run = {"name": "shell", "args": {"command": f"echo x >> {self.folder / word}"}}
        return {"user": word, "answers": [{"tool_calls": [run]}, {"text": "Ready."}]}

    def __getitem__(self, name: str) -> GatewayProcess:
        return self.gateways[name]

    def start(self, *names: str) -> None:
        for name in names:
            self[name].process = self[name].spawn("run")
        for name in names:
            self[name].until(self[name]._is_ready)

    def count(self, word: str) -> int:
        """How often that was done."""
        path = self.folder / word
        return len(path.read_text().splitlines()) if path.exists() else 0

    def try_out(self, name: str, word: str) -> str:
        """Run the tool, and return the model's result; empty if it was done."""
        before, session = self.count(word), f"s{next(self.sessions)}"
        said = self[name].say(word, session)
        assert said["reply"] == "Ready.", said
        told = list[str]()

        def is_shown() -> bool:  # another may have written it just now
            shown = self[name].call("sessions.show", {"session": f"agent:main:terminal:dm:{session}"})["entries"]
            told.extend(one["content"] for one in shown if one["role"] == "tool")
            return bool(told)

        self[name].until(is_shown)
        return "" if self.count(word) > before else told[0]

    def wait_for_guard(self, name: str, state: str) -> str:
        """Until the guard is so on this gateway; why."""
        found = dict[str, str]()

        def is_so() -> bool:
            listed = {one["name"]: one for one in self[name].call("hooks.list")["hooks"]}
            found["reason"] = listed.get("guard", {}).get("reason", "")
            return bool(listed.get("guard", {}).get("state", "") == state)

        self[name].until(is_so)
        return found["reason"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with run_servers(tmp_path / "nats", 1) as servers:
        yield servers[0]


@pytest.fixture
def cluster(tmp_path: Path, server: NatsServer, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with ExitStack() as stack:
        made = Cluster(tmp_path, server, request.param)
        for gateway in made.gateways.values():
            stack.enter_context(gateway)
        yield made


@pytest.mark.parametrize("cluster", [("has", "lacks", "third")], indirect=True)
def test_what_a_guard_of_one_guards_is_done_on_none(cluster: Cluster) -> None:
    guard = cluster["has"].add_hook("guard", GUARD)
    cluster["has"].add_hook("lenient", LENIENT)
    cluster.start("has", "lacks", "third")
    for name in ("lacks", "third"):
        reason = cluster.wait_for_guard(name, "broken")
        assert reason.startswith("guard: is on gateway has and missing here; bring its folder here, or remove it there")
        hooks = cluster[name].call("hooks.list")["hooks"]
        assert "lenient" not in {one["name"] for one in hooks}, "it stops nothing where it is missing"
        assert cluster[name].call("hooks.info", {"name": "guard"})["on_error"] == "deny"
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        told = {*threads.map(lambda name: cluster.try_out(name, "forbidden"), [*cluster.gateways] * TURNS_EACH)}
    assert len(told) == 2, "some turns ran where the guard is, some where it is missing"
    assert SAYS_NO in told
    assert cluster.count("forbidden") == 0
    (refusal,) = [one for one in told if CANNOT_ANSWER in one]
    for words in ("guard: is on gateway has and missing here", "bring its folder here", "hooks disable guard"):
        assert words in refusal
    attention = cluster["lacks"].call("status")["attention"]
    assert any(one.startswith("hook guard is broken: guard: is on gateway has") for one in attention), attention

    guard.rename(cluster.folder / "away")
    for name in ("lacks", "third"):
        cluster.wait_for_guard(name, "")
    for name in cluster.gateways:
        assert cluster.try_out(name, "forbidden") == "", "nobody guards it any more"


@pytest.mark.parametrize("cluster", [("has", "lacks")], indirect=True)
def test_it_is_denied_also_while_who_has_it_is_away_until_its_folder_is_here(cluster: Cluster) -> None:
    cluster["has"].add_hook("guard", GUARD)
    cluster.start("has", "lacks")
    cluster.wait_for_guard("lacks", "broken")
    assert cluster["has"].stop()[0] == 0
    assert CANNOT_ANSWER in cluster.try_out("lacks", "harmless")
    cluster["lacks"].kill()
    cluster.start("lacks")
    assert CANNOT_ANSWER in cluster.try_out("lacks", "harmless"), "from the first turn on"

    here = cluster["lacks"].add_hook("guard", GUARD)
    cluster.wait_for_guard("lacks", "loaded")
    assert cluster.try_out("lacks", "harmless") == ""
    assert SAYS_NO in cluster.try_out("lacks", "forbidden")
    here.rename(cluster.folder / "away")
    cluster.wait_for_guard("lacks", "broken")
    assert CANNOT_ANSWER in cluster.try_out("lacks", "harmless"), "it is not here any more"

    assert cluster["lacks"].cli("hooks", "disable", "guard").returncode == 0
    assert cluster.try_out("lacks", "harmless") == ""
    assert cluster["lacks"].cli("hooks", "enable", "guard").returncode == 0
    assert CANNOT_ANSWER in cluster.try_out("lacks", "harmless")
    assert cluster.count("forbidden") == 0

    cluster.start("has")
    cluster["lacks"].call("hooks.disable", {"name": "guard"})
    cluster.wait_for_guard("has", "disabled")
    cluster.wait_for_guard("lacks", "disabled")
    assert cluster.try_out("lacks", "harmless") == ""


@pytest.mark.parametrize("cluster", [("has", "lacks")], indirect=True)
def test_a_plugin_that_guards_is_missed_as_well(cluster: Cluster) -> None:
    folder = cluster["has"].home.plugins / "plugged"
    folder.mkdir(parents=True)
    for file, text in PLUGIN.items():
        (folder / file).write_text(text)
    cluster["has"].home.hermes_config.write_text("plugins: {enabled: [plugged]}\n")
    cluster.start("has", "lacks")

    def is_missed() -> bool:
        return any("hook plugged is broken" in one for one in cluster["lacks"].call("status")["attention"])

    cluster["lacks"].until(is_missed)
    assert cluster["has"].stop()[0] == 0
    assert "plugged guards this and cannot answer" in cluster.try_out("lacks", "harmless")


@pytest.mark.parametrize("cluster", [("old", "lacks")], indirect=True)
def test_what_a_gateway_had_by_its_old_name_counts_no_more(cluster: Cluster) -> None:
    guard = cluster["old"].add_hook("guard", GUARD)
    cluster.start("old", "lacks")
    assert "is on gateway old and" in cluster.wait_for_guard("lacks", "broken")
    cluster["old"].kill()
    config = cluster["old"].home.config
    config.write_text(config.read_text().replace("name: old", "name: new"))
    cluster.start("old")
    cluster["lacks"].until(lambda: "is on gateway new and" in cluster.wait_for_guard("lacks", "broken"))
    guard.rename(cluster.folder / "away")
    for name in cluster.gateways:
        cluster.wait_for_guard(name, "")
    for name in cluster.gateways:
        assert cluster.try_out(name, "forbidden") == "", "nobody guards it any more"
