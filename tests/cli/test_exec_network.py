"""The network as it is: proxies, certificates of one's own, old and odd servers, compression nobody asked for."""

from __future__ import annotations

import codecs
import datetime
import gzip
import signal
import ssl
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Final

import pytest

from tests.support.home import Place
from tests.support.machine import need
from tests.support.process import COMMAND, Finished, Running, run, start
from tests.support.wire import Authority, Proxy, WireServer, answer, sse

# Resolves nowhere: only a proxy can know it.
HOST = "models.invalid"
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"


def ask(place: Place, base_url: str, **provider: float) -> Finished:
    place.use_model(base_url, request_max_retries=1, stream_max_retries=1, **{"connect_retry_seconds": 0, **provider})
    return run(place, "exec", "go")


def final(ended: Finished, status: int = 68) -> str:
    """The one error of a turn that failed, with this exit status."""
    [line] = [line for line in ended.err.splitlines() if line.startswith("ERROR:") and "Reconnecting" not in line]
    assert ended.status == status, line
    assert ended.stdout == b""
    return line


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


# Servers


def chunked(body: bytes, after: bytes = b"") -> bytes:
    return CHUNKED + b"\r\n%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, after)


@pytest.mark.parametrize(
    "said",
    [
        answer(sse()),
        answer(sse(), "connection: close"),
        answer(sse(), version="HTTP/1.0"),
        b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + sse(),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + answer(sse()),
        chunked(sse(), b"x-checksum: 1\r\n"),
        answer(gzip.compress(sse()), "content-encoding: gzip"),
        answer(zlib.compress(sse()), "content-encoding: deflate"),
        answer(sse(), *(f"x-noise-{n}: {'y' * 500}" for n in range(100))),
        answer(b"\xef\xbb\xbf" + sse().replace(b"\n", b"\r\n")),
    ],
)
def test_old_and_odd_servers_are_understood(place: Place, said: bytes) -> None:
    with WireServer(said) as server:
        ended = ask(place, f"http://127.0.0.1:{server.port}/v1")
    assert (ended.status, ended.stdout, len(server.requests)) == (0, b"done\n", 1), ended.err
    assert b"\r\nexpect:" not in server.requests[0].lower()


@pytest.mark.parametrize(
    ("said", "words", "requests", "status"),
    [
        (answer(b"\x1b\x00br", "content-encoding: br"), ["`br`", "compression"], 1, 1),
        (answer(b"(\xb5/\xfd", "content-encoding: zstd"), ["`zstd`", "compression"], 1, 1),
        (answer(b"not gzip", "content-encoding: gzip"), ["cut off"], 2, 68),
        (answer(sse(), *(f"x-flood-{n}: {'y' * 1000}" for n in range(500))), ["no answer from"], 2, 68),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 500, ["no answer from"], 2, 68),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ["does not speak HTTP"], 2, 68),
    ],
)
def test_what_cannot_be_read_is_one_error(
    place: Place, said: bytes, words: list[str], requests: int, status: int
) -> None:
    with WireServer(said) as server:
        ended = ask(place, f"http://127.0.0.1:{server.port}/v1")
    assert [word for word in words if word not in final(ended, status)] == []
    assert len(server.requests) == requests


def test_a_server_on_this_machine_that_is_not_there_is_given_up_soon(place: Place) -> None:
    own = '[model_providers.own]\nbase_url = "http://127.0.0.1:9/v1"\n'
    place.configure(f'model_provider = "own"\nmodel = "m"\n{own}')
    with start(place, "exec", "go") as running:
        # A minute is what servers elsewhere are given.
        ended = running.wait(timeout=40)
    assert "`http://127.0.0.1:9/v1/responses`: connection refused" in final(ended)
    assert "Reconnecting" in ended.err


# Certificates


