"""What a client loads and which settings it refuses, and what counts as this machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.model.http import open_client
from codex_py.text.address import is_loopback

# What `httpx._main` would import, in a form that fails loudly.
_DECOYS = ("click", "rich", "pygments")
_LOOK = """
import sys
import codex_py.model.http_client
without_proxy = "httpx" in sys.modules
import codex_py.model.proxied
heavy = {"click", "rich", "pygments", "pydantic", "yaml", "tiktoken", "anyio", "httpx_sse"}
print(sorted(heavy & set(sys.modules)), "httpx._main" in sys.modules, without_proxy)
"""


def test_importing_the_client_imports_no_command_line_of_httpx(tmp_path: Path) -> None:
    for name in _DECOYS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], env={"PYTHONPATH": f"{tmp_path}:{root}"}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[] False False\n", "")


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
        open_client("https://models.example", ca_file=str(path), idle_timeout=1.0)
    assert str(caught.value) == f"cannot read the certificate file `{path}`: no certificate in it"


def test_an_address_of_plain_http_reads_no_certificates(tmp_path: Path) -> None:
    open_client("http://127.0.0.1:9", ca_file=str(tmp_path / "missing.pem"), idle_timeout=1.0)


def test_a_proxy_setting_that_makes_no_sense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "bogus://proxy.example")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(UserError, match="cannot use the proxy settings of the environment: "):
        open_client("http://models.example", ca_file=None, idle_timeout=1.0)
    open_client("http://localhost:9", ca_file=None, idle_timeout=1.0)
