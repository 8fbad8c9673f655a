"""Following an injected skill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.offline.fences import Fence, fences, shell_text
from codex_py.offline.placeholders import Filled, fill
from tests.unit.test_offline_loop import ALL_TOOLS, EXEC, Host, user, write_tree


def skill(path: Path, body: str, name: str = "release") -> dict[str, Any]:
    text = f"---\nname: {name}\ndescription: d\n---\n{body}"
    return user(f"<skill>\n<name>{name}</name>\n<path>{path / 'SKILL.md'}</path>\n{text}\n</skill>")


def at_work(host: Host) -> list[str]:
    return [command for command in host.commands if not command.startswith("find ")]


async def test_shell_blocks_run_in_order_one_call_each(tmp_path: Path) -> None:
    body = (
        "Do this:\n\n```sh\necho one > log\n```\n\nthen\n\n```bash\necho two >> log\ncat "
        "log\n```\n\n```python\nprint('no')\n```\n"
    )
    host = Host(write_tree(tmp_path / "work", {"a": ""}))

    told = await host.ask("use $release", skill(tmp_path / "skill", body))

    assert at_work(host) == ["echo one > log", "set -e\necho two >> log\ncat log"]
    assert (tmp_path / "work/log").read_text() == "one\ntwo\n"
    assert told.startswith(
        "Skill `release`: it has 2 shell blocks, of which 2 ran.\n\n**Step 1 of 2.** `echo one > log` finished"
    )
    assert "```\none\ntwo\n```" in told


async def test_the_first_failing_step_ends_it(tmp_path: Path) -> None:
    body = "```sh\necho one\n```\n```sh\nfalse\necho not reached\n```\n```sh\necho three\n```\n"
    host = Host(tmp_path)

    told = await host.ask("use $release", skill(tmp_path, body))

    assert at_work(host) == ["echo one", "set -e\nfalse\necho not reached"]
    assert "**Step 2 of 3.** The block failed with exit code 1" in told
    assert "I stopped at this step; 1 step after it not run." in told


async def test_a_session_block_gives_what_stands_behind_its_prompts(tmp_path: Path) -> None:
    body = "```console\n$ echo a \\\n>   b\na b\n$ echo c\nc\n```\n"
    host = Host(tmp_path)

    await host.ask("use $release", skill(tmp_path, body))

    assert at_work(host) == ["set -e\necho a \\\n  b\necho c"]


async def test_own_scripts_are_named_by_full_path(tmp_path: Path) -> None:
    folder = write_tree(
        tmp_path / "my skill",
        {"scripts/check.sh": "echo checked in $(basename $PWD)\n", "helper.py": "print('helped')\n"},
    )
    host = Host(write_tree(tmp_path / "work", {"scripts/other.sh": "echo other\n", "notes.txt": ""}))
    body = (
        "```sh\nbash scripts/check.sh notes.txt\npython3 helper.py\nbash ./scripts/other.sh\nbash "
        '"scripts/check.sh"\n```\n'
    )

    told = await host.ask("use $release", skill(folder, body))

    quoted = f"'{folder}/scripts/check.sh'"
    assert at_work(host) == [
        f"set -e\nbash {quoted} notes.txt\npython3 '{folder}/helper.py'\nbash ./scripts/other.sh\nbash "
        f'"{folder}/scripts/check.sh"'
    ]
    assert "checked in work\nhelped\nother\nchecked in work" in told


async def test_a_block_with_an_open_placeholder_is_skipped(tmp_path: Path) -> None:
    body = "```sh\necho tag <version>\n```\n```sh\necho $CHANNEL\n```\n```sh\necho always\n```\n"
    host = Host(tmp_path)

    told = await host.ask("use $release", skill(tmp_path, body))

    assert at_work(host) == ["echo always"]
    assert "**Step 1 of 3.** Skipped: `<version>` is not filled in" in told
    assert "**Step 2 of 3.** Skipped: `$CHANNEL` is not filled in" in told


async def test_placeholders_are_filled_from_the_prompt(tmp_path: Path) -> None:
    body = "```sh\necho tag <version> $CHANNEL\n```\n"
    host = Host(tmp_path)

    told = await host.ask("use $release with version 1.2.3 and channel=beta", skill(tmp_path, body))

    assert "tag 1.2.3 beta" in told


async def test_a_value_from_the_prompt_cannot_become_a_command(tmp_path: Path) -> None:
    host = Host(tmp_path)

    told = await host.ask('use $release, version: "1; touch owned"', skill(tmp_path, "```sh\necho <version>\n```\n"))

    assert "1; touch owned\n```" in told
    assert not (tmp_path / "owned").exists()


async def test_variables_of_an_earlier_block_are_known_later(tmp_path: Path) -> None:
    body = '```sh\nVERSION=$(echo 7)\n```\n```sh\necho "v$VERSION"\n```\n'

    told = await Host(tmp_path).ask("use $release", skill(tmp_path, body))

    assert "v7\n```" in told


async def test_prose_alone_is_shown_as_a_plan(tmp_path: Path) -> None:
    host = Host(tmp_path, tools=ALL_TOOLS)

    told = await host.ask("use $release", skill(tmp_path, "# Release\n\n1. Read the log\n2. Write the notes\n"))

    assert host.calls == [
        (
            "update_plan",
            '{"plan":[{"step":"Read the log","status":"pending"},{"step":"Write the notes","status":"pending"}]}',
        )
    ]
    assert "Its steps, none of them done:\n\n1. Read the log\n2. Write the notes\n" in told
    assert "needs a real model" in told


async def test_prose_alone_needs_no_plan_tool(tmp_path: Path) -> None:
    host = Host(tmp_path, tools=(EXEC,))

    assert "1. Only a bullet" in await host.ask("use $release", skill(tmp_path, "- Only a bullet\n"))
    assert host.calls == []


async def test_skills_of_an_earlier_turn_are_not_followed_again(tmp_path: Path) -> None:
    host = Host(tmp_path)

    await host.ask("use $release", skill(tmp_path, "```sh\necho once\n```\n"))
    await host.ask("run `echo later`")

    assert at_work(host) == ["echo once", "echo later"]


async def test_two_skills_are_followed_in_their_order(tmp_path: Path) -> None:
    host = Host(tmp_path)
    items = [skill(tmp_path, "```sh\necho a\n```\n", "first"), skill(tmp_path, "```sh\necho b\n```\n", "second")]

    told = await host.ask("use $first and $second", *items)

    assert at_work(host) == ["echo a", "echo b"]
    assert told.index("Skill `first`") < told.index("Skill `second`")


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("```sh\nls\n```", [Fence("sh", "ls", "")]),
        ("# H\n~~~bash title=x\nls\n~~~", [Fence("bash", "ls", "H")]),
        ("1. step\n   ```sh\n   ls\n     -la\n   ```", [Fence("sh", "ls\n  -la", "")]),
        ("````md\n```sh\nno\n```\n````", [Fence("md", "```sh\nno\n```", "")]),
        ("```sh\nopen", [Fence("sh", "open", "")]),
        ("```{.sh}\nls\n```", [Fence("sh", "ls", "")]),
        ("```\r\nls\r\n```\r\n", [Fence("", "ls", "")]),
        ("text ```not a fence``` text", []),
        ("- ```sh\n  ls\n  ```", [Fence("sh", "ls", "")]),
    ],
)
def test_fences_are_found_the_way_markdown_means_them(markdown: str, expected: list[Fence]) -> None:
    assert fences(markdown) == expected


def test_a_session_of_root_prompts_is_left_alone() -> None:
    assert shell_text(Fence("console", "# apt install x\n", "")) == ""
    assert shell_text(Fence("sh", "# a comment\nls\n", "")) == "# a comment\nls"


@pytest.mark.parametrize(
    ("text", "prompt", "expected"),
    [
        ("echo <name>", "name: bob", Filled("echo bob", ())),
        ("echo <name>", "call me bob", Filled("echo <name>", ("<name>",))),
        ("echo {{ name }}", "name=bob", Filled("echo bob", ())),
        ("echo YOUR_NAME", "my name is bob", Filled("echo bob", ())),
        ("lint <file>", "lint src/app.py please", Filled("lint src/app.py", ())),
        ("lint <file>", "lint a.py and b.py", Filled("lint <file>", ("<file>",))),
        ("cat <<EOF\n$X\nEOF", "", Filled("cat <<EOF\n$X\nEOF", ("$X",))),
        ("cat <<'EOF'\n$X\nEOF\n", "", Filled("cat <<'EOF'\n$X\nEOF\n", ())),
        ("awk '{print $NF}'", "", Filled("awk '{print $NF}'", ())),
        ("for f in *; do echo $f; done", "", Filled("for f in *; do echo $f; done", ())),
        ("echo ${X:-y} $HOME $1 $?", "", Filled("echo ${X:-y} $HOME $1 $?", ())),
        ("sort <in.txt >out.txt", "", Filled("sort <in.txt >out.txt", ())),
        ("echo '<b>x</b>'", "", Filled("echo '<b>x</b>'", ())),
        ("echo $VERSION", "version v1.0-rc.1", Filled("VERSION=v1.0-rc.1\necho $VERSION", ())),
        (
            "echo $API_URL",
            "the api url is https://x.example/a",
            Filled("API_URL=https://x.example/a\necho $API_URL", ()),
        ),
    ],
)
def test_placeholders(text: str, prompt: str, expected: Filled) -> None:
    assert fill(text, prompt) == expected


@pytest.mark.parametrize(
    "body",
    [
        "```sh\n" + "a" * 500_000 + "\n```",
        "```sh\n" + "<a " * 200_000,
        " " * 500_000 + "```",
        "```\n" * 100_000,
        "```sh\n" + "\n" * 500_000 + "<<'E'",
    ],
    ids=lambda body: body[:8],
)
async def test_a_hostile_skill_takes_no_long_time(tmp_path: Path, body: str) -> None:
    assert await Host(tmp_path, tools=()).ask("use $release", skill(tmp_path, body))
