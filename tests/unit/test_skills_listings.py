"""Skills read by way of a list of files: loops over patterns, `find`, `xargs`. Nothing is looked up for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.implicit import SkillIndex, detect_skill_use
from codex_py.skills.model import SkillRoot
from tests.unit.skill_builders import catalog, skill

HIDDEN = SkillRoot(Path("/repo/.agents/skills"), "repo", "agents")
OPEN = SkillRoot(Path("/repo/skills"), "user", "extra")
SKILLS = catalog(skill("lint", root=HIDDEN), skill("fmt", root=HIDDEN), skill("deploy", root=OPEN))

ALL = {"lint", "fmt", "deploy"}
AGENTS = {"lint", "fmt"}


def read_by(command: str) -> set[str]:
    index = SkillIndex(SKILLS, variables={"HOME": "/repo"})
    uses = detect_skill_use(command, Path("/repo"), index)
    assert all(use.kind == "read" for use in uses)
    return {use.skill.name for use in uses}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ('for f in skills/*/SKILL.md; do cat "$f"; done', {"deploy"}),
        ('for f in .agents/skills/*/SKILL.md; do echo "== $f"; sed -n 1,40p $f; done', AGENTS),
        ('for f in {skills,.agents/skills}/*/SKILL.md; do head "$f"; done', ALL),
        ('for d in .agents/skills/*/; do head -5 "$d/SKILL.md"; done', AGENTS),
        ('for d in .agents/skills/*/; do head -5 "${d%/}/SKILL.md"; done', AGENTS),
        ("for d in .agents/skills/l*; do cat $d/SKILL.md; done", {"lint"}),
        ("P='skills/*/SKILL.md'; cat $P", {"deploy"}),
        ("P='skills/*/SKILL.md'; cat \"$P\"", set[str]()),
        ("for f in '.agents/skills/*/SKILL.md'; do cat \"$f\"; done", set[str]()),
    ],
)
def test_a_pattern_in_a_variable_is_those_of_known_skills(command: str, names: set[str]) -> None:
    assert read_by(command) == names


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (r"find . -name SKILL.md -exec cat {} \;", ALL),
        ("find skills .agents/skills/lint -type f -name SKILL.md -exec head -n 5 {} +", {"deploy", "lint"}),
        ("find . -name SKILL.md -execdir cat {} +", ALL),
        (r"find skills -name SKILL.md -exec cat {} \; -exec echo \;", {"deploy"}),
        ("find -L /repo/skills -name '*.md' -print0 | xargs -0 cat", {"deploy"}),
        ("find .agents/skills -maxdepth 2 -iname skill.md 2>/dev/null | xargs cat", AGENTS),
        ("find .agents/skills -maxdepth 1 -name SKILL.md | xargs cat", set[str]()),
        ("find . -mindepth 4 -name SKILL.md | xargs cat", AGENTS),
        ("find . -path '*/lint/*' -name SKILL.md | xargs cat", {"lint"}),
        ("find . -ipath './AGENTS/*' -name SKILL.md | xargs cat", set[str]()),
        ("find . -name SKILL.md -not -path './.agents/*' | xargs cat", {"deploy"}),
        ("find . ! -path '*/fmt/*' -name SKILL.md | sort -u | xargs -n 1 cat", {"deploy", "lint"}),
        ("find . -name SKILL.md | xargs -I{} sed -n '1,5p' {}", ALL),
        ("find . -name SKILL.md | xargs -I % head %", ALL),
        ("ls .agents/skills/*/SKILL.md | xargs cat", AGENTS),
        (r"printf '%s\n' skills/deploy/SKILL.md .agents/skills/fmt/SKILL.md | xargs cat", {"deploy", "fmt"}),
        ("(cd skills && ls deploy/SKILL.md) ; cd skills && echo deploy/SKILL.md | xargs cat", {"deploy"}),
        ('find . -name SKILL.md | while read -r f; do echo "$f"; cat "$f"; done', ALL),
        ("find . -name SKILL.md -print0 | while IFS= read -r -d '' f; do cat \"$f\"; done", ALL),
        ('while read -r f; do cat "$f"; done < <(find skills -name SKILL.md)', {"deploy"}),
        ("cat $(find . -name SKILL.md)", ALL),
        ('for f in $(find .agents -name "SKILL.md" | sort); do head -3 $f; done', AGENTS),
        ("F=`ls skills/*/SKILL.md`; cat $F", {"deploy"}),
        (r'bash -lc "cd .agents && find . -name SKILL.md -exec cat {} \;"', AGENTS),
    ],
)
def test_a_list_that_is_handed_on_is_those_of_known_skills(command: str, names: set[str]) -> None:
    assert read_by(command) == names


@pytest.mark.parametrize(
    "command",
    [
        "find . -name SKILL.md",
        "find . -name SKILL.md | wc -l",
        r"find . -name SKILL.md -exec wc -l {} \;",
        "find . -name SKILL.md -exec",
        "find . -name SKILL.md | xargs",
        "cat notes | xargs cat # SKILL.md",
        # Which of them it is cannot be told.
        "find . -name SKILL.md | head -1 | xargs cat",
        "find . -name SKILL.md -mtime -1 | xargs cat",
        "find . -name SKILL.md -o -name README.md | xargs cat",
        r"find . \( -name SKILL.md \) -exec cat {} +",
        "find $UNKNOWN -name SKILL.md -exec cat {} +",
        "find . -maxdepth x -name SKILL.md -exec cat {} +",
        "find . -type d -name SKILL.md | xargs cat",
        "for f in $(cat list); do cat $f/SKILL.md; done",
        "cd $(find . -name SKILL.md) && cat SKILL.md",
    ],
)
def test_what_cannot_be_told_is_no_use(command: str) -> None:
    assert read_by(command) == set()


@pytest.mark.parametrize(
    "command",
    [
        "cat $(" * 3_000 + "find . -name SKILL.md",
        "cat $(find x -name SKILL.md) " * 500,
        "find " + "x " * 5_000 + "-name SKILL.md -exec cat {} +",
        "find x " + "-name '*a*a*a*a*' " * 800 + "-exec cat {} + # SKILL",
        "find x -name SKILL.md" + " | sort" * 2_000 + " | xargs cat",
        "xargs " * 2_000 + "cat SKILL.md",
        "for a in $(find x -name SKILL.md); do " * 30 + "cat $a" + "; done" * 30,
        "find x -maxdepth " + "9" * 10_000 + " -name SKILL.md | xargs cat",
    ],
    ids=lambda command: ascii(command[:16]),
)
def test_hostile_lists_come_to_an_end(command: str) -> None:
    assert read_by(command) == set()
