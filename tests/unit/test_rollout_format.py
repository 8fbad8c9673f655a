from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.encoding import is_uuid, timestamp, uuid7
from codex_py.protocol.items import message
from codex_py.protocol.policy import DangerFullAccess, GranularApproval, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.protocol.usage import TokenUsage
from codex_py.rollout import format as rollout_format
from codex_py.rollout.format import GitState, SessionMeta
from tests.unit.rollout_builders import meta

KNOWN = "01a2003f-9283-7175-aabe-26f664dd8796"


def test_a_uuid7_carries_its_millisecond_and_sorts_by_it() -> None:
    ids = [uuid7(1_795_297_363_004 + number) for number in range(100)]

    assert ids == sorted(ids)
    assert uuid.UUID(ids[0]).int >> 80 == 1_795_297_363_004
    assert {(uuid.UUID(text).version, uuid.UUID(text).variant) for text in ids} == {(7, uuid.RFC_4122)}
    assert len({uuid7(5) for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    "text", ["", "x", "../../etc/passwd", "01A2000F-B531-7671-885F-AC1DF6CF019B", f"{KNOWN}\n", f" {KNOWN}"]
)
def test_only_plain_lower_case_uuids_are_ids(text: str) -> None:
    assert is_uuid(uuid7())
    assert not is_uuid(text)


def test_time_stamps_have_milliseconds_and_are_utc() -> None:
    assert timestamp(1_795_297_363.004) == "2026-11-21T21:42:43.004Z"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", timestamp())


def test_a_line_has_the_keys_of_the_format_in_order() -> None:
    line = rollout_format.encode_line(7, "response_item", b'{"type":"x"}', timestamp="2026-11-21T22:02:11.207Z")

    assert line == (
        b'{"timestamp":"2026-11-21T22:02:11.207Z","ordinal":7,"type":"response_item","payload":{"type":"x"}}\n'
    )


def test_the_path_tells_the_start_in_utc_and_the_thread() -> None:
    path = rollout_format.rollout_path(Path("/h"), "ID", when="2026-01-02T03:04:05.678Z")

    assert path == Path("/h/sessions/2026/01/02/rollout-2026-01-02T03-04-05-ID.jsonl")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"git": GitState()},
        {"git": GitState("abc", "main", "git@example.org:a/b.git")},
        {"forked_from_id": "01a2000f-b531-7671-885f-ac1df6cf019b", "forked_from_ordinal_exclusive": 14},
    ],
)
def test_a_header_survives_the_disk(fields: dict[str, Any]) -> None:
    header = meta(**fields)

    assert SessionMeta.from_payload(header.to_payload()) == header


def test_a_header_of_codex_cli_is_understood() -> None:
    payload = {
        "account_scoped": True,
        "session_id": "01a20021-9984-76b1-a002-20d21959cbd5",
        "id": "01a20021-9984-76b1-a002-20d21959cbd5",
        "timestamp": "2026-11-21T22:02:11.717Z",
        "cwd": "/repo",
        "runtime_workspace_roots": ["/repo"],
        "originator": "codex_exec",
        "cli_version": "0.169.0",
        "source": {"subagent": {"other": "x"}},
        "model_provider": "x",
        "base_instructions": {"text": "Short.", "provenance": {"type": "model", "model": "m"}},
        "git": {},
    }

    assert SessionMeta.from_payload(payload) == SessionMeta(
        id="01a20021-9984-76b1-a002-20d21959cbd5",
        timestamp="2026-11-21T22:02:11.717Z",
        cwd="/repo",
        originator="codex_exec",
        cli_version="0.169.0",
        source="subagent",
        model_provider="x",
        base_instructions="Short.",
        git=GitState(),
    )


def test_a_header_full_of_wrong_types_reads_as_empty() -> None:
    names = ("id", "timestamp", "cwd", "source", "base_instructions", "git", "forked_from_id")
    odd: dict[str, Any] = dict.fromkeys(names, 7)

    assert SessionMeta.from_payload(odd) == SessionMeta("", "", "", "", "", "", "", git=GitState())


def test_a_granular_policy_is_written_as_the_table_it_is() -> None:
    payload = rollout_format.turn_context_payload(
        "t", Path("/repo"), model="m", reasoning={}, approval=GranularApproval(True, False, True), sandbox=ReadOnly()
    )
    assert payload["approval_policy"] == {
        "granular": {
            "sandbox_approval": True,
            "rules": False,
            "mcp_elicitations": True,
            "skill_approval": False,
            "request_permissions": False,
        }
    }


@pytest.mark.parametrize(
    ("sandbox", "encoded"),
    [
        (ReadOnly(), {"type": "read-only"}),
        (DangerFullAccess(), {"type": "danger-full-access"}),
        (
            WorkspaceWrite((Path("/a"),), "loopback", True, False),
            {
                "type": "workspace-write",
                "writable_roots": ["/a"],
                "network_access": False,
                "exclude_tmpdir_env_var": True,
                "exclude_slash_tmp": False,
            },
        ),
    ],
)
def test_a_turn_context_names_the_settings_of_the_turn(sandbox: SandboxPolicy, encoded: dict[str, Any]) -> None:
    payload = rollout_format.turn_context_payload(
        "t", Path("/repo"), model="m", reasoning={"effort": "high"}, approval="never", sandbox=sandbox
    )

    assert payload == {
        "turn_id": "t",
        "cwd": "/repo",
        "approval_policy": "never",
        "sandbox_policy": encoded,
        "model": "m",
        "effort": "high",
        "summary": "none",
    }


def test_token_counts_survive_the_disk() -> None:
    last, total = TokenUsage(10, 4, 5, 1, 15), TokenUsage(100, 40, 50, 10, 150)
    counts = rollout_format.token_count_payload(last, total, window=258400)["info"]

    assert rollout_format.read_usage(counts["last_token_usage"]) == last
    assert rollout_format.read_usage(counts["total_token_usage"]) == total
    assert rollout_format.read_usage({"input_tokens": "many", "output_tokens": -3}) == TokenUsage()


def test_a_compaction_carries_its_items_byte_for_byte() -> None:
    items = [message("user", "a \ud800 b"), message("user", "né")]
    payload = rollout_format.compacted_payload('a "summary"', items, window=2)

    assert json.loads(payload) == {
        "message": 'a "summary"',
        "replacement_history": [item.decode() for item in items],
        "window_number": 2,
    }
    assert all(item.encoded in payload for item in items)
