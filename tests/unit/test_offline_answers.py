"""Whole turns with the offline model: what it runs, and what it answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_offline_loop import EXEC, NOTICE, Host, git_tree, user, write_tree

CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\n"
    "def test_add():\n    assert add(1, 2) == 3\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
}


def skill(body: str, path: Path | str = "/x/SKILL.md") -> dict[str, Any]:
    return user(f"<skill>\n<name>demo</name>\n<path>{path}</path>\n{body}\n</skill>")


@pytest.mark.parametrize("build", [git_tree, write_tree])
async def test_a_repository_is_described(tmp_path: Path, build: Any) -> None:
    project = '[project]\nname = "calc"\n'
    readme = "# Calc\n\nAdds numbers, not always rightly.\n\n```sh\npython -m calc\n```\n"
    host = Host(build(tmp_path / "work", {**CALC, "README.md": readme, "pyproject.toml": project, "src/a.rs": ""}))

    answer = await host.ask("what is this repository?")

    assert answer == (
        "**calc**: Adds numbers, not always rightly.\n\n(from `README.md`)\n\n- **Files:** 5\n"
        "- **Languages:** Python (2 files), Rust (1 file)\n- **Tests:** `.` (1 test file)\n"
        f"- **How to run:** `python -m calc`\n- **Directories:** `src/` (1)\n\n{NOTICE}"
    )


async def test_an_empty_directory_is_said_to_be_empty(tmp_path: Path) -> None:
    assert "is empty" in await Host(tmp_path).ask("what is this?")
    assert "I found no tests here" in await Host(tmp_path).ask("run the tests")


async def test_a_text_is_found_with_its_places(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {**CALC, ".hidden": "add\n"}))

    assert (await host.ask("find `return a`")).startswith(
        "`return a` is on 1 line in 1 file:\n\n- `calc.py:2`: `return a - b`"
    )
    assert "- `.hidden:1`: `add`" in await host.ask("find `add`")
    assert "when upper and lower case are taken as the same" in await host.ask("find `RETURN A`")
    assert "is nowhere in the files here" in await host.ask("find `no such text`")


async def test_the_failing_tests_are_named(tmp_path: Path) -> None:
    answer = await Host(write_tree(tmp_path, CALC)).ask("run the tests")

    assert "It failed with exit code 1: 1 failed, 1 passed." in answer
    assert "1. `test_calc.py:5` — `test_add`: assert -1 == 3" in answer
    assert "Fixing them needs a real model." in answer


async def test_tests_that_did_not_run_have_not_passed(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path / "work", CALC))
    assert (await host.ask("run the test test_nosuch")).partition("\n")[0].endswith("-k test_nosuch`. No test ran.")
    for name in ("python3", "python"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        program.chmod(0o755)
    host.path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    answer = await host.ask("run the tests")
    assert "`. No test ran: these may need pytest, which no Python here has." in answer
    assert "passed" not in answer


async def test_one_test_is_run_by_its_name(tmp_path: Path) -> None:
    answer = await Host(write_tree(tmp_path, CALC)).ask("does test_zero pass? run the tests")

    assert "-k test_zero`. The tests passed: 1 passed, 1 deselected." in answer


async def test_tests_in_another_language_show_their_output(tmp_path: Path) -> None:
    answer = await Host(write_tree(tmp_path, {"Makefile": "all:\ntest:\n\t@echo two failed; false\n"})).ask(
        "run the tests"
    )

    assert "I ran `make test`. It failed with exit code 2." in answer
    assert "two failed" in answer


async def test_commands_run_in_order_up_to_the_first_that_fails(tmp_path: Path) -> None:
    host = Host(tmp_path)

    answer = await host.ask("run `echo one`, `exit 3` and `echo two`")

    assert host.commands == ["echo one", "exit 3"]
    assert "`echo one` finished with exit code 0:\n\n```\none\n```" in answer
    assert "`exit 3` failed with exit code 3 and printed nothing." in answer
    assert "Not run after that: `echo two`." in answer


async def test_a_missing_program_and_a_missing_tool_are_said(tmp_path: Path) -> None:
    assert "The shell did not find the program" in await Host(tmp_path).ask("run `no-such-program`")
    assert "offers no `exec_command`. Nothing was run." in await Host(tmp_path, tools=()).ask("run `ls`")


@pytest.mark.parametrize("tools", [None, (EXEC,)])
async def test_a_text_is_replaced_by_a_patch(tmp_path: Path, tools: tuple[dict[str, Any], ...] | None) -> None:
    text = "".join(f"line {n}\nlimit = 10\n" for n in range(12))
    write_tree(tmp_path, {"app.py": text, "other.py": "limit = 11\n"})
    host = Host(tmp_path) if tools is None else Host(tmp_path, tools=tools)

    answer = await host.ask("replace `limit = 10` with `limit = 20`")

    assert (tmp_path / "app.py").read_text() == text.replace("10\n", "20\n").replace("line 20", "line 10")
    assert answer.startswith("Replaced `limit = 10` with `limit = 20` in `app.py`: 12 occurrences (line 2, 4, 6")
    assert "is not in `app.py` (`limit = 20` is there already)" in await host.ask(
        "replace `limit = 10` with `limit = 20` in app.py"
    )


@pytest.mark.parametrize("text", ["a\r\nold\r\nb\r\n", "old", "\ufeffold\nb\n", "old\n\n\nold old\n"])
async def test_line_ends_and_marks_stay(tmp_path: Path, text: str) -> None:
    write_tree(tmp_path, {"a.txt": text})

    await Host(tmp_path).ask("replace `old` with `new` in a.txt")

    assert (tmp_path / "a.txt").read_bytes().decode().rstrip("\n") == text.replace("old", "new").rstrip("\n")


async def test_nothing_is_replaced_where_it_is_not_clear_or_not_allowed(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "old\n", "b.txt": "old\n"})
    host = Host(tmp_path)

    assert "is in 2 files, and nothing was changed. Say in which file:" in await host.ask("replace `old` with `new`")
    assert "No such file" in await host.ask("replace `old` with `new` in c.txt")
    host.read_only = True
    assert "Run again with `-s workspace-write`" in await host.ask("replace `old` with `new` in a.txt")
    assert [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")] == ["old\n", "old\n"]


async def test_the_shell_blocks_of_a_skill_run_in_order(tmp_path: Path) -> None:
    directory = tmp_path / "skill"
    write_tree(directory, {"scripts/mark.sh": "echo marked\n"})
    body = "---\nname: demo\n---\nText.\n```sh\necho one\n```\n```python\nno\n```\n"
    body += "1. do\n   ```bash\n   sh scripts/mark.sh\n   ```\n```sh\ngrep <word> x\n```\n"
    host = Host(tmp_path)

    answer = await host.ask("use $demo", skill(body, directory / "SKILL.md"))

    assert host.commands[1:] == ["echo one", f"sh {directory}/scripts/mark.sh"]
    assert "**Step 2 of 3.** `sh " in answer
    assert "marked" in answer
    assert "**Step 3 of 3.** Skipped: filling in `<word>` needs a real model." in answer


async def test_a_skill_stops_at_the_first_step_that_fails(tmp_path: Path) -> None:
    body = "```sh\nfalse\necho not this\n```\n```sh\necho nor this\n```"
    host = Host(tmp_path)

    answer = await host.ask("use $demo", skill(body, "x"))

    assert host.commands == ["set -e\nfalse\necho not this"]
    assert "I stopped at this step. Steps left: 1." in answer
    assert "has no shell block that I could run" in await Host(tmp_path).ask("use $demo", skill("Just text.", "x"))


async def test_everything_else_is_said_to_need_a_model(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, CALC))

    answer = await host.ask("add a multiply function")

    assert answer.startswith("“add a multiply function” needs judgement, and I am fixed rules without any.")
    assert "codex-py login" in answer
    assert host.calls == []
    assert "I am its built-in offline model: fixed rules, not an AI" in await host.ask("who are you?")
    assert "nothing to sum up" in await host.ask("The conversation above is about to be replaced by a summary of it.")


async def test_a_long_output_is_shown_in_parts(tmp_path: Path) -> None:
    answer = await Host(tmp_path).ask("run `seq 1 100000`")

    assert "lines left out" in answer
    assert len(answer) < 25_000
