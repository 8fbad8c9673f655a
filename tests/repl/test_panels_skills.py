"""The skills manager: what it tells of each skill, and what its keys do to the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from codex_py.config.load import ConfigRequest
from codex_py.protocol.events import SkillUsed
from codex_py.skills.model import Skill
from codex_py.skills.rules import SkillSwitch
from codex_py.skills.usage import record_use
from codex_py.ui.repl.panels.askers import LineAsker, PanelAsker
from codex_py.ui.repl.panels.skills import SkillsContext, manage_skills
from tests.support.home import Place
from tests.support.panel_host import PanelHost, panel_host

NOW = 1_800_000_000.0


class Managing(NamedTuple):
    host: PanelHost
    result: asyncio.Task[Skill | None]
    edited: list[Path]
    rules: list[tuple[SkillSwitch, ...]]


def fill(place: Place) -> None:
    """Three skills in the repository, one of them hidden, and a broken one; none that is bundled."""
    place.configure("# mine\n[skills.bundled]\nenabled = false  # quiet\n")
    for name, about in (("deploy", "Ships it."), ("lint", "Finds style errors."), ("secret", "Never on its own.")):
        place.write(f".agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: {about}\n---\nDo it.\n")
    place.write(".agents/skills/secret/agents/openai.yaml", "policy:\n  allow_implicit_invocation: false\n")
    place.write(".agents/skills/broken/SKILL.md", "no frontmatter\n")
    path = place.repo / ".agents/skills/lint/SKILL.md"
    for _ in range(2):
        record_use(place.codex_home, SkillUsed("lint", "repo", path.resolve(), "explicit"), now=NOW - 7200)


def mend(path: Path) -> None:
    """What the user does in their editor."""
    path.write_text(path.read_text().replace("Ships it.", "Ships it now."))


def skills_place(place: Place, edited: list[Path], rules: list[tuple[SkillSwitch, ...]]) -> SkillsContext:
    async def edit(path: Path) -> None:
        edited.append(path)
        mend(path)

    request = ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env)
    return SkillsContext(request, 272_000, lambda: NOW, edit, rules.append)


@asynccontextmanager
async def managing(place: Place, columns: int = 100, rows: int = 30) -> AsyncGenerator[Managing, None]:
    fill(place)
    edited: list[Path] = []
    rules: list[tuple[SkillSwitch, ...]] = []
    async with panel_host(columns, rows) as host:
        asker = PanelAsker(host.panels.show)
        result = asyncio.create_task(manage_skills(asker, skills_place(place, edited, rules)))
        await host.until("── Skills")
        yield Managing(host, result, edited, rules)
        result.cancel()
        await asyncio.wait([result])


async def test_every_skill_is_reported_with_its_state(place: Place) -> None:
    async with managing(place) as now:
        text = await now.host.until("[x] lint")
        rows = {line[6:].split("  ")[0]: line for line in text.split("\n") if line[2:5] in ("[x]", " ! ")}
        assert list(rows) == ["deploy", "lint", "secret", "broken"]
        assert "used 2h ago" in rows["lint"] and "repo" in rows["lint"] and " tok" in rows["lint"]
        assert "never used" in rows["deploy"]
        assert "hidden" in rows["secret"] and "–" in rows["secret"]
        assert "not loaded" in rows["broken"]
        assert "3 of 3 on · the list takes" in text and "1 not loaded" in text


async def test_the_selected_skill_is_reported_in_full(place: Place) -> None:
    async with managing(place) as now:
        now.host.press("style")
        await now.host.until("mentioned 2×, used by commands 0×")
        assert "Finds style errors." in now.host.text
        now.host.press("ctrl-u", "broken")
        await now.host.until("frontmatter")


async def test_a_skill_is_switched_in_the_file_with_its_comments_kept(place: Place) -> None:
    async with managing(place) as now:
        now.host.press("lint", "tab")
        await now.host.until("lint is off from the next turn on")
        assert "[ ] lint" in now.host.text and "Tab switch on" in now.host.text
        file = place.codex_home / "config.toml"
        assert file.read_text().startswith("# mine\n[skills.bundled]\nenabled = false  # quiet\n")
        assert [(rule.name, rule.enabled, rule.layer) for rule in now.rules[-1]] == [("lint", False, "user")]
        now.host.press("tab")
        await now.host.until("lint is on from the next turn on")
        assert [(rule.name, rule.enabled, rule.layer) for rule in now.rules[-1]] == [("lint", True, "user")]


async def test_space_switches_where_nothing_is_searched(place: Place) -> None:
    async with managing(place) as now:
        now.host.press("down", " ")
        await now.host.until("lint is off")
        now.host.press("a b")
        await now.host.until("search: a b")


async def test_where_nothing_matches_nothing_is_switched(place: Place) -> None:
    async with managing(place) as now:
        await now.host.play("zzzz", "tab")
        await now.host.until("nothing matches")
        assert "fix it first" not in now.host.text


async def test_enter_inserts_and_a_switched_off_one_cannot_be(place: Place) -> None:
    async with managing(place) as now:
        now.host.press("dep", "tab")
        await now.host.until("deploy is off")
        now.host.press("enter")
        await now.host.until("it is switched off; Tab switches it on")
        now.host.press("ctrl-u", "lint")
        await now.host.until("❯ [x] lint")
        now.host.press("enter")
        skill = await asyncio.wait_for(now.result, 30)
        assert skill is not None and skill.name == "lint"


async def test_a_skill_is_opened_in_the_editor_and_read_again(place: Place) -> None:
    async with managing(place) as now:
        now.host.press("dep", "ctrl-o")
        await now.host.until("Ships it now.")
        assert now.edited == [place.repo / ".agents/skills/deploy/SKILL.md"]
        assert "search: dep" in now.host.text


async def test_without_a_screen_the_skills_are_managed_line_by_line(place: Place) -> None:
    fill(place)
    said = iter(["lint", "s", "deploy", "i"])
    written: list[str] = []

    async def read(prompt: str, hidden: bool) -> str | None:
        return next(said, None)

    rules: list[tuple[SkillSwitch, ...]] = []
    skill = await manage_skills(LineAsker(read, written.append), skills_place(place, [], rules))
    assert skill is not None and skill.name == "deploy"
    assert [(rule.name, rule.enabled) for [rule] in rules] == [("lint", False)]
    assert any(line.startswith("lint is off from the next turn on") for line in written)


async def test_the_search_looks_in_names_then_descriptions_then_texts(place: Place) -> None:
    for name, about, body in (
        ("in-text", "Something else.", "How to migrate a frobnicator database."),
        ("in-about", "Keeps a frobnicator running.", "Do it."),
        ("frobnicator", "Something else again.", "Do it."),
    ):
        place.write(f".agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: {about}\n---\n{body}\n")
    async with managing(place) as now:
        now.host.press("frobnicator")
        text = await now.host.until(lambda shown: "in-text" in shown and "lint" not in shown)
        rows = [line[6:].split("  ")[0] for line in text.split("\n") if line[2:5] == "[x]"]
        assert rows == ["frobnicator", "in-about", "in-text"]
        now.host.press("zz")
        await now.host.until("nothing matches")
