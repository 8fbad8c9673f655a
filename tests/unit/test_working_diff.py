"""What a front end learns from git: the changes of the working tree, and what could be reviewed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.protocol.events import FileChange
from codex_py.services.git import GitReader, NotARepository
from codex_py.services.review import CommitChanges, branches, init_prompt, recent_commits
from codex_py.services.working_tree import working_changes
from tests.support.home import Place


def git(place: Place, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=place.repo, env=place.env, check=True, capture_output=True)
    return done.stdout.decode()


def reader(place: Place, cwd: Path | None = None) -> GitReader:
    return GitReader(cwd or place.repo, place.env)


Brief: TypeAlias = tuple[str, str, str | None, list[str]]


def brief(place: Place, cwd: Path | None = None) -> list[Brief]:
    """Name, kind, new name, and the changed lines of each file."""
    return [
        (
            str(change.path.relative_to(place.repo)),
            change.kind,
            str(change.move_path.relative_to(place.repo)) if change.move_path else None,
            [line for line in change.diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")],
        )
        for change in working_changes(reader(place, cwd))
    ]


def test_every_kind_of_change_is_found(place: Place) -> None:
    for name in ("edited", "gone", "old name"):
        place.write(name, f"{name}\none\ntwo\nthree\nfour\n")
    place.write("picture", b"\0\1")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    place.write("edited", "edited\none\n2\nthree\nfour\n")
    place.write("picture", b"\0\2")
    (place.repo / "gone").unlink()
    git(place, "mv", "old name", "new name")
    place.write("stage\nd", "diff --git a/x b/x\n")
    git(place, "add", "stage\nd")
    place.write("sub/new\udcff", "fresh\n")
    place.write(".gitignore", "ignored\n")
    place.write("ignored", "x")

    (place.repo / "sub").mkdir(exist_ok=True)
    found = brief(place, place.repo / "sub")
    expected: list[Brief] = [
        ("edited", "update", None, ["-two", "+2"]),
        ("gone", "delete", None, ["-gone", "-one", "-two", "-three", "-four"]),
        ("old name", "update", "new name", []),
        ("picture", "update", None, []),
        ("stage\nd", "add", None, ["+diff --git a/x b/x"]),
        (".gitignore", "add", None, ["+ignored"]),
        ("sub/new\udcff", "add", None, ["+fresh"]),
    ]
    assert sorted(found) == sorted(expected)
    [picture] = [change for change in working_changes(reader(place)) if change.path.name == "picture"]
    assert picture.diff == "Binary files a/picture and b/picture differ\n"


def test_a_repository_without_a_commit_has_changes_too(place: Place, tmp_path: Path) -> None:
    new = tmp_path / "new"
    subprocess.run(["git", "init", "-q", str(new)], check=True, capture_output=True)
    (new / "a").write_text("one\n")
    subprocess.run(["git", "-C", str(new), "add", "a"], check=True)
    assert [(change.path.name, change.kind) for change in working_changes(reader(place, new))] == [("a", "add")]


def test_a_repository_inside_that_is_not_tracked_is_named(place: Place) -> None:
    subprocess.run(["git", "init", "-q", place.repo / "inside"], env=place.env, check=True)
    place.write("inside/file", "x\n")
    subprocess.run(["git", "add", "-A"], cwd=place.repo / "inside", env=place.env, check=True)
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x"],
        cwd=place.repo / "inside",
        env=place.env,
        check=True,
    )
    assert brief(place) == [("inside", "add", None, [])]


def test_a_conflict_does_not_mix_up_the_files(place: Place) -> None:
    for name in ("a", "b", "c"):
        place.write(name, "base\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "base")
    git(place, "checkout", "-qb", "other")
    place.write("b", "theirs\n")
    git(place, "commit", "-qam", "theirs")
    git(place, "checkout", "-q", "main")
    place.write("b", "ours\n")
    git(place, "commit", "-qam", "ours")
    subprocess.run(["git", "merge", "other"], cwd=place.repo, env=place.env, check=False, capture_output=True)
    place.write("a", "a\n")
    place.write("c", "c\n")
    lines = {name: changed for name, _, _, changed in brief(place)}
    assert set(lines) == {"a", "b", "c"}
    assert (lines["a"], lines["c"]) == (["-base", "+a"], ["-base", "+c"])


def test_what_is_no_file_is_not_read(place: Place) -> None:
    os.mkfifo(place.repo / "pipe")
    (place.repo / "link").symlink_to("/etc/passwd")
    place.write("binary", b"a\0b")
    assert {change.path.name: change.diff for change in working_changes(reader(place))} == {
        "binary": "Binary files /dev/null and b/binary differ\n",
        "link": "",
    }


def test_a_long_diff_is_cut_at_a_line(place: Place) -> None:
    place.write("README.md", "line\n" * 100_000)
    [change] = working_changes(reader(place))
    assert len(change.diff) < 70_000
    assert change.diff.endswith("\n+line\n[the rest of this diff is left out]\n")


def test_no_program_of_the_repositorys_choice_is_started(place: Place) -> None:
    trap = f"touch {place.repo / 'trapped'}"
    for key in ("core.fsmonitor", "diff.external", "diff.x.textconv", "core.pager"):
        git(place, "config", key, trap)
    place.write(".gitattributes", "* diff=x\n")
    place.write("README.md", "changed\n")
    working_changes(reader(place))
    assert not (place.repo / "trapped").exists()


def test_outside_of_a_repository_it_says_so(place: Place, tmp_path: Path) -> None:
    with pytest.raises(NotARepository, match="is not in a git repository"):
        working_changes(reader(place, tmp_path))


def test_without_changes_there_are_none(place: Place) -> None:
    assert working_changes(reader(place)) == ()


def test_branches_and_commits_are_offered_for_review(place: Place, tmp_path: Path) -> None:
    git(place, "branch", "other")
    git(place, "branch", "feature/x")
    assert sorted(branches(reader(place))) == ["feature/x", "other"]
    short = git(place, "rev-parse", "--short", "HEAD").strip()
    assert recent_commits(reader(place)) == [CommitChanges(short, "start")]
    nowhere = reader(place, tmp_path / "none")
    assert (branches(nowhere), recent_commits(nowhere)) == ([], [])


def test_the_guides_that_are_there_are_named(place: Place) -> None:
    assert "There already" not in init_prompt(place.repo)
    place.write("CLAUDE.md", "x")
    place.write("AGENTS.md", "x")
    assert init_prompt(place.repo).endswith("There already: `AGENTS.md`, `CLAUDE.md`.")


def test_a_change_is_a_file_change(place: Place) -> None:
    place.write("README.md", "# Demo\n\nA small demo!\n")
    [change] = working_changes(reader(place))
    assert change == FileChange(
        place.repo / "README.md",
        "update",
        None,
        "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # Demo\n \n-A small demo.\n+A small demo!\n",
    )


def test_a_directory_made_up_as_a_repository_is_none(place: Place) -> None:
    """Commands may write `HEAD`, `objects` and a `config` that starts programs anywhere but in `.git`."""
    made_up = place.repo / "made up"
    subprocess.run(["git", "init", "-q", "--bare", made_up], env=place.env, check=True)
    for name, value in (("bare", "false"), ("worktree", "..")):
        subprocess.run(["git", "-C", made_up, "config", f"core.{name}", value], env=place.env, check=True)
    with (made_up / "config").open("a") as config:
        config.write(f'[filter "x"]\n\tclean = "touch {place.repo}/ran; cat"\n')
    place.write(".gitattributes", "* filter=x\n")
    place.write("edited", "one\n")
    assert "edited" in [name for name, *_ in brief(place, made_up)]
    assert not (place.repo / "ran").exists()


def test_an_empty_git_directory_is_no_repository(place: Place) -> None:
    inside = place.home / "elsewhere"
    (inside / ".git").mkdir(parents=True)
    with pytest.raises(NotARepository):
        working_changes(reader(place, inside))


def test_a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere(place: Place, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret\n")
    place.write("sub/key", "public\n")

    def swap(_: Path) -> bool:
        (place.repo / "sub").rename(place.repo / "before")
        (place.repo / "sub").symlink_to(tmp_path / "private")
        return True

    [change] = working_changes(reader(place), swap)
    assert (change.path, change.diff) == (place.repo / "sub" / "key", "")
