"""What the user switches off: not listed, not to be named, not noticed; in whole request bodies."""

from __future__ import annotations

import re

import pytest

from codex_py.protocol import events
from tests.support.bodies import injected, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import watched_session
from tests.support.skills import NO_BUNDLED, add_skill, line, own_root, repo_root, talk

OFF, ON = "enabled = false", "enabled = true"


def rules(*entries: str) -> str:
    return "".join(f"[[skills.config]]\n{entry}\n" for entry in entries)


async def test_a_skill_switched_off_is_not_listed_not_mentionable_and_not_detected(place: Place) -> None:
    off, on = add_skill(repo_root(place), "off"), add_skill(own_root(place), "on")
    read = call("c1", "exec_command", {"cmd": f"cat {off} {on}", "login": False})
    prompt = f"$off [$x]({off}) $on"
    with FakeResponses([read], [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + rules(f'name = "off"\n{OFF}')) as watched:
            await watched.say(prompt)
    first, second = model.requests
    expected = [injected(on), user(prompt)]
    assert first.body == whole_body(place, first, *expected, skills=skill_list(line(on)))
    expected += [read["item"], second.output_item("c1")]
    assert second.body == whole_body(place, second, *expected, skills=skill_list(line(on)))
    assert watched.warnings == [
        f"the skill at `{off}` of `$x` is switched off; `codex-py skills enable off` switches it on",
        "the skill `off` is switched off; `codex-py skills enable off` switches it on",
    ]
    assert watched.of(events.SkillUsed) == [events.SkillUsed("on", "user", on, "explicit")]


@pytest.mark.parametrize(
    ("entries", "left"),
    [
        (['name = " lint "', OFF], ["fmt"]),
        (['path = "{repo}/.agents/skills/lint/SKILL.md"', OFF], ["fmt", "own"]),
        (['path = "~/.agents/skills/lint/SKILL.md"', OFF], ["fmt", "lint"]),
        (['path = "{repo}/.agents/skills/lint"', OFF], ["fmt", "lint", "own"]),
        (['name = "LINT"', OFF], ["fmt", "lint", "own"]),
        (['name = "lint"', OFF, 'path = "{repo}/.agents/skills/lint/SKILL.md"', ON], ["fmt", "lint"]),
        (['path = "{repo}/.agents/skills/lint/SKILL.md"', ON, 'name = "lint"', OFF], ["fmt"]),
        (['name = "lint"', OFF, 'name = "lint"', ON], ["fmt", "lint", "own"]),
        (['name = "lint"\npath = "{repo}/.agents/skills/lint/SKILL.md"', OFF], ["fmt", "lint", "own"]),
    ],
)
async def test_rules_go_by_name_or_path_and_the_later_one_counts(
    place: Place, entries: list[str], left: list[str]
) -> None:
    lines = {
        "fmt": line(add_skill(place.repo / ".codex/skills", "fmt")),
        "lint": line(add_skill(repo_root(place), "lint")),
        "own": line(add_skill(own_root(place), "lint")),
    }
    written = [entry.format(repo=place.repo) for entry in entries]
    top = rules(*map("\n".join, zip(written[::2], written[1::2], strict=True)))
    talked = await talk(place, "hi", top=top)
    [request] = talked.requests
    listed = skill_list(*(lines[name] for name in left))
    assert request.body == whole_body(place, request, user("hi"), skills=listed)


async def test_the_command_line_has_the_last_word(place: Place) -> None:
    lint, fmt = add_skill(repo_root(place), "lint"), add_skill(own_root(place), "fmt")
    top = rules(f'name = "lint"\n{OFF}')
    overrides = ('skills.config=[{name="lint",enabled=true},{name="fmt",enabled=false}]',)
    talked = await talk(place, "$lint $fmt", top=top, overrides=overrides)
    [request] = talked.requests
    listed = skill_list(line(lint))
    assert request.body == whole_body(place, request, injected(lint), user("$lint $fmt"), skills=listed)
    assert talked.warnings == [
        f"the skill `{fmt.parent.name}` is switched off; `codex-py skills enable fmt` switches it on"
    ]


async def test_an_untrusted_repository_s_rules_change_nothing(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    place.write(".codex/config.toml", 'skills.only = ["x"]\n' + rules('name = "lint"\nenabled = false'))
    talked = await talk(place, "hi")
    [request] = talked.requests
    assert request.body == whole_body(place, request, user("hi"), skills=skill_list(line(path)))


TRUSTED = '[projects."{repo}"]\ntrust_level = "trusted"\n'


@pytest.mark.parametrize(
    ("project", "user_rules", "left"),
    [
        (f'[[skills.config]]\nname = "lint"\n{OFF}', "", ["fmt", "team-a", "own"]),
        (
            f'[[skills.config]]\nname = "lint"\n{OFF}',
            f'[[skills.config]]\nname = "lint"\n{ON}',
            ["fmt", "lint", "team-a", "own"],
        ),
        ('skills.only = ["lint", "team-*"]', "", ["lint", "team-a"]),
        ('skills.only = ["lint", "team-*"]', f'[[skills.config]]\nname = "own"\n{ON}', ["lint", "team-a", "own"]),
        ('skills.only = ["lint", "team-*"]', f'[[skills.config]]\nname = "lint"\n{OFF}', ["team-a"]),
        ('skills.only = ["lint", "team-*"]', 'skills.only = ["o*"]', ["own"]),
        (f'skills.only = ["lint"]\n[[skills.config]]\nname = "lint"\n{OFF}', "", []),
        ("skills.only = []", "", []),
    ],
)
async def test_a_trusted_project_takes_skills_away_and_the_user_s_rules_win(
    place: Place, project: str, user_rules: str, left: list[str]
) -> None:
    for name in ("fmt", "lint", "team-a"):
        add_skill(repo_root(place), name)
    add_skill(own_root(place), "own")
    place.write(".codex/config.toml", project)
    talked = await talk(place, "hi", top=f"{user_rules}\n{TRUSTED.format(repo=place.repo)}")
    [request] = talked.requests
    listed = re.findall(r"^- ([a-z-]+): does things", "\n".join(request.texts("developer")), re.MULTILINE)
    assert listed == left
    assert [warning for warning in talked.warnings if "skills." in warning] == []


async def test_a_trusted_project_may_not_switch_a_skill_on_and_unknown_names_are_named(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    file = place.write(
        ".codex/config.toml",
        f'skills.only = ["lnt", "lint", "team-*"]\n[[skills.config]]\nname = "lint"\n{ON}\n'
        f'[[skills.config]]\nname = "lit"\n{OFF}',
    )
    top = rules(f'name = "lint"\n{OFF}') + TRUSTED.format(repo=place.repo)
    talked = await talk(place, f"[$x]({path})", top=top)
    [request] = talked.requests
    assert "does things" not in str(request.body)
    assert [warning for warning in talked.warnings if "switched off" not in warning] == [
        f"`skills.config` in `{file}` line 2 is ignored: a project may switch skills off, not on",
        f"`skills.only` in `{file}` names no skill here: none is called `lnt`; did you mean `lint`?",
        f"`skills.only` in `{file}` names no skill here: none fits `team-*`",
        f"entry 1 of `skills.config` in `{file}` means no skill here: none is called `lit`; did you mean `lint`?",
    ]


async def test_a_name_that_one_skill_has_left_is_no_longer_ambiguous(place: Place) -> None:
    here = add_skill(repo_root(place), "lint")
    there = add_skill(own_root(place), "lint")
    top = rules(f'path = "{there}"\n{OFF}')
    talked = await talk(place, "$lint", top=top)
    [request] = talked.requests
    assert request.body == whole_body(place, request, injected(here), user("$lint"), skills=skill_list(line(here)))
    assert talked.warnings == []
