"""What the model sees when a message names skills in other ways than by a plain name, and when that goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.protocol import events
from codex_py.protocol.input import SkillInput, TextInput
from codex_py.protocol.ops import UserTurn
from tests.support.fake_responses import FakeResponses, Request, say
from tests.support.home import Place
from tests.support.session import Watched, watched_session

NO_BUNDLED = "[skills.bundled]\nenabled = false\n"


def add(place: Place, name: str, body: str = "Do it.", *, at: Path | None = None) -> Path:
    path = (at or place.repo / ".agents/skills") / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: does things\n---\n{body}\n")
    return path


def injected(path: Path, text: str | None = None) -> str:
    name = path.parent.name
    return f"<skill>\n<name>{name}</name>\n<path>{path}</path>\n{path.read_text() if text is None else text}\n</skill>"


def told(request: Request) -> list[str]:
    """What stands behind the environment: the skills, and the message."""
    texts = request.texts("user")
    assert texts[0].startswith("<environment_context>")
    return texts[1:]


def warnings(watched: Watched) -> list[str]:
    return [warned.message for warned in watched.of(events.Warned)]


async def ask(place: Place, prompt: str, top: str = "") -> tuple[list[str], list[str]]:
    """One turn: what the model was told with it, and what the user was told."""
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, f"{top}{NO_BUNDLED}") as watched:
            await watched.say(prompt)
    return told(model.requests[0]), warnings(watched)


async def test_several_skills_come_in_the_order_of_the_catalogue_each_once(place: Place) -> None:
    mine, zoo, ant = add(place, "mine", at=place.home / ".agents/skills"), add(place, "zoo"), add(place, "ant")
    prompt = f"$mine, then $zoo and `$ant`; $zoo again, [$ant]({ant}) too\n```\n$mine\n```"
    assert await ask(place, prompt) == ([injected(ant), injected(zoo), injected(mine), prompt], [])


@pytest.mark.parametrize(
    "link", ["[$lint]({})", "[$whatever](skill://{})", "[$lint]\n( {} )", "[$lint]({}/../SKILL.md)"]
)
async def test_a_link_selects_by_path(place: Place, link: str) -> None:
    here = add(place, "lint")
    add(place, "lint", "Another one.", at=place.home / ".agents/skills")
    target = str(here if "/.." not in link else here.parent / "scripts")
    prompt = f"use {link.format(target)}"
    assert await ask(place, prompt) == ([injected(here), prompt], [])


async def test_a_link_to_home_is_written_with_a_tilde(place: Place) -> None:
    path = add(place, "lint", at=place.home / ".agents/skills")
    prompt = "use [$lint](~/.agents/skills/lint/SKILL.md)"
    assert await ask(place, prompt) == ([injected(path), prompt], [])


@pytest.mark.parametrize("kind", ["app", "mcp", "plugin"])
async def test_links_of_other_kinds_are_no_skills(place: Place, kind: str) -> None:
    add(place, "lint")
    prompt = f"use [$lint]({kind}://lint) with $PATH and ${{lint}}"
    assert await ask(place, prompt) == ([prompt], [])


async def test_a_link_to_a_file_that_is_no_known_skill_is_told(place: Place) -> None:
    path = add(place, "lint")
    evil = place.write("evil/SKILL.md", path.read_text())
    prompt = f"use [$lint]({evil})"
    assert await ask(place, prompt) == (
        [prompt],
        [f"no skill at `{evil}` of `$lint`; you could mean `$lint` (repo)"],
    )


async def test_a_name_in_other_letters_selects_none_and_says_which_there_is(place: Place) -> None:
    add(place, "Lint")
    prompt = "use $lint"
    assert await ask(place, prompt) == (
        [prompt],
        ["`$lint` is the name of no skill; you could mean `$Lint` (repo)"],
    )


async def test_the_longest_known_name_before_a_colon_is_meant(place: Place) -> None:
    lint = add(place, "lint")
    prompt = "$lint:now: go"
    assert await ask(place, prompt) == ([injected(lint), prompt], [])


async def test_a_skill_of_a_plugin_is_named_with_its_namespace(place: Place) -> None:
    root = place.codex_home / "plugins/cache/market/tools/local"
    path = add(place, "lint", at=root / "skills")
    prompt = "$tools:lint: go, not $lint"
    top = '[plugins."tools@market"]\nenabled = true\n'
    seen, notices = await ask(place, prompt, top)
    assert seen == [injected(path).replace("<name>lint<", "<name>tools:lint<"), prompt]
    assert notices == []


async def test_a_long_body_is_cut_and_says_where_the_rest_is(place: Place) -> None:
    path = add(place, "long", "0123456789abcde\n" * 20_000)
    seen, notices = await ask(place, "$long")
    raw = path.read_bytes()
    head, _, note = seen[0].removesuffix("\n</skill>").rpartition("\n[cut here: ")
    shown = head.partition("</path>\n")[2]
    assert 256 * 1024 - 16 < len(shown) <= 256 * 1024
    assert raw.decode().startswith(shown)
    command = f"tail -c +{len(shown) + 1} {path}"
    assert note == f"these are the first {len(shown)} of {len(raw)} bytes; the rest is in the file: `{command}`]"
    assert (seen[1:], notices) == (["$long"], [])


async def test_a_skill_that_cannot_be_read_any_more_costs_a_line(place: Place) -> None:
    gone, here = add(place, "gone"), add(place, "here")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            # Between the look at the folders, with which a turn begins, and the reading.
            watched.on(events.TurnStarted, lambda: gone.unlink(missing_ok=True))
            ended = await watched.say("$gone $here")
    assert isinstance(ended, events.TurnCompleted)
    assert told(model.requests[0]) == [injected(here), "$gone $here"]
    assert warnings(watched) == [f"skill `gone` is left out: cannot read `{gone}`: no such file"]


async def test_a_picked_skill_that_is_not_there_still_takes_its_name(place: Place) -> None:
    add(place, "lint")
    nowhere = place.repo / "nowhere/SKILL.md"
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.session.submit(UserTurn((SkillInput("lint", nowhere), TextInput("$lint"))))
    assert told(model.requests[0]) == ["$lint"]
    assert len(warnings(watched)) == 1
