from __future__ import annotations

from pathlib import Path

from codex_py.protocol.ops import SkillInput
from codex_py.skills.model import SkillCatalog, SkillRoot
from codex_py.skills.select import Selection, select_skills
from tests.support.work import within
from tests.unit.skill_builders import catalog, skill

HOME = Path("/home/u")
LINT = skill("lint")
FMT = skill("fmt", "repo")
HIDDEN = skill("hidden", "system", allow_implicit=False)
DEPLOY = skill("ops:deploy", namespace="ops")
LINKED = skill("linked", path=Path("/home/u/.codex/skills/link/SKILL.md"), canonical_path=Path("/real/SKILL.md"))
ALL = catalog(LINT, FMT, HIDDEN, DEPLOY, LINKED)


def select(
    text: str, known: SkillCatalog = ALL, *, picked: tuple[SkillInput, ...] = (), slugs: tuple[str, ...] = ()
) -> Selection:
    return select_skills(known, [text], user_home=HOME, structured=picked, connector_slugs=slugs)


def test_a_long_choice_is_cut() -> None:
    roots = [SkillRoot(Path(f"/r{number}"), "user", "extra") for number in range(6)]
    (notice,) = select("$lint", catalog(*(skill(root=root) for root in roots))).notices
    assert notice.endswith("`[$lint](/r3/lint/SKILL.md)` (user) or 2 more")


def test_a_disabled_skill_is_not_selected_by_link_or_pick() -> None:
    known = catalog(disabled=(LINT,))
    result = f"the skill at `{LINT.path}` of `$lint` is switched off; `codex-py skills enable lint` switches it on"
    assert select(f"[$lint]({LINT.path})", known) == Selection((), (result,))
    assert select("", known, picked=(SkillInput("lint", LINT.path),)) == Selection((), (result,))


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
