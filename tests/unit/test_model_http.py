"""The HTTP client against real servers on the loopback: keeping alive, deadlines, failing, letting go, proxies."""

from __future__ import annotations

import asyncio
import base64
import gc
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trustme
from httpx import ConnectError, ConnectTimeout, ReadTimeout, RemoteProtocolError, WriteTimeout

from codex_py.errors import UserError
from codex_py.model.http import HTTP_ERRORS, HttpClient, no_answer
from codex_py.text.address import is_loopback

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

NO_HEADERS: Mapping[str, str] = {}

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


class Client:
    """Requests to one server by their paths, read to the end unless they are streamed."""

    def __init__(self, http: HttpClient, base_url: str) -> None:
        self._http = http
        self._base_url = base_url

    async def send(self, path: str, content: bytes = b"", headers: Mapping[str, str] = NO_HEADERS) -> httpx.Response:
        return await self._http.send("POST", self._base_url + path, headers=headers, content=content)

    async def post(self, path: str, content: bytes = b"", headers: Mapping[str, str] = NO_HEADERS) -> httpx.Response:
        async with aclosing(await self.send(path, content, headers)) as answer:
            await answer.aread()
            return answer

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[httpx.Response]:
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
    opened = HttpClient(
        address,
        ca_file=None if ca_file is None else str(ca_file),
        idle_timeout=float(settings.get("idle_timeout", 10.0)),
    )
    async with aclosing(opened):
        yield Client(opened, address)


def chunked(*pieces: bytes) -> bytes:
    return HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces)


async def test_the_password_of_an_address_is_sent_as_a_login() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await server.request(reader))
        writer.write(OK)

    async with serving(serve) as server, client_of(server, "http://me:p%40ss@127.0.0.1:{}") as client:
        await client.post("/", headers={"Authorization": "Bearer x"})
    assert b"\r\nAuthorization: Basic " + base64.b64encode(b"me:p@ss") + b"\r\n" in heads[0]
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
    sent = [head.partition(b"Cookie: ")[2].partition(b"\r\n")[0] for head in heads]
    assert sent == [b"", b"a=1; b=2", b"b=2", b""]


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
        with pytest.raises(RemoteProtocolError, match="Server disconnected"):
            await client.post("/", content=b"second")
    assert (server.connections, server.requests) == (2, [b"first", b"second", b"second"])


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


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://a\u200b.invalid", "Invalid IDNA hostname"),
        ("ftp://127.0.0.1/", "Request URL has an unsupported protocol"),
    ],
)
async def test_an_address_that_cannot_exist_is_final(url: str, reason: str) -> None:
    async with aclosing(HttpClient("http://127.0.0.1:9", ca_file=None, idle_timeout=5.0)) as client:
        with pytest.raises(HTTP_ERRORS) as caught:
            await client.send("POST", url, headers={})
    error = no_answer(caught.value, host="h", idle_timeout=1.0)
    assert (error.retryable, error.unreachable) == (False, False)
    assert str(error).startswith("cannot send the request to `h`: ")
    assert reason in str(error)


# Letting go


async def test_leaving_an_answer_closes_its_connection_at_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.request(reader)
        writer.write(chunked(b"first"))
        assert await reader.read() == b""

    async with serving(serve) as server, client_of(server) as client:
        async with client.stream("/") as response:
            assert await anext(response.aiter_bytes()) == b"first"
        await asyncio.wait_for(server.gone.wait(), 60)


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


async def test_a_certificate_that_is_not_trusted(tls: ssl.SSLContext, certificate: Path) -> None:
    async with answering(OK, tls=tls) as server:
        async with client_of(server, HTTPS) as client:
            with pytest.raises(ConnectError) as caught:
                await client.post("/")
        assert "is not trusted" in str(no_answer(caught.value, host="h", idle_timeout=1.0))
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
        async with aclosing(HttpClient(url, ca_file=None, idle_timeout=5.0)) as opened:
            assert (await Client(opened, url).post("/v1")).content == b"ok"
    assert heads[0].startswith(b"POST http://models.invalid/v1 HTTP/1.1\r\n")


async def test_no_proxy_comes_between_this_machine_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with answering(OK) as server, client_of(server) as client:
        assert (await client.post("/")).content == b"ok"


# Settings


# What `httpx._main` would import, in a form that fails loudly.
_DECOYS = ("click", "rich", "pygments")
_LOOK = """
import sys
import codex_py.model.provider_client
heavy = {"click", "rich", "pygments", "pydantic", "yaml", "tiktoken", "zstandard"}
print(sorted(heavy & set(sys.modules)), sys.modules["httpx._main"])
"""


def test_importing_the_client_imports_no_command_line_of_httpx(tmp_path: Path) -> None:
    for name in _DECOYS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], env={"PYTHONPATH": f"{tmp_path}:{root}"}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[] None\n", "")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]"]
)
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost.evil.example",
        "evil-localhost",
        "10.0.0.1",
        "0.0.0.0",
        "::",
        "127.0.0.1.nip.io",
        "127.1",
        "127.0.0.1.",
        "localhost..",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "::1%lo",
        "::ffff:127.0.0.1",
        "a\0b",
    ],
)
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)


def test_a_certificate_file_without_a_certificate_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text("nothing")
    with pytest.raises(UserError) as caught:
        HttpClient("https://models.example", ca_file=str(path), idle_timeout=1.0)
    assert str(caught.value) == f"cannot read the certificate file `{path}`: no certificate in it"


def test_an_address_of_plain_http_reads_no_certificates(tmp_path: Path) -> None:
    HttpClient("http://127.0.0.1:9", ca_file=str(tmp_path / "missing.pem"), idle_timeout=1.0)


def test_a_proxy_setting_that_makes_no_sense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "bogus://proxy.example")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(UserError, match="cannot use the proxy settings of the environment: "):
        HttpClient("http://models.example", ca_file=None, idle_timeout=1.0)
    HttpClient("http://localhost:9", ca_file=None, idle_timeout=1.0)
