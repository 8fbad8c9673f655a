"""Replacing texts through the patch tool, checked on the files themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_offline_loop import EXEC, NOTICE, PATCH, PATCH_FUNCTION, Host, git_tree, write_tree

SOURCE = "def area(width, height):\n    return width * height\n\n\nprint(area(2, 3))\n"


@pytest.mark.parametrize(
    "tools", [(EXEC, PATCH), (EXEC, PATCH_FUNCTION), (EXEC,)], ids=["custom", "function", "heredoc"]
)
async def test_every_occurrence_is_replaced_and_checked(tmp_path: Path, tools: tuple[dict[str, Any], ...]) -> None:
    host = Host(write_tree(tmp_path, {"a.py": SOURCE}), tools=tools)

    told = await host.ask("replace `area` with `surface` in a.py")

    assert (tmp_path / "a.py").read_text() == SOURCE.replace("area", "surface")
    assert told == (
        "Replaced `area` with `surface`:\n\n"
        f"- `a.py`: 2 occurrences (lines 1, 5), read again and as planned\n\n{NOTICE}"
    )


async def test_rename_spares_longer_names(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.py": "foo = foobar + foo\n"})

    told = await Host(tmp_path).ask("rename `foo` to `bar` in a.py")

    assert (tmp_path / "a.py").read_text() == "bar = foobar + bar\n"
    assert "(whole words only)" in told


async def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "one\r\ntwo\r\nthree\r\n"})

    await Host(tmp_path).ask("replace `two` with `2` in a.txt")

    assert (tmp_path / "a.txt").read_bytes() == b"one\r\n2\r\nthree\r\n"


async def test_lines_are_replaced_by_lines(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "one\ntwo\nthree\n"})

    told = await Host(tmp_path).ask("replace\n```\none\ntwo\n```\nwith\n```\n1\n2\n2b\n```\nin a.txt")

    assert (tmp_path / "a.txt").read_text() == "1\n2\n2b\nthree\n"
    assert "Replaced the 2 lines from `one` with the 3 lines from `1`" in told


async def test_a_text_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {"a.txt": "new text\n"}))

    assert (await host.ask("replace `old` with `other` in a.txt")).startswith(
        "`old` is not in `a.txt`, so it was not changed."
    )
    assert "(`new` is already there)" in await host.ask("replace `old` with `new` in a.txt")
    assert "apply_patch" not in [name for name, _ in host.calls]


async def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    told = await Host(tmp_path).ask("replace `a` with `b` in missing.txt")

    assert told.startswith("`missing.txt` could not be read: no such file or directory. It was not changed.")


async def test_a_folder_is_no_file(tmp_path: Path) -> None:
    write_tree(tmp_path, {"src/a.txt": ""})

    assert "`src` could not be read: is a directory" in await Host(tmp_path).ask("replace `a` with `b` in `src`")


async def test_a_bare_name_finds_the_one_file_of_that_name(tmp_path: Path) -> None:
    write_tree(tmp_path, {"src/deep/config.py": "timeout = 30\n"})

    told = await Host(tmp_path).ask("change the timeout from `30` to `60` in config.py")

    assert (tmp_path / "src/deep/config.py").read_text() == "timeout = 60\n"
    assert "`src/deep/config.py`: 1 occurrence (line 1)" in told


async def test_a_read_only_sandbox_is_named_and_nothing_changes(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {"a.py": SOURCE}))
    host.read_only = True

    told = await host.ask("replace `area` with `surface` in a.py")

    assert (tmp_path / "a.py").read_text() == SOURCE
    assert "Run again with `-s workspace-write`" in told
    assert "-def area(width, height):\n+def surface(width, height):" in told


async def test_without_a_file_the_only_one_is_taken(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "x colour y\n", "b.txt": "nothing\n"})

    await Host(git_tree(tmp_path, {})).ask("replace `colour` with `color`")

    assert (tmp_path / "a.txt").read_text() == "x color y\n"


async def test_without_a_file_several_are_only_listed(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "colour\n", "b.txt": "colour\n"})
    host = Host(tmp_path)

    told = await host.ask("replace `colour` with `color`")

    assert told.startswith(
        "`colour` is in 2 files, and nothing was changed:\n\n- `a.txt`\n- `b.txt`\n\nSay in which file"
    )
    assert (tmp_path / "a.txt").read_text() == "colour\n"


async def test_everywhere_means_every_file(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "colour\n", "sub/b c.txt": "a colour\nno\ncolour\n", "c.txt": "none\n"})

    told = await Host(tmp_path).ask("replace `colour` with `color` everywhere")

    assert (tmp_path / "a.txt").read_text() == "color\n"
    assert (tmp_path / "sub/b c.txt").read_text() == "a color\nno\ncolor\n"
    assert "- `sub/b c.txt`: 2 occurrences (lines 1, 3)" in told


async def test_two_files_in_one_wish(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "x1\n", "b.txt": "y\n"})

    told = await Host(tmp_path).ask("replace `x1` with `x2` in a.txt and b.txt")

    assert (tmp_path / "a.txt").read_text() == "x2\n"
    assert "`x1` is not in `b.txt`, so it was not changed." in told


async def test_a_long_file_is_changed_without_being_shown_whole(tmp_path: Path) -> None:
    lines = [f"line number {number}" for number in range(5000)]
    lines[10] = lines[2500] = lines[4999] = "the needle is here"
    text = "\n".join(lines) + "\n"
    write_tree(tmp_path, {"long.txt": text})

    told = await Host(tmp_path).ask("replace `needle` with `thread` in long.txt")

    assert (tmp_path / "long.txt").read_text() == text.replace("needle", "thread")
    assert "3 occurrences (lines 11, 2501, 5000), read again and as planned" in told


async def test_lines_in_a_long_file_are_replaced_too(tmp_path: Path) -> None:
    text = "".join(f"filler {number}\n" for number in range(5000)) + "first\nsecond\n" + "more\n" * 5000
    write_tree(tmp_path, {"long.txt": text})

    await Host(tmp_path).ask("replace\n```\nfirst\nsecond\n```\nwith\n```\nboth\n```\nin long.txt")

    assert (tmp_path / "long.txt").read_text() == text.replace("first\nsecond\n", "both\n")


async def test_quotes_and_shell_signs_are_only_text(tmp_path: Path) -> None:
    write_tree(tmp_path, {"it's $HOME.txt": 'say "$(touch owned)" && it\'s\n'})

    await Host(tmp_path).ask('replace `"$(touch owned)" && it\'s` with `\'; rm -rf *` in "it\'s $HOME.txt"')

    assert (tmp_path / "it's $HOME.txt").read_text() == "say '; rm -rf *\n"
    assert not (tmp_path / "owned").exists()


async def test_a_removed_line_leaves_no_gap(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.txt": "one\ntwo\nthree\n"})

    told = await Host(tmp_path).ask("remove `two` from a.txt")

    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"
    assert told.startswith("Removed `two`:")
