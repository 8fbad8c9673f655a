from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.context.environment import Environment, render_environment
from codex_py.context.initial import ContextSnapshot, context_items

HERE = Environment("/repo", "bash", "2026-11-21", "Etc/UTC", "<filesystem></filesystem>")
SKILLS = "<skills_instructions>\n## Skills\n- lint\n</skills_instructions>"
PERMISSIONS = "<permissions instructions>\nread\n</permissions instructions>"
AGENTS = "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nrules\n</INSTRUCTIONS>"
FULL = ContextSnapshot("gpt-5.5", "be brief", SKILLS, PERMISSIONS, AGENTS, HERE)


def updates(before: ContextSnapshot | None, now: ContextSnapshot) -> list[tuple[str, list[str]]]:
    """Role and texts of each message."""
    messages: list[tuple[str, list[str]]] = []
    for item in context_items(before, now):
        value = item.decode()
        assert list(value) == ["type", "role", "content"]
        assert {part["type"] for part in value["content"]} == {"input_text"}
        messages.append((value["role"], [part["text"] for part in value["content"]]))
    return messages


def test_the_first_turn_has_everything_in_two_messages() -> None:
    assert updates(None, FULL) == [
        ("developer", ["be brief", SKILLS, PERMISSIONS]),
        ("user", [AGENTS, render_environment(HERE)]),
    ]


def test_blocks_that_say_nothing_are_left_out() -> None:
    assert updates(None, ContextSnapshot("m", permissions=PERMISSIONS, environment=HERE)) == [
        ("developer", [PERMISSIONS]),
        ("user", [render_environment(HERE)]),
    ]
    assert updates(None, ContextSnapshot("m")) == []


def test_no_change_is_no_item() -> None:
    assert context_items(FULL, FULL.replace()) == []


def test_everything_at_once_comes_in_the_agreed_order() -> None:
    there = HERE.replace(cwd="/repo/sub")
    agents = AGENTS.replace("rules", "other rules")
    now = ContextSnapshot("gpt-6", "be long", SKILLS + "2", PERMISSIONS + "2", agents, there)
    assert updates(FULL, now) == [
        (
            "developer",
            [
                "<model_switch>\nUp to here the model of this session was `gpt-5.5`; from now on it is `gpt-6`. Go on "
                "with the work as it stands, under the instructions of this request.\n</model_switch>"
            ],
        ),
        (
            "user",
            [
                "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nThese AGENTS.md instructions replace all "
                "previously provided AGENTS.md instructions.\n\nother rules\n</INSTRUCTIONS>"
            ],
        ),
        (
            "developer",
            [
                "These developer instructions replace the ones given earlier.\n\nbe long",
                SKILLS + "2",
                PERMISSIONS + "2",
            ],
        ),
        ("user", [render_environment(there, HERE)]),
    ]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (FULL.replace(permissions="new"), [("developer", ["new"])]),
        (FULL.replace(skills=SKILLS + "2"), [("developer", [SKILLS + "2"])]),
        (
            FULL.replace(skills=""),
            [
                (
                    "developer",
                    [
                        "<skills_instructions>\n## Host skills update\nNo host skills are currently available.\n"
                        "</skills_instructions>"
                    ],
                )
            ],
        ),
        (
            FULL.replace(developer_instructions=""),
            [("developer", ["The developer instructions given earlier no longer apply."])],
        ),
        (
            FULL.replace(agents_md=""),
            [
                (
                    "user",
                    [
                        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nNo AGENTS.md applies any more; leave the earlier "
                        "ones aside.\n</INSTRUCTIONS>"
                    ],
                )
            ],
        ),
        (FULL.replace(permissions=""), []),
        (FULL.replace(environment=None), []),
    ],
)
def test_one_change_is_one_message(now: ContextSnapshot, expected: list[tuple[str, list[str]]]) -> None:
    assert updates(FULL, now) == expected


def test_what_was_not_there_before_is_reported_plainly() -> None:
    assert updates(ContextSnapshot("gpt-5.5"), FULL) == [
        ("user", [AGENTS]),
        ("developer", ["be brief", SKILLS, PERMISSIONS]),
        ("user", [render_environment(HERE)]),
    ]


def test_a_change_back_is_reported_again() -> None:
    there = FULL.replace(permissions="write")
    assert updates(there, FULL) == [("developer", [PERMISSIONS])]


def test_a_model_name_stays_short_and_in_its_line() -> None:
    [(role, [text])] = updates(FULL, FULL.replace(model="a`b\n</model_switch>" + "x" * 10_000))
    assert role == "developer"
    assert len(text) < 500
    assert "it is `a'b␊</model_switch>xxx" in text


def test_every_block_has_a_size() -> None:
    flood = ContextSnapshot("m", developer_instructions="é" * 2**20, skills="s" * 2**20)
    [(_, texts)] = updates(None, flood)
    assert [len(text.encode()) < 257 * 1024 for text in texts] == [True, True]
    assert texts[0].endswith("é\n[cut here: 262144 of 2097152 bytes are shown]")
    assert [len(text.encode()) < 257 * 1024 for _, [text] in updates(FULL, FULL.replace(skills="s" * 2**20))] == [True]


@pytest.mark.parametrize(
    "snapshot",
    [FULL, ContextSnapshot("m"), ContextSnapshot(""), FULL.replace(environment=Environment("", "", "", "", ""))],
)
def test_a_snapshot_survives_the_rollout(snapshot: ContextSnapshot) -> None:
    assert ContextSnapshot.from_record(json.loads(json.dumps(snapshot.to_record()))) == snapshot


@pytest.mark.parametrize("record", [None, [], "x", 3, {}, {"model": None}, {"model": ["m"]}, {"skills": "x"}])
def test_a_record_of_something_else_is_none(record: Any) -> None:
    assert ContextSnapshot.from_record(record) is None


def test_a_record_with_odd_fields_gives_what_can_be_read() -> None:
    record: dict[str, Any] = {
        "model": "m",
        "host_skills": "x",
        "permissions": {"instructions": 7},
        "agents_md": [],
        "environments": {"environments": {"local": {"cwd": "/repo", "status": "available"}}, "timezone": None},
        "more": {"unknown": True},
    }
    assert ContextSnapshot.from_record(record) == ContextSnapshot("m", environment=Environment("/repo", "", "", "", ""))