@pytest.mark.parametrize("variable", ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"])
def test_an_authority_of_ones_own_is_named_by_a_variable(place: Place, authority: Authority, variable: str) -> None:
    with WireServer(answer(sse()), tls=authority.server("127.0.0.1")) as server:
        base_url = f"https://127.0.0.1:{server.port}/v1"
        refused = ask(place, base_url)
        ended = ask(place.with_env(**{variable: str(authority.file)}), base_url)
    assert "is not trusted" in final(refused)
    assert "CODEX_CA_CERTIFICATE" in final(refused)
    # A certificate does not get better by asking again.
    assert "Reconnecting" not in refused.err
    assert (ended.status, ended.stdout, len(server.requests)) == (0, b"done\n", 1)


def test_the_variable_of_this_program_goes_before_the_common_one(place: Place, authority: Authority) -> None:
    place = place.with_env(CODEX_CA_CERTIFICATE=str(authority.file), SSL_CERT_FILE="/nowhere.pem")
    with WireServer(answer(sse()), tls=authority.server("127.0.0.1")) as server:
        assert ask(place, f"https://127.0.0.1:{server.port}/v1").stdout == b"done\n"


@pytest.mark.parametrize(
    ("name", "expired", "reason"),
    [("127.0.0.1", True, "expired"), ("elsewhere.example", False, "127.0.0.1")],
)
def test_a_certificate_that_is_not_right_is_named(
    place: Place, authority: Authority, name: str, expired: bool, reason: str
) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    tls = authority.server(name, **({"not_after": past} if expired else {}))
    with WireServer(answer(sse()), tls=tls) as server:
        ended = ask(place.with_env(SSL_CERT_FILE=str(authority.file)), f"https://127.0.0.1:{server.port}/v1")
    assert "is not trusted" in final(ended)
    assert reason in final(ended)
    assert server.requests == []


MARKED: Final = {
    "utf-8-sig": "",
    "utf-16": "",
    "utf-8-sig with a comment": "# Unsere Zertifizierungsstelle für Köln\n",
    "utf-16 with line ends of Windows": "# first\r\n",
}


@pytest.mark.parametrize("variable", ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"])
@pytest.mark.parametrize(("form", "before"), MARKED.items())
def test_a_certificate_file_may_begin_with_a_byte_order_mark(
    place: Place, authority: Authority, tmp_path: Path, variable: str, form: str, before: str
) -> None:
    marked = tmp_path / "marked.pem"
    marked.write_bytes((before + authority.file.read_text()).encode(form.partition(" ")[0]))
    with WireServer(answer(sse()), tls=authority.server("127.0.0.1")) as server:
        ended = ask(place.with_env(**{variable: str(marked)}), f"https://127.0.0.1:{server.port}/v1")
    assert (ended.status, ended.stdout) == (0, b"done\n"), ended.err


def test_an_mcp_server_is_reached_with_such_a_file(place: Place, authority: Authority, tmp_path: Path) -> None:
    marked = tmp_path / "marked.pem"
    marked.write_text(authority.file.read_text(), encoding="utf-16")
    with WireServer(
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", tls=authority.server("127.0.0.1")
    ) as server:
        place.configure(f'[mcp_servers.far]\nurl = "https://127.0.0.1:{server.port}/mcp"\n')
        ended = run(place.with_env(SSL_CERT_FILE=str(marked)), "mcp", "test", "far")
        absent = run(place.with_env(SSL_CERT_FILE=str(tmp_path / "absent.pem")), "mcp", "test", "far")
    assert "404" in ended.out + ended.err
    assert server.requests
    assert f"cannot read the certificate file `{tmp_path / 'absent.pem'}`" in absent.out + absent.err


@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF8 + b"text"])
def test_a_file_with_only_a_byte_order_mark_has_no_certificate(place: Place, tmp_path: Path, mark: bytes) -> None:
    marked = tmp_path / "marked.pem"
    marked.write_bytes(mark)
    ended = ask(place.with_env(SSL_CERT_FILE=str(marked)), "https://127.0.0.1:9/v1")
    assert ended.status == 2
    assert ended.err == (
        f"error: cannot read the certificate file `{marked}`: no certificate in it; "
        "`SSL_CERT_FILE` has to name a PEM file\n"
    )


