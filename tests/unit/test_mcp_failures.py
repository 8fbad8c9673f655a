"""What errors of the MCP library are called where people and models read them."""

from __future__ import annotations

import socket

import pytest
from httpx2 import ConnectError

from codex_py.mcp.transports import describe_error, not_connected


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (RuntimeError("All connection attempts failed"), "All connection attempts failed"),
        (RuntimeError("one\ntwo"), "one"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_an_error_is_reported_in_words_without_its_number(error: Exception, words: str) -> None:
    assert describe_error(error) == words


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ConnectionRefusedError(111, "x"), "cannot connect to `http://h:9/mcp`: connection refused; is it running?"),
        (
            socket.gaierror(-2, "Name or service not known"),
            "cannot connect to `http://h:9/mcp`: name or service not known",
        ),
    ],
)
def test_a_server_that_is_down_is_named_by_its_address_without_secrets(cause: OSError, words: str) -> None:
    error = ConnectError("All connection attempts failed")
    error.__cause__ = cause
    assert not_connected(error, "http://me:pw@h:9/mcp?key=1") == words
    assert not_connected(RuntimeError("x"), "http://h:9/mcp") is None
