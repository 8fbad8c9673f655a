"""Plans for what rules cannot do, talk about itself, and answers in the shape of a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.offline.plan import key_words, plan_steps
from codex_py.offline.schema import fit
from tests.unit.test_offline_loop import EXEC, NOTICE, Host, git_tree


async def test_a_plan_points_to_files_and_says_what_it_is(tmp_path: Path) -> None:
    host = Host(git_tree(tmp_path, {"app/cache.py": "", "app/main.py": "", "README.md": ""}))

    told = await host.ask("implement an eviction policy in the cache")

    assert "1. Read `app/cache.py` for how such things are done here" in told
    assert "Files your words point to: `app/cache.py`." in told
    assert "fixed rules" in told and told.endswith(NOTICE)
    for way in ("OPENAI_API_KEY", "[model_providers.x]", "--oss"):
        assert way in told
    name, payload = host.calls[-1]
    assert name == "update_plan"
    assert [step["status"] for step in json.loads(payload)["plan"]] == ["pending"] * 5


async def test_a_plan_needs_no_tools(tmp_path: Path) -> None:
    for tools in ((EXEC,), ()):
        host = Host(tmp_path, tools=tools)
        assert "1. Measure before changing anything" in await host.ask("make the parser faster")
        assert "update_plan" not in [name for name, _ in host.calls]


async def test_words_are_looked_for_in_texts_when_no_name_has_them(tmp_path: Path) -> None:
    host = Host(git_tree(tmp_path, {"a.py": "class Scheduler: ...\n", "b.py": ""}))

    assert "Files your words point to: `a.py`." in await host.ask("improve the scheduler")


async def test_another_language_is_answered_politely(tmp_path: Path) -> None:
    told = await Host(tmp_path).ask("Schreibe einen Parser für Zahlen")

    assert told.startswith(
        "My rules read English only, so I may have missed what you asked. “Schreibe einen Parser für Zahlen”"
    )


async def test_talk_about_itself_says_rules_and_ways_out(tmp_path: Path) -> None:
    told = await Host(tmp_path).ask("what are you?")

    assert "not an AI" in told and "OPENAI_API_KEY" in told and told.endswith(NOTICE)


async def test_an_empty_prompt_is_greeted(tmp_path: Path) -> None:
    assert (await Host(tmp_path).ask("")).startswith("Hello.")


@pytest.mark.parametrize(
    ("prompt", "first"),
    [
        ("fix the crash in the parser", "Reproduce the problem with the smallest command or test that shows it"),
        ("refactor the settings", "Make sure tests cover what must stay as it is"),
        ("write tests for the settings", "Read how the tests here are written"),
        ("document the settings", "Read what is documented already"),
        ("make it faster", "Measure before changing anything"),
        ("upgrade the dependencies", "Read the notes of what changes"),
        ("review my change", "Read the code it touches whole, and what was changed there last"),
        ("explain the settings", "Read the code it touches"),
        ("add a flag", "Read the code it touches for how such things are done here"),
        ("", "Find out what exactly is asked, and what would show that it is done"),
    ],
)
def test_the_first_kind_of_work_named_decides_the_steps(prompt: str, first: str) -> None:
    assert plan_steps(prompt, [])[0] == first


def test_key_words_are_the_telling_ones() -> None:
    assert key_words("Please add a retry_delay to the `HttpClient`, and use it!") == ["retry_delay", "httpclient"]


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a"]}, {"a": "T"}),
        ({"type": "object", "properties": {"a": STRING, "b": {"type": "number"}}}, {"a": "T", "b": 0}),
        ({"properties": {"a": {"type": "boolean"}}, "required": ["a"]}, {"a": False}),
        ({}, {}),
        ({"type": "object", "required": ["loose"]}, {"loose": "T"}),
        ({"type": "array", "items": STRING}, []),
        ({"type": "array", "items": STRING, "minItems": 2}, ["T", "T"]),
        ({"type": "array", "prefixItems": [STRING, {"type": "integer"}], "minItems": 2}, ["T", 0]),
        ({"enum": ["x", "y"]}, "x"),
        ({"const": {"k": 1}}, {"k": 1}),
        ({"type": ["null", "string"]}, "T"),
        ({"type": ["null", "integer"]}, 0),
        ({"type": "null"}, None),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 0),
        ({"oneOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"enum": [7]}}}, 7),
        (
            {
                "allOf": [
                    {"properties": {"a": STRING}, "required": ["a"]},
                    {"properties": {"b": {"type": "null"}}, "required": ["b"]},
                ]
            },
            {"a": "T", "b": None},
        ),
        (
            {"$ref": "#/definitions/d", "definitions": {"d": {"type": "object", "properties": {"s": STRING}}}},
            {"s": "T"},
        ),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "integer", "minimum": 5, "multipleOf": 4}, 8),
        ({"type": "number", "minimum": 1.5}, 2),
        ({"type": "string", "maxLength": 0}, ""),
        ({"type": "string", "minLength": 3}, "T.."),
        ({"type": "string", "format": "date"}, "1970-01-01"),
        ({"type": 5}, "T"),
        ({"type": "object", "properties": 5, "required": 5}, {}),
    ],
)
def test_a_schema_gets_the_plainest_value_that_fits(schema: dict[str, Any], expected: Any) -> None:
    assert fit(schema, "T") == expected


def test_a_long_text_is_cut_to_the_length_allowed() -> None:
    assert fit({"type": "string", "maxLength": 5}, "abcdefgh") == "abcd…"


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    names = [f"k{number}" for number in range(12)]
    tree = {"type": "object", "properties": {name: {"$ref": "#"} for name in names}, "required": names}
    loops: list[dict[str, Any]] = [
        tree,
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}]},
        {"type": "array", "minItems": 50, "items": {"$ref": "#"}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ]
    for schema in loops:
        assert len(json.dumps(fit(schema, "T"))) < 1_000_000
