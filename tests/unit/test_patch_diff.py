from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from codex_py.text.diff import changes, unified_diff
from tests.support.work import within


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        ("a\n", "a\n", ""),
        ("", "a\nb\n", "--- o\n+++ n\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
        ("a\n", "", "--- o\n+++ n\n@@ -1 +0,0 @@\n-a\n"),
        ("a\nb\nc\n", "a\nB\nc\n", "--- o\n+++ n\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
        ("a", "a\n", "--- o\n+++ n\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\nb", "x\nb", "--- o\n+++ n\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"),
        (
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "0\n1\n2\n3\n4\n5\n6\n7\n8\n",
            "--- o\n+++ n\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n",
        ),
    ],
)
def test_a_diff_reads_like_one_of_diff(old: str, new: str, diff: str) -> None:
    assert unified_diff(old, new, old_name="o", new_name="n") == diff


def test_a_long_diff_is_cut_at_a_line() -> None:
    diff = unified_diff("", "line\n" * 1000, old_name="o", new_name="n", limit=200)
    assert diff.endswith("+line\n[the rest of this diff is left out]\n")
    assert len(diff) < 250


def random_edit(chance: Random) -> tuple[list[str], list[str]]:
    old = [chance.choice("abcde") if chance.random() < 0.5 else str(chance.randint(0, 99)) for _ in range(30)]
    new = old.copy()
    for _ in range(chance.randint(0, 6)):
        if new and chance.random() < 0.5:
            del new[chance.randrange(len(new))]
        else:
            new.insert(chance.randint(0, len(new)), chance.choice("abxyz"))
    return old, new


def test_changes_lead_from_the_old_lines_to_the_new() -> None:
    chance = Random(3)
    for _ in range(500):
        old, new = random_edit(chance)
        built: list[str] = []
        at = 0
        for a1, a2, b1, b2 in changes(old, new):
            assert a1 >= at
            built += old[at:a1] + new[b1:b2]
            at = a2
        assert built + old[at:] == new


@pytest.mark.parametrize("seed", range(10))
def test_git_takes_the_diff(seed: int, tmp_path: Path) -> None:
    old, new = random_edit(Random(seed))
    before, after = "\n".join(old), "\n".join([*new, "end\n"])
    (tmp_path / "f").write_text(before)
    diff = unified_diff(before, after, old_name="a/f", new_name="b/f")
    if diff:
        git = ["git", "apply", "--unsafe-paths", "--directory", str(tmp_path), "-"]
        subprocess.run(git, cwd=tmp_path, input=diff.encode(), check=True, capture_output=True)
    assert (tmp_path / "f").read_text() == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("a\n" * 200_000, "b\n" * 200_000, id="all replaced"),
        pytest.param("a\nb\n" * 100_000, "b\nc\na\n" * 70_000, id="no fixed point"),
        pytest.param(
            "".join(f"{n}\n" for n in range(100_000)), "".join(f"{n}\n" for n in range(100_000, 0, -1)), id="reversed"
        ),
        pytest.param(
            "".join(f"{n}\n" + "a\nb\n" * 40 for n in range(2000)),
            "".join(f"{n}\n" + "b\na\nc\n" * 30 for n in range(2000)),
            id="many gaps",
        ),
    ],
)
def test_a_diff_of_large_texts_takes_linear_time(old: str, new: str) -> None:
    within(5 * len(old + new), lambda: unified_diff(old, new, old_name="o", new_name="n"))
