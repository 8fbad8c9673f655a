"""`codex-py skills lint`: planted defects are found with file, line and remedy, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.home import Place
from tests.support.process import run

ROOT: Final = Path(__file__).parents[2]
# What each folder holds besides a good head, and what must be found in it: file, line, and a part of the message.
PLANTED: Final[dict[str, tuple[dict[str, str], list[tuple[str, int, str]]]]] = {
    "files": (
        {"SKILL.md": "Read [the guide](references/guide.md).\n\nSee `references/rules.md`, then `docs/release.md`.\n"
                     "\n```sh\npython3 scripts/gone.py\n```\n"},
        [("SKILL.md", 5, "references/guide.md"), ("SKILL.md", 7, "references/rules.md"),
         ("SKILL.md", 10, "scripts/gone.py")],
    ),
    "links": (
        {"SKILL.md": "# Top\n[down](#nowhere) [top](#top) [web](https://) [ref](references/a-file.md#lost)\n",
         "references/a-file.md": "# Found\n[x](other-file.md)\n"},
        [("SKILL.md", 6, "#nowhere"), ("SKILL.md", 6, "a-file.md#lost"),
         ("a-file.md", 2, "other-file.md")],
    ),
    "needs": (
        {"SKILL.md": "x\n", "agents/openai.yaml": "dependencies:\n  tools:\n    - {type: mcp, value: docs, "
                                                  "transport: pigeon}\n    - {type: wish, value: rain}\n"
                                                  "    - {type: cli, value: ls}\n",
         "head": "name: needs\ndescription: Water the plants of the office. Use when they are dry.\n"
                 "metadata:\n  version: 1.0\n  author: me\n  tags:\n    - a\n"},
        [("openai.yaml", 1, "its transport `pigeon`"), ("openai.yaml", 1, "`rain` of type `wish`"),
         ("SKILL.md", 4, "`metadata.version` is not a text"), ("SKILL.md", 4, "`metadata.tags` is not a text")],
    ),
    "syntax": (
        {"SKILL.md": "Run the scripts.\n", "scripts/a_tool.py": "x = 1\ndef f(:\n",
         "scripts/b_tool.sh": "if true; then\n"},
        [("a_tool.py", 2, "does not parse"), ("b_tool.sh", 2, "does not parse")],
    ),
    "head": (
        {"SKILL.md": "x\n", "head": "name: head\ndescription: Bake a loaf of bread with rye. Use when hungry.\n"
                                     "tagz: [a]\nargument-hnt: FILE\n"},
        [("SKILL.md", 4, "the field `tagz` is ignored"), ("SKILL.md", 5, "the field `argument-hnt` is ignored")],
    ),
    "Wrong": (
        {"SKILL.md": "x\n", "head": "name: Wrongly\ndescription: Odd\n"},
        [("SKILL.md", 2, "has capitals"), ("SKILL.md", 2, "is not that of the directory"),
         ("SKILL.md", 3, "3 characters")],
    ),
    "long": ({"SKILL.md": "line\n" * 600}, [("SKILL.md", 505, "600 lines")]),
    "nameless": ({"SKILL.md": "x\n", "head": "description: Knit a scarf of wool. Use when it is cold.\n"},
                 [("SKILL.md", 1, "missing field `name`")]),
    "twin-one": ({"SKILL.md": "x\n", "head": "name: twin-one\ndescription: Convert invoices into spreadsheets with "
                                            "totals by month. Use when invoices arrive.\n"},
                 [("SKILL.md", 3, "nearly that of `twin-two`")]),
    "twin-two": ({"SKILL.md": "x\n", "scripts/c.js": "let x = 1;\nlet = = 2;\n",
                  "head": "name: twin-two\ndescription: Convert invoices into spreadsheets with totals by month. "
                          "Use when invoices come.\n"},
                 [("SKILL.md", 3, "nearly that of `twin-one`"), ("c.js", 2, "does not parse")]),
}  # fmt: skip
ACTS = "Weave Sail Plant Paint Forge Brew Carve Tame Mend".split()
NOUNS = "baskets ships orchards walls swords coffee wood lions socks".split()


def plant(place: Place) -> Path:
    """A repository with skills that have defects."""
    top = place.repo / ".agents/skills"
    for number, (name, (files, _)) in enumerate(PLANTED.items()):
        act, noun = ACTS[number % 9], NOUNS[(number * 2 + number // 9) % 9]
        head = f"name: {name}\ndescription: {act} {noun} {number} times a day, {name}. Use when {noun} are wanted.\n"
        for file, text in files.items():
            if file != "head":
                whole = f"---\n{files.get('head', head)}---\n{text}" if file == "SKILL.md" else text
                path = place.write(f".agents/skills/{name}/{file}", whole)
                if text.startswith("#!/usr/bin/env"):
                    path.chmod(0o755)
    return top


def lint(place: Place, *paths: str | Path) -> list[dict[str, Any]]:
    ended = run(place, "skills", "lint", "--json", *map(str, paths))
    assert ended.status in (0, 1), ended.err
    return json.loads(ended.out)


def test_every_planted_defect_is_found_and_nothing_else(place: Place) -> None:
    findings = lint(place, plant(place))
    wanted = [(name, *defect) for name, (_, defects) in PLANTED.items() for defect in defects]
    assert (len(PLANTED), len(wanted)) == (10, 22)
    left = [
        (Path(entry["path"]), entry["line"], entry["message"]) for entry in findings
    ]  # fmt: skip
    missed: list[Any] = []
    for name, file, line, part in wanted:
        hits = [
            entry for entry in left if name in entry[0].parts and entry[0].name == file and entry[1] == line
            and part in entry[2]
        ]  # fmt: skip
        if hits:
            left.remove(hits[0])
        else:
            missed.append((name, file, line, part))
    assert (missed, left) == ([], [])
    assert all(entry["remedy"] and entry["line"] >= 1 and entry["file"] == entry["path"] for entry in findings)


def test_the_bundled_skills_have_no_findings(place: Place) -> None:
    ended = run(place, "skills", "lint", ROOT / "skills")
    assert (ended.status, ended.out, ended.err) == (0, "", "nothing to complain about\n")


def test_text_that_makes_a_file_is_no_finding_and_text_that_follows_one_is(place: Place) -> None:
    body = (
        "Save the result in `references/result.md`. Write it as `references/style.md` says.\n"
        "Take a name such as `references/names.md`, and never `scripts/x.py`.\n"
        "```sh\n./scripts/gone.sh --fast && cat <file>\n```\n"
    )
    head = "---\nname: notes\ndescription: Writes notes of a talk. Use when somebody has talked.\n---\n"
    path = place.write(".agents/skills/notes/SKILL.md", head + body)
    found = [(entry["line"], entry["message"]) for entry in lint(place, path)]
    assert found == [
        (5, "names `references/style.md`, which does not exist"),
        (8, "names `scripts/gone.sh`, which does not exist"),
    ]


def test_lint_checks_skills_where_the_configuration_is_broken(place: Place) -> None:
    place.configure("[skills\n")
    place.write(".agents/skills/bare/SKILL.md", "x\n")
    ended = run(place, "skills", "lint", ".agents/skills/../skills/bare")
    assert (ended.status, "missing YAML frontmatter" in ended.out, ended.err) == (1, True, "")


def test_no_script_is_run(place: Place) -> None:
    place.write(
        ".agents/skills/sly/SKILL.md",
        "---\nname: sly\ndescription: Does whatever was asked for. Use when something was.\n---\nx\n",
    )
    script = "touch mark; cat <<< $(touch mark)\n"
    place.write(".agents/skills/sly/scripts/sly.sh", script).chmod(0o755)
    ended = run(place, "skills", "lint", "--no-run", place.repo / ".agents/skills/sly")
    said = "`--no-run` is not needed any more: no script is run\nnothing to complain about\n"
    assert (ended.status, ended.out, ended.err) == (0, "", said)
    assert list(place.repo.rglob("mark")) == []


@pytest.mark.parametrize("name", ["two--hyphens", "-lead", "trail-", "under_score"])
def test_a_name_that_other_programs_refuse_is_named(place: Place, name: str) -> None:
    """What the validator of the Agent Skills format, skills-ref 0.1.1, refuses; it takes the other names."""
    for given, finds in ((name, True), ("web-2-print", False), ("代码-审查", False), ("größe", False)):
        text = f"---\nname: {given}\ndescription: Bake a loaf of bread with rye. Use when hungry.\n---\nBake.\n"
        path = place.write(f"skills/{given}/SKILL.md", text)
        ended = run(place, "skills", "lint", path.parent)
        assert ("other programs refuse the name" in ended.out + ended.err) == finds
        assert "cannot be mentioned" not in ended.out
