"""`[otel]`: the traces and metrics of a run, as a collector on the loopback gets them."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, api_error, call, completed, say, tokens
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import odd_words, server
from tests.support.process import run

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Collector:
    """Takes what is exported, and decodes it."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, str, bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None: ...

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.bodies.append((self.path, self.headers.get("x-key", ""), body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}"

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        found: list[Any] = []
        for path, _, body in self.bodies:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    found += [span for scope in resource.scope_spans for span in scope.spans]
        return found

    def metrics(self) -> set[str]:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        requests = [ExportMetricsServiceRequest.FromString(body) for path, _, body in self.bodies if "metrics" in path]
        scopes = [scope for request in requests for one in request.resource_metrics for scope in one.scope_metrics]
        return {metric.name for scope in scopes for metric in scope.metrics}


def use(place: Place, model: FakeResponses, url: str, more: str = "") -> None:
    place.use_model(
        model.base_url, f'{FULL_ACCESS}otel = {{ endpoint = "{url}", headers = {{ x-key = "k" }}{more} }}\n'
    )


def test_a_run_is_a_trace_below_the_callers_and_commands_get_it(place: Place) -> None:
    collector = Collector()
    shell = [call("c1", "exec_command", {"cmd": "echo $TRACEPARENT > parent; echo secret-word"})]
    with FakeResponses([*shell, completed(tokens(100, 5))], [say("done"), completed(tokens(200, 5))]) as model:
        use(place, model, collector.url)
        ended = run(place.with_env(TRACEPARENT=PARENT), "exec", "do the secret-word")
    assert (ended.status, ended.out) == (0, "done\n")
    spans = collector.spans()
    ids = {span.span_id: span for span in spans}
    above = {(span.name, getattr(ids.get(span.parent_span_id), "name", "")) for span in spans}
    assert above == {("session", ""), ("turn", "session"), ("request", "turn"), ("tool call", "turn")}
    assert sum(span.name == "request" for span in spans) == 2
    assert {span.trace_id.hex() for span in spans} == {PARENT.split("-")[1]}
    [session] = [span for span in spans if span.name == "session"]
    assert session.parent_span_id.hex() == PARENT.split("-")[2]
    assert (place.repo / "parent").read_text() == f"00-{PARENT.split('-')[1]}-{session.span_id.hex()}-01\n"
    assert not any(b"secret-word" in body for _, _, body in collector.bodies)
    assert {key for _, key, _ in collector.bodies} == {"k"}
    assert collector.metrics() >= {"codex_py.tokens", "codex_py.cost", "codex_py.duration"}


def test_hooks_have_spans(place: Place) -> None:
    collector = Collector()
    use_hooks(place, PreToolUse=[entry("true"), entry("exit 2")], SessionEnd=[entry("true")])
    with FakeResponses([call("c1", "exec_command", {"cmd": "true"})], [say("done")]) as model:
        use(place, model, collector.url)
        assert run(place, "exec", "go").status == 0
    spans = {span.span_id: span for span in collector.spans()}
    hooks = [(values_of(span), spans[span.parent_span_id].name) for span in spans.values() if span.name == "hook"]
    assert hooks == [
        ({"event": "PreToolUse", "count": 2, "refused": True}, "turn"),
        ({"event": "SessionEnd", "count": 1, "refused": False}, "session"),
    ]


def values_of(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


@pytest.mark.parametrize("has_collector", [True, False])
def test_mcp_servers_get_the_trace(place: Place, tmp_path: Path, has_collector: bool) -> None:
    collector, file = Collector(), tmp_path / "trace"
    command = ["-c", f'echo "$TRACEPARENT" > {file}; exec "$0" "$@"', *odd_words("good")]
    calls = [call("c1", "mcp__local__reads", {}), call("c2", "mcp__remote__whoami", {})]
    with McpOverHttp() as remote, FakeResponses(calls, [say("done")]) as model:
        servers = server("local", command="/bin/sh", args=command) + server("remote", url=remote.url)
        use(place, model, collector.url)
        config = (place.codex_home / "config.toml").read_text()
        place.configure((config if has_collector else config.replace("otel =", "# otel =")) + servers)
        ended = run(place.with_env(TRACEPARENT=PARENT), "exec", "go")
    assert ended.status == 0, ended.err
    sessions = [span.span_id.hex() for span in collector.spans() if span.name == "session"]
    trace = f"00-{PARENT.split('-')[1]}-{sessions[0]}-01" if has_collector else PARENT
    assert file.read_text() == f"{trace}\n"
    assert {headers.get("traceparent") for _, headers, _ in remote.requests} == {trace}


def test_an_environment_without_a_valid_trace_sends_none(place: Place) -> None:
    with McpOverHttp() as remote, FakeResponses([call("c", "mcp__s__whoami", {})], [say("done")]) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        place.configure((place.codex_home / "config.toml").read_text() + server("s", url=remote.url))
        assert run(place.with_env(TRACEPARENT="my secret"), "exec", "go").status == 0
    assert remote.requests
    assert not any("traceparent" in headers for _, headers, _ in remote.requests)


def test_content_is_sent_when_it_is_asked_for(place: Place) -> None:
    collector = Collector()
    with FakeResponses([say("done")]) as model:
        use(place, model, collector.url, ", log_user_prompt = true")
        assert run(place, "exec", "do the secret-word").status == 0
    assert any(b"secret-word" in body for _, _, body in collector.bodies)


def test_a_failed_turn_is_a_failed_span(place: Place) -> None:
    collector = Collector()
    with FakeResponses(api_error(401, "no")) as model:
        use(place, model, collector.url)
        assert run(place, "exec", "go").status == 77
    [turn] = [span for span in collector.spans() if span.name == "turn"]
    assert (turn.status.code, turn.status.message) == (2, "auth")


def test_a_collector_that_is_away_changes_nothing(place: Place) -> None:
    with FakeResponses([say("done")]) as model:
        use(place, model, "http://127.0.0.1:9")
        ended = run(place, "exec", "go")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "opentelemetry" not in ended.err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('endpoint = "127.0.0.1:4318"', "`otel.endpoint` is not the address of a collector: `127.0.0.1:4318`"),
        ("endpoint = 4318", "`otel.endpoint` is not the address of a collector: `4318`"),
        ('endpoint = "ftp://x"', "`otel.endpoint` is not the address of a collector: `ftp://x`"),
        ('endpoint = "http://127.0.0.1:9"\nheaders = "a=b"', "`otel.headers` is not a table"),
    ],
)
def test_a_collector_that_cannot_be_is_an_error(place: Place, settings: str, message: str) -> None:
    place.use_model("http://127.0.0.1:9", f"[otel]\n{settings}\n")
    ended = run(place, "exec", "go")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith(f"error: {message}; such as ")
