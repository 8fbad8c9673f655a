from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from codex_py.skills.budget import Budget, BudgetLine, Fit, Unit, budget_for, fit_lines
from codex_py.skills.model import Skill, SkillCatalog, SkillRoot
from codex_py.skills.render import RenderedSkills, SkillShare, render_skills
from tests.unit.skill_builders import catalog, skill

WINDOW = 272_000


def rendered(known: SkillCatalog, max_tokens: int | None = None) -> RenderedSkills:
    return render_skills(known, context_window=WINDOW, max_tokens=max_tokens)


def listed(text: str) -> list[str]:
    """The lines of skills in a block."""
    return text.partition("### Available skills\n")[2].partition("### How to use skills\n")[0].splitlines()


def many(count: int, description: str = "Checks something or other in the code.") -> list[Skill]:
    return [skill(f"skill-{number:04}", description=description) for number in range(count)]


def test_backslashes_in_paths_are_slashes() -> None:
    odd = skill(path=Path("/home/u/.codex/skills/a\\b/SKILL.md"))
    assert listed(rendered(catalog(odd)).text) == ["- lint: About lint. (file: /home/u/.codex/skills/a/b/SKILL.md)"]


def plugin(name: str, market: str = "market") -> SkillRoot:
    path = Path(f"/home/u/.codex/plugins/cache/{market}/{name}/1.0.0/skills")
    return SkillRoot(path, "user", "plugin", namespace=name, plugin_id=f"{name}@{market}")


def test_plugins_of_one_skill_share_the_alias_of_their_marketplace() -> None:
    single = [
        skill(f"p{number:02}:only", root=plugin(f"p{number:02}"), namespace=f"p{number:02}") for number in range(30)
    ]
    double = [skill(f"big:{name}", root=plugin("big"), namespace="big") for name in ("a", "b")]
    text = rendered(catalog(*single, *double)).text
    table = text.partition("### Skill roots\n")[2].partition("### Available skills")[0].splitlines()
    assert table == [
        "- `r0` = `/home/u/.codex/plugins/cache/market/big/1.0.0/skills`",
        "- `r1` = `/home/u/.codex/plugins/cache/market`",
    ]
    assert listed(text)[0] == "- big:a: About big:a. (file: r0/a/SKILL.md)"
    assert listed(text)[2] == "- p00:only: About p00:only. (file: r1/p00/1.0.0/skills/only/SKILL.md)"


def test_the_budget_is_what_was_set_or_two_percent_or_8000_characters() -> None:
    assert budget_for(272_000, None) == Budget(5440, "tokens")
    assert budget_for(49, None) == Budget(1, "tokens")
    assert budget_for(272_000, 50_000) == Budget(50_000, "tokens")
    assert budget_for(272_000, 5_000_000) == budget_for(10_000_000, None) == Budget(60_000, "tokens")
    assert budget_for(272_000, 0) == Budget(5440, "tokens")
    assert budget_for(None, 7) == Budget(7, "tokens")
    assert budget_for(None, None) == budget_for(0, None) == Budget(8000, "characters")


def test_no_budget_makes_a_list_that_would_be_cut_in_the_middle() -> None:
    result = rendered(catalog(*many(400, "d" * 1024)), max_tokens=5_000_000)
    assert len(result.text.encode()) < 256 * 1024
    assert len(listed(result.text)) == 400
    [warning] = result.warnings
    assert warning.endswith("to make room switch off skills you do not use (`codex-py skills disable NAME`)")


def test_a_block_without_a_line_is_still_sent() -> None:
    result = rendered(catalog(skill()), max_tokens=1)
    assert listed(result.text) == []
    assert result.report.shares == (SkillShare(skill(), False, 0, 0, len("About lint.")),)
    assert result.warnings == (
        "1 skill was left out of what the model is told: the list of skills has a budget of 1 tokens; switch off "
        'skills you do not use (`codex-py skills disable NAME`) or set `skills.budget = "1%"`, the share of the '
        "context window that shows them all",
    )


def one_by_one(lines: Sequence[BudgetLine], budget: Budget) -> Fit:
    """The scheme as it is defined: one character a line and round, as long as a round changes something."""
    bare = [budget.cost(f"{line.text(0)}\n") for line in lines]
    left = budget.limit - sum(bare)
    shown = [0] * len(lines)
    spent = [0] * len(lines)
    changed = True
    while changed:
        changed = False
        for place, line in enumerate(lines):
            if shown[place] == len(line.description):
                continue
            price = budget.cost(f"{line.text(shown[place] + 1)}\n") - bare[place] - spent[place]
            if price <= left:
                left -= price
                spent[place] += price
                shown[place] += 1
                changed = True
    return Fit(tuple(shown), budget.limit - left)


@pytest.mark.parametrize("unit", ["tokens", "characters"])
def test_descriptions_grow_by_one_character_a_round(unit: Unit) -> None:
    chance = random.Random(7)
    compared = 0
    for _ in range(150):
        lines = [
            BudgetLine(
                "n" * chance.randint(1, 9), "".join(chance.choices("ab é🙂", k=chance.randint(0, 40))), "/x/SKILL.md"
            )
            for _ in range(chance.randint(1, 12))
        ]
        least, most = (sum(Budget(0, unit).cost(f"{line.text(shown)}\n") for line in lines) for shown in (0, None))
        budget = Budget(chance.randint(least, max(least, most - 1)), unit)
        if budget.limit < most:
            compared += 1
            assert fit_lines(lines, budget) == one_by_one(lines, budget)
    assert compared > 100


def test_names_alone_are_taken_in_order_while_they_fit() -> None:
    lines = [BudgetLine("a" * size, "text", "/f") for size in (8, 80, 8, 400, 8)]
    costs = [Budget(0, "characters").cost(f"{line.text(0)}\n") for line in lines]
    limit = costs[0] + costs[1] + costs[2] + 3
    assert fit_lines(lines, Budget(limit, "characters")) == Fit((0, 0, 0, None, None), limit - 3)
    limit = costs[0] + costs[2] + costs[4]
    assert fit_lines(lines, Budget(limit, "characters")) == Fit((0, None, 0, None, 0), limit)