@pytest.mark.parametrize("variable", ["CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_no_variable_is_advised_that_is_set(
    place: Place, authority: Authority, tmp_path_factory: pytest.TempPathFactory, variable: str
) -> None:
    other = Authority(tmp_path_factory.mktemp("other"))
    named = other.file.parent if variable == "SSL_CERT_DIR" else other.file
    with WireServer(answer(sse()), tls=authority.server("127.0.0.1")) as server:
        ended = ask(place.with_env(**{variable: str(named)}), f"https://127.0.0.1:{server.port}/v1")
    assert f"; its authority is not in `{named}`, which `{variable}` names" in final(ended)
    assert "name its PEM file" not in ended.err


def test_an_expired_certificate_is_no_reason_to_name_an_authority(place: Place, authority: Authority) -> None:
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    with WireServer(answer(sse()), tls=authority.server("127.0.0.1", not_after=past)) as server:
        ended = ask(place.with_env(SSL_CERT_FILE=str(authority.file)), f"https://127.0.0.1:{server.port}/v1")
    assert "expired" in final(ended)
    assert "PEM" not in ended.err


def test_a_strict_check_is_named_and_nothing_that_is_set_advised(place: Place, tmp_path: Path) -> None:
    file, tls = lax_authority(tmp_path)
    with WireServer(answer(sse()), tls=tls) as server:
        ended = ask(place.with_env(SSL_CERT_FILE=str(file)), f"https://127.0.0.1:{server.port}/v1")
    if sys.version_info < (3, 13):
        assert ended.stdout == b"done\n", ended.err
    else:
        assert "Python checks certificates strictly since 3.13" in final(ended)
        assert "CODEX_CA_CERTIFICATE" not in ended.err


def lax_authority(directory: Path) -> tuple[Path, ssl.SSLContext]:
    """An authority without the extensions that a strict check asks for, and a server with a certificate of it."""
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    (directory / "empty").write_text(
        "[req]\ndistinguished_name=d\nx509_extensions=x\n[d]\n[x]\nbasicConstraints=CA:true\n"
    )
    key = "-newkey rsa:2048 -nodes -days 30"
    for words in (
        f"req -x509 {key} -config empty -subj /CN=ours -keyout ca.key -out ca.pem",
        f"req {key} -config empty -subj /CN=127.0.0.1 -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out server.pem",
    ):
        subprocess.run(["openssl", *words.split()], cwd=directory, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "server.pem", directory / "server.key")
    return directory / "ca.pem", tls


def test_a_certificate_file_that_is_not_there_is_named(place: Place, tmp_path: Path) -> None:
    place = place.with_env(CODEX_CA_CERTIFICATE=str(tmp_path / "absent.pem"))
    ended = ask(place, "https://127.0.0.1:9/v1")
    assert (ended.status, len(ended.err.splitlines())) == (2, 1)
    assert ended.err.startswith(f"error: cannot read the certificate file `{tmp_path / 'absent.pem'}`")


# Proxies


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_leads_to_a_server_that_only_it_can_reach(place: Place, authority: Authority, variable: str) -> None:
    with (
        WireServer(answer(sse()), tls=authority.server(HOST)) as server,
        Proxy(server.port) as proxy,
    ):
        place = place.with_env(
            **{variable: f"http://user:word@127.0.0.1:{proxy.port}", "CODEX_CA_CERTIFICATE": str(authority.file)}
        )
        ended = ask(place, f"https://{HOST}/v1")
    assert (ended.status, ended.stdout) == (0, b"done\n"), ended.err
    [head] = proxy.heads
    assert head.startswith(b"CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert b"proxy-authorization: basic " in head.lower()
    assert server.requests[0].startswith(b"POST /v1/responses HTTP/1.1\r\n")


def test_no_proxy_excepts_a_server(place: Place) -> None:
    with Proxy() as proxy:
        place = place.with_env(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}", NO_PROXY="example.com,.invalid")
        ended = ask(place, f"https://{HOST}/v1")
    assert proxy.heads == []
    assert f"cannot connect to the provider `fake` at `https://{HOST}/v1/responses`" in final(ended)


@pytest.mark.parametrize(
    ("status", "requests"), [("407 Proxy Authentication Required", 1), ("403 Forbidden", 1), ("502 Bad Gateway", 2)]
)
def test_a_proxy_that_refuses_is_named(place: Place, status: str, requests: int) -> None:
    with Proxy(refuse=f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode()) as proxy:
        ended = ask(place.with_env(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}"), f"https://{HOST}/v1")
    assert f"the proxy refused to connect to `{HOST}`: {status}" in final(ended)
    assert len(proxy.heads) == requests


def test_a_proxy_that_is_not_there_is_hinted_at(place: Place) -> None:
    ended = ask(place.with_env(HTTPS_PROXY="http://127.0.0.1:9"), f"https://{HOST}/v1")
    assert "the environment names a proxy" in final(ended)


def test_a_proxy_of_a_kind_that_is_not_spoken_is_one_line(place: Place) -> None:
    ended = ask(place.with_env(ALL_PROXY="socks5://127.0.0.1:9"), f"https://{HOST}/v1")
    assert (ended.status, len(ended.err.splitlines())) == (2, 1)
    assert ended.err.startswith("error: cannot use the proxy settings of the environment: ")


# Names

_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--net", "sh", "-ec")
# Brings up the loopback, takes the port of a resolver and never answers, and becomes the program.
_SILENT_RESOLVER = """
import fcntl, os, socket, struct, sys
resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(resolver, 0x8914, struct.pack("16sH14x", b"lo", 1))
resolver.bind(("127.0.0.1", 53))
resolver.set_inheritable(True)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_resolver_that_does_not_answer_holds_up_no_exit(
    place: Place, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """The look-up would go on for a minute."""
    settings = tmp_path / "resolv.conf"
    settings.write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:2\n")
    need([*_NAMESPACE, f"mount --bind {settings} /etc/resolv.conf"], "namespaces of its own")
    place.use_model(f"http://{HOST}/v1")
    script = f'mount --bind {settings} /etc/resolv.conf; exec {sys.executable} -c "$0" "$@"'
    command = [*_NAMESPACE, script, _SILENT_RESOLVER, COMMAND, "exec", "go"]
    with Running(command, env=place.env, cwd=place.repo) as running:
        running.wait_until(lambda one: one.stderr.endswith(b"user\ngo\n"))
        running.send_signal(number)
        ended = running.wait(timeout=40)
    assert ended.status == status
    assert "turn interrupted" in ended.err
