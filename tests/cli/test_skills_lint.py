"""`codex-py skills lint`: planted defects are found with file, line and remedy, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from codex_py.skills.lint_repository import read_repository
from tests.support.home import Place
from tests.support.process import run

ROOT: Final = Path(__file__).parents[2]
TOOL = "#!/usr/bin/env python3\nimport argparse\nargparse.ArgumentParser().parse_args()\n"
# What each folder holds besides a good head, and what must be found in it: file, line, and a part of the message.
PLANTED: Final[dict[str, tuple[dict[str, str], list[tuple[str, int, str]]]]] = {
    "files": (
        {"SKILL.md": "Read [the guide](references/guide.md).\n\nSee `references/rules.md`, then `docs/release.md`.\n"
                     "\n```sh\npython3 scripts/gone.py\n```\n"},
        [("SKILL.md", 5, "references/guide.md"), ("SKILL.md", 7, "references/rules.md"),
         ("SKILL.md", 7, "`docs/release.md`, which is not in the repository"), ("SKILL.md", 10, "scripts/gone.py")],
    ),
    "links": (
        {"SKILL.md": "# Top\n[down](#nowhere) [top](#top) [web](https://) [ref](references/a-file.md#lost)\n",
         "references/a-file.md": "# Found\n[x](other-file.md)\n"},
        [("SKILL.md", 6, "#nowhere"), ("SKILL.md", 6, "https://"), ("SKILL.md", 6, "a-file.md#lost"),
         ("a-file.md", 2, "other-file.md")],
    ),
    "commands": (
        {"SKILL.md": "```bash\ncd x && frobnicate-all --now | sort\nsort --tool one-tool|other-tool\n```\n"},
        [("SKILL.md", 6, "`frobnicate-all` is not on `PATH`")],
    ),
    "flags": (
        {"SKILL.md": "```sh\npython3 scripts/tool.py --help --wibble=3\n```\n",
         "scripts/tool.py": TOOL},
        [("SKILL.md", 6, "knows no `--wibble`")],
    ),
    "prose": (
        {"SKILL.md": "Run `frobnicate-most --now`, then `scripts/tool.py --wobble`, not `a b`.\nRun `npm run ship`.\n"
                     "Execute `python3 scripts/plain.py`.\n",
         "scripts/tool.py": TOOL, "scripts/plain.py": "raise SystemExit(3)\n"},
        [("SKILL.md", 5, "`frobnicate-most` is not on `PATH`"), ("SKILL.md", 5, "knows no `--wobble`"),
         ("SKILL.md", 6, "`package.json` has no `ship`"), ("plain.py", 1, "`--help` fails in the sandbox with 3")],
    ),
    "needs": (
        {"SKILL.md": "x\n", "agents/openai.yaml": "dependencies:\n  tools:\n    - {type: mcp, value: docs, "
                                                  "transport: pigeon}\n    - {type: wish, value: rain}\n"
                                                  "    - {type: cli, value: ls}\n",
         "head": "name: needs\ndescription: Water the plants of the office. Use when they are dry.\n"
                 f"allowed-tools: Reed, Bash, my_tool\ncompatibility: {'c' * 501}\n"},
        [("openai.yaml", 1, "its transport `pigeon`"), ("openai.yaml", 1, "`rain` of type `wish`"),
         ("SKILL.md", 4, "names `Reed`, which is no tool"), ("SKILL.md", 5, "501 characters")],
    ),
    "tasks": (
        {"SKILL.md": "```sh\nnpm run build-all\nmake shipit\nnpm run test\nmake lint\n```\n"},
        [("SKILL.md", 6, "`package.json` has no `build-all`"), ("SKILL.md", 7, "the `Makefile` has no `shipit`")],
    ),
    "imports": (
        {"SKILL.md": "Run `python3 scripts/load.py`.\n",
         "scripts/load.py": "import json\nimport notapackageatall\n"},
        [("load.py", 2, "imports `notapackageatall`")],
    ),
    "syntax": (
        {"SKILL.md": "Run the scripts.\n", "scripts/a_tool.py": "x = 1\ndef f(:\n",
         "scripts/b_tool.sh": "if true; then\n"},
        [("a_tool.py", 2, "does not parse"), ("b_tool.sh", 2, "does not parse")],
    ),
    "helpless": (
        {"SKILL.md": "Run the script.\n", "scripts/run.py": "#!/usr/bin/env python3\n"
         "raise SystemExit('needs a file')\n"},
        [("run.py", 1, "`--help` fails in the sandbox with 1: needs a file")],
    ),
    "versions": (
        {"SKILL.md": "Works with Python 3.8.\nUse Node 14 and `react@16`, not Python 3.12 or node 22.\n"},
        [("SKILL.md", 5, "names python 3.8"), ("SKILL.md", 6, "names node 14"), ("SKILL.md", 6, "names react 16")],
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
    "long": ({"SKILL.md": "line\n" * 600}, [("SKILL.md", 505, "lines: move")]),
    "nameless": ({"SKILL.md": "x\n", "head": "description: Knit a scarf of wool. Use when it is cold.\n"},
                 [("SKILL.md", 1, "missing field `name`")]),
    "twin-one": ({"SKILL.md": "x\n", "head": "name: twin-one\ndescription: Convert invoices into spreadsheets with "
                                            "totals by month. Use when invoices arrive.\n"},
                 [("SKILL.md", 3, "nearly that of `twin-two`")]),
    "twin-two": ({"SKILL.md": "x\n", "scripts/a.sh": "#!/bin/sh\n", "evals/a.yaml": "promt: x\n",
                  "head": "name: twin-two\ndescription: Convert invoices into spreadsheets with totals by month. "
                          "Use when invoices come.\n"},
                 [("SKILL.md", 3, "nearly that of `twin-one`"), ("a.sh", 1, "not executable"), ("a.yaml", 1, "promt")]),
}  # fmt: skip
ACTS = "Weave Sail Plant Paint Forge Brew Carve Tame Mend".split()
NOUNS = "baskets ships orchards walls swords coffee wood lions socks".split()


def plant(place: Place) -> Path:
    """A repository with manifests and fifteen skills with defects."""
    place.write("package.json", json.dumps({"scripts": {"test": "x"}, "engines": {"node": ">=20"},
                                            "dependencies": {"react": "^18.2.0"}}))  # fmt: skip
    place.write("pyproject.toml", '[project]\nname = "x"\nrequires-python = ">=3.11"\n')
    place.write("Makefile", ".PHONY: lint\nlint:\n\ttrue\n")
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
    assert (len(PLANTED), len(wanted)) == (17, 38)
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


def test_fix_does_what_is_mechanical_and_leaves_the_rest(place: Place) -> None:
    skill = place.write(
        ".agents/skills/mend/skill.md",
        "---\nname: mend\ndescription: Mends: socks and gloves. Use when they have holes.\nargument-hnt: FILE\n---\n"
        "Read `references/guide.md` and `references/lost.md`.\n",
    )
    place.write(".agents/skills/mend/references/deep/guide.md", "# Guide\n")
    script = place.write(".agents/skills/mend/scripts/go.py", TOOL)
    before = lint(place, skill.parent)
    assert [entry["rule"] for entry in before].count("load") == 1
    ended = run(place, "skills", "lint", "--fix", skill.parent)
    path = skill.with_name("SKILL.md")
    assert ended.err == "repaired 5 of 6 findings\n"
    assert ended.out == (
        f"advice: {path}:6: names `references/lost.md`, which is not there (add the file, or remove the reference)\n"
    )
    text = path.read_text()
    assert 'description: "Mends: socks and gloves. Use when they have holes."' in text or "description: 'Mends" in text
    assert "argument-hint: FILE" in text
    assert "`references/deep/guide.md`" in text
    assert os.access(script, os.X_OK)
    assert sorted(entry.name for entry in skill.parent.iterdir()) == ["SKILL.md", "references", "scripts"]


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
        (5, "names `references/style.md`, which is not there"),
        (8, "names `scripts/gone.sh`, which is not there"),
    ]


def test_no_run_leaves_scripts_alone(place: Place) -> None:
    plant(place)
    ended = run(place, "skills", "lint", "--no-run", place.repo / ".agents/skills/helpless")
    assert (ended.status, ended.out, ended.err) == (0, "", "nothing to complain about\n")


def test_a_script_is_run_where_it_can_write_nothing(place: Place) -> None:
    body = "#!/usr/bin/env python3\nimport pathlib\npathlib.Path(__file__).with_name('mark').write_text('x')\n"
    place.write(
        ".agents/skills/sly/SKILL.md",
        "---\nname: sly\ndescription: Does things. Use when things are to be done.\n---\nx\n",
    )
    script = place.write(".agents/skills/sly/scripts/sly.py", body)
    script.chmod(0o755)
    [finding] = lint(place, script.parent.parent)
    assert "`--help` fails in the sandbox" in finding["message"]
    assert not script.with_name("mark").exists()


@pytest.mark.parametrize("damage", ["package.json", "pyproject.toml", "Makefile"])
def test_a_damaged_manifest_counts_as_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / damage).write_bytes(b"\xff{[:\n" * 100)
    facts = read_repository(tmp_path)
    assert (facts.npm_scripts, dict(facts.versions)) == (None, {})


def test_a_broken_configuration_does_not_keep_skills_from_being_checked(place: Place) -> None:
    place.configure("[skills\n")
    place.write(".agents/skills/bare/SKILL.md", "x\n")
    ended = run(place, "skills", "lint", ".agents/skills/../skills/bare")
    assert (ended.status, "missing YAML frontmatter" in ended.out) == (1, True)
    assert ended.err.startswith("warning: scripts are not run: cannot read `")


def test_evaluations_are_read_by_whatever_path_the_skill_is_named(place: Place) -> None:
    head = "---\nname: bare\ndescription: Strips the paint off doors. Use when they are painted.\n---\nx\n"
    place.write(".agents/skills/bare/SKILL.md", head)
    place.write(".agents/skills/bare/evals/a.yaml", "prompt: x\n")
    (place.repo / "link").symlink_to(place.repo / ".agents/skills/bare")
    for path in (".agents/skills/../skills/bare", "."):
        cwd = place.repo / ".agents/skills/bare" if path == "." else place.repo
        ended = run(place, "skills", "lint", path, cwd=cwd)
        assert (ended.out, ended.err) == ("", "nothing to complain about\n")


@pytest.mark.parametrize("name", ["two--hyphens", "-lead", "trail-", "under_score"])
def test_a_name_that_other_programs_refuse_is_named(place: Place, name: str) -> None:
    """What the validator of the Agent Skills format, skills-ref 0.1.1, refuses; it takes the second name."""
    for given, finds in ((name, True), ("web-2-print", False)):
        text = f"---\nname: {given}\ndescription: Bake a loaf of bread with rye. Use when hungry.\n---\nBake.\n"
        path = place.write(f"skills/{given}/SKILL.md", text)
        ended = run(place, "skills", "lint", "--no-run", path.parent)
        assert ("other programs refuse the name" in ended.out + ended.err) == finds


def test_the_first_hundred_programs_of_a_text_are_looked_for(place: Place) -> None:
    """The whole text is searched for each, so a text of nothing but commands would take minutes."""
    lines = "\n".join(f"frobnicate{number} now" for number in range(150))
    text = f"---\nname: many\ndescription: Bake a loaf of bread. Use when hungry.\n---\n```sh\n{lines}\n```\n"
    path = place.write("skills/many/SKILL.md", text)
    found = json.loads(run(place, "skills", "lint", "--no-run", "--json", path.parent).out)
    assert len([entry for entry in found if entry["rule"] == "missing-command"]) == 100
