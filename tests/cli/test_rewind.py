"""`codex-py sessions rewind`, `diff --turn` and `checkpoints`: what turns did to the files is brought back exactly."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, call, custom_call, fake_model, repeat, say
from tests.support.home import Place
from tests.support.hostile import hostile_repository
from tests.support.process import COMMAND, Finished, run

WRITES = ("-s", "workspace-write")


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and link below a directory outside of `.git`, with its mode and content."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(top.rglob("*")):
        inside = path.relative_to(top)
        if ".git" in inside.parts or (path.is_dir() and not path.is_symlink()):
            continue
        status = path.lstat()
        content = str(path.readlink()).encode() if stat.S_ISLNK(status.st_mode) else path.read_bytes()
        found[str(inside)] = (status.st_mode, content)
    return found


def git(place: Place, *arguments: str) -> str:
    environment = {**place.env, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    argv = ["git", *arguments]
    return subprocess.run(argv, cwd=place.repo, env=environment, check=True, capture_output=True, text=True).stdout


def shell(command: str) -> list[Any]:
    return [call("c", "exec_command", {"cmd": command})]


def turn(place: Place, *answers: list[Any], resumes: bool = False, arguments: tuple[str, ...] = WRITES) -> Finished:
    """One run of `exec` in which the model gives these answers, and says `done` at last."""
    with fake_model(place, *answers, [say("done")], excuse={"threads"}):
        words = ("resume", "--last") if resumes else ()
        ended = run(place, "exec", *words, *(() if resumes else arguments), *_sandbox(resumes), "go on")
    assert ended.status == 0, ended.err
    return ended


def _sandbox(resumes: bool) -> tuple[str, ...]:
    return ("-c", 'sandbox_mode="workspace-write"') if resumes else ()


def rewind(place: Place, to: int | str, *arguments: str) -> dict[str, Any]:
    [session] = place.rollouts()
    ended = run(place, "sessions", "rewind", session.stem[-36:], "--to", str(to), "--json", *arguments)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def nothing(**some: list[str]) -> dict[str, list[str]]:
    return {"restored": [], "deleted": [], "brought_back": [], "conflicts": [], **some}


def test_what_commands_did_is_brought_back_and_can_be_undone_again(place: Place) -> None:
    place.write("clean.txt", "clean\n")
    place.write("bin/run", "#!/bin/sh\n").chmod(0o750)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    place.write("loose.txt", "untracked\n")
    place.write("clean.txt", "edited by the user\n")
    (place.repo / "link").symlink_to("clean.txt")
    before = tree(place.repo)
    head, index = git(place, "rev-parse", "HEAD"), (place.repo / ".git/index").read_bytes()

    ended = turn(place, shell("rm clean.txt link; chmod 600 bin/run; echo new > new.txt; mv loose.txt moved.txt"))
    after = tree(place.repo)

    assert "2 files changed" not in ended.err
    assert "3 files changed, 3 deleted" in ended.err
    assert rewind(place, 1, "--dry-run") == nothing(
        restored=["bin/run"], deleted=["moved.txt", "new.txt"], brought_back=["clean.txt", "link", "loose.txt"]
    )
    assert tree(place.repo) == after
    rewind(place, 1)
    assert tree(place.repo) == before
    assert rewind(place, "latest")["brought_back"] == ["moved.txt", "new.txt"]
    assert tree(place.repo) == after
    rewind(place, "latest")
    assert tree(place.repo) == before
    assert (git(place, "rev-parse", "HEAD"), (place.repo / ".git/index").read_bytes()) == (head, index)
    assert run(place, "checkpoints", "verify").status == 0


def test_edits_of_the_user_between_turns_come_back_and_later_ones_are_conflicts(place: Place) -> None:
    place.write("a.txt", "one\n")
    place.write("b.txt", "one\n")
    turn(place, shell("echo two > a.txt"))
    place.write("b.txt", "by the user between turns\n")
    between = tree(place.repo)
    turn(place, shell("echo three > a.txt; echo three > b.txt"), resumes=True)
    done = tree(place.repo)
    assert rewind(place, 2, "--files") == nothing(restored=["a.txt", "b.txt"])
    assert tree(place.repo) == between
    assert rewind(place, "latest", "--files") == nothing(restored=["a.txt", "b.txt"])
    assert tree(place.repo) == done
    place.write("b.txt", "by the user after the last turn\n")
    assert rewind(place, 1, "--files") == nothing(restored=["a.txt"], conflicts=["b.txt"])
    assert (place.repo / "a.txt").read_text() == "one\n"
    assert (place.repo / "b.txt").read_text() == "by the user after the last turn\n"


def test_a_first_commit_since_is_named_with_the_command_that_takes_it_back(place: Place) -> None:
    git(place, "update-ref", "-d", "HEAD")
    turn(place, shell("echo one > a.txt"))
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    ended = run(place, "sessions", "rewind", place.rollouts()[0].stem[-36:], "--to", "1", "--files")
    assert "update-ref -d HEAD` moves the branch back" in ended.err
    git(place, "update-ref", "-d", "HEAD")
    assert (place.repo / "README.md").exists()


def test_a_conflict_stays_one_until_it_is_settled(place: Place) -> None:
    place.write("a.txt", "one\n")
    turn(place, shell("echo two > a.txt; echo two > b.txt"))
    place.write("a.txt", "mine\n")
    place.write("c.txt", "mine too\n")
    for _ in range(2):
        assert rewind(place, 1, "--files")["conflicts"] == ["a.txt", "c.txt"]
        assert (place.repo / "a.txt").read_text() == "mine\n"
    kept = tree(place.repo)
    assert rewind(place, 1, "--files", "--copy-conflicts") == nothing(conflicts=["a.txt", "c.txt"])
    assert (place.repo / "a.txt").read_text() == "one\n"
    assert (place.repo / "a.txt.rewind-conflict").read_text() == "mine\n"
    assert (place.repo / "c.txt.rewind-conflict").read_text() == "mine too\n"
    rewind(place, "latest", "--files")
    assert tree(place.repo) == kept
    turn(place, shell("echo three > b.txt"), resumes=True)
    assert rewind(place, 1, "--files") == nothing(restored=["a.txt"], deleted=["b.txt", "c.txt"])


def test_a_conflict_is_copied_where_that_is_asked_for(place: Place) -> None:
    place.write("a.txt", "one\n")
    turn(place, shell("echo two > a.txt"))
    place.write("a.txt", "by the user\n")
    assert rewind(place, 1, "--copy-conflicts")["conflicts"] == ["a.txt"]
    assert (place.repo / "a.txt").read_text() == "one\n"
    assert (place.repo / "a.txt.rewind-conflict").read_text() == "by the user\n"


def test_the_conversation_goes_back_too_and_the_model_sees_it(place: Place) -> None:
    turn(place, shell("echo one > one.txt"))
    turn(place, shell("echo two > two.txt"), resumes=True)
    [session] = place.rollouts()
    whole = session.read_bytes()
    rewind(place, 2)
    assert session.read_bytes().startswith(whole)
    assert not (place.repo / "two.txt").exists()
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}) as model:
        run(place, "exec", "resume", "--last", "a third way")
        shown = run(place, "sessions", "show", session.stem[-36:]).out
        run(place, "exec", "fork", session.stem[-36:], "fork")
    said = [text for text in model.requests[0].texts("user") if not text.startswith("<")]
    assert said == ["go on", "a third way"]
    assert [text for text in model.requests[1].texts("user") if not text.startswith("<")] == [*said, "fork"]
    assert "two.txt" not in shown
    assert "one.txt" in shown


def test_undoing_a_rewind_brings_the_conversation_back(place: Place) -> None:
    turn(place, shell("echo one > one.txt"))
    turn(place, shell("echo two > two.txt"), resumes=True)
    rewind(place, 1)
    assert not (place.repo / "one.txt").exists()
    rewind(place, "latest")
    with fake_model(place, [say("ok")], excuse={"threads"}) as model:
        run(place, "exec", "resume", "--last", "more")
    assert [text for text in model.requests[0].texts("user") if not text.startswith("<")] == ["go on", "go on", "more"]
    assert (place.repo / "two.txt").read_text() == "two\n"


def test_a_patch_that_writes_an_ignored_file_can_be_undone(place: Place) -> None:
    place.write(".gitignore", "*.log\n")
    place.write("old.log", "old\n")
    before = tree(place.repo)
    patch = "*** Begin Patch\n*** Update File: old.log\n@@\n-old\n+new\n*** Add File: new.log\n+new\n*** End Patch\n"
    turn(place, [custom_call("c", "apply_patch", patch)])
    assert (place.repo / "old.log").read_text() == "new\n"
    assert rewind(place, 1) == nothing(restored=["old.log"], deleted=["new.log"])
    assert tree(place.repo) == before


@pytest.mark.parametrize(
    "command",
    [
        # The files of a directory that gets another name keep their times.
        "mv src lib; echo '*.o' > .gitignore",
        "echo two > a.log; echo '*.log' > .gitignore",
        "rm a.log; mkdir -p a.log/b/c src/deep/b.txt/c; rm -r src/a.txt; ln -s deep src/a.txt",
    ],
)
def test_new_rules_of_what_git_ignores_hide_nothing(place: Place, command: str) -> None:
    place.write("src/deep/b.txt", "b\n")
    place.write("src/a.txt", "a\n")
    place.write("a.log", "one\n")
    place.write("kept.log", "kept\n")
    before = tree(place.repo)
    turn(place, shell(command))
    after = tree(place.repo)
    assert after != before
    rewind(place, 1)
    assert tree(place.repo) == before
    rewind(place, "latest")
    assert tree(place.repo) == after


def test_what_git_ignored_stays_when_the_rules_change(place: Place) -> None:
    place.write(".gitignore", "*.log\nout/\n")
    place.write("a.log", "log\n")
    place.write("out/b", "out\n")
    turn(place, shell("rm .gitignore; echo new > new.log"))
    assert rewind(place, 1) == nothing(deleted=["new.log"], brought_back=[".gitignore"])
    assert (place.repo / "a.log").read_text() + (place.repo / "out/b").read_text() == "log\nout\n"


def test_a_file_that_a_rewind_makes_git_ignore_comes_back_too(place: Place) -> None:
    place.write(".gitignore", "b.txt\n")
    place.write("b.txt", "one\n")
    git(place, "add", "-Af", ".")
    git(place, "commit", "-qm", "more")
    turn(place, shell("rm .gitignore; echo two > b.txt"))
    git(place, "rm", "-q", "--cached", "b.txt")
    turn(place, shell("echo new > new.txt"), resumes=True)
    rewind(place, 1)
    assert (place.repo / "b.txt").read_text() == "one\n"
    assert rewind(place, "latest")["conflicts"] == []
    assert (place.repo / "b.txt").read_text() == "two\n"


def test_what_a_command_made_and_a_patch_changed_then_is_removed(place: Place) -> None:
    patch = "*** Begin Patch\n*** Update File: new.txt\n@@\n-one\n+two\n*** End Patch\n"
    turn(place, shell("echo one > new.txt"), [custom_call("d", "apply_patch", patch)])
    assert (place.repo / "new.txt").read_text() == "two\n"
    assert rewind(place, 1) == nothing(deleted=["new.txt"])


# Runs codex-py; whenever it is about to open that directory, or to rename something, a link may stand in its place.
SWAPPING = """
import os, sys
link, directory = os.fsencode(sys.argv.pop(1)), os.fsencode(sys.argv.pop(1))
events, swaps = 0, [(directory, directory + b".away"), (link, directory)]

