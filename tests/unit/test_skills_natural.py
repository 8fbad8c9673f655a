"""Names of skills in plain words: what counts, and that ordinary messages name nothing."""

from __future__ import annotations

import pytest

from codex_py.skills.natural import find_named, own_words, without_parts

NAMES = (
    "release-notes fix-tests review code-review docs changelog deploy lint commit test-runner api-docs plan debug"
    " pull-request unit-tests dark-mode health-check feature-flag error-handling database-migration acme:release-notes"
    " acme:sync-work refactor explain typescript docker-build security-audit data-quality xlsx pdf"
).split()


def named(text: str, *names: str) -> list[tuple[str, ...]]:
    return [found.names for found in find_named(text, names or (*NAMES[:20], "发票"))]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("use the release notes skill", "release-notes"),
        ("Use the release-notes skill for 2.1.", "release-notes"),
        ("please use the `release-notes` skill", "release-notes"),
        ("can you write it up with the release notes skill?", "release-notes"),
        ("run fix tests", "fix-tests"),
        ("run fix-tests, then commit", "fix-tests"),
        ("apply fix tests to this package and tell me what is left", "fix-tests"),
        ("I want you to use the fix-tests skill here", "fix-tests"),
        ("could we use the code review skill on this branch", "code-review"),
        ("use the review skill", "review"),
        ("use the skill review", "review"),
        ("follow the docs skill", "docs"),
        ("按 release-notes 这个 skill 来", "release-notes"),
        ("按照 release-notes 技能写一份说明", "release-notes"),
        ("用 fix-tests 来修一下测试", "fix-tests"),
        ("请使用 code-review 检查这个分支", "code-review"),
        ("用 review 这个 skill 看一下", "review"),
        ("release-notes スキルを使って", "release-notes"),
        ("benutze den Skill release-notes dafür", "release-notes"),
        ("verwende bitte fix-tests", "fix-tests"),
        ("utilise le skill release-notes", "release-notes"),
        ("usa el skill release-notes", "release-notes"),
        ("The build is red. Run fix tests.", "fix-tests"),
        ("use the skill called release-notes", "release-notes"),
        ("use skill: fix-tests", "fix-tests"),
        ("write it with the release notes skill", "release-notes"),
        ("I want you to write it with the release notes skill", "release-notes"),
        ("mach das mit dem release-notes Skill", "release-notes"),
        ("con el skill release-notes haz un resumen", "release-notes"),
        ("avec le skill release-notes fais un résumé", "release-notes"),
        ("use o skill release-notes", "release-notes"),
        ("gebruik de skill release-notes", "release-notes"),
        ("используй скилл release-notes", "release-notes"),
        ("release-notes 스킬을 사용해서 작성해 줘", "release-notes"),
        ("用发票这个技能", "发票"),
        ("使用「发票」技能", "发票"),
        ("applique le skill release-notes", "release-notes"),
        ("verwende dafür den release-notes-Skill", "release-notes"),
        ("could you use the release notes skill?", "release-notes"),
    ],
)
def test_a_name_beside_a_word_for_using_it_is_named(text: str, name: str) -> None:
    assert named(text) == [(name,)]


@pytest.mark.parametrize(
    "text",
    [
        "where are the release notes?",
        "the release notes are wrong",
        "read the release-notes file",
        "write release notes for 2.1",
        "don't use the release notes skill",
        "do not run fix tests yet",
        "never use the release-notes skill here",
        "do it without the release notes skill",
        "instead of the release notes skill take the old text",
        "stop using the release notes skill",
        "you shouldn't use the release notes skill",
        "you needn’t use the review skill",
        "please refrain from using the release notes skill",
        "before you use the release notes skill, ask me",
        "I have a problem with the release notes skill",
        "it conflicts with the review skill",
        "fix the issue with the release notes skill",
        "compare it with the release notes skill",
        "I am happy with the review skill",
        "ich habe ein Problem mit dem release-notes Skill",
        "j'ai un problème avec le skill release-notes",
        "não use o skill release-notes",
        "gebruik niet de skill release-notes",
        "не используй скилл release-notes",
        "release-notes 스킬은 사용하지 마",
        "不要用 release-notes 这个 skill",
        "别用 fix-tests 来做",
        "怎么用 release-notes 这个 skill？",
        "bitte nicht den Skill release-notes benutzen",
        "benutze den release-notes Skill bitte nicht",
        "release-notes スキルを使わないで",
        "I already use fix tests",
        "we always use the release notes skill",
        "how do I use the release notes skill?",
        "why did you use the fix-tests skill?",
        "what does the release-notes skill do?",
        "when should I use the code review skill?",
        "we use the release notes skill every week",
        "does anybody use the fix-tests skill",
        "run review",
        "use docs",
        "please review this",
        "use the release notes of last year as a template",
        "use release notes templates from the wiki",
        "run fix tests.py",
        "run scripts/fix-tests",
        "use /opt/release-notes for the output",
        "run fix_tests_all",
        "he told me to use the release notes skill",
        "they said use the release notes skill",
        "the docs say: use the release notes skill",
        "TODO: use the release notes skill",
        "文档里写着：用 release-notes 技能",
        "禁止使用 release-notes 技能",
        "用发票",
        "| use the release notes skill | yes |",
        "use the release notes skill? no!",
        "use the pull request template",
        "use dark mode",
        "use unit tests to pin down what it does",
        "use error handling in the uploader, then commit",
        "verwende unit tests für den Parser",
        "用 unit tests 来覆盖边界情况",
        "使用 dark mode",
        "use unit tests instead of mocks",
        "run unit tests-only mode",
        "```\nuse the release notes skill\n```",
        "> use the release notes skill\nwhat do you think?",
        'the README says "use the release notes skill" and that is wrong',
        "<file>\nuse the release notes skill\n</file>\nsummarise this",
        "    use the release notes skill\nwhy is this line here?",
    ],
)
def test_what_is_quoted_asked_denied_or_part_of_something_else_names_nothing(text: str) -> None:
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
    assert named("use fix tests and release notes for this") == both
    assert named("use the fix-tests and release-notes skills") == both
    assert named("use the fix-tests skill, and also the release notes skill") == both
    assert named("用 fix-tests 技能和 release-notes 技能") == both
    assert named("use the fix-tests skill and commit the release notes") == both[:1]
    assert named("use the fix-tests skill and release notes templates") == both[:1]
    assert named("use the fix-tests skill and not the release notes skill") == both[:1]
    assert named("don't use the fix-tests skill and the release notes skill") == []


def test_a_part_of_a_text_can_be_left_out_by_its_bytes() -> None:
    text = "ü look: use the release notes skill now"
    start = text.encode().index(b"use")
    assert without_parts(text, [(start, start + 27)]) == "ü look: \n now"


def test_a_hostile_text_is_read_in_time() -> None:
    for text in ("use " * 3000, "`" * 8000, "<a>" * 3000, '"' * 8000, "use the " + "release-" * 1000, "「" * 8000):
        assert find_named(text, NAMES) == []
    assert own_words("```\nnever closed") == "\n"
