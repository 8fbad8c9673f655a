"""What errors of the MCP library are called where people and models read them."""

from __future__ import annotations

import socket

import pytest

from codex_py.mcp.failures import said


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
def test_an_error_is_told_in_words_without_its_number(error: Exception, words: str) -> None:
    assert said(error) == words
