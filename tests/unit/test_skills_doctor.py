"""`skills doctor` and `skills lint`: why a skill is not loaded, and what would make it better."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.skills.doctor import Examination, NameClash, examine
from codex_py.skills.lint import lint
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.rules import SkillSwitch
from codex_py.skills.service import SkillService


class Workplace:
    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.home = self.top / "home"
        self.project = self.top / "project"
        self.repo = self.project / ".agents" / "skills"
        self.user = self.home / "skills"
        self.repo.mkdir(parents=True)
        self.user.mkdir(parents=True)

    def examine(self, *rules: SkillSwitch) -> Examination:
        request = SkillRootsRequest(
            self.home, self.top / "u", self.project, self.project, system=self.top / "etc", bundled=False
        )
        catalog = SkillService().catalog(request, rules)
        return examine(catalog, request, context_window=100_000, max_tokens=None, rules=rules)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def write(file: Path, name: str = "a", rest: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: does it\n{rest}---\n\n# Body\n")
    return file


def test_every_skill_in_reach_is_judged(place: Workplace) -> None:
    top, repo, user = place.top, place.repo, place.user
    write(user / "listed" / "SKILL.md", "listed")
    write(user / "off" / "SKILL.md", "off")
    write(user / "quiet" / "SKILL.md", "quiet", "disable-model-invocation: true\n")
    (user / "bad").mkdir()
    (user / "bad" / "SKILL.md").write_text("---\nname: bad\n---\n")
    write(user / "other" / "SKILL.md", "other", "policy:\n  products: [atlas]\n")
    write(user / "case" / "skill.md")
    write(user / ".system" / "s" / "SKILL.md")
    write(user / "node_modules" / "n" / "SKILL.md")
    write(user / "1/2/3/4/5/6/7" / "SKILL.md")
    write(repo / "in" / "SKILL.md", "in")
    (user / "twice").symlink_to(repo / "in")
    write(top / "outside" / "x" / "SKILL.md")
    (repo / "out").symlink_to(top / "outside")
    write(place.project / ".claude" / "skills" / "c" / "SKILL.md")
    write(top / "u" / ".claude" / "skills" / "d" / "SKILL.md")
    claude = "; `skills.claude = true` has this one searched too"
    found = place.examine(SkillSwitch(name="off"))
    judged = {
        str(verdict.path.relative_to(top)): (verdict.loaded, verdict.name, verdict.reason) for verdict in found.verdicts
    }
    is_searched = "is not a directory that is searched: `.agents/skills` of a project or of your home is"
    assert judged == {
        "home/skills/listed/SKILL.md": (True, "listed", "loaded and listed"),
        "home/skills/off/SKILL.md": (False, "off", "switched off by `[[skills.config]]`"),
        "home/skills/quiet/SKILL.md": (
            True,
            "quiet",
            "loaded; not listed, because its policy allows no implicit use: mention it",
        ),
        "home/skills/bad/SKILL.md": (False, None, "missing field `description`"),
        "home/skills/other/SKILL.md": (
            False,
            None,
            "made for other programs: its `policy.products` does not name `codex`",
        ),
        "home/skills/case/skill.md": (
            False,
            None,
            "the file is called `skill.md`: only `SKILL.md` counts (case-sensitive)",
        ),
        "home/skills/.system/s/SKILL.md": (False, None, f"in the hidden directory `{user}/.system`"),
        "home/skills/node_modules/n/SKILL.md": (
            False,
            None,
            f"in `{user}/node_modules`: directories called `node_modules` are not searched",
        ),
        "home/skills/1/2/3/4/5/6/7/SKILL.md": (False, None, "7 directories below its root: at most 6 are searched"),
        "home/skills/twice/SKILL.md": (True, "in", "loaded and listed"),
        "project/.agents/skills/in/SKILL.md": (
            False,
            None,
            f"the same file as the skill `in` at `{user}/twice/SKILL.md`",
        ),
        "project/.agents/skills/out": (False, None, "a link that leads out of the project"),
        "project/.agents/skills/out/x/SKILL.md": (
            False,
            None,
            f"`{repo}/out` is a link that leads out of the project",
        ),
        "project/.claude/skills/c/SKILL.md": (False, None, f"`{place.project}/.claude/skills` {is_searched}{claude}"),
        "u/.claude/skills/d/SKILL.md": (False, None, f"`{top}/u/.claude/skills` {is_searched}{claude}"),
    }


def test_a_copy_of_a_skill_among_those_of_another_agent_counts_once(place: Workplace) -> None:
    original = write(place.user / "a" / "SKILL.md")
    copy = write(place.top / "u" / ".claude" / "skills" / "a" / "SKILL.md")
    request = SkillRootsRequest(place.home, place.top / "u", place.project, bundled=False, claude=True)
    found = examine(SkillService().catalog(request), request, context_window=None, max_tokens=None)
    assert {verdict.path: verdict.reason for verdict in found.verdicts} == {
        original: "loaded and listed",
        copy: f"the same name and content as the skill at `{original}`, which counts once",
    }


def test_a_configured_directory_that_is_not_there_is_reported(place: Workplace) -> None:
    missing = place.top / "typo"
    request = SkillRootsRequest(place.home, place.top / "u", place.project, extra_roots=(place.user, missing))
    found = examine(SkillService().catalog(request), request, context_window=None, max_tokens=None)
    result = [(verdict.path, verdict.loaded) for verdict in found.verdicts if "configuration" in verdict.reason]
    assert result == [(missing, False)]


def test_rules_that_mean_no_skill_are_reported(place: Workplace) -> None:
    skill = write(place.user / "a" / "SKILL.md")
    rules = [
        SkillSwitch(name="a"),
        SkillSwitch(skill),
        SkillSwitch(),
        SkillSwitch(name=" b "),
        SkillSwitch(skill.parent),
    ]
    assert place.examine(*rules).notes == (
        "entry 3 of `skills.config` means nothing: it needs either `name` or `path`",
        "entry 4 of `skills.config` means no skill here: none is called `b`",
        f"entry 5 of `skills.config` means no skill here: none is at `{skill.parent}`; the path must be that of the"
        " `SKILL.md`",
    )


def test_clashing_names_and_the_budget_are_reported(place: Workplace) -> None:
    one = write(place.repo / "a" / "SKILL.md")
    two = write(place.user / "a" / "SKILL.md")
    write(place.user / "b" / "SKILL.md", "b")
    found = place.examine()
    assert found.clashes == (NameClash("a", (one, two)),)
    assert (found.budget.unit, found.budget.limit, len(found.budget.shares)) == ("tokens", 2000, 3)


def judge(path: Path, top: Path) -> list[tuple[str, str, str]]:
    return [(one.level, str(one.path.relative_to(top)), one.message) for one in lint(path)]


GOOD = "Checks the style of Python files; use it when the user asks for lint or format."


def skill(directory: Path, frontmatter: str, body: str = "# Body\n") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "SKILL.md").write_text(f"---\n{frontmatter}\n---\n\n{body}")
    return directory


def test_a_good_skill_has_no_findings(tmp_path: Path) -> None:
    body = (
        "See [guide](references/guide.md#top), [web](https://x.y/z), run `scripts/go.sh`.\n```\n[no](missing.md)\n```\n"
    )
    directory = skill(tmp_path / "lint", f"name: lint\ndescription: {GOOD}", body)
    (directory / "references").mkdir()
    (directory / "references" / "guide.md").touch()
    (directory / "scripts").mkdir()
    (directory / "scripts" / "go.sh").write_text("#!/bin/sh\n")
    (directory / "scripts" / "go.sh").chmod(0o755)
    assert lint(directory) == lint(directory / "SKILL.md") == ()


@pytest.mark.parametrize(
    ("frontmatter", "level", "message"),
    [
        ("name: lint", "error", "missing field `description`"),
        (
            "name: lint\ndescription: [a",
            "advice",
            "the description has 2 characters: say what the skill does and when to use it",
        ),
        (
            f"name: lint\ndescription: {GOOD} Note: more",
            "advice",
            "the frontmatter is read only because it could be repaired: mapping values are not allowed in this context "
            "at line 3 column 98",
        ),
        (
            f"name: lint it\ndescription: {GOOD}",
            "advice",
            "`lint it` cannot be mentioned as `$name`: use letters, digits, `-` and `_`",
        ),
        (
            f"name: Home\ndescription: {GOOD}",
            "advice",
            "`$Home` is read as an environment variable and mentions nothing: choose another name",
        ),
        (f"name: Lint\ndescription: {GOOD}", "advice", "`Lint` has capitals: a mention must have them too"),
        (
            f"name: other\ndescription: {GOOD}",
            "advice",
            "the name `other` is not that of the directory `lint`",
        ),
        (
            f"name: lint\ndescription: {GOOD * 14}",
            "advice",
            "the description has 1106 characters: the list shows 1024 at most",
        ),
        (
            f"name: lint\ndescription: {GOOD * 6}",
            "advice",
            "the description has 474 characters: with many skills the list shows only its beginning",
        ),
        (
            "name: lint\ndescription: Checks the style of all Python files very well indeed.",
            "advice",
            "the description does not say when to use the skill: the model chooses by it",
        ),
        (
            f"name: lint\ndescription: {GOOD}\ninterface: 1",
            "advice",
            "ignored: `interface` is not a mapping",
        ),
    ],
)
def test_the_frontmatter_is_judged(tmp_path: Path, frontmatter: str, level: str, message: str) -> None:
    assert (level, "SKILL.md", message) in judge(skill(tmp_path / "lint", frontmatter), tmp_path / "lint")


def test_the_files_of_a_skill_are_judged(tmp_path: Path) -> None:
    body = "See [a](references/rates.md), [b](/abs) and `scripts/check.py`.\n" + "line\n" * 600
    directory = skill(tmp_path / "lint", f"name: lint\ndescription: {GOOD}", body)
    (directory / "agents").mkdir()
    (directory / "agents" / "openai.yaml").write_text("interface: []")
    (directory / "scripts").mkdir()
    (directory / "scripts" / "go.sh").write_text("#!/bin/sh\n")
    assert judge(directory, directory) == [
        ("error", "agents/openai.yaml", "`interface` is not a mapping"),
        ("advice", "SKILL.md", "602 lines"),
        ("advice", "SKILL.md", "names `references/rates.md`, which does not exist"),
        ("advice", "SKILL.md", "names `scripts/check.py`, which does not exist"),
    ]


def test_a_directory_of_skills_is_judged_one_by_one(tmp_path: Path) -> None:
    skill(tmp_path / "lint", f"name: lint\ndescription: {GOOD}")
    skill(tmp_path / "bad", "name: bad", "")
    skill(tmp_path / "case", f"name: case\ndescription: {GOOD}").joinpath("SKILL.md").rename(
        tmp_path / "case" / "Skill.md"
    )
    case = ("error", "case/Skill.md", "the file must be called `SKILL.md` (case-sensitive)")
    assert judge(tmp_path, tmp_path) == [("error", "bad/SKILL.md", "missing field `description`"), case]
    assert judge(tmp_path / "case", tmp_path) == [case]


def test_nothing_to_judge_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no `SKILL\.md` in"):
        lint(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        lint(tmp_path / "missing")
