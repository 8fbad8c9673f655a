"""The name somebody meant: typing errors, other spellings, whole parts; and no guess where nothing is near."""

from __future__ import annotations

import pytest

from codex_py.text.nearest import did_you_mean, edit_distance, nearest, nearest_names
from tests.support.work import within


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0), ("a", "", 1), ("", "ab", 2), ("modle", "model", 1), ("abc", "axc", 1), ("kitten", "sitting", 3)],
)
def test_the_distance_counts_swapped_neighbours_once(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other) == distance


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("Model", ["model", "mode"], "model"),
        ("modle", ["model", "models"], "model"),
        ("readonly", ["read-only", "workspace-write"], "read-only"),
        ("read_only", ["read-only", "workspace-write"], "read-only"),
        ("mcpServers", ["mcp_servers", "models"], "mcp_servers"),
        ("full-access", ["read-only", "danger-full-access"], "danger-full-access"),
        ("workspace", ["read-only", "workspace-write"], "workspace-write"),
        ("lint", ["team:lint", "format"], "team:lint"),
        ("PreToolUs", ["PreToolUse", "PostToolUse"], "PreToolUse"),
        ("reasoning_effort", ["model_reasoning_effort", "model"], "model_reasoning_effort"),
        # No guess is better than a wild one.
        ("zzz", ["model"], None),
        ("al", ["on", "ask"], None),
        ("model", [], None),
        ("", ["model"], None),
        ("-", ["model", "on"], None),
        ("model", ["model_provider", "model_verbosity"], None),
        ("full", ["full-auto", "danger-full-access"], None),
        ("delete", ["remove"], None),
    ],
)
def test_only_a_near_name_is_suggested(name: str, known: list[str], expected: str | None) -> None:
    assert nearest(name, known) == expected


def test_several_names_come_in_the_order_of_likeness() -> None:
    assert nearest_names("tets", ["rest", "tests", "test", "model"], limit=2) == ["test", "tests"]


def test_a_long_name_costs_little() -> None:
    assert within(100_000, lambda: nearest("x" * 1_000_000, ["model" * 1000, "m"])) is None


def test_the_question_is_empty_where_there_is_no_guess() -> None:
    assert (did_you_mean("modle", ["model"]), did_you_mean("zzz", ["model"])) == ("did you mean `model`?", "")
