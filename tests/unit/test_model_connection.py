"""Our own HTTP connection against real servers on the loopback: framing, keeping alive, failing, letting go."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import socket
import ssl
import struct
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from codex_py.model.exchange import (
    Answer,
    ConnectError,
    ConnectTimeout,
    DecodingError,
    HttpRequest,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    UnsendableRequest,
    WriteTimeout,
)
from codex_py.model.failures import no_answer
from codex_py.model.http import HttpClient, open_client

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Runs `serve` for every connection and notes what came of it."""

    def __init__(self, serve: Serve) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()
        self._serve = serve
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.append(task)
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()
            self.gone.set()

    async def request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        self.requests.append(await reader.readexactly(length))
        return head

    async def ended(self) -> None:
        await asyncio.gather(*self._tasks)


@asynccontextmanager
async def serving(
    serve: Serve, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    server = Server(serve)
    listener = await asyncio.start_server(server.run, host, 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await asyncio.wait_for(server.ended(), 60)
        # What was leaked is complained about now, and not in somebody else's test.
        gc.collect()


@asynccontextmanager
async def answering(
    *answers: bytes, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncGenerator[Server]:
    """Each connection is given these answers in order, and then closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await server.request(reader)
            writer.write(answer)
            await writer.drain()
        # As a server does that has no more to say: the end comes after all that was written.
        writer.close()
        await writer.wait_closed()

    async with serving(serve, host=host, tls=tls) as server:
        yield server


async def pieces(answer: Answer) -> AsyncGenerator[bytes]:
    while chunk := await answer.read():
        yield chunk


@dataclass
class Whole:
    answer: Answer
    content: bytes


class Client:
    """Requests to one server by their paths, read to the end unless they are streamed."""

    def __init__(self, http: HttpClient, base_url: str) -> None:
        self._http = http
        self._base_url = base_url

    async def send(self, path: str, content: bytes = b"", headers: Sequence[tuple[str, str]] = ()) -> Answer:
        return await self._http.send(HttpRequest("POST", self._base_url + path, headers, content))

    async def post(self, path: str, content: bytes = b"", headers: Sequence[tuple[str, str]] = ()) -> Whole:
        async with aclosing(await self.send(path, content, headers)) as answer:
            return Whole(answer, b"".join([chunk async for chunk in pieces(answer)]))

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[Answer]:
        async with aclosing(await self.send(path)) as answer:
            yield answer

    async def aclose(self) -> None:
        await self._http.aclose()


@asynccontextmanager
async def client_of(
    server: Server, url: str = "http://127.0.0.1:{}", **settings: str | float
) -> AsyncGenerator[Client]:
    address = url.format(server.port)
    ca_file = settings.get("ca_file")
    opened = open_client(
        address,
        ca_file=None if ca_file is None else str(ca_file),
        idle_timeout=float(settings.get("idle_timeout", 10.0)),
    )
    async with aclosing(opened):
        yield Client(opened, address)


def chunked(*pieces: bytes) -> bytes:
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces)


@pytest.mark.parametrize(
    ("answer", "version", "body"),
    [
        (OK, "HTTP/1.1", b"ok"),
        (HEAD + b"content-length: 0\r\n\r\n", "HTTP/1.1", b""),
        (HEAD + b"\r\nto the end", "HTTP/1.1", b"to the end"),
        (HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok", "HTTP/1.1", b"ok"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", "HTTP/1.0", b"old"),
        (chunked(b"a", b"bc" * 40_000, b"d") + b"0\r\n\r\n", "HTTP/1.1", b"a" + b"bc" * 40_000 + b"d"),
        (chunked(b"ok") + b"0\r\nx-trailer: 1\r\n\r\n", "HTTP/1.1", b"ok"),
        (HEAD.replace(b"\r\n", b"\n") + b"content-length: 2\n\nok", "HTTP/1.1", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK, "HTTP/1.1", b"ok"),
    ],
)
async def test_an_answer_in_every_framing(answer: bytes, version: str, body: bytes) -> None:
    async with answering(answer) as server, client_of(server) as client:
        response = await client.post("/a?b=c", content=b"question")
    assert (response.answer.status, f"HTTP/{response.answer.version.decode()}") == (200, version)
    assert response.content == body
    assert server.requests == [b"question"]


async def test_the_request_on_the_wire() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await server.request(reader))
        writer.write(OK)

    async with serving(serve) as server, client_of(server) as client:
        await client.post("/a%20b{}?c=d", content=b"{}", headers=[("Host", "h"), ("X-Two", "1"), ("x-two", "2")])
        await client.post("", content=b"{}")
    fixed = b"connection: keep-alive\r\ncontent-length: 2\r\n"
    own = b"X-Two: 1\r\nx-two: 2\r\n"
    assert heads == [
        b"POST /a%20b%7B%7D?c=d HTTP/1.1\r\nHost: h\r\n" + fixed + own + b"\r\n",
        b"POST / HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n" % server.port + fixed + b"\r\n",
    ]


async def test_the_password_of_an_address_is_sent_as_a_login() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await server.request(reader))
        writer.write(OK)

    async with serving(serve) as server, client_of(server, "http://me:p%40ss@127.0.0.1:{}") as client:
        await client.post("/", headers=[("Authorization", "Bearer x")])
    assert heads[0].endswith(b"authorization: Basic " + base64.b64encode(b"me:p@ss") + b"\r\n\r\n")
    assert b"Bearer" not in heads[0]


async def test_a_cookie_is_sent_back_until_it_is_removed() -> None:
    heads: list[bytes] = []
    cookies = [b"a=1; Path=/; HttpOnly\r\nset-cookie: b=2", b"a=; Max-Age=0", b"b=3; max-age=0", b"c=4"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for cookie in cookies:
            heads.append(await server.request(reader))
            writer.write(OK.replace(b"content", b"set-cookie: " + cookie + b"\r\ncontent"))

    async with serving(serve) as server, client_of(server) as client:
        for _ in cookies:
            await client.post("/")
    sent = [head.partition(b"cookie: ")[2].partition(b"\r\n")[0] for head in heads]
    assert sent == [b"", b"a=1; b=2", b"b=2", b""]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        (b"gzip", gzip.compress(b"ok" * 1000, mtime=0)),
        (b"deflate", zlib.compress(b"ok" * 1000)),
        (b"Deflate", zlib.compress(b"ok" * 1000)[2:-4]),
        (b"identity", b"ok" * 1000),
    ],
)
async def test_a_compressed_answer_is_read(coding: bytes, body: bytes) -> None:
    head, _, parts = chunked(*[bytes([byte]) for byte in body]).partition(b"\r\n\r\n")
    answer = head + b"\r\ncontent-encoding: " + coding + b"\r\n\r\n" + parts + b"0\r\n\r\n"
    async with answering(answer) as server, client_of(server) as client:
        assert (await client.post("/")).content == b"ok" * 1000


async def test_an_answer_that_is_not_compressed_as_it_says() -> None:
    answer = OK.replace(b"content", b"content-encoding: gzip\r\ncontent")
    async with answering(answer) as server, client_of(server) as client:
        with pytest.raises(DecodingError):
            await client.post("/")


async def test_one_connection_serves_many_requests() -> None:
    async with answering(OK, chunked(b"x") + b"0\r\n\r\n", OK) as server, client_of(server) as client:
        bodies = [(await client.post("/", content=b"%d" % number)).content for number in range(3)]
    assert bodies == [b"ok", b"x", b"ok"]
    assert (server.connections, server.requests) == (1, [b"0", b"1", b"2"])


async def test_a_kept_connection_that_the_server_has_closed_is_replaced() -> None:
    async with answering(OK) as server, client_of(server) as client:
        for number in range(3):
            server.gone.clear()
            assert (await client.post("/", content=b"%d" % number)).content == b"ok"
            await server.gone.wait()
    assert (server.connections, server.requests) == (3, [b"0", b"1", b"2"])


async def test_the_end_of_a_kept_connection_is_seen_even_before_the_loop_has_told() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    with listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with aclosing(open_client(url, ca_file=None, idle_timeout=10.0)) as opened:
            client = Client(opened, url)
            for _ in range(2):
                sending = asyncio.create_task(client.post("/"))
                connection, _ = await asyncio.to_thread(listener.accept)
                connection.sendall(OK)
                assert (await sending).content == b"ok"
                # No turn of the loop between this and the next request.
                connection.close()


@pytest.mark.parametrize("with_reset", [False, True])
async def test_a_kept_connection_that_ends_under_a_request_is_replaced_once(with_reset: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in [OK] * (2 if server.connections == 2 else 1):
            await server.request(reader)
            writer.write(answer)
        # Hangs up with a request on its way, as a server does whose patience with an idle connection ends just then.
        await server.request(reader)
        if with_reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    async with serving(serve) as server, client_of(server) as client:
        bodies = [(await client.post("/", content=body)).content for body in (b"first", b"second", b"third")]
    assert bodies == [b"ok"] * 3
    assert server.requests == [b"first", b"second", b"second", b"third"]


async def test_a_new_connection_that_ends_without_an_answer_is_the_requests_failure() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server.connections == 1:
            await server.request(reader)
            writer.write(OK)
        await server.request(reader)

    async with serving(serve) as server, client_of(server) as client:
        await client.post("/", content=b"first")
        with pytest.raises(RemoteProtocolError, match="server disconnected without an answer"):
            await client.post("/", content=b"second")
    assert (server.connections, server.requests) == (2, [b"first", b"second", b"second"])


async def test_a_request_whose_answer_had_begun_is_not_sent_twice() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(OK)
        await server.request(reader)
        writer.write(b"HTTP/1.1 200")

    async with serving(serve) as server, client_of(server) as client:
        await client.post("/", content=b"first")
        with pytest.raises(RemoteProtocolError):
            await client.post("/", content=b"second")
    assert (server.connections, server.requests) == (1, [b"first", b"second"])


async def test_an_answer_nobody_asked_for_is_not_taken_for_the_next() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil")
        assert await reader.read() == b""

    async with serving(serve) as server, client_of(server) as client:
        bodies = [(await client.post("/")).content for _ in range(2)]
    assert (bodies, server.connections) == ([b"ok", b"ok"], 2)


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    async with answering(OK) as server, client_of(server) as client:
        answers = await asyncio.gather(*[client.post("/") for _ in range(3)])
    assert ([one.content for one in answers], server.connections) == ([b"ok"] * 3, 3)


async def test_a_closed_answer_does_not_disturb_the_next_request() -> None:
    async with answering(OK, OK) as server, client_of(server) as client:
        response = await client.send("/")
        assert await response.read() == b"ok"
        await response.aclose()
        following = await client.send("/")
        assert await response.read() == b""
        assert await following.read() == b"ok"
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x16\x03\x01",
        b"HTTP/1.1 99999 No\r\n\r\n",
        HEAD + b"no header\r\n\r\n",
        HEAD + b"content-length: x\r\n\r\n",
        HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
        HEAD + b"transfer-encoding: gzip\r\n\r\n",
        HEAD + b"x: " + b"a" * 500_000,
        HEAD + b"a: b\r\n" * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        HEAD + b"content-len",
        b"",
    ],
)
async def test_what_is_not_an_answer(answer: bytes) -> None:
    async with answering(answer) as server, client_of(server) as client:
        with pytest.raises(RemoteProtocolError):
            await client.post("/")


@pytest.mark.parametrize(
    "answer",
    [
        chunked(b"first") + b"junk\r\n",
        chunked(b"first") + b"5\r\nsec",
        chunked(b"first"),
        HEAD + b"content-length: 9\r\n\r\nfirst",
    ],
)
async def test_what_came_whole_is_handed_on_before_the_break(answer: bytes) -> None:
    read = b""
    async with answering(answer) as server, client_of(server) as client:
        with pytest.raises(RemoteProtocolError):
            async with client.stream("/") as response:
                async for chunk in pieces(response):
                    read += chunk
    assert read.startswith(b"first")


async def test_a_reset_within_the_body() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(chunked(b"first"))
        await begun.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    begun = asyncio.Event()
    read: list[bytes] = []
    async with serving(serve) as server, client_of(server) as client:
        with pytest.raises(ReadError) as caught:
            async with client.stream("/") as response:
                async for chunk in pieces(response):
                    read.append(chunk)
                    begun.set()
    assert read == [b"first"]
    assert isinstance(caught.value.__cause__, ConnectionResetError)


async def test_a_large_answer_to_a_slow_reader_arrives_whole() -> None:
    body = bytes(range(256)) * 20_000
    size = 0
    async with (
        answering(HEAD + b"\r\n" + body) as server,
        client_of(server) as client,
        client.stream("/") as response,
    ):
        async for chunk in pieces(response):
            assert chunk == body[size : size + len(chunk)]
            size += len(chunk)
            await asyncio.sleep(0)
    assert size == len(body)


async def test_a_server_that_is_too_fast_has_to_wait() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(HEAD + b"\r\n" + bytes(50_000_000))
        for _ in range(500):
            await asyncio.sleep(0)
        waiting.set_result(writer.transport.get_write_buffer_size())

    waiting: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with serving(serve) as server, client_of(server) as client, client.stream("/"):
        assert await waiting > 30_000_000


async def test_a_large_request_arrives_whole() -> None:
    body = bytes(range(256)) * 40_000
    async with answering(OK) as server, client_of(server) as client:
        await client.post("/", content=body)
    assert server.requests == [body]


async def test_an_answer_before_the_request_was_read_counts() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")
        await answered.wait()

    answered = asyncio.Event()
    async with serving(serve) as server, client_of(server) as client:
        statuses = [(await client.post("/", content=bytes(20_000_000))).answer.status for _ in range(2)]
        answered.set()
    # With a request still under way a connection cannot be used again.
    assert (statuses, server.connections) == ([413, 413], 2)


async def test_silence_has_a_deadline_in_every_phase() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server.connections == 1:
            await server.request(reader)
            writer.write(HEAD + b"\r\nfirst")
        await done.wait()

    done = asyncio.Event()
    async with serving(serve) as server, client_of(server, idle_timeout=0.5) as client:
        with pytest.raises(ReadTimeout):
            await client.post("/")
        with pytest.raises(ReadTimeout):
            await client.post("/")
        with pytest.raises(WriteTimeout):
            await client.post("/", content=bytes(20_000_000))
        async with client_of(server, "https://127.0.0.1:{}", idle_timeout=0.1) as secure:
            with pytest.raises(ConnectTimeout):
                await secure.post("/")
        done.set()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_says_so(host: str) -> None:
    async with answering() as server:
        pass
    async with client_of(server, f"http://{host}:{{}}") as client:
        with pytest.raises(ConnectError) as caught:
            await client.post("/")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


@pytest.mark.parametrize("url", [f"http://{'a' * 70}.invalid", "http://a..invalid", "http://127.0.0.1:70000"])
async def test_an_address_that_cannot_exist_is_not_connected_to(url: str) -> None:
    async with aclosing(open_client(url, ca_file=None, idle_timeout=5.0)) as client:
        with pytest.raises(ConnectError):
            await client.send(HttpRequest("POST", url))


async def test_only_http_is_spoken() -> None:
    async with aclosing(open_client("http://127.0.0.1:9", ca_file=None, idle_timeout=5.0)) as client:
        with pytest.raises(UnsendableRequest):
            await client.send(HttpRequest("POST", "ftp://127.0.0.1/"))


async def test_a_header_that_cannot_be_sent_is_ours_to_mend() -> None:
    async with answering(OK) as server, client_of(server) as client:
        with pytest.raises(UnsendableRequest):
            await client.post("/", headers=[("x", "a\nb")])
        assert server.connections == 0
        await client.post("/")


async def test_ipv6() -> None:
    async with answering(OK, host="::1") as server, client_of(server, "http://[::1]:{}") as client:
        assert (await client.post("/")).content == b"ok"


async def test_a_name_with_several_addresses() -> None:
    # `localhost` is often ::1 first, where nobody listens here.
    async with answering(OK) as server, client_of(server, "http://localhost:{}") as client:
        assert (await client.post("/")).content == b"ok"


# Letting go


async def test_leaving_an_answer_closes_its_connection_at_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(chunked(b"first"))
        assert await reader.read() == b""

    async with serving(serve) as server, client_of(server) as client:
        async with client.stream("/") as response:
            assert await response.read() == b"first"
        await asyncio.wait_for(server.gone.wait(), 60)


async def test_closing_the_client_closes_what_is_open() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(OK if len(server.requests) == 1 else chunked(b"first"))
        assert await reader.read() == b""

    async with serving(serve) as server, client_of(server) as client:
        idle, busy = await asyncio.gather(
            client.send("/"),
            client.send("/"),
        )
        whole = idle if "content-length" in idle.headers else busy
        assert [chunk async for chunk in pieces(whole)] == [b"ok"]
        await client.aclose()
        await asyncio.wait_for(server.ended(), 60)
    assert server.connections == 2


@pytest.mark.parametrize("stage", ["look-up", "connect", "handshake", "send", "head", "body"])
async def test_cancelling_at_any_stage_leaves_nothing_open(stage: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if stage in ("head", "body"):
            await server.request(reader)
        if stage == "body":
            writer.write(HEAD + b"\r\nfirst")
        elif stage in ("handshake", "send"):
            await reader.read(1)
        reached.set()
        while await reader.read(65536):
            pass

    async def ask(client: Client) -> None:
        if stage in ("look-up", "connect"):
            reached.set()
        await client.post("/", content=bytes(20_000_000) if stage == "send" else b"")

    reached = asyncio.Event()
    scheme, host = "https" if stage == "handshake" else "http", "localhost" if stage == "look-up" else "127.0.0.1"
    async with serving(serve) as server, client_of(server, f"{scheme}://{host}:{{}}") as client:
        task = asyncio.create_task(ask(client))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.ended(), 60)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_cancelling_after_any_number_of_turns_of_the_loop_leaves_nothing_open(host: str) -> None:
    async with answering(OK) as server, client_of(server, f"http://{host}:{{}}") as client:
        for turns in range(25):
            task = asyncio.create_task(client.post("/"))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, a certificate for the loopback and who issued it, in one PEM file."""
    both = tmp_path_factory.mktemp("tls") / "both.pem"
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    both.write_bytes(issued.private_key_and_cert_chain_pem.bytes() + authority.cert_pem.bytes())
    return both


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


HTTPS = "https://127.0.0.1:{}"


async def test_tls_on_one_kept_connection(tls: ssl.SSLContext, certificate: Path) -> None:
    spoken: list[str | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        for _ in range(2):
            await server.request(reader)
            writer.write(OK)

    body = bytes(range(256)) * 10_000
    async with serving(serve, tls=tls) as server, client_of(server, HTTPS, ca_file=str(certificate)) as client:
        for _ in range(2):
            assert (await client.post("/", content=body)).content == b"ok"
    assert (server.requests, spoken) == ([body, body], ["http/1.1"])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_ends_after_all_that_was_sent(
    tls: ssl.SSLContext, certificate: Path, version: ssl.TLSVersion
) -> None:
    tls.maximum_version = version
    body = bytes(range(256)) * 20_000
    read: list[bytes] = []
    async with (
        answering(HEAD + b"\r\n" + body, tls=tls) as server,
        client_of(server, HTTPS, ca_file=str(certificate)) as client,
        client.stream("/") as response,
    ):
        async for chunk in pieces(response):
            read.append(chunk)
            # The server is faster, and has hung up long before the last byte is read.
            await asyncio.sleep(0)
    assert b"".join(read) == body


async def test_tls_cut_off_within_the_body(tls: ssl.SSLContext, certificate: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(HEAD + b"content-length: 9\r\n\r\nfirst")

    async with serving(serve, tls=tls) as server, client_of(server, HTTPS, ca_file=str(certificate)) as client:
        with pytest.raises(RemoteProtocolError):
            await client.post("/")


@pytest.mark.parametrize("leave", [asyncio.StreamWriter.close, lambda writer: writer.transport.abort()])
async def test_a_server_that_leaves_during_the_handshake(
    leave: Callable[[asyncio.StreamWriter], None], certificate: Path
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        leave(writer)

    async with serving(serve) as server, client_of(server, HTTPS, ca_file=str(certificate)) as client:
        with pytest.raises(ConnectError) as caught:
            await client.post("/")
    error = no_answer(caught.value, host="models.example", idle_timeout=1.0)
    assert str(error).startswith("the connection to `models.example` failed: ")
    # Counted like other failures, and not waited for.
    assert (error.retryable, error.unreachable) == (True, False)


async def test_a_certificate_that_is_not_trusted(tls: ssl.SSLContext, certificate: Path) -> None:
    async with answering(OK, tls=tls) as server:
        async with client_of(server, HTTPS) as client:
            with pytest.raises(ConnectError) as caught:
                await client.post("/")
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        # Trusted, but made for another name.
        async with client_of(server, "https://127.0.0.2:{}", ca_file=str(certificate)) as client:
            with pytest.raises(ConnectError):
                await client.post("/")
    assert server.requests == []


# Proxies


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(other, raising=False)
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await server.request(reader))
        writer.write(OK)

    async with serving(serve) as server:
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.port}")
        url = "http://models.invalid"
        async with aclosing(open_client(url, ca_file=None, idle_timeout=5.0)) as opened:
            assert (await Client(opened, url).post("/v1")).content == b"ok"
    assert heads[0].startswith(b"POST http://models.invalid/v1 HTTP/1.1\r\n")


async def test_no_proxy_comes_between_this_machine_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with answering(OK) as server, client_of(server) as client:
        assert (await client.post("/")).content == b"ok"
