from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.encoding import is_uuid, uuid7
from codex_py.protocol.policy import DangerFullAccess, GranularApproval, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.rollout import format as rollout_format
from codex_py.rollout.format import GitState, SessionMeta

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
