"""The collector, by OpenTelemetry's own library. It is an extra, so this module is imported by who has a collector."""

import logging
from collections.abc import Sequence
from hashlib import sha256

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway import __version__
from gateway.traces.turn_spans import Span

NAME = "hermes-gateway"
REQUEST_SECONDS = 5
CALLS = ("chat", "send")  # what is done elsewhere

log = logging.getLogger(__name__)


class Collector:
    """Takes spans at once, and sends them from a thread of its own; when too many wait, the oldest go."""

    def __init__(self, endpoint: str) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it says each try; we say the first
        self._resource = Resource.create({"service.name": NAME, "service.version": __version__})
        self._scope = InstrumentationScope(NAME, __version__)
        self._processor = BatchSpanProcessor(_ToldExporter(endpoint))

    def put(self, span: Span) -> None:
        attributes = {**span.attributes, **({"error.type": span.error} if span.error else {})}
        self._processor.on_end(
            ReadableSpan(
                span.name,
                context=_context_of(span.turn, span.of),
                parent=_context_of(span.turn, span.parent) if span.parent else None,
                resource=self._resource,
                attributes=attributes,
                kind=SpanKind.CLIENT if span.name.startswith(CALLS) else SpanKind.INTERNAL,
                status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
                start_time=int(span.begun * 1e9),
                end_time=int(span.ended * 1e9),
                instrumentation_scope=self._scope,
            )
        )

    def close(self) -> None:
        """Send the waiting spans, however long the other side takes."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]


def _context_of(turn: str, of: str) -> SpanContext:
    """Return the ids that a span of this turn always has, in every process."""
    trace, span = (int.from_bytes(sha256(one.encode()).digest()[:size], "big") for one, size in ((turn, 16), (of, 8)))
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class _ToldExporter(SpanExporter):
    """Logs a failure to export once, and the recovery once."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._inner = OTLPSpanExporter(endpoint=endpoint, timeout=REQUEST_SECONDS)
        self._is_taken = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if (is_taken := result is SpanExportResult.SUCCESS) != self._is_taken:
            self._is_taken = is_taken
            if is_taken:
                log.info("traces are taken again by %s", self._endpoint)
            else:
                log.warning("traces are not taken by %s; they are lost until it answers", self._endpoint)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]
