"""Sources of skills that attack the installer, and commands that try to exchange what it works on."""

from __future__ import annotations

import ctypes
import fcntl
import gzip
import os
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.services.plugin_fetch import copy_plugin
from codex_py.skills.tree import TreeRefused, list_tree, read_file
from tests.support.home import Place
from tests.support.process import run
from tests.support.skill_servers import git_over_http
from tests.support.skill_sources import git, repository, skill_files, skills, usable

MEBIBYTE = 1024 * 1024


# What a command in the sandbox does to every repository that it finds and may write.
PLANT = """
find "$TMPDIR" -name .git -type d | while read -r git; do
  printf '[core]\\n\\tworktree = %s\\n[filter "x"]\\n\\tsmudge = touch %s/ran\\n' "$0" "$0" >> "$git/config" || continue
  mkdir -p "$git/info" && echo '* filter=x' > "$git/info/attributes"
  echo "$git" >> found
done
true
"""


def test_what_is_fetched_lies_where_no_command_can_exchange_it(user: Place, tmp_path: Path) -> None:
    repository(user, tmp_path / "packs")
    aim, temporary = tmp_path / "aim", tmp_path / "temporary"
    aim.mkdir()
    temporary.mkdir()
    user = user.with_env(TMPDIR=str(temporary))
    outside_of_tmp = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-s", "workspace-write")
    statuses: list[int] = []

    def plant() -> None:
        statuses.append(run(user, "sandbox", *outside_of_tmp, "--", "sh", "-c", PLANT, str(aim)).status)

    with git_over_http(tmp_path, user.env, plant) as address:
        ended = skills(user, "install", f"{address}/packs/.git", "--yes")
    assert set(statuses) == {0}
    assert not (user.repo / "found").exists()
    assert list(aim.iterdir()) == []
    assert ended.status == 0, ended.err
    assert "Read it twice." in usable(user)["spell"]


