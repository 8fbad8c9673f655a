"""`codex-py update --check` against a package index on the loopback, and `codex-py --version --verbose`."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import pytest

from codex_py import __version__
from tests.support.home import Place
from tests.support.loopback import Loopback
from tests.support.process import run


class Index(Loopback):
    """A package index that answers every request with one status and body, and keeps the paths."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.paths: list[str] = []
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple"


class _Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.send_header("content-type", "application/vnd.pypi.simple.v1+json")
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(status: int = 200, body: bytes | None = None, *, versions: list[str] | None = None) -> Generator[Index]:
    index = Index(status, body if body is not None else json.dumps({"versions": versions or []}).encode())
    thread = threading.Thread(target=index.serve_forever)
    thread.start()
    try:
        yield index
    finally:
        index.shutdown()
        index.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("versions", "newest", "status"),
    [
        (["0.1.9", "0.0.9"], "0.1.9", 0),
        (["0.0.9", "99.1", "99.10.0", "100.0rc1", "2.0.dev1"], "99.10.0", 1),
        (["0.0.1"], "0.0.1", 0),
    ],
)
def test_the_index_is_asked_for_a_newer_version(place: Place, versions: list[str], newest: str, status: int) -> None:
    with serving(versions=versions) as index:
        question = run(place.with_env(PIP_INDEX_URL=index.url), "update", "--check", "--json")
        result = run(place.with_env(UV_DEFAULT_INDEX=index.url), "update", "--check")
    assert (question.status, result.status) == (status, status)
    assert json.loads(question.out)["newest"] == newest
    assert index.paths == ["/simple/codex-py/"] * 2
    assert (f"codex-py {newest} is available, this is {__version__}" in result.out) == (status == 1)


def test_the_index_of_pip_s_settings_is_asked(place: Place) -> None:
    with serving(versions=["99.0"]) as index:
        settings = place.home / ".config/pip/pip.conf"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[global]\nindex-url = {index.url}/\n")
        assert run(place, "update", "--check").status == 1
    assert index.paths == ["/simple/codex-py/"]


def test_an_index_without_the_package_is_not_a_newer_version(place: Place) -> None:
    with serving(404, b"not here") as index:
        answer = run(place.with_env(PIP_INDEX_URL=index.url), "update", "--check")
    assert answer.status == 0
    assert "does not have codex-py" in answer.out


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (200, b"[]"), (503, b""), (302, b"")])
def test_an_index_that_cannot_be_read_is_an_error_of_one_line(place: Place, status: int, body: bytes) -> None:
    with serving(status, body) as index:
        answer = run(place.with_env(PIP_INDEX_URL=index.url), "update", "--check")
    assert answer.status == 1
    assert answer.out == ""
    assert answer.err.count("\n") == 1
    assert "for versions" in answer.err


def test_a_password_in_the_address_of_the_index_is_not_shown(place: Place) -> None:
    with serving(404, b"") as index:
        address = index.url.replace("http://", "http://user:hunter22@")
        answer = run(place.with_env(PIP_INDEX_URL=address), "update", "--check")
        verbose = run(place.with_env(PIP_INDEX_URL=address), "--version", "--verbose")
    assert "hunter22" not in answer.out + answer.err + verbose.out + verbose.err


def test_update_alone_says_how_to_update(place: Place) -> None:
    answer = run(place, "update")
    assert answer.status == 2
    assert "codex-py does not replace itself; use `--check`" in answer.err


def test_the_verbose_version_names_versions_and_paths(place: Place) -> None:
    answer = run(place, "--version", "--verbose")
    labels = [line[:15].strip() for line in answer.out.splitlines()]
    assert answer.status == 0
    assert labels[:4] == ["codex-py", "python", "system", "installed in"]
    assert str(place.codex_home) in answer.out
    assert run(place, "--version").out == f"codex-py {__version__}\n"
