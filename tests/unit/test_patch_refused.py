"""Patches that do not fit: what is said, and that no file has changed."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from codex_py.patch.apply import ApplyError, apply_plan
from codex_py.patch.edit import describe_closest, edit_text
from codex_py.patch.grammar import PatchError, UpdateFile, parse_patch
from codex_py.patch.plan import plan_patch
from codex_py.patch.seek import Effort, LineFinder, SeekMatch
from tests.unit.patch_cases import harvest, patch, plant, run, update

TREE: dict[str, bytes | str] = {
    "a": "x\ny\n",
    "d/inner": "1\n",
    "latin": b"x\n\xe9\n",
    "code.py": "class A:\n    def first(self):\n        return 1\n\n    def second(self):\n        return 2\n",
}
CODE = "/code.py"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (patch(), "No files were modified."),
        (patch("*** Delete File: none"), "Failed to delete file {root}/none: no such file"),
        (patch("*** Delete File: d"), "Failed to delete file {root}/d: it is a directory"),
        (patch("*** Delete File: ."), "Failed to delete file {root}: it is a directory"),
        (patch("*** Delete File: d/"), "`d/` names a directory, not a file"),
        (patch("*** Delete File: d/.."), "`{root}/d/..` names a directory, not a file"),
        (patch("*** Delete File: a/b"), "Failed to delete file {root}/a/b: not a directory"),
        (
            patch("*** Delete File: a", "*** Delete File: a"),
            "Failed to delete file {root}/a: an earlier hunk of the patch removes it",
        ),
        (update("none", "-x"), "Failed to read file to update {root}/none: no such file"),
        (update("d", "-x"), "Failed to read file to update {root}/d: it is a directory"),
        (update("latin", "-x"), "Failed to read file to update {root}/latin: not UTF-8 (byte 2)"),
        (update("pipe", "-x"), "Failed to read file to update {root}/pipe: not a regular file"),
        (update("loop", "-x"), "Failed to read file to update {root}/loop: not a regular file"),
        (update("dangling", "-x"), "Failed to read file to update {root}/dangling: no such file"),
        (
            patch("*** Delete File: a", "*** Update File: a", "-x"),
            "Failed to read file to update {root}/a: an earlier hunk of the patch removes it",
        ),
        (patch("*** Add File: d", "+x"), "Failed to write file {root}/d: it is a directory"),
        (patch("*** Add File: a/b", "+x"), "Failed to write file {root}/a/b: not a directory"),
        (patch("*** Add File: pipe", "+x"), "Failed to write file {root}/pipe: not a regular file"),
        (
            patch("*** Add File: n", "*** Add File: n/m"),
            "Failed to write file {root}/n/m: the patch also makes `{root}/n` a file",
        ),
        (
            patch("*** Add File: n/m", "*** Add File: n"),
            "Failed to write file {root}/n: the patch also makes it a directory",
        ),
        (patch("*** Add File: " + "n" * 256), "Failed to write file {root}/" + "n" * 256 + ": file name too long"),
        (update("a", "*** Move to: d", " x"), "Failed to write file {root}/d: it is a directory"),
        (update("a", "*** Move to: b/", " x"), "`b/` names a directory, not a file"),
        (
            update("a", "@@ nope", "-x"),
            "Failed to find context 'nope' in {root}/a\nhunk 1, patch line 3\n"
            "nothing like it among the 2 lines of the file",
        ),
        (
            update("a", "-x", "+z", "@@", "-x"),
            "Failed to find expected lines in {root}/a:\nx\nhunk 2, patch line 5\n"
            "the closest lines found (the search began at line 2: hunks go down the file):\n1: x",
        ),
        (
            update("a", "-x", "*** End of File"),
            "Failed to find expected lines in {root}/a:\nx\nhunk 1, patch line 3 at the end of the file\n"
            "the closest lines found:\n1: x",
        ),
        (
            update("code.py", "@@ class A:", "     def second(self):", "-        return two"),
            "Failed to find expected lines in {root}/code.py:\n    def second(self):\n        return two\n"
            "hunk 1, patch line 3\nthe closest lines found:\n5:     def second(self):\n6:         return 2",
        ),
        (
            update("code.py", "-    def frist(self):"),
            "Failed to find expected lines in {root}/code.py:\n    def frist(self):\n"
            "hunk 1, patch line 3\nthe closest lines found:\n2:     def first(self):",
        ),
        (
            update("code.py", "@@ def thrid(self):", "-x"),
            "Failed to find context 'def thrid(self):' in {root}/code.py\nhunk 1, patch line 3\n"
            "the closest lines found:\n2:     def first(self):",
        ),
        (
            update("empty", "-x"),
            "Failed to find expected lines in {root}/empty:\nx\nhunk 1, patch line 3\nthe file is empty",
        ),
    ],
)
def test_nothing_is_written_when_a_hunk_does_not_fit(text: str, message: str, tmp_path: Path) -> None:
    plant(tmp_path, {**TREE, "empty": ""})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    # A hunk that fits comes first: it must not be applied either.
    lines = text.split("\n")
    if len(lines) > 2:
        lines[1:1] = ["*** Add File: fits", "+x"]
        message = message.replace("patch line 5", "patch line 7").replace("patch line 3", "patch line 5")

    with pytest.raises(PatchError) as error:
        plan_patch(parse_patch("\n".join(lines)), tmp_path)

    assert str(error.value) == message.format(root=tmp_path)
    assert not (tmp_path / "fits").exists()


def test_quoted_lines_are_cut_and_counted(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n"})
    with pytest.raises(PatchError) as error:
        run(tmp_path, update("a", *(f"-{'long' * 100}" for _ in range(1000))))
    message = str(error.value)
    assert "[976 more lines]" in message
    assert len(message) < 10_000


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(PatchError, match="larger than the 67108864 bytes a patch can change"):
        run(tmp_path, update("big", "-x"))
    assert run(tmp_path, patch("*** Delete File: big")).endswith("D big\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_file_is_not_replaced(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n", "b": "x\n"})
    (tmp_path / "b").chmod(0o444)
    with pytest.raises(ApplyError, match="the file is read-only\nnothing was changed"):
        run(tmp_path, patch("*** Update File: a", "-x", "*** Update File: b", "-x"))
    assert harvest(tmp_path) == {"a": b"x\n", "b": b"x\n"}


@pytest.mark.parametrize("meddle", ["rewrite", "remove", "replace by a link", "directory becomes a link"])
def test_a_file_that_changed_since_the_plan_stops_all_of_it(meddle: str, tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n", "d/b": "x\n", "other/b": "x\n", "secret": "s\n"})
    text = patch("*** Add File: new/n", "+1", "*** Update File: a", "-x", "*** Update File: d/b", "-x", "+y")
    plan = plan_patch(parse_patch(text), tmp_path)
    match meddle:
        case "rewrite":
            (tmp_path / "d/b").write_text("xyz\n")
        case "remove":
            (tmp_path / "d/b").unlink()
        case "replace by a link":
            (tmp_path / "d/b").unlink()
            (tmp_path / "d/b").symlink_to("../secret")
        case _:
            (tmp_path / "d").rename(tmp_path / "moved")
            (tmp_path / "d").symlink_to("other")
    before = harvest(tmp_path)

    with pytest.raises(ApplyError) as error:
        apply_plan(plan)

    assert str(error.value).startswith(f"Failed to write file {tmp_path}/d/b: ")
    assert str(error.value).endswith("\nnothing was changed")
    assert harvest(tmp_path) == before


def test_a_file_that_came_since_the_plan_is_not_overwritten(tmp_path: Path) -> None:
    plan = plan_patch(parse_patch(patch("*** Add File: a", "+x")), tmp_path)
    plant(tmp_path, {"a": "mine\n"})
    with pytest.raises(ApplyError, match="it changed on disk in the meantime; read it again\nnothing was changed"):
        apply_plan(plan)
    assert harvest(tmp_path) == {"a": b"mine\n"}


def finder(*lines: str) -> LineFinder:
    return LineFinder(lines, Effort())


def test_the_search_starts_at_the_named_line() -> None:
    assert finder("a", "b", "a").find(["a"], 0) == SeekMatch(0, 2)
    assert finder("a", "b", "a").find(["a"], 1) == SeekMatch(2)
    assert finder("a", "b", "a").find(["a", "b"], 1) is None
    assert finder("a").find(["a", "a"], 0) is None
    assert finder().find(["a"], 0) is None


def test_runs_are_found_as_a_plain_search_finds_them() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        lines = [chance.choice("ab") for _ in range(chance.randint(0, 30))]
        wanted = [chance.choice("ab") for _ in range(chance.randint(1, 5))]
        start = chance.randint(0, len(lines))
        places = [at for at in range(start, len(lines)) if lines[at : at + len(wanted)] == wanted]
        expected = SeekMatch(places[0], places[1] if len(places) > 1 else None) if places else None
        assert finder(*lines).find(wanted, start) == expected


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param("a\n" * 500_000, ["-a"] * 50_000 + ["-b"], id="one line repeated"),
        pytest.param("a\n" * 500_000 + "b\n", [" a"] * 50_000 + ["-b"], id="one line repeated, found"),
        pytest.param("a \n" * 200_000, [part for _ in range(20_000) for part in ("@@", "-a")], id="many loose chunks"),
        pytest.param("a\nb\n" * 5_000 + "a \nc\n" * 1_500, ["@@", "-a", "-c"] * 1_500, id="exact pass in vain"),
        pytest.param("x" * 4_000_000 + "\n", ["@@ " + "x" * 1000, "-y"] * 4_000, id="one long line, many headers"),
        pytest.param("def f\n" * 100_000, ["@@ de", "@@ d"] * 20_000 + ["-x"], id="headers that are found nowhere"),
        pytest.param("ab\n" * 200_000, ["-" + "ba" * 40] * 100, id="nothing alike in a large file"),
    ],
)
def test_hostile_files_are_searched_in_bounded_time(content: str, lines: list[str], tmp_path: Path) -> None:
    plant(tmp_path, {"f": content})
    text = update("f", *lines)
    # Quadratic work would take minutes, and not end within the time limit of a test.
    try:
        plan_patch(parse_patch(text), tmp_path)
    except PatchError as error:
        assert len(str(error)) < 20_000


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["@@", "-a", "-c"], id="the search"),
        pytest.param(["+a"], id="the reading"),
        pytest.param(["@@ none"] * 20 + ["-a"], id="the headers"),
    ],
)
def test_what_all_hunks_of_a_patch_cost_together_is_bounded(lines: list[str]) -> None:
    [hunk] = parse_patch(update("f", *lines)).hunks
    assert isinstance(hunk, UpdateFile)
    effort = Effort(100_000)
    with pytest.raises(PatchError, match="take too long to place: send it in smaller patches"):
        for _ in range(1000):
            edit_text("none\n" * 50 + "a\n" * 1000 + "a \nc\n", hunk, name="f", effort=effort)


@pytest.mark.parametrize(
    ("lines", "wanted", "cursor", "said"),
    [
        (["a", "b"], ["zzzzzz"], 0, "nothing like it among the 2 lines of the file"),
        ([], ["x"], 0, "the file is empty"),
        (
            ["import os", "value = compute(1)", "print(value)"],
            ["value = compute(2)", "print(value)"],
            0,
            "the closest lines found:\n2: value = compute(1)\n3: print(value)",
        ),
        (["x" * 500], ["x" * 499], 0, f"the closest lines found:\n1: {'x' * 160}…"),
    ],
)
def test_the_closest_lines(lines: list[str], wanted: list[str], cursor: int, said: str) -> None:
    assert describe_closest(lines, wanted, cursor) == said
