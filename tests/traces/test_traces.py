"""Traces, from outside: a daemon that answers, and a collector that reads them with OpenTelemetry's own messages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gateway.agent.libraries import describe_install
from gateway.testing import GatewayProcess
from tests.http_server import QuietHandler, serving

SECRET_WORD, ARGUMENT, RESULT = "wombat", "marsupial", "burrow"
TURNS = (
    {
        "user": SECRET_WORD,
        "answers": [
            {"tool_calls": [{"name": "list_files", "args": {"path": "."}}]},
            {"tool_calls": [{"name": "read_file", "args": {"path": f"{ARGUMENT}.txt"}}]},
            {"text": f"It is {RESULT}."},
        ],
    },
)
GUARD = {
    "HOOK.yaml": "intercepts: [tool:before]\nevents: [agent:end]\n",
    "handler.py": "def handle(name, context):\n    return None\n",
}
FAILS = {
    "HOOK.yaml": "events: [agent:start]\n",
    "handler.py": "def handle(name, context):\n    raise ValueError(name)\n",
}


class Collected:
    """What came in, span by span."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.raw = b""

    def take(self, body: bytes) -> None:
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append({one.key: value_of(one.value) for one in resource.resource.attributes})
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


def value_of(given: AnyValue) -> Any:
    kind = given.WhichOneof("value")
    if kind == "array_value":
        return [value_of(one) for one in given.array_value.values]
    return getattr(given, kind) if kind else None


def attributes_of(span: Span) -> dict[str, Any]:
    return {one.key: value_of(one.value) for one in span.attributes}


@pytest.fixture
def collected() -> Collected:
    return Collected()


@pytest.fixture
def collector(collected: Collected) -> Iterator[str]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802
            collected.take(self.rfile.read(int(self.headers["content-length"])))
            self.answer(b"", "application/x-protobuf")

    with serving(Handler) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["OTEL_BSP_SCHEDULE_DELAY"] = "100"  # milliseconds between batches
        yield gateway


def test_a_turn_is_a_trace_of_its_stages_tools_and_hooks(
    gateway: GatewayProcess, collector: str, collected: Collected
) -> None:
    gateway.script(*TURNS, settings=f"traces: {{endpoint: '{collector}'}}\n")
    gateway.add_hook("guard", GUARD)
    gateway.add_hook("fails", FAILS)
    gateway.start()
    assert gateway.say(SECRET_WORD)["reply"] == f"It is {RESULT}."
    gateway.until(lambda: bool(collected.named("invoke_agent") and collected.named("send terminal")), 60)
    gateway.until(lambda: len(collected.named("hook guard")) == 3 and bool(collected.named("hook fails")), 60)

    (turn,) = collected.named("invoke_agent")
    parts = [span for span in collected.spans if span.trace_id == turn.trace_id and span is not turn]
    alone = [span for span in collected.spans if span.trace_id != turn.trace_id]
    assert {attributes_of(span)["event"] for span in alone} <= {"gateway:startup"}, "what is of no turn"
    assert {span.parent_span_id for span in parts} == {turn.span_id}
    assert not turn.parent_span_id
    assert len({span.span_id for span in collected.spans}) == len(collected.spans)
    assert sorted(span.name for span in parts) == [
        *["chat script"] * 3,
        *["execute_tool list_files", "execute_tool read_file"],
        *["hook fails", *["hook guard"] * 3],
        *["send terminal", "wait"],
    ]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in collected.spans)
    about = attributes_of(turn)
    assert (about["gen_ai.operation.name"], about["status"], about["platform"]) == ("invoke_agent", "ok", "terminal")
    assert about["gen_ai.usage.input_tokens"] == sum(
        attributes_of(span)["gen_ai.usage.input_tokens"] for span in collected.named("chat script")
    )
    assert collected.resources[0]["service.name"] == "hermes-gateway"

    (failed,) = collected.named("hook fails")
    assert (failed.status.code, attributes_of(failed)["event"]) == (Status.STATUS_CODE_ERROR, "agent:start")
    (missing,) = collected.named("execute_tool read_file")
    assert missing.status.code == Status.STATUS_CODE_ERROR
    for word in (SECRET_WORD, ARGUMENT, RESULT):
        assert word.encode() not in collected.raw, "no word of anybody goes along"


def test_the_ids_are_those_of_the_log(gateway: GatewayProcess, collector: str, collected: Collected) -> None:
    gateway.script({"user": "", "text": "Well."}, settings=f"traces: {{endpoint: '{collector}'}}\n")
    gateway.add_hook("fails", {**FAILS, "HOOK.yaml": "intercepts: [agent:start]\n"})
    gateway.start()
    gateway.say("hi")
    gateway.until(lambda: bool(collected.named("invoke_agent")), 60)
    about = attributes_of(collected.named("invoke_agent")[0])
    lines = [json.loads(line) for line in (gateway.home.logs / "gateway.log").read_text().splitlines()]
    (line,) = [one for one in lines if one.get("hook") == "fails" and "turn" in one]
    assert (line["turn"], line["session"]) == (about["turn"], about["session"])


def test_a_collector_that_is_away_or_hangs_delays_nobody_and_is_said_once(gateway: GatewayProcess) -> None:
    class Hangs(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802
            gateway.until(lambda: gateway.process is None or gateway.process.poll() is not None, 120)

    with serving(Hangs) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1/traces"
        gateway.script(*[{"user": "", "text": "Well."}] * 6, settings=f"traces: {{endpoint: '{url}'}}\n")
        gateway.start()
        log = gateway.home.logs / "gateway.log"
        said = f"traces are not taken by {url}"
        for number in range(3):
            assert gateway.say(f"hi {number}")["reply"] == "Well."
        gateway.until(lambda: said in log.read_text(), 60)
        for number in range(3):
            assert gateway.say(f"hi {number}")["reply"] == "Well."
        assert gateway.stop()[0] == 0
        assert log.read_text().count(said) == 1


def test_without_the_library_the_rest_runs_and_the_remedy_is_said() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.exporter.otlp.proto.http'] = None\n"
        "from gateway.traces.trace_sender import open_collector\n"
        "open_collector('http://127.0.0.1:9')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"GatewayError: traces.endpoint is set: {describe_install('otel')}" in done.stderr


def test_a_gateway_without_a_collector_loads_no_library_of_traces(gateway: GatewayProcess) -> None:
    gateway.configure("")
    gateway.start()
    assert gateway.process
    maps = Path(f"/proc/{gateway.process.pid}/maps").read_text()
    assert "google/_upb" not in maps  # what reads and writes its messages
