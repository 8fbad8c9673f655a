from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.protocol.ops import SkillInput
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem, SkillRoot
from codex_py.skills.select import Selection, select_skills
from tests.support.work import within
from tests.unit.skill_builders import catalog, skill

HOME = Path("/home/u")
LINT = skill("lint")
REPO_LINT = skill("lint", "repo")
FMT = skill("fmt", "repo")
HIDDEN = skill("hidden", "system", allow_implicit=False)
DEPLOY = skill("ops:deploy", namespace="ops")
LINKED = skill("linked", path=Path("/home/u/.codex/skills/link/SKILL.md"), canonical_path=Path("/real/SKILL.md"))
ALL = catalog(LINT, FMT, HIDDEN, DEPLOY, LINKED)


def select(
    text: str, known: SkillCatalog = ALL, *, picked: tuple[SkillInput, ...] = (), slugs: tuple[str, ...] = ()
) -> Selection:
    return select_skills(known, [text], user_home=HOME, structured=picked, connector_slugs=slugs)


@pytest.mark.parametrize(
    ("text", "skills"),
    [
        ("nothing here", ()),
        ("use $lint", (LINT,)),
        ("$lint then $fmt", (FMT, LINT)),
        ("$hidden", (HIDDEN,)),
        ("$ops:deploy: now", (DEPLOY,)),
        ("$lint $lint [$lint](/home/u/.codex/skills/lint/SKILL.md)", (LINT,)),
        ("$fmt [$x](/home/u/.codex/skills/lint/SKILL.md)", (LINT, FMT)),
        ("[$x](/home/u/.codex/skills/link/SKILL.md)", (LINKED,)),
        ("[$x](/real/SKILL.md)", (LINKED,)),
        ("[$x](skill:///real/SKILL.md)", (LINKED,)),
        ("[$x](skill://~/.codex/skills/lint/SKILL.md)", (LINT,)),
        ("[$x](~/.codex//skills/./fmt/../lint/SKILL.md)", (LINT,)),
        ("[$x](//real/SKILL.md)", (LINKED,)),
        ("[$lint](app://lint) [$lint](mcp://lint) [$lint](https://lint)", ()),
        ("[$path](/real/SKILL.md)", ()),
    ],
)
def test_what_a_text_selects(text: str, skills: tuple[Skill, ...]) -> None:
    assert select(text) == Selection(skills)


def test_the_order_is_picked_then_text_by_text_links_and_names() -> None:
    selection = select_skills(
        ALL,
        ["$lint and [$x](/real/SKILL.md)", "$fmt"],
        user_home=HOME,
        structured=[SkillInput("ops:deploy", DEPLOY.path), SkillInput("hidden", HIDDEN.path)],
    )
    assert selection == Selection((DEPLOY, HIDDEN, LINKED, LINT, FMT))


def test_links_and_names_come_in_catalogue_order() -> None:
    text = f"[$a]({LINT.path}) [$b]({FMT.path}) $linked $hidden"
    assert select(text).skills == (FMT, LINT, LINKED, HIDDEN)


def test_an_ambiguous_name_selects_nothing_and_says_how_to_choose() -> None:
    assert select("$lint", catalog(LINT, REPO_LINT)) == Selection(
        (),
        (
            "`$lint` could mean 2 skills and selects none: `[$lint](/repo/.agents/skills/lint/SKILL.md)` (repo) or "
            "`[$lint](/home/u/.codex/skills/lint/SKILL.md)` (user)",
        ),
    )


def test_a_long_choice_is_cut() -> None:
    roots = [SkillRoot(Path(f"/r{number}"), "user", "extra") for number in range(6)]
    (notice,) = select("$lint", catalog(*(skill(root=root) for root in roots))).notices
    assert notice.endswith("`[$lint](/r3/lint/SKILL.md)` (user) or 2 more")


def test_an_ambiguous_name_is_settled_by_a_link_or_a_pick() -> None:
    known = catalog(LINT, REPO_LINT)
    assert select(f"$lint [$lint]({LINT.path})", known) == Selection((LINT,))
    assert select("$lint", known, picked=(SkillInput("lint", LINT.path),)) == Selection((LINT,))


def test_a_pick_takes_its_name_away_even_when_it_selects_nothing() -> None:
    assert select("$lint and $Lint", picked=(SkillInput("lint", Path("/gone/SKILL.md")),)) == Selection(
        (),
        ("no skill at `/gone/SKILL.md` of `$lint`; you could mean `$lint` (user)",),
    )


def test_a_disabled_skill_does_not_count_for_ambiguity() -> None:
    assert select("$lint", catalog(LINT, disabled=(REPO_LINT,))) == Selection((LINT,))


