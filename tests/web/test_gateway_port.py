"""The port of the running gateway: alive, ready, measured; and closed to whom it does not concern."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.testing import GatewayProcess
from gateway.web.key_check import MOST_WRONG
from tests.web.signers import TOKEN
from tests.web.visits import Visit, send, visit

pytestmark = pytest.mark.process

SECRET = "sesame-open-9384-canary"
FAILS = 'def handle(event_type, context):\n    raise RuntimeError("no")\n'
CALL = {"tool_calls": [{"name": "list_files", "args": {}}]}
URL = "http://gate.example.org"
USED = {"input_tokens": 90, "output_tokens": 10, "calls": 1}
CALLED_AND_LIMITED = """
webhooks: {issues: {secret_env: CALLER, verify: token}}
access: {groups: {desk: {people: ["telegram:77"], role: user}}}
budgets: {all: {day: {tokens: 1000000}}, each_person: {month: {tokens: 500000}}, groups: {desk: {day: {money: 5}}}}
"""


def url_of(gateway: GatewayProcess) -> str:
    return str(gateway.call("status")["web"]["url"])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """On this machine alone."""
    with GatewayProcess(tmp_path_factory.mktemp("own") / "home") as gateway:
        look = {"user": "look", "answers": [CALL, {"text": "Nothing there.", "usage": USED}]}
        gateway.script(look, {"user": "", "text": "Hello."}, settings=CALLED_AND_LIMITED)
        gateway.environ |= {"MY_TOKEN": SECRET, "CALLER": TOKEN}
        gateway.add_hook(f"bad-{SECRET}", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": FAILS})
        gateway.start()
        yield gateway


@pytest.fixture(scope="module")
def open_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Reachable from elsewhere, by a name."""
    with GatewayProcess(tmp_path_factory.mktemp("open") / "home") as gateway:
        gateway.configure(f"web: {{url: '{URL}', trusted_proxies: [127.0.0.1]}}\n")
        gateway.start()
        yield gateway


def ask(gateway: GatewayProcess, path: str, method: str = "GET", **headers: str) -> Visit:
    """From outside, by its name."""
    return visit(url_of(gateway), path, method, **{"host": "gate.example.org", **headers})


def make_key(gateway: GatewayProcess, name: str, role: str) -> str:
    made = gateway.cli("keys", "new", name, "--as", role, "--json")
    assert not made.returncode, made.stderr
    return str(json.loads(made.stdout)["key"])


def test_it_is_alive_and_ready(gateway: GatewayProcess) -> None:
    url = url_of(gateway)
    assert (visit(url, "/health").status, visit(url, "/health").body) == (200, b"ok\n")
    ready = visit(url, "/ready")
    assert (ready.status, json.loads(ready.body)) == (200, {"ready": True, "reasons": []})
    assert visit(url, "/ready", "POST").status == 405
    assert (visit(url, "/").status, visit(url, "/api/me").status) == (200, 403), "the page holds nothing by itself"


def test_a_network_that_is_down_is_the_reason_until_somebody_pauses_it(tmp_path: Path) -> None:
    with socket.socket() as nobody, GatewayProcess(tmp_path / "home") as gateway:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        base = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        gateway.environ |= {"TELEGRAM_BOT_TOKEN": "123:abcdefghijklmnopqrst", "TELEGRAM_BASE_URL": base}
        gateway.start()
        gateway.until(lambda: bool(gateway.call("status")["platforms"]["telegram"]["detail"]))
        assert [one["part"] for one in reasons(gateway)] == ["telegram"]
        gateway.call("platform.steer", {"verb": "pause", "name": "telegram"})
        gateway.until(lambda: not reasons(gateway))
        assert visit(url_of(gateway), "/ready").status == 200


def reasons(gateway: GatewayProcess) -> list[dict[str, Any]]:
    ready = visit(url_of(gateway), "/ready")
    found: list[dict[str, Any]] = json.loads(ready.body)["reasons"]
    assert ready.status == (503 if found else 200)
    return found


