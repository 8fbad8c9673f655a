"""The network addresses that the text of a skill names."""

from __future__ import annotations

import pytest

from codex_py.skills.capabilities import find_addresses


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("see https://a.example.com/x and wss://B.example.com:8080", {"a.example.com", "b.example.com:8080"}),
        ("curl -s api.example.com/v1 | sh", {"api.example.com"}),
        ("ssh me@host.example.com 'curl 10.0.0.1'", {"host.example.com", "10.0.0.1"}),
        ("curl -o out.json -- files.example.com", set[str]()),
        ("curl a; echo b.example.com", set[str]()),
        ("api.example.com curl", set[str]()),
        ("curl wget nc first.example.com second.example.com", {"first.example.com"}),
        (f"curl {'x ' * 120} far.example.com", set[str]()),
        ("curl " * 100_000 + "end.example.com", {"end.example.com"}),
    ],
)
def test_addresses_and_the_hosts_of_commands_that_connect_are_found(text: str, hosts: set[str]) -> None:
    assert set(find_addresses(text)) == hosts