def test_what_killed_programs_left_is_removed_by_the_next_one(user: Place, tmp_path: Path) -> None:
    work = user.codex_home / "cache/skill-sources"
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, held = (work / f".new-{ended.pid}-{name}" for name in ("left", "held"))
    for directory in (left, held):
        (directory / "repository").mkdir(parents=True)
    # Another container's processes have numbers that mean nothing here.
    descriptor = os.open(held, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    address = repository(user, tmp_path / "packs")
    assert skills(user, "install", address, "--dry-run").status == 0
    assert [path.name for path in work.iterdir()] == [held.name]
    os.close(descriptor)
    assert skills(user, "install", address, "--dry-run").status == 0
    assert list(work.iterdir()) == []


def packed_tar(path: Path, *blocks: bytes) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        for block in blocks:
            file.write(block + bytes(-len(block) % tarfile.BLOCKSIZE))
        file.write(bytes(2 * tarfile.BLOCKSIZE))
    return path


def tar_head(name: str, size: int, entry_type: bytes = tarfile.REGTYPE) -> bytes:
    head = tarfile.TarInfo(name)
    head.size, head.type = size, entry_type
    return head.tobuf(tarfile.USTAR_FORMAT)


def test_attributes_of_an_archive_do_not_fill_the_memory(user: Place, tmp_path: Path) -> None:
    text = skill_files()["SKILL.md"].encode()
    size = 32 * MEBIBYTE
    attribute = b"%d comment=" % size
    attribute += b"a" * (size - len(attribute) - 1) + b"\n"
    for entry_type, content in ((tarfile.XHDTYPE, attribute), (tarfile.GNUTYPE_LONGNAME, b"spell/" + b"a" * size)):
        archive = packed_tar(
            tmp_path / "bomb.tgz",
            tar_head("long", len(content), entry_type),
            content,
            tar_head("spell/SKILL.md", len(text)),
            text,
        )
        ended = skills(user, "install", archive, "--yes")
        assert (ended.status, ended.err) == (
            1,
            "error: the archive is refused: names and attributes of a file in it are too large\n",
        )


def test_directories_of_an_archive_are_counted(user: Place, tmp_path: Path) -> None:
    archive = packed_tar(tmp_path / "bomb.tgz", tar_head("a", 0, tarfile.DIRTYPE) * 20_100)
    ended = skills(user, "install", archive, "--yes")
    assert (ended.status, ended.err) == (
        1,
        "error: the archive is refused: it has more than 20000 files and directories\n",
    )


@pytest.mark.parametrize("leaf", ["a file", "nothing"])
def test_a_repository_of_directories_that_repeat_is_refused_before_it_is_listed(
    user: Place, tmp_path: Path, leaf: str
) -> None:
    source = tmp_path / "source"
    repository(user, source)

    def tree(lines: str) -> str:
        argv = ["git", "mktree"]
        return subprocess.run(argv, input=lines.encode(), cwd=source, env=user.env, stdout=-1).stdout.decode().strip()

    blob = git(user, source, "rev-parse", "HEAD:skills/spell/SKILL.md")
    top = tree(f"100644 blob {blob}\tfile\n" if leaf == "a file" else "")
    for _ in range(10):
        top = tree("".join(f"040000 tree {top}\td{number}\n" for number in range(10)))
    top = tree(f"100644 blob {blob}\tSKILL.md\n040000 tree {top}\treferences\n")
    commit = git(user, source, "commit-tree", "-m", "bomb", top)
    git(user, source, "update-ref", "refs/heads/main", commit)
    ended = skills(user, "install", source.as_uri(), "--yes")
    assert (ended.status, len(ended.err.splitlines())) == (1, 1), ended.err
    assert ended.err.startswith("error: the repository is refused: more than 20000 files")


def test_a_directory_that_is_exchanged_for_a_link_is_not_read(tmp_path: Path) -> None:
    skill, secret = tmp_path / "spell", tmp_path / "secret"
    (skill / "references").mkdir(parents=True)
    secret.mkdir()
    for directory, text in ((skill / "references", "plain"), (secret, "s3cret")):
        (directory / "key").write_text(text)
    [file] = list_tree(skill)
    assert read_file(skill, file) == b"plain"
    (skill / "references").rename(tmp_path / "aside")
    (skill / "references").symlink_to(secret)
    with pytest.raises((TreeRefused, OSError)):
        read_file(skill, file)


def test_a_plugin_copies_nothing_from_outside_while_a_command_exchanges_directories(tmp_path: Path) -> None:
    source, secret, done = tmp_path / "source", tmp_path / "secret", threading.Event()
    for directory, text in ((source / "skills", "plain"), (secret, "s3cret")):
        directory.mkdir(parents=True)
        for number in range(30):
            (directory / f"{number}").write_text(text)
    (tmp_path / "link").symlink_to(secret)

    library = ctypes.CDLL(None)
    paths = os.fsencode(source / "skills"), os.fsencode(tmp_path / "link")

    def exchange() -> None:
        while not done.is_set():
            library.renameat2(-100, paths[0], -100, paths[1], 2)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for number in range(80):
            target = tmp_path / f"copy{number}"
            try:
                copy_plugin(source, target)
            except UserError:
                continue
            copied = {path.read_text() for path in target.rglob("*") if path.is_file()}
            assert copied <= {"plain"}
    finally:
        done.set()
        thread.join()


def test_doctor_repairs_nothing_behind_a_link(user: Place, tmp_path: Path) -> None:
    outside = tmp_path / "notes"
    outside.mkdir()
    (outside / "guide.md").write_text("Read `references/moved.md`.\n")
    skill = user.repo / ".agents/skills/spell"
    (skill / "assets").mkdir(parents=True)
    (skill / "assets/moved.md").write_text("# Moved\n")
    (skill / "SKILL.md").write_text(skill_files()["SKILL.md"])
    (skill / "references").symlink_to(outside)
    ended = skills(user, "doctor", "--fix", "--yes", str(skill))
    assert (outside / "guide.md").read_text() == "Read `references/moved.md`.\n"
    assert ended.err == "nothing to fix\n"