def figures(gateway: GatewayProcess) -> dict[tuple[str, ...], float]:
    """By name and labels, as the official parser reads them."""
    answer = visit(url_of(gateway), "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.body.decode()))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert all(family.documentation and family.type != "unknown" for family in families)
    samples = [sample for family in families for sample in family.samples]
    return {(one.name.removeprefix("hermes_gateway_"), *one.labels.values()): one.value for one in samples}


def test_the_official_parser_finds_what_happened(gateway: GatewayProcess) -> None:
    assert gateway.say("look")["reply"] == "Nothing there."
    gateway.until(lambda: figures(gateway).get(("sends_total", "terminal", "sent"), 0) >= 1)
    gateway.until(lambda: sum(value for key, value in figures(gateway).items() if key[0] == "hook_failures_total") >= 1)
    found = figures(gateway)
    assert found["turns_total", "ok"] == 1
    counts = {stage: found["stage_seconds_count", stage] for stage in ("wait", "model", "tool", "turn", "send")}
    assert counts == {"wait": 1, "model": 2, "tool": 1, "turn": 1, "send": 1}
    assert 0 < found["stage_seconds_sum", "turn"] < 60
    assert found["stage_seconds_bucket", "turn", "+Inf"] == 1
    assert sorted(value for key, value in found.items() if key[0] == "tokens_total") == [10, 90]
    assert found["journal_commits_total",] > 5
    assert found["journal_commit_seconds_total",] > 0
    assert found["process_resident_memory_bytes",] > 1e7
    assert found["process_open_fds",] > 5
    assert [value for key, value in found.items() if key[0] == "hook_state" and key[2] == "loaded"] == [1.0] * 2


def test_hooks_webhooks_and_budgets_are_measured_and_no_person_is_named(gateway: GatewayProcess) -> None:
    assert gateway.say("look")["reply"] == "Nothing there."
    assert send(url_of(gateway), "/webhooks/issues", "POST", b"{}", content_type="application/json").status == 401
    call = {"content_type": "application/json", "authorization": f"Bearer {TOKEN}"}
    assert send(url_of(gateway), "/webhooks/issues", "POST", b"{}", **call).status == 202
    assert send(url_of(gateway), "/webhooks/nobody", "POST", b"{}", **call).status == 401
    gateway.until(lambda: figures(gateway).get(("webhook_calls_total", "issues", "taken"), 0) == 1)
    gateway.until(lambda: bool(figures(gateway)["budget_used_ratio", "each_person", "month", "tokens"]))
    found = figures(gateway)
    assert {key[1:]: value for key, value in found.items() if key[0] == "webhook_calls_total"} == {
        ("issues", "taken"): 1,
        ("issues", "known"): 0,
        ("issues", "refused"): 1,
    }
    ratios = {key[1:]: value for key, value in found.items() if key[0] == "budget_used_ratio"}
    assert set(ratios) == {("all", "day", "tokens"), ("each_person", "month", "tokens"), ("desk", "day", "money")}
    assert ratios["each_person", "month", "tokens"] == pytest.approx(2 * ratios["all", "day", "tokens"])
    assert not [key for key in found if any("telegram:77" in part or "terminal:owner" in part for part in key)]
    (hook,) = {key[1] for key, value in found.items() if key[0] == "hook_failures_total" and value}
    assert found["hook_latency_seconds_count", hook] == found["hook_calls_total", hook] >= 1
    assert found["hook_latency_seconds_bucket", hook, "+Inf"] == found["hook_latency_seconds_count", hook]
    assert 0 < found["hook_latency_seconds_sum", hook] < 60
    assert found["hook_cpu_seconds_total", hook] >= 0


@pytest.mark.row("T28")
def test_no_secret_stands_in_a_label(gateway: GatewayProcess) -> None:
    body = visit(url_of(gateway), "/metrics").body
    assert b"hook_calls_total" in body
    assert SECRET.encode() not in body


@pytest.mark.row("T2")
@pytest.mark.row("T3")
def test_strangers_get_no_answer_from_the_running_gateway(gateway: GatewayProcess) -> None:
    url = url_of(gateway)
    for path in ("/health", "/ready", "/metrics", "/"):
        assert visit(url, path, host="evil.com").status == 421
        assert visit(url, path, Origin="http://evil.com").status == 403
        assert visit(url, path, Origin="null").status == 403


@pytest.mark.row("T10")
def test_what_can_be_reached_from_elsewhere_tells_reasons_and_figures_to_operators(
    open_gateway: GatewayProcess,
) -> None:
    operator, user = (make_key(open_gateway, f"ten-{role}", role) for role in ("operator", "user"))
    assert ask(open_gateway, "/health").body == b"ok\n"
    assert json.loads(ask(open_gateway, "/ready").body) == {"ready": True}
    assert ask(open_gateway, "/metrics").status == 401
    bearer = {"Authorization": f"Bearer {operator}"}
    assert json.loads(ask(open_gateway, "/ready", **bearer).body) == {"ready": True, "reasons": []}
    assert ask(open_gateway, "/metrics", **bearer).status == 200
    asked = {"X_Role": "owner", "Authorization": f"Bearer {user}"}
    assert ask(open_gateway, "/metrics?role=owner", **asked).status == 403
    assert ask(open_gateway, "/metrics?key=" + operator).status == 401, "a key in the address counts for nothing"


@pytest.mark.row("T9")
def test_a_key_that_was_revoked_is_dead_at_once_and_stays_it(open_gateway: GatewayProcess) -> None:
    key, kept = (make_key(open_gateway, name, "operator") for name in ("nine", "nine-kept"))
    assert ask(open_gateway, "/metrics", Authorization=f"Bearer {key}").status == 200
    assert open_gateway.cli("keys", "revoke", "nine").returncode == 0
    assert ask(open_gateway, "/metrics", Authorization=f"Bearer {key}").status == 401
    open_gateway.stop()
    open_gateway.start()
    assert ask(open_gateway, "/metrics", Authorization=f"Bearer {key}").status == 401
    assert ask(open_gateway, "/metrics", Authorization=f"bearer {kept}").status == 200
    listed = open_gateway.cli("keys", "list").stdout
    assert "nine-kept" in listed
    assert kept not in listed
    assert kept.encode() not in open_gateway.home.journal.read_bytes()


@pytest.mark.row("T6")
@pytest.mark.row("T7")
def test_guessing_is_slowed_from_this_machine_too_and_the_right_key_still_counts(open_gateway: GatewayProcess) -> None:
    key = make_key(open_gateway, "six", "operator")
    for number in range(MOST_WRONG):
        wrong = {
            "Authorization": f"Bearer wrong{number}",
            "X_Forwarded_For": f"7.7.7.7, {'::ffff:' * (number % 2)}5.5.5.5",
        }
        assert ask(open_gateway, "/metrics", Origin=URL, **wrong).status == 401
    late = ask(open_gateway, "/metrics", Authorization="Bearer wrong", Cookie="a=b", X_Forwarded_For="5.5.5.5")
    assert late.status == 429
    assert 0 < int(late.headers["retry-after"]) <= 60
    right_one = {"Authorization": f"Bearer {key}", "X_Forwarded_For": "5.5.5.5"}
    assert ask(open_gateway, "/metrics", **right_one).status == 200
    assert ask(open_gateway, "/metrics", Authorization="Bearer wrong", X_Forwarded_For="5.5.5.6").status == 401
    assert open_gateway.cli("keys", "list").returncode == 0


@pytest.mark.row("T8")
def test_keys_are_long_and_random(open_gateway: GatewayProcess) -> None:
    first, second = (make_key(open_gateway, name, "user") for name in ("eight-a", "eight-b"))
    assert first != second
    assert all(len(key.removeprefix("hgw_")) * 6 >= 256 for key in (first, second))
    again = open_gateway.cli("keys", "new", "eight-a", "--as", "user")
    assert (again.returncode, "there is a key eight-a already" in again.stderr) == (1, True)


@pytest.mark.row("T1")
def test_a_port_for_everybody_without_protection_does_not_start(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["GATEWAY_WEB_LISTEN"] = "0.0.0.0:0"
        ended = gateway.cli("run")
        assert (ended.returncode, "can be reached from elsewhere" in ended.stderr) == (78, True)


def test_a_port_that_is_taken_stops_nothing_and_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["GATEWAY_WEB_LISTEN"] = f"127.0.0.1:{taken.getsockname()[1]}"
        gateway.start()
        assert gateway.say("hello")["status"] == "ok"
        status = gateway.call("status")
        assert status["web"]["url"] == ""
        (line,) = [one for one in status["attention"] if one.startswith("web: ")]
        assert "is taken: Address already in use" in line
        assert "Address already in use; set web.listen to another port" in gateway.cli("status").stdout
        doctor = gateway.cli("doctor")
        assert (doctor.returncode, "is taken" in doctor.stdout) == (1, True)
        shown = [gateway.cli(*words).stdout for words in (("status",), ("doctor",), ("logs",))]
        assert [("set web.listen" in text, r"\n" in text) for text in shown] == [(True, False)] * 3


def test_no_port_where_none_is_wanted(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("web: {enabled: false}\n")
        gateway.start()
        assert gateway.call("status")["web"] == {"url": "", "trouble": ""}
        assert "web" not in {part["name"] for part in gateway.call("status")["parts"]}
