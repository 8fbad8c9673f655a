"""One attempt at a request against a real server on the loopback: what comes out, what it costs, how it fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from codex_py.errors import ModelError, UserError
from codex_py.model.client import Completed, ModelClient, Prompt, ResponseEvent, StreamTextDelta, TurnState
from codex_py.model.credentials import Credentials
from codex_py.model.provider_client import ProviderClient
from codex_py.model.providers import Provider
from codex_py.model.wires.responses import ResponsesWire
from codex_py.protocol.items import message
from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    completed,
    delta,
    end,
    failed,
    hang,
    headers,
    raw,
    say,
)

KEY = "sk-secret-0123456789"
PROMPT = Prompt(
    model="gpt-5.5",
    instructions="be kind",
    input=[message("user", "hi").encoded],
    tools=b"[]",
    thread_id="thread-1",
    turn_id="turn-1",
)


@asynccontextmanager
async def client_for(base_url: str, **provider: Any) -> AsyncGenerator[ModelClient]:
    settings: dict[str, Any] = {"idle_timeout": 20.0, **provider}
    client = ProviderClient(
        Provider("fake", "Fake", base_url, **settings), Credentials(KEY), originator="codex_exec", version="9.9"
    )
    try:
        yield client
    finally:
        await client.aclose()


async def collect(client: ModelClient, prompt: Prompt = PROMPT, state: TurnState | None = None) -> list[ResponseEvent]:
    async with aclosing(client.stream(prompt, turn_state=state or TurnState())) as stream:
        return [event async for event in stream]


async def ask(model: FakeResponses, **provider: Any) -> list[ResponseEvent]:
    async with client_for(model.base_url, **provider) as client:
        return await collect(client)


async def fails(base_url: str, **provider: Any) -> ModelError:
    async with client_for(base_url, **provider) as client:
        with pytest.raises(ModelError) as caught:
            await collect(client)
    return caught.value


def facts(error: ModelError) -> tuple[str, bool, bool, bool]:
    return str(error), error.retryable, error.streaming, error.unreachable


async def test_the_request_on_the_wire() -> None:
    with FakeResponses([]) as model:
        provider = {"query_params": {"api-version": "v1"}}
        async with client_for(model.base_url, **provider) as client:
            await collect(client, PROMPT.replace(window=2))
    request = model.requests[0]
    assert request.path == "/v1/responses?api-version=v1"
    assert request.raw == ResponsesWire(Provider("fake", "Fake", "")).encode(PROMPT.replace(window=2))
    agent = request.headers.pop("user-agent")
    assert agent.startswith("codex_exec/9.9 (")
    assert request.headers == {
        "host": f"127.0.0.1:{model.port}",
        "content-length": str(len(request.raw)),
        "connection": "keep-alive",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "authorization": f"Bearer {KEY}",
        "originator": "codex_exec",
        "session-id": "thread-1",
        "thread-id": "thread-1",
        "x-client-request-id": "thread-1",
        "x-codex-window-id": "thread-1:2",
        "x-codex-turn-metadata": (
            '{"session_id":"thread-1","thread_id":"thread-1","agent_name":"/root","turn_id":"turn-1",'
            '"window_id":"thread-1:2","window_number":2,"request_kind":"turn","root_turn_id":"turn-1",'
            '"thread_source":"user","model":"gpt-5.5"}'
        ),
    }


async def test_without_a_key_there_is_no_authorization_and_own_headers_win() -> None:
    credentials = Credentials(headers={"x-team": "core", "originator": "mine"})
    with FakeResponses([]) as model:
        provider = Provider("openai", "OpenAI", model.base_url)
        client = ProviderClient(provider, credentials, originator="codex\r\n_exec\u202e", version="9.9")
        await collect(client)
        await client.aclose()
        await client.aclose()
    sent = model.requests[0].headers
    assert "authorization" not in sent
    assert (sent["x-team"], sent["originator"], sent["version"]) == ("core", "mine", "9.9")
    assert sent["user-agent"].startswith("codex_exec/9.9 ")


async def test_a_login_may_bring_its_own_address() -> None:
    with FakeResponses([]) as model:
        credentials = Credentials("access-token", base_url=model.base_url)
        provider = Provider("openai", "OpenAI", "http://127.0.0.1:9")
        client = ProviderClient(provider, credentials, originator="codex_exec", version="9.9")
        await collect(client)
        await client.aclose()
    assert len(model.requests) == 1


async def test_the_turn_state_goes_back_within_its_turn_only() -> None:
    with FakeResponses(
        [headers({"x-codex-turn-state": "abc"})], [], [headers({"x-codex-turn-state": "\xff"})], []
    ) as model:
        async with client_for(model.base_url) as client:
            state = TurnState()
            for turn_state in (state, state, state, TurnState()):
                await collect(client, state=turn_state)
    assert [request.headers.get("x-codex-turn-state") for request in model.requests] == [None, "abc", "abc", None]


async def test_requests_share_one_connection() -> None:
    with FakeResponses([delta("a")], [api_error(400, "no")], [say("b")], [say("c")], excuse={"replay"}) as model:
        async with client_for(model.base_url) as client:
            await collect(client)
            with pytest.raises(ModelError):
                await collect(client)
            await collect(client)
            await collect(client)
    assert model.connections == 1


async def test_nothing_after_the_completed_event_is_waited_for() -> None:
    with FakeResponses([completed(), delta("late"), hang(threading.Event())], [say("b")], excuse={"replay"}) as model:
        async with client_for(model.base_url) as client:
            first = await asyncio.wait_for(collect(client), 60)
            await collect(client)
    assert [type(event) for event in first] == [Completed]
    assert model.connections == 2


@pytest.mark.parametrize("stream", [[delta("a"), end()], [end()]])
async def test_a_stream_that_ends_early_is_worth_another_try(stream: list[Any]) -> None:
    with FakeResponses(stream) as model:
        error = await fails(model.base_url)
    assert facts(error) == ("the stream ended before the answer was whole", True, True, False)


@pytest.mark.parametrize("drip", [b": keep-alive\n\n", b"d", b"\n"])
async def test_comments_and_single_bytes_are_silence(drip: bytes) -> None:
    # Taken for events they would keep the stream alive, and it would end well.
    steps = [step for _ in range(1500) for step in (raw(drip), hang(0.02))]
    with FakeResponses([delta("a"), *steps]) as model:
        error = await fails(model.base_url, idle_timeout=1.0)
    assert facts(error) == ("no event from the server for 1 s", True, True, False)


async def test_slow_events_are_no_silence() -> None:
    steps = [step for _ in range(15) for step in (raw(b'data: {"type":"ping"}\n\n'), hang(0.1))]
    with FakeResponses([*steps, delta("a")]) as model:
        assert [type(event) for event in await ask(model, idle_timeout=1.0)] == [StreamTextDelta, Completed]


async def test_the_time_the_caller_takes_is_not_the_servers() -> None:
    gate = threading.Event()
    with FakeResponses([delta("a"), hang(gate), delta("b")]) as model:
        async with client_for(model.base_url, idle_timeout=1.0) as client:
            texts: list[str] = []
            async with aclosing(client.stream(PROMPT, turn_state=TurnState())) as stream:
                async for event in stream:
                    if isinstance(event, StreamTextDelta):
                        texts.append(event.text)
                        # Longer than the deadline, on the loop's own clock.
                        await asyncio.to_thread(gate.wait, 1.5)
                        gate.set()
    assert texts == ["a", "b"]


@pytest.mark.parametrize(("local", "question"), [(True, "Fake"), (False, "the server")])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_unreachable_server_is_named(host: str, local: bool, question: str) -> None:
    async with raw_server(answering(b"")) as port:
        pass
    error = await fails(f"http://{host}:{port}/v1", local=local)
    assert facts(error) == (
        f"cannot connect to the provider `Fake` at `http://{host}:{port}/v1/responses`: connection refused; "
        f"is {question} running?",
        True,
        False,
        True,
    )


async def test_a_failure_in_the_stream_shows_no_key() -> None:
    with FakeResponses([failed("invalid_prompt", f"saw {KEY}")]) as model:
        error = await fails(model.base_url)
    assert facts(error) == ("saw [redacted] (`invalid_prompt`)", False, True, False)


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(serve: Serve) -> AsyncGenerator[int]:
    """A server that does exactly what `serve` does with each connection."""
    done: list[asyncio.Task[None]] = []

    async def run(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        done.append(task)
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(run, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*done, return_exceptions=True)


def answering(content: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(content)
        await writer.drain()

    return serve


async def test_cancelling_closes_the_connection_at_once() -> None:
    closed = asyncio.Event()
    stream = b'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {"type":"response.created"}\n\n'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answering(stream)(reader, writer)
        assert await reader.read() == b""
        closed.set()

    begun = asyncio.Event()

    async def consume(client: ModelClient) -> None:
        async with aclosing(client.stream(PROMPT, turn_state=TurnState())) as events:
            async for _ in events:
                begun.set()

    async with raw_server(serve) as port, client_for(f"http://127.0.0.1:{port}") as client:
        task = asyncio.create_task(consume(client))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(closed.wait(), 60)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "it does not speak HTTP"),
        (b"", "the server hung up"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000, "receive buffer too long"),
    ],
)
async def test_what_does_not_speak_http_is_counted(answer: bytes, message: str) -> None:
    async with raw_server(answering(answer)) as port:
        error = await fails(f"http://127.0.0.1:{port}")
    assert facts(error) == (f"no answer from `127.0.0.1:{port}`: {message}", True, False, False)


async def test_a_body_that_is_not_compressed_as_it_says_is_a_broken_stream() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: 8\r\n\r\n"
    async with raw_server(answering(head + b"data: {}")) as port:
        error = await fails(f"http://127.0.0.1:{port}")
    assert facts(error)[1:] == (True, True, False)


async def test_https_to_a_server_of_plain_http_says_so() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with raw_server(serve) as port:
        error = await fails(f"https://127.0.0.1:{port}")
    assert facts(error) == (
        f"`127.0.0.1:{port}` does not speak https; is its address `http://`?",
        False,
        False,
        False,
    )


async def test_a_certificate_file_that_cannot_be_read_is_named() -> None:
    provider = Provider("x", "X", "https://models.example", ca_file="/no/such/file.pem")
    with pytest.raises(UserError) as caught:
        ProviderClient(provider, Credentials(), originator="codex_exec", version="9.9")
    assert str(caught.value) == "cannot read the certificate file `/no/such/file.pem`: no such file or directory"
