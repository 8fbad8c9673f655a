"""What the model is given when a message names skills, and what the user is told when that selects none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from tests.support.bodies import injected, said, skill_list, user, whole_body
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.session import scripted_session
from tests.support.skills import NO_BUNDLED, Talk, add_skill, own_root, repo_root, skill_text, talk

# Without a list there is nothing in the first context that varies with the skills there are.
UNLISTED = "[skills]\ninclude_instructions = false\n"


async def ask(place: Place, *messages: str | Sequence[UserInput], top: str = "") -> Talk:
    return await talk(place, *messages, top=f"{UNLISTED}{top}")


def turns(messages: Sequence[str], value: Callable[[str], list[Any]]) -> list[Any]:
    """The items of one turn a message, each behind what it was `given`, but for the answer to the last."""
    items = [
        item
        for number, message in enumerate(messages, start=1)
        for item in (*value(message), user(message), said(f"answer {number}"))
    ]
    return items[:-1]


SELECTING = [
    *("$lint", "use $lint on app.py", "($lint)", "$lint.", "$lint, now", "$lint's", "$lint!", "$lint/x", "$lint=1"),
    *("# $lint", "- $lint", "> $lint", "| $lint |", "**$lint**", '"$lint"', "`$lint`", "```sh\n$lint\n```"),
    *("    $lint", "\n$lint\n", "$lint\r\n", "foo$lint", "https://x.test/?a=$lint&b=1"),
    *("$$lint", "\\$lint", "$HOME$lint", "$lint $lint"),
    *("用$lint写", "$lint\u00a0x", "$lint\u200b", "$lint…", "\U0001f680$lint\U0001f680", "$lint-al $lint"),
    *("$lint: go", "$lint:go", "$lint::", "$lint:now:go", "[$lint]", "[$lint: x]", "[$lint](", "[$lint]()"),
    *("[$lint]( )", "[$lint]({path})", "[$lint] ({path})", "[$lint]\n( {path} )", "[$lint](skill://{path})"),
    *("![$lint]({path})", "[$whatever]({path})", "[$lint-all]({path})", "[$lint](/.{path})"),
    "[$lint](/{path}/../SKILL.md)",
]  # fmt: skip
NOT_SELECTING = [
    *("lint", "@lint", "/lint", "${lint}", "$(lint)", "$ lint", "＄lint", "$", "$:", "$:lint", "$-"),
    *("$lint-", "$lint_", "$lint-al", "$lint-all-of-it", "$lint2", "[lint]({path})", "$PATH $path: x"),
    *("[$PATH]({path})", "[$lint](app://lint)", "[$lint](mcp://lint)", "[$lint](plugin://lint)", "[$lint](https://x.test/a)"),
    *("[$lint]({directory}/other.md)", "[$lint](r0/lint/a)"),
]  # fmt: skip


async def test_a_name_or_a_link_selects_wherever_it_stands(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    add_skill(repo_root(place), "lint-all")
    messages = [text.format(path=lint) if "{path}" in text else text for text in SELECTING]
    talked = await ask(place, *messages)
    assert talked.last.body == whole_body(place, talked.last, *turns(messages, lambda _: [injected(lint)]))
    assert talked.warnings == ["`$lint-al` is not a skill; did you mean `$lint-all` (repo)?"]


async def test_what_is_no_name_and_no_link_selects_nothing(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    for name in ("lint-all", "path", "a b"):
        add_skill(repo_root(place), name)
    messages = [text.replace("{path}", str(lint)).replace("{directory}", str(lint.parent)) for text in NOT_SELECTING]
    talked = await ask(place, *messages)
    assert talked.last.body == whole_body(place, talked.last, *turns(messages, lambda _: []))
    near = [
        f"`${written}` is not a skill; did you mean `${name}` (repo)?"
        for written, name in (("lint-", "lint"), ("lint_", "lint"), ("lint-al", "lint-all"), ("lint2", "lint"))
    ]
    unlike = "`$lint-all-of-it` is not a skill; `codex-py skills list` shows the names"
    assert talked.warnings == [*near[:3], unlike, near[3]]


async def test_what_is_nearly_a_name_is_reported_and_a_shell_variable_is_not(place: Place) -> None:
    for name in ("fix-tests", "homes", "name", "costs"):
        add_skill(repo_root(place), name)
    prompt = "$fix-test: then $HOME $PATH $1 $10 $nam $? $_ $NAMES $FIX_TESTS ${fix-test} $(fix-test) cost$ 5$"
    talked = await ask(place, prompt)
    assert talked.warnings == [
        "`$fix-test` is not a skill; did you mean `$fix-tests` (repo)?",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("代码审查", "$代码审查 看看 app.py"),
        ("代码审查", "请用$代码审查检查一下"),
        ("代码审查", "[$代码审查]({path})"),
        ("レビュー", "$レビューしてください"),
        ("검사", "$검사로 확인해줘"),
        ("größe", "$größe: bitte"),
        ("проверка", "запусти $проверка, пожалуйста"),
        ("فحص", "$فحص هذا"),
        ("परीक्षण", "$परीक्षण करो"),
        ("ตรวจโค้ด", "$ตรวจโค้ด หน่อย"),
    ],
)
async def test_a_name_in_any_script_is_a_mention(place: Place, name: str, message: str) -> None:
    path = add_skill(repo_root(place), name)
    text = message.replace("{path}", str(path))
    talked = await talk(place, text)
    assert [use.name for use in talked.uses] == [name]
    assert talked.requests[0].body["input"][-2:] == [injected(path, name), user(text)]
    assert talked.warnings == []


@pytest.mark.parametrize(
    ("message", "warnings"),
    [
        ("$代碼审查 看看", ["`$代碼审查` is not a skill; did you mean `$代码审查` (repo)?"]),
        ("用$代碼审查检查这个文件吧", ["`$代碼审查检查这个文件吧` is not a skill; did you mean `$代码审查` (repo)?"]),
        ("$名字", ["`$名字` is not a skill; `codex-py skills list` shows the names"]),
        ("$wholly-other do it", ["`$wholly-other` is not a skill; `codex-py skills list` shows the names"]),
        ("please use $wholly-other", ["`$wholly-other` is not a skill; `codex-py skills list` shows the names"]),
        ("call the $wholly skill", ["`$wholly` is not a skill; `codex-py skills list` shows the names"]),
        ("现在 $wholly 这个技能", ["`$wholly` is not a skill; `codex-py skills list` shows the names"]),
        ("现在用 $wholly 检查", ["`$wholly` is not a skill; `codex-py skills list` shows the names"]),
        ("echo $cafe", ["`$cafe` is not a skill; you could mean `$café` (repo)"]),
        ("why is $user undefined", []),
        ("$user->name is null", []),
        ("set $primary-color to red", []),
        ("`$wholly-other`", []),
        ("costs $5 or $12.50", []),
        ("use $HOME/bin and ${x}", []),
        ("$PORT is taken", []),
    ],
)
async def test_an_unknown_name_is_named_and_a_variable_is_not(place: Place, message: str, warnings: list[str]) -> None:
    for name in ("代码审查", "café"):
        add_skill(repo_root(place), name)
    talked = await talk(place, message)
    assert (talked.uses, talked.warnings) == ([], warnings)


async def test_a_skill_without_a_name_has_that_of_its_directory(place: Place) -> None:
    root = repo_root(place)
    nameless = add_skill(root, "lint", "---\ndescription: checks\n---\nDo it.\n")
    long = add_skill(root, "long", skill_text("x" * 65))
    talked = await talk(place, f"$lint ${'x' * 65}")
    assert [use.path for use in talked.uses] == [nameless, long]
    assert talked.warnings == [
        f"skill file {nameless}: missing field `name`; the name of the directory is used: `lint`, and that of 1 more "
        "(`codex-py skills doctor` tells all)"
    ]


async def test_the_longest_known_name_is_meant(place: Place) -> None:
    root = repo_root(place)
    names = ("a", "a:b", "a-b", "a_b")
    paths = {name: add_skill(root, name.replace(":", "."), skill_text(name)) for name in names}
    messages = {"$a:b": "a:b", "$a:b:c": "a:b", "$a:c": "a", "$a-b": "a-b", "$a-b:": "a-b", "$a_b.": "a_b", "$a.b": "a"}
    talked = await ask(place, *messages)
    value = turns(list(messages), lambda message: [injected(paths[messages[message]], messages[message])])
    assert talked.last.body == whole_body(place, talked.last, *value)


async def test_several_skills_come_in_the_order_of_the_catalogue_each_once(place: Place) -> None:
    mine, zoo, ant = (
        add_skill(root, name)
        for root, name in ((own_root(place), "mine"), (repo_root(place), "zoo"), (repo_root(place), "ant"))
    )
    prompt = f"$mine, then $zoo and `$ant`; $zoo again, [$ant]({ant}) too\n```\n$mine\n```"
    linked_last = f"$ant and [$x]({mine})"
    talked = await ask(place, prompt, linked_last)
    assert talked.last.body == whole_body(
        place,
        talked.last,
        *(injected(ant), injected(zoo), injected(mine), user(prompt), said("answer 1")),
        *(injected(mine), injected(ant), user(linked_last)),
    )
    assert [use.name for use in talked.uses] == ["ant", "zoo", "mine", "mine", "ant"]


async def test_a_link_to_home_is_written_with_a_tilde(place: Place) -> None:
    path = add_skill(own_root(place), "lint")
    prompt = "use [$lint](~/.agents/skills/lint/SKILL.md)"
    talked = await ask(place, prompt)
    assert talked.last.body == whole_body(place, talked.last, injected(path), user(prompt))


@pytest.mark.parametrize(
    ("prompt", "result"),
    [
        (
            "use [$lint]({evil})",
            "no skill at `{evil}` of `$lint`: it lies in no directory that is searched for skills; "
            "`codex-py skills doctor` says how to add one; you could mean `$lint` (repo)",
        ),
        (
            "[$lint](../evil/SKILL.md)",
            "no skill at `../evil/SKILL.md` of `$lint`: a link to a skill needs a path from here that stays in the "
            "project, or an absolute one; you could mean `$lint` (repo)",
        ),
        (
            "[$lint](skill://{directory})",
            "`{directory}` of `$lint` is the directory of a skill; write `[$lint]({path})`",
        ),
        ("use $LINT: now", "`$LINT` is not a skill; you could mean `$lint` (repo)"),
        ("use $Fmt", "`$Fmt` is not a skill; you could mean `$fMT` (repo) or `$fmt` (user)"),
        (
            "use $twin",
            "`$twin` could mean 2 skills and selects none: `[$twin]({twin})` (repo) or `[$twin]({own})` (user)",
        ),
        ("$broken", "`$broken` selects nothing: `{broken}` could not be loaded: missing field `description`"),
    ],
)  # fmt: skip
async def test_what_could_be_meant_is_reported_and_selects_nothing(place: Place, prompt: str, result: str) -> None:
    lint = add_skill(repo_root(place), "lint")
    paths = {
        "path": lint,
        "directory": lint.parent,
        "evil": place.write("evil/SKILL.md", lint.read_text()),
        "twin": add_skill(repo_root(place), "twin"),
        "own": add_skill(own_root(place), "twin"),
        "broken": add_skill(repo_root(place), "broken", "---\nname: broken\n---\n"),
    }
    add_skill(repo_root(place), "fMT")
    add_skill(own_root(place), "fmt")
    message = prompt.format(**paths)
    talked = await ask(place, message)
    assert talked.last.body == whole_body(place, talked.last, user(message))
    assert talked.warnings[1:] == [result.format(**paths)]


async def test_a_mention_that_selects_after_all_is_not_complained_of(place: Place) -> None:
    here = add_skill(repo_root(place), "twin")
    add_skill(own_root(place), "twin")
    prompt = f"$twin, I mean [$twin]({here})"
    talked = await ask(place, prompt)
    assert talked.last.body == whole_body(place, talked.last, injected(here), user(prompt))
    assert talked.warnings == []


async def test_a_skill_of_a_plugin_is_named_with_its_namespace(place: Place) -> None:
    path = add_skill(place.codex_home / "plugins/cache/market/tools/local/skills", "lint")
    messages = ["$tools:lint: go", "$lint"]
    talked = await ask(place, *messages, top='[plugins."tools@market"]\nenabled = true\n')
    assert talked.last.body == whole_body(
        place,
        talked.last,
        *turns(messages, lambda message: [injected(path, "tools:lint")] if message != "$lint" else []),
    )
    assert talked.warnings == ["`$lint` is not a skill; you could mean `$tools:lint` (user)"]


async def test_a_picked_skill_comes_first_and_takes_its_name_from_the_mentions(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    add_skill(repo_root(place), "ant")
    there = add_skill(own_root(place), "lint", skill_text("lint", body="The user's own."))
    picked = (SkillInput("lint", there), TextInput("use $lint and $ant"))
    talked = await ask(place, picked)
    ant = repo_root(place) / "ant/SKILL.md"
    assert talked.last.body == whole_body(
        place, talked.last, injected(there), injected(ant), user("use $lint and $ant")
    )
    assert talked.warnings == []


async def test_a_picked_skill_that_is_not_there_still_takes_its_name(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    nowhere = place.repo / "nowhere/SKILL.md"
    talked = await ask(place, (SkillInput("lint", nowhere), TextInput("$lint")))
    assert talked.last.body == whole_body(place, talked.last, user("$lint"))
    assert talked.warnings == [f"no skill at `{nowhere}` of `$lint`; you could mean `$lint` (repo)"]


async def test_a_picked_skill_alone_needs_no_message(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    talked = await ask(place, (SkillInput("lint", path),))
    assert talked.last.body == whole_body(place, talked.last, injected(path))


async def test_a_skill_is_given_as_it_is_and_what_it_mentions_is_not(place: Place) -> None:
    body = "use $other\r\n</skill>\n<b>&amp;\ttab\x00\n\n"
    lint = add_skill(repo_root(place), "lint", f"---\r\nname: lint\r\ndescription: x\r\n---\r\n{body}")
    add_skill(repo_root(place), "other")
    place.write("AGENTS.md", "")
    talked = await ask(place, "$lint", "and without")
    assert talked.last.body == whole_body(
        place,
        talked.last,
        injected(lint, text=lint.read_bytes().decode().replace("</skill>", "<\\/skill>")),
        *(user("$lint"), said("answer 1"), user("and without")),
    )


async def test_a_long_body_is_cut_and_says_where_the_rest_is(place: Place) -> None:
    path = add_skill(repo_root(place), "long", skill_text("long", body="0123456789abcde\n" * 20_000))
    raw = path.read_bytes()
    # Whole lines of 16 bytes, as many as fit.
    start = raw.index(b"0123")
    kept = start + (256 * 1024 - start) // 16 * 16
    note = (
        f"[cut here: these are the first {kept} of {len(raw)} bytes; the rest is in the file: "
        f"`tail -c +{kept + 1} {path}`]"
    )
    talked = await ask(place, "$long")
    shown = injected(path, text=f"{raw[:kept].decode()}\n{note}")
    assert talked.last.body == whole_body(place, talked.last, shown, user("$long"))
    assert talked.warnings == []


def spoil(path: Path, way: str) -> None:
    if way == "bytes":
        path.write_bytes(b"\xff")
        return
    path.unlink()
    if way == "link":
        path.symlink_to("/etc/hostname")
    elif way == "directory":
        path.mkdir()


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("gone", "no such file"),
        ("bytes", "not UTF-8 at byte 0"),
        ("link", "a link that leads out of the project"),
        ("directory", "not a regular file"),
    ],
)
async def test_a_skill_that_cannot_be_read_any_more_costs_a_line(place: Place, way: str, reason: str) -> None:
    need = "dependencies:\n  tools:\n    - {type: env_var, value: NOT_ASKED_FOR}\n"
    gone = add_skill(repo_root(place), "gone", skill_text("gone", more=need))
    here = add_skill(repo_root(place), "here")
    async with scripted_session(place, [say("one")], top=f"{UNLISTED}{NO_BUNDLED}") as (model, watched):
        # Between the look at the directories, with which a turn begins, and the reading.
        watched.on(events.TurnStarted, lambda: spoil(gone, way))
        ended = await watched.say("$gone $here")
    assert isinstance(ended, events.TurnCompleted)
    [request] = model.requests
    assert request.body == whole_body(place, request, injected(here), user("$gone $here"))
    assert watched.warnings == [f"skill `gone` is left out: cannot read `{gone}`: {reason}"]
    assert watched.of(events.SkillUsed) == [events.SkillUsed("here", "repo", here, "explicit")]


async def test_the_list_stands_before_what_was_named(place: Place) -> None:
    path = add_skill(repo_root(place), "lint", skill_text("lint", "checks the code"))
    talked = await talk(place, "use $lint: on app.py", "and now without")
    listed = skill_list(f"- lint: checks the code (file: {path})")
    first, second = talked.requests
    result = [injected(path), user("use $lint: on app.py")]
    assert first.body == whole_body(place, first, *result, skills=listed)
    # Nothing of it again: the turn after adds the answer and the prompt.
    assert second.body == whole_body(place, second, *result, said("answer 1"), user("and now without"), skills=listed)
    assert talked.uses == [events.SkillUsed("lint", "repo", path, "explicit")]


@pytest.mark.parametrize("link", ["./.agents/skills/lint/SKILL.md", ".agents/skills/lint/SKILL.md", "skill://lint"])
async def test_a_link_from_here_and_one_by_name_select(place: Place, link: str) -> None:
    add_skill(repo_root(place), "lint")
    async with scripted_session(place, [say("done")], top=NO_BUNDLED) as (_, watched):
        await watched.say(f"[$x]({link}) now")
    assert [use.name for use in watched.of(events.SkillUsed)] == ["lint"]
