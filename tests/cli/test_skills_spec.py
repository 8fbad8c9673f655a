"""`codex-py skills lint --spec`: the verdict of the reference validator of the Agent Skills format, skills-ref."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from skills_ref.validator import validate

from codex_py.skills.spec import check_spec
from tests.support.home import Place
from tests.support.process import run

ROOT: Final = Path(__file__).parents[2]
GOOD: Final = "name: a-skill\ndescription: Does a thing.\n"


def _heads() -> Iterator[str]:
    """Front matter, each for a skill in the directory `a-skill`."""
    yield GOOD
    names = (
        "A-skill b-skill -a a- a--skill a_skill 'a skill' ~ null 12 1.5 true ａ-ｓｋｉｌｌ ﬁ ² é 技能 '' \"a-skill \""
        " [a] {a: b} *a &a"
    )
    for name in (*names.split(" "), "a" * 65, "!!str a-skill", "|\n  a-skill", ">\n  a-\n  skill", "\n  - a"):
        yield f"name: {name}\ndescription: x\n"
    for text in (
        "",
        "''",
        "' '",
        "[a]",
        "~",
        "|\n  x",
        ">-\n  x\n  y",
        "a: b",
        "a #b",
        "@a",
        "`a`",
        "%a",
        "'a",
        "- a",
        "a --- b",
        "a\u2028b",
        "|\n  a\u2028b",
        ">\n  a\x85b\n  c",
        "|\n  a\u2029\n  b",
    ):
        yield f"name: a-skill\ndescription: {text}\n"
    for count in (1023, 1024, 1025):
        yield f"name: a-skill\ndescription: {'x' * count}\n"
        yield f"name: a-skill\ndescription: |\n  {'x' * count}\n"
        yield f"name: a-skill\ndescription: >\n  {'x' * 500}\n  {'x' * (count - 501)}\n"
    for count in (500, 501):
        yield f"{GOOD}compatibility: {'é' * count}\n"
    for value in (
        "x",
        "1.0",
        "\n  version: 1.0\n  tags:\n    - a",
        "\n  a:\n    b: c\n  d:\n    e: f",
        "\n  a:\n    b: c\n  d:\n      e: f",
        "\n  - a\n  - b: c\n",
        "\n  a: 1\n  a: 2",
        "\n  ? a\n  : b",
        "\n  : b",
        "\n  ? - a\n  : b",
        "{a: b}",
        "[a, b]",
        "\n\ta: b",
        "\n  a: b\n c: d",
        "&x\n  a: b",
        "*x",
        "!t x",
        "'a",
        "\n  a: |\n    [b]",
        "a: b",
        "\n  <<: x",
        "\n  <<:\n    a: b\n  a: c",
        "\n  <<:\n    - a: b\n    - c",
    ):
        for key in ("metadata", "license", "allowed-tools", "compatibility", "other"):
            yield f"{GOOD}{key}: {value}\n"
    yield from (f"{GOOD}<<:\n  name: x\n", f"{GOOD}<<:\n  license: x\n", f"{GOOD}<<:\n  other: x\n")
    yield from ("description: x\n<<:\n  name: a-skill\n", "name: a-skill\n<<:\n  - description: x\n")
    yield from ("", "x", "- a\n", "name: a-skill\n", "description: x\n", f"{GOOD}name: a-skill\n", f"{GOOD}...\nx: y\n")
    yield from (f"\t{GOOD}", f"  {GOOD}", f"# a note\n{GOOD}", f"{GOOD}license: a\x07b\n", f"{GOOD}license: a\u2028b\n")


def _write(directory: Path, raw: bytes, name: str = "SKILL.md") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(raw)
    return directory


def _is_refused_by_reference(directory: Path) -> bool:
    try:
        return bool(validate(directory))
    except Exception:
        # Its command line ends with a traceback and status 1.
        return True


@pytest.mark.parametrize("head", list(_heads()))
def test_the_verdict_on_front_matter_is_that_of_the_reference(tmp_path: Path, head: str) -> None:
    for text in (f"---\n{head}---\nDo it.\n", f"---\n{head}---\nDo it.\n".replace("\n", "\r\n")):
        directory = _write(tmp_path / "a-skill", text.encode())
        assert bool(check_spec(directory)) == _is_refused_by_reference(directory)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no front matter",
        b"\n---\nname: a-skill\n---\n",
        b"---\nname: a-skill\ndescription: x\n",
        b"------\n",
        b"---name: a-skill\ndescription: x---",
        b"--- \nname: a-skill\ndescription: x\n ---\n",
        b"\xef\xbb\xbf---\nname: a-skill\ndescription: x\n---\n",
        b"---\nname: a-skill\ndescription: \xff\n---\n",
    ],
)
def test_the_verdict_on_a_file_is_that_of_the_reference(tmp_path: Path, raw: bytes) -> None:
    for name in ("SKILL.md", "skill.md", "Skill.md"):
        directory = _write(tmp_path / name / "a-skill", raw, name)
        assert bool(check_spec(directory)) == _is_refused_by_reference(directory)


def test_the_bundled_skills_follow_the_reference() -> None:
    skills = sorted(path.parent for path in ROOT.glob("skills/*/SKILL.md"))
    assert skills
    assert [(check_spec(path), validate(path)) for path in skills] == [((), [])] * len(skills)


def test_the_status_is_the_verdict_and_each_fault_is_a_line(place: Place) -> None:
    good = place.write("a-skill/SKILL.md", f"---\n{GOOD}---\n")
    for path in (good, good.parent, "./a-skill/"):
        ended = run(place, "skills", "lint", "--spec", path)
        assert (ended.status, ended.out, ended.err) == (0, "", "nothing to complain about\n")
    bad = place.write("b-skill/SKILL.md", f"---\n{GOOD}model: x\n---\n")
    ended = run(place, "skills", "lint", "--spec", bad.parent)
    assert (ended.status, ended.out.splitlines(), ended.err) == (
        1,
        [
            f"error: {bad}:1: the format has no field `model`",
            f"error: {bad}:1: the name `a-skill` is not that of the directory `b-skill`",
        ],
        "",
    )
    found = json.loads(run(place, "skills", "lint", "--spec", "--json", bad.parent).out)
    assert [(entry["rule"], entry["level"], entry["file"]) for entry in found] == [("spec", "error", str(bad))] * 2
    for paths in (["absent"], ["a-skill", "b-skill"]):
        assert run(place, "skills", "lint", "--spec", *paths).status == 2


def test_metadata_that_is_no_text_is_named_and_changes_no_verdict(place: Place) -> None:
    values = (
        "version: 1.0\n  on: true\n  day: 2026-01-31\n  none: ~\n  fine: '2.0'\n  words: two words\n  tags:\n    - a\n"
    )
    path = place.write("a-skill/SKILL.md", f"---\n{GOOD}metadata:\n  {values}---\n")
    named = ["version", "on", "day", "none", "tags"]
    ended = run(place, "skills", "lint", "--spec", path)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.splitlines()[:-1] == [f"`metadata.{key}` is not a text: put it in quotes" for key in named]
    found = [entry["message"] for entry in json.loads(run(place, "skills", "lint", "--json", path).out)]
    assert [text.split("`")[1] for text in found if "metadata" in text] == [f"metadata.{key}" for key in named]