@pytest.mark.parametrize("text", ["$lint", "$lint: go"])
def test_a_disabled_skill_is_not_selected_by_name(text: str) -> None:
    assert select(text, catalog(FMT, disabled=(LINT,))) == Selection(
        (), ("the skill `lint` is switched off; `codex-py skills enable lint` switches it on",)
    )


def test_a_disabled_skill_is_not_selected_by_link_or_pick() -> None:
    known = catalog(disabled=(LINT,))
    told = f"the skill at `{LINT.path}` of `$lint` is switched off; `codex-py skills enable lint` switches it on"
    assert select(f"[$lint]({LINT.path})", known) == Selection((), (told,))
    assert select("", known, picked=(SkillInput("lint", LINT.path),)) == Selection((), (told,))


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("$Lint", "`$Lint` is not a skill; you could mean `$lint` (user)"),
        ("$LINT: go", "`$LINT` is not a skill; you could mean `$lint` (user)"),
        ("$deploy", "`$deploy` is not a skill; you could mean `$ops:deploy` (user)"),
        ("$Ops:Deploy:", "`$Ops:Deploy` is not a skill; you could mean `$ops:deploy` (user)"),
    ],
)
def test_a_name_in_another_case_selects_nothing_and_says_so(text: str, notice: str) -> None:
    assert select(text) == Selection((), (notice,))


def test_a_name_like_no_skill_is_passed_over() -> None:
    assert select("costs $5, see $EDITOR and $linter") == Selection()


@pytest.mark.parametrize(
    ("text", "notice"),
    [
        ("[$lint](lint/SKILL.md)", "no skill at `lint/SKILL.md` of `$lint`: a link to a skill needs an absolute path"),
        ("[$x](/evil/SKILL.md)", "no skill at `/evil/SKILL.md` of `$x`"),
        ("[$x](skill://nope)", "no skill at `nope` of `$x`: a link to a skill needs an absolute path"),
        (
            "[$x](skill:///real)",
            "`/real` of `$x` is the directory of a skill; write `[$linked](/home/u/.codex/skills/link/SKILL.md)`",
        ),
    ],
)
def test_a_link_to_no_skill_is_told(text: str, notice: str) -> None:
    hint = "; you could mean `$lint` (user)" if "$lint" in text else ""
    assert select(text) == Selection((), (notice + hint,))


def test_a_name_of_a_connector_is_no_skill() -> None:
    assert select("$lint", slugs=("lint",)) == Selection()
    assert select("$LINT", slugs=("lint",)) == Selection()
    assert select(f"[$lint]({LINT.path})", slugs=("lint",)) == Selection((LINT,))


def test_a_skill_that_cannot_be_mentioned_is_shown_by_link() -> None:
    spaced = skill("my skill", namespace=None)
    (notice,) = select("[$x](/no/SKILL.md) $LINT", catalog(spaced, LINT)).notices[:1]
    assert notice == "no skill at `/no/SKILL.md` of `$x`"
    directory = select(f"[$x](skill://{spaced.directory})", catalog(spaced)).notices
    assert directory == (f"`{spaced.directory}` of `$x` is the directory of a skill; write `[$skill]({spaced.path})`",)


def test_notices_are_single_lines_and_few() -> None:
    text = "".join(f"[$x](/evil/{number}\x1b\n/SKILL.md)" for number in range(100))
    notices = select(text).notices
    assert len(notices) == 8
    assert notices[0] == "no skill at `/evil/0␛␊/SKILL.md` of `$x`"
    assert notices[-1] == "93 more mentions select no skill"


def test_a_megabyte_of_mentions_among_many_skills_is_decided_in_linear_time() -> None:
    many = catalog(*(skill(f"s{number}") for number in range(2000)))
    texts = [
        " ".join(f"[$s{number}](/x/{number}/SKILL.md)" for number in range(40_000)),
        " ".join(f"$S{number}:a:b" for number in range(90_000)),
    ]
    within(20 * sum(map(len, texts)), lambda: select_skills(many, texts, user_home=HOME))


def test_a_skill_that_could_not_be_loaded_is_told_of_when_it_is_named() -> None:
    problems = tuple(
        SkillProblem(Path(f"/repo/.agents/skills/{path}"), reason, "repo")
        for path, reason in (("bad/SKILL.md", "missing field `name`"), ("out", "a link that leads out of the project"))
    )
    known = ALL._replace(problems=problems)
    assert select("$bad, $bad: again, $out, $other, $bad-not", known).notices == (
        "`$bad` selects nothing: `/repo/.agents/skills/bad/SKILL.md` could not be loaded: missing field `name`",
        "`$out` selects nothing: `/repo/.agents/skills/out` could not be loaded: a link that leads out of the project",
    )
