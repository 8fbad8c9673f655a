"""What is known about models: exact names, dated ones, vendors' spellings, and the user's own."""

from __future__ import annotations

import pytest

from codex_py.config.model_sections import ModelEntry
from codex_py.model.catalog import ModelFacts, facts_for

UNKNOWN = ModelFacts(
    272_000, summary="auto", apply_patch="function", output_tokens=2500, max_output_tokens=32_768, known=False
)


def test_a_current_model() -> None:
    assert facts_for("gpt-5.5") == ModelFacts(
        context_window=272_000,
        auto_compact_tokens=None,
        effort="medium",
        summary=None,
        verbosity="low",
        takes_verbosity=True,
        apply_patch="freeform",
        parallel=True,
        images=True,
        output_tokens=10_000,
        known=True,
    )


@pytest.mark.parametrize(
    ("model", "same_as"),
    [
        ("gpt-5.5-2026-08-01", "gpt-5.5"),
        ("gpt-5-codex-high", "gpt-5-codex"),
        ("gpt-5-mini", "gpt-5"),
        ("gpt-5.7", "gpt-5"),
        ("gpt-5.1-codex-max", "gpt-5.1-codex"),
        ("gpt-5.6-terra", "gpt-5.6"),
        ("GPT-5.5 ", "gpt-5.5"),
        ("openai/gpt-5.5", "gpt-5.5"),
        ("openai/gpt-oss-20b", "gpt-oss"),
        ("gpt-oss:20b", "gpt-oss"),
        ("o3-pro", "o3"),
        ("o4-mini-2025-04-16", "o4-mini"),
        ("gpt-4.1-nano", "gpt-4.1"),
    ],
)
def test_the_longest_name_in_the_table_decides(model: str, same_as: str) -> None:
    assert facts_for(model) == facts_for(same_as)
    assert facts_for(model).known


@pytest.mark.parametrize(
    ("model", "window", "images", "longest_answer"),
    [
        ("gemini-2.5-pro", 1_048_576, True, 65_536),
        ("models/gemini-2.0-flash", 1_048_576, True, 8192),
        ("deepseek-chat", 128_000, False, 8192),
        ("deepseek/deepseek-v3.2", 128_000, False, 32_768),
        ("mistral-large-latest", 131_072, True, 32_768),
        ("llama-3.3-70b-versatile", 131_072, False, 32_768),
        ("x-ai/grok-4", 256_000, True, 32_768),
        ("z-ai/glm-4.6", 131_072, False, 32_768),
    ],
)
def test_models_of_the_built_in_providers_are_known(model: str, window: int, images: bool, longest_answer: int) -> None:
    facts = facts_for(model)
    assert (facts.known, facts.context_window, facts.images) == (True, window, images)
    # There is no effort to send unless the user sets one.
    assert (facts.max_output_tokens, facts.effort, facts.apply_patch) == (longest_answer, None, "function")


@pytest.mark.parametrize("model", ["", "llama3", "gpt-50", "gpt-5x", "o30", "my-gpt-5", "qwen/qwen3", "gpt"])
def test_of_an_unknown_model_little_is_taken_for_granted(model: str) -> None:
    assert facts_for(model) == UNKNOWN


@pytest.mark.parametrize(
    ("model", "window", "effort", "patch"),
    [
        ("gpt-5", 272_000, "medium", "freeform"),
        ("gpt-5.6-sol", 272_000, "low", "freeform"),
        ("gpt-6.1-terra", 500_000, "low", "freeform"),
        ("gpt-4.1", 1_047_576, None, "function"),
        ("o3", 200_000, "medium", "function"),
        ("codex-mini-latest", 200_000, "medium", "function"),
        ("gpt-oss-120b", 131_072, "medium", "function"),
    ],
)
def test_window_effort_and_patch_form(model: str, window: int, effort: str | None, patch: str) -> None:
    facts = facts_for(model)
    assert (facts.context_window, facts.effort, facts.apply_patch) == (window, effort, patch)


def test_the_users_entry_wins_and_makes_a_model_known() -> None:
    entry = ModelEntry(
        context_window=8000,
        auto_compact_token_limit=6000,
        reasoning_effort="high",
        reasoning_summary="concise",
        verbosity="low",
        apply_patch="freeform",
        parallel_tool_calls=False,
        images=False,
        tool_output_token_limit=900,
        max_output_tokens=700,
    )
    expected = ModelFacts(8000, 6000, "high", "concise", "low", True, "freeform", False, False, 900, 700, True)
    assert facts_for("my-model", {"my-model": entry}) == expected
    assert facts_for("gpt-5.5", {"gpt-5.5": entry}) == expected


def test_an_entry_changes_only_what_it_names() -> None:
    assert facts_for("gpt-5.5", {"gpt-5.5": ModelEntry(images=False)}) == facts_for("gpt-5.5").replace(images=False)
    assert facts_for("llama3", {"llama3": ModelEntry()}) == UNKNOWN.replace(known=True)
    assert facts_for("llama3", {"other": ModelEntry(images=False)}) == UNKNOWN
