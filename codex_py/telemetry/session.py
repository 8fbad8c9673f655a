"""Traces and metrics of a session for an OpenTelemetry collector (`[otel]`): OTLP over HTTP, with the official SDK.

Texts of users, models and tools are left out unless `log_user_prompt` is set. A collector that does not answer never
holds up a session, except for a moment at its end.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, cast

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from codex_py import __version__
from codex_py.core.session_request import SessionRequest
from codex_py.errors import ConfigError
from codex_py.protocol import events
from codex_py.protocol.status import HooksRan

_EXPORT_SECONDS: Final = 2.0
_CLOSE_SECONDS: Final = 2.5
_TRACEPARENT: Final = "TRACEPARENT"


class Telemetry:
    """A listener that makes spans and counts. `request` hands the trace on to tools and servers, as `TRACEPARENT`."""

    def __init__(self, request: SessionRequest) -> None:
        """Raises `ConfigError` for settings that name no collector."""
        settings = request.loaded.config.otel
        # The exporter complains on stderr about a collector that is away.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        name = str(settings.get("service_name") or "codex-py")
        endpoint, headers = _collector(settings)
        resource = Resource.create({"service.name": name, "service.version": __version__})
        self._traces = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", headers=headers, timeout=_EXPORT_SECONDS)
        self._traces.add_span_processor(BatchSpanProcessor(exporter))
        counts = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", headers=headers, timeout=_EXPORT_SECONDS)
        self._metrics = MeterProvider(resource=resource, metric_readers=[PeriodicExportingMetricReader(counts)])
        meter = self._metrics.get_meter("codex_py", __version__)
        self._tokens = meter.create_counter("codex_py.tokens", unit="{token}")
        self._cost = meter.create_counter("codex_py.cost", unit="USD")
        self._retries = meter.create_counter("codex_py.retries")
        self._approvals = meter.create_counter("codex_py.approvals")
        self._durations = meter.create_histogram("codex_py.duration", unit="s")
        self._tracer = self._traces.get_tracer("codex_py", __version__)
        self._has_content = settings.get("log_user_prompt") is True
        before = TraceContextTextMapPropagator().extract({"traceparent": request.env.get(_TRACEPARENT, "")})
        self._session = self._tracer.start_span("session", context=before)
        self._open: dict[str, tuple[Span, float]] = {}
        self._turn: Span | None = None
        self._spent, self._attempts = 0.0, 0
        # When the model was asked last, and whether it has answered and its calls still run.
        self._request_began, self._has_answer = time.time_ns(), False
        carrier: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(carrier, context=trace.set_span_in_context(self._session))
        self.request: Final = request.replace(env={**request.env, _TRACEPARENT: carrier["traceparent"]})

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.SessionStarted():
                self._session.set_attributes(
                    {"session.id": event.thread_id, "model": event.model, "provider": event.provider}
                )
            case events.TurnStarted(turn_id, messages):
                text = {"prompt": "\n".join(messages)} if self._has_content else {}
                self._begin("turn", "turn", {"turn.id": turn_id, **text}, self._session)
                self._turn = self._open["turn"][0]
                self._request_began, self._has_answer, self._attempts = time.time_ns(), False, 0
            case events.UsageReported(last, _, _, _, costs):
                sent, received, cached = last.input_tokens, last.output_tokens, last.cached_input_tokens
                self._note_usage(sent, received, cached, costs.session.usd)
                usage = {"tokens.input": sent, "tokens.output": received, "tokens.cached_input": cached}
                self._note_request(usage)
                # The next one begins when the calls of this answer have ended.
                self._request_began, self._has_answer = time.time_ns(), bool(self._open.keys() - {"turn"})
            case events.Retrying():
                self._retries.add(1)
                self._attempts += 1
            case events.TurnCompleted():
                self._end_turn()
            case events.TurnFailed():
                self._end_turn(event.failure or "internal")
            case events.TurnInterrupted():
                self._end_turn("interrupted")
            case _:
                self._note_call(event)

    def close(self) -> None:
        """Send the rest, for a limited time."""
        self._end_turn("interrupted")
        self._session.end()
        sender = threading.Thread(target=self._shut_down, daemon=True)
        sender.start()
        sender.join(_CLOSE_SECONDS)

    def _shut_down(self) -> None:
        self._traces.shutdown()
        self._metrics.shutdown(timeout_millis=_EXPORT_SECONDS * 1000)

    def _note_call(self, event: events.Event) -> None:
        match event:
            case events.CommandStarted(call_id, command):
                self._begin(call_id, "tool call", {"tool": "command", **self._content("command", command)})
            case events.CommandFinished(call_id, status=status) if status != "in_progress":
                self._end_call(call_id, "" if status == "completed" else status)
            case events.PatchStarted(call_id, changes):
                self._begin(call_id, "tool call", {"tool": "apply_patch", "files": len(changes)})
            case events.PatchFinished(call_id, _, ok):
                self._end_call(call_id, "" if ok else "failed")
            case events.McpCallStarted(call_id, server, tool):
                self._begin(call_id, "mcp call", {"server": server, "tool": tool})
            case events.McpCallFinished(call_id, status=status):
                self._end_call(call_id, "" if status == "completed" else status)
            case events.AgentCallStarted(call_id, tool):
                self._begin(call_id, "subagent", {"tool": tool})
            case events.AgentCallFinished(call_id, error=error):
                self._end_call(call_id, "failed" if error else "")
            case HooksRan():
                self._note_hooks(event)
            case events.ToolCallFinished(call_id, tool, ok=ok):
                self._begin(call_id, "tool call", {"tool": tool})
                self._end_call(call_id, "" if ok else "failed")
            case events.QuestionRaised(question):
                self._approvals.add(1)
                self._begin(question.id, "approval", {"question": type(question).__name__})
            case events.QuestionClosed(question_id):
                self._end(question_id)
            case _:
                pass

    def _note_hooks(self, ran: HooksRan) -> None:
        context = trace.set_span_in_context(self._turn or self._session)
        began = time.time_ns() - int(ran.seconds * 1e9)
        attributes = {"event": ran.name, "count": ran.count, "refused": ran.refused}
        self._tracer.start_span("hook", context, SpanKind.INTERNAL, attributes, start_time=began).end()
        self._durations.record(ran.seconds, {"span": "hook"})

    def _content(self, name: str, text: str) -> dict[str, str]:
        return {name: text} if self._has_content else {}

    def _begin(self, key: str, name: str, attributes: Mapping[str, Any], parent: Span | None = None) -> None:
        context = trace.set_span_in_context(parent or self._turn or self._session)
        kind = SpanKind.CLIENT if name == "mcp call" else SpanKind.INTERNAL
        span = self._tracer.start_span(name, context=context, kind=kind, attributes=attributes)
        self._open[key] = (span, time.monotonic())

    def _end(self, key: str, failure: str = "") -> None:
        span, began = self._open.pop(key, (None, 0.0))
        if span is None:
            return
        if failure:
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end()
        self._durations.record(time.monotonic() - began, {"span": "turn" if key == "turn" else "call"})

    def _end_call(self, call_id: str, failure: str) -> None:
        self._end(call_id, failure)
        if self._has_answer and not self._open.keys() - {"turn"}:
            self._request_began, self._has_answer = time.time_ns(), False

    def _note_request(self, attributes: Mapping[str, int], failure: str = "") -> None:
        """A request that ends now. Its beginning has no event: it follows the message, or the last call."""
        context = trace.set_span_in_context(self._turn or self._session)
        counts = {**attributes, "retries": self._attempts}
        span = self._tracer.start_span("request", context, SpanKind.CLIENT, counts, start_time=self._request_began)
        if failure:
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end()
        self._durations.record((time.time_ns() - self._request_began) / 1e9, {"span": "request"})
        self._attempts = 0

    def _end_turn(self, failure: str = "") -> None:
        if failure and self._turn is not None and not self._has_answer:
            self._note_request({}, failure)
        for key in [key for key in self._open if key != "turn"]:
            self._end(key, failure)
        self._end("turn", failure)
        self._turn = None

    def _note_usage(self, sent: int, received: int, cached: int, usd: float) -> None:
        for kind, count in (("input", sent), ("output", received), ("cached_input", cached)):
            self._tokens.add(count, {"type": kind})
        self._cost.add(max(0.0, usd - self._spent))
        self._spent = max(usd, self._spent)


def _collector(settings: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The address of the collector, and the headers for it. Raises `ConfigError`."""
    endpoint = str(settings["endpoint"])
    if not re.fullmatch(r"(?i)https?://[^\s/]\S*", endpoint):
        hint = 'such as `endpoint = "http://127.0.0.1:4318"`'
        raise ConfigError(f"`otel.endpoint` is not the address of a collector: `{endpoint}`", hint=hint)
    headers: object = settings.get("headers") or {}
    if not isinstance(headers, dict):
        hint = 'such as `headers = { authorization = "Bearer …" }`'
        raise ConfigError("`otel.headers` is not a table", hint=hint)
    return endpoint.rstrip("/"), {str(key): str(value) for key, value in cast("dict[object, object]", headers).items()}
