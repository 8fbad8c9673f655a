"""The list of skills as the model gets it: the whole block, from every root, within its budget."""

from __future__ import annotations

from pathlib import Path

from codex_py.protocol import events
from codex_py.protocol.ops import OverrideTurnContext
from tests.support.fake_responses import FakeResponses, say
from tests.support.home import Place
from tests.support.session import watched_session

NO_BUNDLED = "[skills.bundled]\nenabled = false\n"


def add(root: Path, name: str, description: str = "does things") -> Path:
    path = root / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n")
    return path


async def block_of(place: Place, top: str = "") -> tuple[str, list[str]]:
    """The block of a first request, "" without one, and what the user was told."""
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, f"{top}{NO_BUNDLED}") as watched:
            await watched.say("hi")
    texts = model.requests[0].texts("developer")
    assert not any("<skills_instructions>" in text for text in texts[1:])
    block = texts[0] if texts[0].startswith("<skills_instructions>") else ""
    return block, [warned.message for warned in watched.of(events.Warned)]


def listed(block: str) -> list[str]:
    """The lines of the skills, and of the table of roots."""
    return [line for line in block.partition("### How to use skills")[0].splitlines() if line.startswith("- ")]


async def test_the_block_has_its_headings_in_order(place: Place) -> None:
    path = add(place.repo / ".agents/skills", "lint")
    block, notices = await block_of(place)
    headings = [line for line in block.splitlines() if line.startswith(("#", "<"))]
    assert headings == [
        "<skills_instructions>",
        "## Skills",
        "### Available skills",
        "### How to use skills",
        "</skills_instructions>",
    ]
    assert listed(block) == [f"- lint: does things (file: {path})"]
    assert notices == []


async def test_every_root_is_searched_and_scopes_have_their_order(place: Place) -> None:
    extra, plugin = place.home / "team", place.codex_home / "plugins/cache/market/tools/local"
    paths = [
        add(place.repo / ".agents/skills", "b-repo"),
        add(place.repo / ".codex/skills", "c-config"),
        add(place.home / ".agents/skills", "a-user"),
        add(place.codex_home / "skills", "d-home"),
        add(extra, "e-extra"),
        add(plugin / "skills", "lint"),
    ]
    top = f'[plugins."tools@market"]\nenabled = true\n[skills]\nroots = ["{extra}"]\n'
    block, notices = await block_of(place, top)
    names = ["b-repo", "c-config", "a-user", "d-home", "e-extra", "tools:lint"]
    if "### Skill roots" in block:
        lines = [line.partition(" (file: ")[0] for line in listed(block) if not line.startswith("- `r")]
        assert lines == [f"- {name}: does things" for name in names]
    else:
        assert listed(block) == [
            f"- {name}: does things (file: {path})" for name, path in zip(names, paths, strict=True)
        ]
    assert notices == []


async def test_many_skills_of_one_root_are_written_with_its_alias(place: Place) -> None:
    root = place.repo / ".agents/skills"
    for number in range(30):
        add(root, f"skill-{number:02}")
    block, notices = await block_of(place)
    assert listed(block) == [
        f"- `r0` = `{root}`",
        *(f"- skill-{number:02}: does things (file: r0/skill-{number:02}/SKILL.md)" for number in range(30)),
    ]
    assert "### Skill roots\n- `r0`" in block
    assert notices == []


async def test_shortened_and_left_out_skills_are_two_warnings(place: Place) -> None:
    for number in range(40):
        add(place.repo / ".agents/skills", f"skill-{number:02}", "x" * 100)
    block, notices = await block_of(place, "[skills]\nmax_context_tokens = 120\n")
    skills = [line for line in listed(block) if not line.startswith("- `r")]
    assert 0 < len(skills) < 40
    assert all(": (file: " in line for line in skills)
    shortened, left_out = notices
    assert shortened.startswith(f"{len(skills)} skill description")
    assert left_out.startswith(f"{40 - len(skills)} skills were left out of what the model is told")


async def test_without_instructions_there_is_no_list_and_mentions_work(place: Place) -> None:
    path = add(place.repo / ".agents/skills", "lint")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, f"[skills]\ninclude_instructions = false\n{NO_BUNDLED}") as watched:
            await watched.say("$lint")
    assert "skills_instructions" not in str(model.requests[0].input)
    assert f"<path>{path}</path>" in model.requests[0].texts("user")[-2]


async def test_a_skill_for_other_products_is_not_there(place: Place) -> None:
    add(place.repo / ".agents/skills", "lint")
    place.write(".agents/skills/lint/agents/openai.yaml", "policy:\n  products: [chatgpt]\n")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("$lint")
    assert "skills_instructions" not in str(model.requests[0].input)
    assert not any(text.startswith("<skill>") for text in model.requests[0].texts("user"))


async def test_a_repositorys_rules_switch_nothing_off(place: Place) -> None:
    path = add(place.repo / ".agents/skills", "lint")
    place.write(".codex/config.toml", '[[skills.config]]\nname = "lint"\nenabled = false\n')
    block, _ = await block_of(place)
    assert listed(block) == [f"- lint: does things (file: {path})"]


async def test_another_working_directory_has_the_skills_that_lie_there(place: Place) -> None:
    add(place.repo / ".agents/skills", "everywhere")
    there = add(place.repo / "part/.agents/skills", "there")
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hi")
            await watched.session.submit(OverrideTurnContext(cwd=place.repo / "part"))
            await watched.say("use $there")
    blocks = [text for text in model.requests[1].texts("developer") if text.startswith("<skills_instructions>")]
    assert ["- there: does things" in block for block in blocks] == [False, True]
    assert "- everywhere: does things" in blocks[1]
    assert f"<path>{there}</path>" in model.requests[1].texts("user")[-2]
