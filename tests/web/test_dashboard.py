"""The dashboard for Grafana asks for figures that the gateway has, by labels that they have."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from prometheus_client.parser import text_string_to_metric_families

from gateway.testing import GatewayProcess
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until
from tests.web.signers import TOKEN
from tests.web.visits import send, visit

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"
ASKED = re.compile(r"\b((?:hermes_gateway|process)_[a-z_]+)\{([^}]*)\}")
GROUPED = re.compile(r"by \(([^)]*)\)")
COUNTED = (
    "turns_total",
    "sends_total",
    "tokens_total",
    "hook_latency_seconds_count",
    "webhook_calls_total",
)  # some time after the answer
CALLED = "/webhooks/issues"
CALLED_AND_LIMITED = """
webhooks: {issues: {secret_env: CALLER, verify: token}}
budgets: {all: {day: {tokens: 1000000}}}
"""
OF_PROMETHEUS = {"job", "instance", "le"}
COLUMNS = 24


def read_board() -> dict[str, Any]:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return board


def test_its_panels_are_each_by_themselves_and_cover_nothing() -> None:
    panels = read_board()["panels"]
    assert len({one["id"] for one in panels}) == len({one["title"] for one in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for one in panels:
        at = one["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, one["title"]
        assert at["x"] + at["w"] <= COLUMNS, one["title"]
        taken |= cells


def test_no_server_is_named_in_it() -> None:
    board = read_board()
    variables = {one["name"] for one in board["templating"]["list"]}
    for one in board["panels"]:
        assert {target["datasource"]["uid"] for target in one["targets"]} == {"${datasource}"}
        for target in one["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"} <= variables


@pytest.mark.process
async def test_all_that_it_asks_for_is_there(tmp_path: Path) -> None:
    wire = TelegramWire()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.environ |= {**wire.environ, "CALLER": TOKEN}
            gateway.configure(CALLED_AND_LIMITED)
            gateway.add_hook("notes", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(*_): pass\n"})
            await to_thread.run_sync(gateway.start)
            await wire.write("hello")
            await until(lambda: bool(wire.shown), "the answer")
            await to_thread.run_sync(gateway.say, "what is 2 + 3")
            url = str(gateway.call("status")["web"]["url"])
            call = {"content_type": "application/json", "authorization": f"Bearer {TOKEN}"}
            assert (await to_thread.run_sync(partial(send, url, CALLED, "POST", b"{}", **call))).status == 202

            async def find() -> str:
                text = (await to_thread.run_sync(visit, url, "/metrics")).body.decode()
                return text if all(f"hermes_gateway_{one}{{" in text for one in COUNTED) else ""

            text = str(await until(find, "all of it"))
    labels: dict[str, set[str]] = {}
    for metric in text_string_to_metric_families(text):
        labels[metric.name] = {name for sample in metric.samples for name in sample.labels}
    targets = [target for one in read_board()["panels"] for target in one["targets"]]
    for target in targets:
        asked = [(family_of(name), chosen) for name, chosen in ASKED.findall(target["expr"])]
        assert asked, target["expr"]
        for family, chosen in asked:
            assert family in labels, target["expr"]
            assert set(re.findall(r"(\w+)=", chosen)) <= labels[family] | OF_PROMETHEUS, target["expr"]
        grouped = {name for found in GROUPED.findall(target["expr"]) for name in found.split(", ")}
        shown = grouped | set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert shown <= set().union(*(labels[family] for family, _ in asked)) | OF_PROMETHEUS, target["expr"]


def family_of(name: str) -> str:
    return re.sub(r"_(total|bucket)$", "", name)
