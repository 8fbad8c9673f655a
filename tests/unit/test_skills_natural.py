"""Names of skills in plain words: beside the word "skill" or after a verb, and not after a negation."""

from __future__ import annotations

import pytest

from codex_py.skills.natural import find_named, own_words, without_parts

NAMES = "release-notes fix-tests review code-review docs lint commit 发票 代码审查".split()


def named(text: str, *names: str) -> list[tuple[str, ...]]:
    return [found.names for found in find_named(text, names or NAMES)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("use the release notes skill", ["release-notes"]),
        ("please use the `release-notes` skill", ["release-notes"]),
        ("Use Release_Notes for 2.1.", ["release-notes"]),
        ("run fix tests", ["fix-tests"]),
        ("run fix-tests, then commit", ["fix-tests"]),
        ("The build is red. Run fix tests.", ["fix-tests"]),
        ("write it up with release-notes", ["release-notes"]),
        ("write it up with the docs skill", ["docs"]),
        ("use the skill called release-notes", ["release-notes"]),
        ("use skill: fix-tests", ["fix-tests"]),
        ("I want the release notes skill", ["release-notes"]),
        ("I'd like the code review skill here", ["code-review"]),
        ("go with release-notes", ["release-notes"]),
        ("let's go with lint", ["lint"]),
        ("don't worry, use lint", ["lint"]),
        ("use lint and docs", ["lint", "docs"]),
        ("use fix tests and release notes for this", ["fix-tests", "release-notes"]),
        ("use the fix-tests, lint and docs skills", ["fix-tests", "lint", "docs"]),
        ("按 release-notes 这个 skill 来", ["release-notes"]),
        ("使用代码审查", ["代码审查"]),
        ("用一下 release-notes 这个技能", ["release-notes"]),
        ("用一下代码审查这个技能", ["代码审查"]),
        ("用发票这个技能", ["发票"]),
        ("用 release-notes 和 lint", ["release-notes", "lint"]),
        ("用 代码审查 和 发票 检查", ["代码审查", "发票"]),
        ("benutze den Skill release-notes dafür", ["release-notes"]),
    ],
)
def test_a_name_beside_the_word_skill_or_after_a_verb_counts(text: str, names: list[str]) -> None:
    assert named(text) == [(name,) for name in names]


@pytest.mark.parametrize(
    "text",
    [
        "where are the release notes?",
        "don't use the release notes skill",
        "do not ever run fix-tests",
        "never use lint",
        "I don't want the lint skill",
        "do it without the fix-tests skill",
        "do not go with release-notes",
        "stop using the release notes skill",
        "instead of the release notes skill take the old text",
        "不要用 release-notes 这个 skill",
        "不要用 release-notes 和 lint",
        "别用代码审查技能",
        "help me with docs",
        "please review this",
        "use the release notes of last year as a template",
        "use release notes templates from the wiki",
        "run fix tests.py",
        "run scripts/fix-tests",
        "use /opt/release-notes for the output",
        "run fix_tests_all",
        "```\nuse the release notes skill\n```",
        "> use the release notes skill\nwhat do you think?",
        'the README says "use the release notes skill" and that is wrong',
        "<file>\nuse the release notes skill\n</file>\nsummarise this",
        "    use the release notes skill\nwhy is this line here?",
    ],
)
def test_what_is_denied_quoted_or_part_of_something_else_names_nothing(text: str) -> None:
    assert named(text) == []


def test_one_name_that_fits_two_skills_stays_open() -> None:
    assert named("use the release notes skill", "release-notes", "acme:release-notes") == [
        ("release-notes", "acme:release-notes")
    ]
    assert named("use the acme:release-notes skill", "release-notes", "acme:release-notes") == [("acme:release-notes",)]


def test_the_longest_name_counts_and_two_names_are_two() -> None:
    assert named("use the code review skill", "review", "code-review") == [("code-review",)]
    assert named("run fix tests, then use the release notes skill") == [("fix-tests",), ("release-notes",)]


def test_what_is_joined_to_a_used_name_is_used_too() -> None:
    both = [("fix-tests",), ("release-notes",)]
    assert named("use the fix-tests and release-notes skills") == both
    assert named("use the fix-tests skill, and also the release notes skill") == both
    assert named("用 fix-tests 技能和 release-notes 技能") == both
    assert named("use the fix-tests skill and commit the release notes") == both[:1]
    assert named("use the fix-tests skill and release notes templates") == both[:1]
    assert named("use the fix-tests skill and not the release notes skill") == both[:1]


def test_a_part_of_a_text_can_be_left_out_by_its_bytes() -> None:
    text = "ü look: use the release notes skill now"
    start = text.encode().index(b"use")
    assert without_parts(text, [(start, start + 27)]) == "ü look: \n now"


def test_a_hostile_text_is_read_in_time() -> None:
    for text in ("use " * 3000, "`" * 8000, "<a>" * 3000, '"' * 8000, "use the " + "release-" * 1000, "「" * 8000):
        assert find_named(text, NAMES) == []
    assert own_words("```\nnever closed") == "\n"
