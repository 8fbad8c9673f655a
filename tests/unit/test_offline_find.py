"""Finding texts and files, with real commands."""

from __future__ import annotations

from pathlib import Path

from tests.unit.test_offline_loop import NOTICE, Host, git_tree, write_tree

FILES = {
    "app/core.py": "import os\n\n\nclass Thing:\n    def retry_delay(self):\n        return 1  # TODO: a real delay\n",
    "app/use.py": "from app.core import Thing\n\nThing().retry_delay()\n",
    "notes.txt": "a.b*c [x] $HOME 'quoted'\n",
    "retry_delay.md": "about it\n",
}


async def test_every_place_is_told_as_file_and_line(tmp_path: Path) -> None:
    answer = await Host(git_tree(tmp_path, FILES)).ask("find `retry_delay`")

    head, _, rest = answer.partition("\n\n")
    assert head == "`retry_delay` is on 2 lines in 2 files:"
    assert sorted(rest.split("\n\n")[0].split("\n")) == [
        "- `app/core.py:5`: `def retry_delay(self):`",
        "- `app/use.py:3`: `Thing().retry_delay()`",
    ]
    assert "Files with it in their name: `retry_delay.md`" in answer


async def test_a_definition_is_told_first(tmp_path: Path) -> None:
    answer = await Host(git_tree(tmp_path, FILES)).ask("where is Thing defined?")

    assert "Defined at:\n- `app/core.py:4`: `class Thing:`\n\nOther places:\n" in answer


async def test_the_needle_is_fixed_text_whatever_it_holds(tmp_path: Path) -> None:
    host = Host(git_tree(tmp_path, FILES))

    assert "`notes.txt:1`" in await host.ask("find `a.b*c [x] $HOME 'quoted'`")
    assert "nowhere" in await host.ask("find `axb`")
    assert "nowhere" in await host.ask("find `$(touch owned)`")
    assert "nowhere" in await host.ask("find `--files`")
    assert not (tmp_path / "owned").exists()


async def test_without_a_match_case_is_let_go(tmp_path: Path) -> None:
    answer = await Host(git_tree(tmp_path, FILES)).ask("find `RETURN 1`")

    assert "1 line in 1 file when upper and lower case are taken as the same" in answer


async def test_nothing_found_is_said(tmp_path: Path) -> None:
    answer = await Host(tmp_path).ask("find `nothing_like_this`")

    assert answer.startswith("`nothing_like_this` is nowhere in the files here")


async def test_many_matches_are_counted_exactly_and_shown_in_part(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {f"f{n}.txt": "hit\n" * 500 for n in range(4)}))
    host.cap = 4000

    answer = await host.ask("search for hit")

    assert answer.startswith("`hit` is on 2000 lines in 4 files:")
    assert answer.count("- `f") == 40
    assert "… and 1960 more lines" in answer
    assert len(answer) < 6000


async def test_grep_stands_in_for_a_missing_rg(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("grep", "find", "head", "bash", "git", "env"):
        target = next(path for path in (Path("/usr/bin", name), Path("/bin", name)) if path.exists())
        (bin_folder / name).symlink_to(target)
    host = Host(git_tree(tmp_path / "repo", FILES))
    host.path = str(bin_folder)

    answer = await host.ask("find `retry_delay`")

    assert "on 2 lines in 2 files" in answer
    assert "`retry_delay.md`" in answer
    assert answer.endswith(NOTICE)


async def test_too_many_files_to_show_are_counted_exactly_too(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {f"d{n}/file.txt": "hit\n" * (2 if n == 7 else 1) for n in range(400)}))
    host.cap = 4000

    answer = await host.ask("find `hit`")

    assert answer.startswith("`hit` is on 401 lines in 400 files:\n")
    assert "most are in `d7/file.txt` (2), " in answer


def only_bash(folder: Path) -> Path:
    """A `PATH` with a shell and nothing else."""
    folder.mkdir()
    (folder / "bash").symlink_to("/bin/bash")
    return folder


async def test_where_nothing_can_be_searched_nothing_is_said_to_be_missing(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path / "repo", FILES))
    host.path = str(only_bash(tmp_path / "bin"))

    answer = await host.ask("find `retry_delay`")

    assert answer == f"I could not look at the files: `grep` is not there where commands run.\n\n{NOTICE}"