def audit(event, of):
    global events, swaps
    is_open = event == "open" and of[0] == os.path.basename(directory)
    if swaps and (is_open or event in ("os.rename", "os.mkdir")):
        todo, swaps = swaps, []
        events += 1
        if events % 3 == 0:
            for source, target in todo:
                os.rename(source, target)
            todo = [(target, source) for source, target in reversed(todo)]
        swaps = todo

sys.addaudithook(audit)
from codex_py.cli.entry import main
main()
"""


UNTRACKED = 600


def test_of_too_many_files_the_first_and_what_patches_write_are_covered_and_that_is_reported_once(place: Place) -> None:
    place.configure("[checkpoints]\nmax_files = 40\n")
    place.write("tracked.txt", "one\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    for number in range(UNTRACKED):
        place.write(f"many/{number:04}", f"{number}\n")
    place.write("zzz.txt", "beyond the limit\n")
    before = tree(place.repo)
    patch = "*** Begin Patch\n*** Update File: zzz.txt\n@@\n-beyond the limit\n+new\n*** End Patch\n"
    # The new file comes before all others: those that are covered stay covered.
    did = shell("echo two > tracked.txt; echo new > 0.txt; echo two > many/0039; rm many/0001 many/0002")
    with FakeResponses(did, [custom_call("d", "apply_patch", patch)], [say("done")]) as model:
        place.use_model(model.base_url, "[checkpoints]\nmax_files = 40\n")
        ended = run(place, "exec", *WRITES, "go on")
    assert (ended.status, ended.err.count("/undo does not cover")) == (0, 1)
    assert f"/undo does not cover more than 40 untracked files or 500 MiB of them in `{place.repo}`;" in ended.err
    assert "4 files changed, 2 deleted" in ended.err
    done = rewind(place, 1)
    assert done == nothing(
        restored=["many/0039", "tracked.txt", "zzz.txt"], brought_back=["many/0001", "many/0002"], deleted=["0.txt"]
    )
    assert tree(place.repo) == before


def test_what_is_not_covered_is_reported_once_in_a_session(place: Place) -> None:
    os.truncate(place.write("large.bin", ""), 21 << 20)
    assert turn(place, shell("echo one > a.txt")).err.count("does not cover") == 1
    assert turn(place, shell("echo two > a.txt"), resumes=True).err.count("does not cover") == 0
    os.truncate(place.write("another.bin", ""), 21 << 20)
    assert turn(place, shell("echo three > a.txt"), resumes=True).err.count("another.bin") == 1


def test_a_store_stays_within_its_bound_even_if_it_must_forget_the_last_turn(place: Place) -> None:
    limits = ("-c", "checkpoints.session_mib=1")
    place.write("a.bin", os.urandom(600_000).hex())
    ended = turn(place, shell("head -c 600000 /dev/urandom > a.bin"), arguments=(*WRITES, *limits))
    assert "1 file changed" in ended.err
    assert "they took more than 1 MiB" in ended.err
    [store] = (place.codex_home / "checkpoints").iterdir()
    assert sum(path.stat().st_size for path in store.rglob("*") if path.is_file()) < 1 << 20
    session = place.rollouts()[0].stem[-36:]
    ended = run(place, "sessions", "rewind", session, "--to", "1", "--files")
    assert (ended.status, "was dropped" in ended.err) == (1, True)
    assert run(place, "checkpoints", "verify").status == 0


def test_a_hostile_repository_runs_nothing_and_nothing_outside_is_written(place: Place) -> None:
    hostile = hostile_repository(place)
    outside = place.home / "outside"
    outside.mkdir()
    odd = ["line\nbreak", "-rf", "\x1b[31m", "*", "$(touch ran)", "deep\n/\n"]
    for name in odd:
        place.write(f"src/{name}", "odd\n")
    for number in range(UNTRACKED):
        place.write(f"many/{number % 7}/{number}", f"{number}\n")
    before = tree(place.repo)
    turn(
        place,
        shell("rm -r src many a b; echo x > c; echo x > sub/file; printf x > 'new\nname'; mkdir src; echo > src/x"),
    )
    after = tree(place.repo)
    assert after != before

    link = place.repo / "link"
    link.symlink_to(outside)
    [session] = place.rollouts()
    argv = [sys.executable, "-c", SWAPPING, str(link), str(place.repo / "src")]
    argv += ["sessions", "rewind", session.stem[-36:], "--to", "1", "--files"]
    ended = subprocess.run(argv, cwd=place.repo, env=place.env, check=False, capture_output=True, text=True)
    assert ended.returncode in (0, 1), ended.stderr
    assert ("Traceback" in ended.stderr, list(outside.iterdir())) == (False, [])
    if link.is_symlink():
        link.unlink()
    else:
        (place.repo / "src").unlink()
        (place.repo / "src.away").rename(place.repo / "src")
    rewind(place, 1, "--files")
    rewind(place, "latest", "--files")
    rewind(place, 1, "--files")

    names = set(tree(place.repo))
    assert {name: entry for name, entry in tree(place.repo).items() if name in before} == before
    assert names - before.keys() <= {"src/x"}
    assert (list(outside.iterdir()), hostile.ran(), list(place.home.rglob("ran"))) == ([], [], [])
    assert not list(place.repo.rglob(".codex-py-rewind-*"))


def test_nothing_is_written_through_a_link_in_place_of_a_directory_with_a_repository(place: Place) -> None:
    outside = place.home / "outside"
    (outside / "own").mkdir(parents=True)
    (outside / "own/a.txt").write_text("of somebody else\n")
    (place.repo / "vendor/own").mkdir(parents=True)
    git(place, "init", "-q", "vendor/own")
    place.write("vendor/own/a.txt", "one\n")
    before = tree(place.repo)
    turn(place, shell(f"echo two > vendor/own/a.txt; mv vendor moved; ln -s {outside} vendor"))
    assert (place.repo / "vendor").is_symlink()
    rewind(place, 1)
    assert (outside / "own/a.txt").read_text() == "of somebody else\n"
    assert not (place.repo / "vendor").is_symlink()
    assert before.items() <= tree(place.repo).items()


@pytest.mark.parametrize(
    "command", ["rm README.md a.txt src/deep/b.txt", "rm -r src; ln -s /tmp src", "mkdir a.txt.d; mv a.txt a.txt.d/"]
)
def test_a_directory_outside_of_git_is_covered(place: Place, command: str) -> None:
    subprocess.run(["rm", "-rf", ".git"], cwd=place.repo, check=True)
    place.write("a.txt", "a\n").chmod(0o640)
    place.write("src/deep/b.txt", "b\n")
    before = tree(place.repo)
    turn(place, shell(command), arguments=(*WRITES, "--skip-git-repo-check"))
    assert tree(place.repo) != before
    rewind(place, 1)
    assert tree(place.repo) == before


def test_what_the_sandbox_puts_in_the_place_of_a_repository_hides_no_directory(place: Place) -> None:
    subprocess.run(["rm", "-rf", ".git"], cwd=place.repo, check=True)
    place.write("src/a.txt", "a\n")
    place.write("src/deep/b.txt", "b\n")
    before = tree(place.repo)
    flags = ("--skip-git-repo-check", "-C", f"{place.repo}/src/deep", "--add-dir", str(place.repo))
    turn(place, shell("echo new > ../new.txt; echo x > ../a.txt; rm b.txt"), arguments=(*WRITES, *flags))
    assert tree(place.repo) != before
    rewind(place, 1)
    assert tree(place.repo) == before


def test_what_a_repository_puts_in_the_place_of_a_content_is_not_taken(place: Place) -> None:
    place.write("a.txt", "a\n")
    place.write("b.txt", "b\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "two")
    git(place, "replace", "HEAD:a.txt", "HEAD:b.txt")
    turn(place, shell("rm a.txt"))
    assert rewind(place, 1) == nothing(brought_back=["a.txt"])
    assert (place.repo / "a.txt").read_text() == "a\n"


def test_a_blob_that_git_has_lost_is_named(place: Place) -> None:
    place.write("gone.txt", "only in git\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    turn(place, shell("rm gone.txt"))
    blob = git(place, "rev-parse", "HEAD:gone.txt").strip()
    (place.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    [session] = place.rollouts()
    ended = run(place, "sessions", "rewind", session.stem[-36:], "--to", "1", "--json")
    assert (ended.status, json.loads(ended.out)["missing"]) == (1, ["gone.txt"])
    assert "gone.txt" in ended.err


def test_a_blob_that_is_collected_after_a_rewritten_history_is_named(place: Place) -> None:
    place.write("gone.txt", "only in git\n")
    place.write("kept.txt", "kept\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "more")
    turn(place, shell("rm gone.txt kept.txt"))
    assert run(place, "checkpoints", "verify").status == 0
    git(place, "rm", "-q", "--cached", "gone.txt")
    git(place, "commit", "-q", "--amend", "-m", "less")
    git(place, "reflog", "expire", "--expire=now", "--all")
    git(place, "gc", "-q", "--prune=now")
    [session] = place.rollouts()
    ended = run(place, "sessions", "rewind", session.stem[-36:], "--to", "1", "--json")
    done = json.loads(ended.out)
    assert (ended.status, done["missing"], done["brought_back"]) == (1, ["gone.txt"], ["kept.txt"])
    assert "gone.txt" in ended.err
    assert (place.repo / "kept.txt").read_text() == "kept\n"
    ended = run(place, "checkpoints", "verify")
    assert (ended.status, ended.out.count("\n"), "gone.txt`" in ended.out) == (1, 1, True)


@pytest.mark.parametrize("is_git", [True, False])
def test_all_bits_of_modes_are_brought_back_and_empty_directories_do_not_count(place: Place, is_git: bool) -> None:
    modes = {"setuid": 0o4755, "setgid": 0o2755, "sticky": 0o1644, "private": 0o400}
    for name in modes:
        place.write(name, f"{name}\n")
    if is_git:
        git(place, "add", "-A")
        git(place, "commit", "-qm", "more")
    else:
        subprocess.run(["rm", "-rf", ".git"], cwd=place.repo, check=True)
    for name, mode in modes.items():
        (place.repo / name).chmod(mode)
    (place.repo / "empty/before").mkdir(parents=True)
    before = tree(place.repo)
    did = "chmod 644 setuid; rm setgid private; chmod 600 sticky; rmdir empty/before; mkdir -p empty/after"
    turn(place, shell(did), arguments=(*WRITES, "--skip-git-repo-check"))
    assert rewind(place, 1) == nothing(restored=["setuid", "sticky"], brought_back=["private", "setgid"])
    assert tree(place.repo) == before
    assert {name: (place.repo / name).stat().st_mode & 0o7777 for name in modes} == modes
    assert (place.repo / "empty/after").is_dir()
    assert not (place.repo / "empty/before").exists()


def test_a_turn_can_be_shown_as_a_diff(place: Place) -> None:
    place.write("a.txt", "one\n")
    turn(place, shell("echo two > a.txt"))
    shown = run(place, "diff", "--turn", "1")
    assert (shown.status, shown.out) == (
        0,
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n",
    )


def test_sessions_that_write_nothing_have_no_checkpoints(place: Place) -> None:
    store = place.codex_home / "checkpoints"
    turn(place, shell("echo x"), arguments=("-s", "read-only"))
    turn(place, shell("echo x > x"), arguments=(*WRITES, "--ephemeral"))
    turn(place, shell("echo x > y"), arguments=(*WRITES, "-c", "checkpoints.enabled=false"))
    assert not store.exists()


def test_a_rewind_of_files_that_never_was_cannot_be_undone(place: Place) -> None:
    turn(place, shell("echo x > x"))
    [session] = place.rollouts()
    latest = ("sessions", "rewind", session.stem[-36:], "--to", "latest", "--files")
    ended = run(place, *latest)
    assert (ended.status, ended.err) == (1, "error: there is no rewind to undo\n")
    rewind(place, 1, "--conversation")
    assert "was of the conversation alone" in run(place, *latest).err
    assert (place.repo / "x").exists()


@pytest.mark.parametrize("to", ["0", "9", "x", "-1", "LATEST"])
def test_a_turn_that_is_not_there_is_a_mistake(place: Place, to: str) -> None:
    turn(place, shell("echo x > x"))
    [session] = place.rollouts()
    ended = run(place, "sessions", "rewind", session.stem[-36:], "--to", to)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert (place.repo / "x").exists()


@pytest.mark.parametrize(
    "command",
    [
        *("rm -f a.txt", "rm -rf build", "git clean -fd", "rm -rf build/*", "cd build && rm -rf deep"),
        *("rm -f *.txt", "rm -rf b*", "rm -rf buil?", "rm -rf {build,a.txt}", "x='b*'; rm -rf $x"),
        *("find build -delete", "find . -name 'a.*' -delete", "find . -type f -name '*.txt' -exec rm -f {} +"),
        *("find build -print0 | xargs -0 rm -rf", "truncate -s 0 a.txt", "shred -u a.txt", "dd if=/dev/null of=a.txt"),
    ],
)
def test_what_commands_delete_is_brought_back(place: Place, command: str) -> None:
    place.write("a.txt", "a\n")
    place.write("build/deep/out", "out\n")
    place.write("README.md", "edited\n")
    before = tree(place.repo)
    turn(place, shell(command))
    assert tree(place.repo) != before
    rewind(place, 1)
    assert tree(place.repo) == before


def test_what_git_ignores_is_deleted_unasked_and_does_not_come_back(place: Place) -> None:
    place.write(".gitignore", "*.o\n")
    place.write("build/out.o", "out\n")
    place.write("build/kept", "kept\n")
    turn(place, shell("rm -rf build"))
    rewind(place, 1)
    assert [path.name for path in (place.repo / "build").iterdir()] == ["kept"]


def test_deleting_a_session_deletes_its_checkpoints(place: Place) -> None:
    place.write("a.txt", "secret\n")
    turn(place, shell("rm a.txt"))
    [session] = place.rollouts()
    stores = place.codex_home / "checkpoints"
    assert [store.name for store in stores.iterdir()] == [session.stem[-36:]]
    assert run(place, "sessions", "delete", session.stem[-36:], "--yes").status == 0
    assert list(stores.iterdir()) == []


def test_a_rewind_is_the_outcome_of_the_turns_with_skills_that_it_takes_back(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: does things\n---\nDo it.\n")
    turn(place, shell("cat .agents/skills/lint/SKILL.md; echo one > a.txt"))
    rewind(place, 1, "--dry-run")
    ledger = place.codex_home / "skills-usage.jsonl"
    assert [json.loads(line).get("outcome") for line in ledger.read_text().splitlines()] == [None, "completed"]
    rewind(place, 1)
    last = json.loads(ledger.read_text().splitlines()[-1])
    assert (last["kind"], last["outcome"]) == ("turn", "undone")
    first = json.loads(ledger.read_text().splitlines()[0])
    assert (last["session"], last["turn"]) == (first["session"], first["turn"])


def test_a_store_that_was_pruned_does_not_pass_for_a_later_one(place: Place) -> None:
    turn(place, shell("echo one > a.txt"))
    assert run(place, "checkpoints", "prune").err == "removed the checkpoints of 1 session\n"
    for to in (("--files",), ()):
        session = place.rollouts()[0].stem[-36:]
        ended = run(place, "sessions", "rewind", session, "--to", "1", *to)
        assert (ended.status, "was dropped" in ended.err) == (1, True)
    turn(place, shell("echo two > a.txt"), resumes=True)
    ended = run(place, "sessions", "rewind", session, "--to", "1", "--files")
    assert (ended.status, "was dropped" in ended.err) == (1, True)
    ended = run(place, "diff", "--turn", "1")
    assert (ended.status, "was dropped" in ended.err) == (1, True)
    assert (place.repo / "a.txt").read_text() == "two\n"
    rewind(place, 2, "--files")
    assert (place.repo / "a.txt").read_text() == "one\n"
    assert run(place, "sessions", "rewind", session, "--to", "1", "--conversation").status == 0
    assert json.loads(run(place, "checkpoints", "list", "--json").out)[0]["checkpoints"] == 1
    assert run(place, "checkpoints", "verify").status == 0
    assert run(place, "checkpoints", "prune").err == "removed the checkpoints of 1 session\n"
    assert run(place, "checkpoints", "prune").err == "removed the checkpoints of 0 sessions\n"
    assert json.loads(run(place, "checkpoints", "list", "--json").out) == []


@pytest.mark.parametrize("is_pruned", [True, False], ids=["pruned", "deleted by hand"])
def test_a_store_that_goes_away_in_the_middle_of_a_turn(place: Place, is_pruned: bool) -> None:
    store = place.codex_home / "checkpoints"
    notes: list[str] = []

    def remove(_: object) -> list[Any]:
        if is_pruned:
            notes.extend(run(place, "checkpoints", "prune").err.splitlines())
        else:
            for objects in store.glob("*/objects"):
                shutil.rmtree(objects)
        return [say("done")]

    with fake_model(place, shell("echo one > a.txt"), remove):
        ended = run(place, "exec", *WRITES, "go on")
    assert (ended.status, ended.out) == (0, "done\n"), ended.err
    if is_pruned:
        # An open session keeps its own.
        assert notes == [
            "removed the checkpoints of 0 sessions",
            "left alone, because a process has it open: 1 session",
        ]
        assert "1 file changed" in ended.err
        assert rewind(place, 1)["deleted"] == ["a.txt"]


@pytest.mark.parametrize(
    ("command", "left", "uncovered"),
    [
        ("echo small > big.bin; echo new > other.txt", b"small\n", ["big.bin"]),
        ("rm big.bin; echo new > other.txt", None, ["big.bin"]),
        ("chmod 600 big.bin; echo new > other.txt", "whole", ["big.bin"]),
        ("echo new > other.txt", "whole", []),
    ],
)
def test_a_file_that_could_not_be_stored_is_left_alone_and_named(
    place: Place, command: str, left: bytes | str | None, uncovered: list[str]
) -> None:
    """Here for a limit on the size of files; a full disk and a file that may not be read are the same."""
    content = os.urandom(2 * 1024 * 1024)
    big = place.repo / "big.bin"
    big.write_bytes(content)
    big.chmod(0o644)
    with fake_model(place, shell(command), [say("done")]):
        line = 'ulimit -f 1024; exec "$0" "$@"'
        words = ["/bin/bash", "-c", line, COMMAND, "exec", *WRITES, "go on"]
        ended = subprocess.run(words, env=place.env, cwd=place.repo, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "big.bin" in ended.stderr
    done = rewind(place, 1)
    assert done.get("uncovered", []) == uncovered, done
    assert (big.read_bytes() if big.exists() else None) == (content if left == "whole" else left)
    assert not (place.repo / "other.txt").exists()
