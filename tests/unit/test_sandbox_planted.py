"""Repositories, hooks and settings that commands make: what git would run is taken away, all else stays."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox import inotify
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.inotify import shared_watcher
from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.wrapped import Limits
from tests.unit.command_builders import Session, output_of, session_id_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_mounting_backend = pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
MOVED = re.compile(r"a command made `(.*)`, by which git would run something: (.*); it is now `(.*?)`(, .*)?")
# Until it is stopped, or what it has made is gone.
WAIT = "while test -e {0} || test -L {0}; do sleep 0.01; done; {1}"
HOOK = "printf '#!/bin/sh\\n' > {0}; chmod +x {0}"


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory.resolve()


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(_made(tmp_path / "work"), WORKSPACE)
    hold(made, "bubblewrap")
    yield made
    await made.processes.kill_all()


@pytest.fixture
def repo(session: Session) -> Path:
    """A repository with tracked files, in whose directory `sub` the session works."""
    top = session.cwd / "repo"
    git(session.cwd, "init", "-q", "repo")
    for name in ("sub/file", "sub/deep/file"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("one\n")
    (top / ".gitignore").write_text("out/\n")
    commit(top)
    session.cwd = top / "sub"
    return top


def git(directory: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", directory, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def commit(top: Path) -> None:
    git(top, "add", ".")
    git(top, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")


def hold(session: Session, backend: BackendName, *, home: Path | None = None, **env: str) -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent), "TMPDIR": os.environ.get("TMPDIR", ""), **env}
    session.sandbox = Sandbox(user, home=home, backends=(backend,), limits=Limits(protected=(".vscode", ".envrc")))


async def out(session: Session, cmd: str) -> str:
    """The output of a command that has ended."""
    said = await session.exec(f"{{ {cmd}; }} 2>&1")
    assert "Process exited" in said, said
    await session.processes.kill_all()
    return output_of(said).strip()


def empty(directory: Path) -> None:
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def runs_something(path: Path) -> bool:
    """What a killed program had still to unpack may be there, and runs nothing."""
    return os.path.lexists(path) and (path.name == "HEAD" or (path / "config").exists())


def found(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


PLANTS = {
    "fsmonitor": (".git", "git init -q && git config core.fsmonitor ./run", "its `config` sets `core.fsmonitor`"),
    "include": (".git", "git init -q && git config include.path ../x", "its `config` sets `include.path`"),
    "remote": (".git", "git init -q && git remote add o ext::sh", "its `config` sets `remote.o.url`"),
    "filter": (".git", "git init -q && git config filter.a.clean x", "its `config` sets `filter.a.clean`"),
    "hook": (".git", f"git init -q && {HOOK.format('.git/hooks/pre-commit')}", "the hook `pre-commit`"),
    "renamed": (
        ".git",
        f"git init -q x && {HOOK.format('x/.git/hooks/update')} && mv x/.git .",
        "the hook `update`",
    ),
    "before it is complete": (
        ".git",
        "mkdir .git && printf '[core]\\nfsmonitor = x' > .git/config",
        "its `config` sets `core.fsmonitor`",
    ),
    "worktree settings": (
        ".git",
        "git init -q && git config extensions.worktreeConfig true && git config --worktree core.pager x",
        "its `config.worktree` sets `core.pager`",
    ),
    "file": (
        ".git",
        "git init -q x && git -C x config core.pager y && echo 'gitdir: x/.git' > .git",
        "its `config` sets `core.pager`",
    ),
    "link": (
        ".git",
        "git init -q x && git -C x config core.pager y && ln -s x/.git .git",
        "its `config` sets `core.pager`",
    ),
    "common directory": (
        ".git",
        "git init -q x && git -C x config core.pager y && git init -q && echo ../x/.git > .git/commondir",
        "its `commondir` leads to another repository",
    ),
    "archive": (
        ".git",
        "git init -q x && git -C x config core.pager y && tar -C x -cf t.tar .git && tar -xf t.tar",
        "its `config` sets `core.pager`",
    ),
    "clone": (
        ".git",
        "git init -q x && git clone -q -c core.pager=y x y 2>/dev/null; mv y/.git .",
        "its `config` sets `core.pager`",
    ),
    "bare": (
        "HEAD",
        "git init -q --bare x && git -C x config gpg.program y && mv x/* .",
        "its `config` sets `gpg.program`",
    ),
    "bare without more": (
        "HEAD",
        "printf '[core]\\npager = x' > config; echo 'ref: refs/heads/main' > HEAD",
        "its `config` sets `core.pager`",
    ),
    "hooks directory in the tree": (
        ".git",
        f"git init -q && git config core.hooksPath tools && mkdir tools && {HOOK.format('tools/pre-commit')}",
        "its `config` sets `core.hooksPath` to `tools`, and a command made `pre-commit` there",
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
@every_backend
async def test_what_makes_git_run_something_is_moved_away_while_the_command_runs(
    session: Session, backend: BackendName, plant: str
) -> None:
    home = session.cwd.parent / "home"
    hold(session, backend, home=home)
    name, cmd, reason = PLANTS[plant]
    is_contained = backend != "landlock"
    # Where it is contained, it is stopped before the end of the line.
    end = WAIT.format(
        ".git/config" if plant == "archive" else name, "sleep 60; echo never" if is_contained else "echo moved"
    )
    assert await out(session, f"{{ {cmd}; }} 2>/dev/null; {end}") == ("" if is_contained else "moved")
    [line] = session.sandbox.take_notices()
    [(made, why, place, stopped)] = MOVED.findall(line)
    assert (made, why) == (str(session.cwd / name), reason)
    assert stopped == (", and the command was stopped" if is_contained else "")
    assert Path(place).parent == home / "moved"
    assert not runs_something(session.cwd / name) and not [name for name in found(session.cwd) if "moved" in name]
    assert found(home / "moved") == [Path(place).name]
    # So is what a command has made just before it ended.
    empty(session.cwd)
    assert await out(session, f"{{ {cmd}; }} 2>/dev/null; echo done") in ("done", "")
    assert not runs_something(session.cwd / name)
    assert len(session.sandbox.take_notices()) == 1 and session.sandbox.take_notices() == []


LFS = """cat > .git/hooks/{0} <<'END'
#!/bin/sh
command -v git-lfs >/dev/null 2>&1 || {{ echo >&2 "\\nThis repository is configured for Git LFS but 'git-lfs' was \
not found on your path. If you no longer wish to use Git LFS, remove this hook by deleting the '{0}' file in the hooks \
directory (set by 'core.hookspath'; usually '.git/hooks').\\n"; exit 2; }}
git lfs {0} "$@"
END
chmod +x .git/hooks/{0}"""
HARMLESS = {
    "init": "git init -q",
    "clone": "git init -q a && git clone -q a b 2>/dev/null; mv b/.git .",
    "partial clone": "git init -q && git config remote.origin.promisor true && git config core.sparseCheckout true",
    "empty": "mkdir .git",
    "nothing there": "echo 'gitdir: nowhere' > .git",
    "link to nothing": "ln -s nowhere .git",
    "bare": "git init -q --bare .",
    "prose": "echo 'The head of it all' > HEAD; echo 'pager = x' > config",
    "git-lfs": f"git init -q; git config lfs.repositoryformatversion 0; {LFS.format('pre-push')}",
    "sample": f"git init -q; {HOOK.format('.git/hooks/pre-commit.sample')}",
    "no program": "git init -q; echo x > .git/hooks/pre-commit",
    "user's template": "git init -q --template=$HOME/template",
    "worktree": "git init -q a && cd a && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && "
    "git worktree add -q ../w && cp ../w/.git ../.git",
    "settings of a person": "git init -q; git config user.name a; git config pull.rebase true; git config gc.auto 0",
    "hooks directory in the tree": "git init -q; git config core.hooksPath tools; mkdir tools; echo x > tools/update",
}


@pytest.mark.parametrize("make", HARMLESS)
async def test_a_repository_that_runs_nothing_stays(session: Session, make: str) -> None:
    template = session.cwd.parent / "template" / "hooks" / "post-commit"
    template.parent.mkdir(parents=True)
    template.write_text("#!/bin/sh\n")
    template.chmod(0o755)
    (session.cwd.parent / ".gitconfig").write_text("[init]\n\ttemplateDir = ~/template\n")
    session.env = session.env | {"HOME": str(session.cwd.parent)}
    assert await out(session, f"{HARMLESS[make]}; cd {session.cwd}; echo done") == "done"
    assert await out(session, f"{'git status --short | wc -c' if make == 'init' else 'echo 0'}") == "0"
    assert {".git", "HEAD"}.intersection(found(session.cwd))
    session.sandbox.look_at_repositories()
    named = session.sandbox.take_notices()
    assert len(named) == (make == "hooks directory in the tree") and not any("it is now" in line for line in named)


COMMIT = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x"
UNDONE = {
    "fsmonitor": (".git/config", "git config core.fsmonitor ./run"),
    "appended": (".git/config", "echo '[alias] x = !y' >> .git/config"),
    "hook": (".git/hooks/pre-commit", HOOK.format(".git/hooks/pre-commit")),
    "hook that was none": (".git/hooks/update", "chmod +x .git/hooks/update"),
    "sample": (".git/hooks/pre-commit", "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit"),
    "common directory": (
        ".git/commondir",
        "git init -q x; git -C x config core.pager y; echo ../x/.git > c; mv c .git/commondir",
    ),
    "worktree settings": (".git/config.worktree", "echo '[core] pager = x' > c; mv c .git/config.worktree"),
    "linked hooks": (
        ".git/hooks",
        f"mkdir tools; {HOOK.format('tools/update')}; rm -rf .git/hooks; ln -s ../tools .git/hooks",
    ),
    "hooks directory in the tree": (
        ".git/config",
        f"mkdir tools; {HOOK.format('tools/update')}; git config core.hooksPath tools",
    ),
}


@pytest.mark.parametrize("change", UNDONE)
@every_mounting_backend
async def test_a_change_by_which_git_would_run_something_is_undone(
    session: Session, backend: BackendName, change: str
) -> None:
    hold(session, backend, home=session.cwd.parent / "home")
    assert await out(session, f"git init -q && echo x > .git/hooks/update && {COMMIT}; git log --format=%s") == "x"
    before = (session.cwd / ".git/config").read_bytes()
    name, cmd = UNDONE[change]
    assert await out(session, f"{COMMIT}; {cmd}; sleep 60; echo never") == ""
    [line] = session.sandbox.take_notices()
    [(made, _, place, after)] = MOVED.findall(line)
    assert made == str(session.cwd / name) and Path(place).name in found(session.cwd.parent / "home" / "moved")
    assert after.endswith(", and the command was stopped") and ("is back" in after) == (Path(name).name == "config")
    assert (session.cwd / ".git/config").read_bytes() == before
    assert (Path(name).name in found((session.cwd / name).parent)) == (name == ".git/config")
    # It can be worked in as before, and removed.
    assert await out(session, f"{COMMIT}; git log --format=%s; rm -rf .git; ls -A | grep -c git") == "x\nx\nx\n0"
    assert session.sandbox.take_notices() == []


@every_backend
async def test_a_repository_that_the_user_makes_stays_and_is_protected(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    assert await out(session, "echo one") == "one"
    git(session.cwd, "init", "-q")
    git(session.cwd, "config", "core.pager", "less")
    assert await out(session, "git rev-parse --git-dir") == ".git"
    if backend != "landlock":
        assert "Read-only" in await out(session, "touch .git/hooks/x")
    # Also one that the user moves away for a moment.
    running = await session.exec("echo ready; until test -e go; do sleep 0.01; done; echo done", yield_time_ms=500)
    assert "ready" in running
    (session.cwd / ".git").rename(session.cwd / "away").rename(session.cwd / ".git")
    (session.cwd / "go").touch()
    assert "done" in await session.write(session_id_of(running), yield_time_ms=5000)
    await session.processes.kill_all()
    assert session.sandbox.take_notices() == [] and (session.cwd / ".git" / "config").exists()


async def test_a_repository_that_the_user_makes_beside_a_server_stays(session: Session) -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent)}
    session.sandbox = Sandbox(user, limits=Limits(moves_planted=False), backends=("bubblewrap",))
    # A server is a command that does not end.
    assert await out(session, "git init -q && git config core.pager x && echo served") == "served"
    assert ".git" in found(session.cwd) and session.sandbox.take_notices() == []


@every_backend
async def test_git_and_ignore_files_work_below_the_top_of_a_repository(
    session: Session, repo: Path, backend: BackendName
) -> None:
    hold(session, backend)
    (session.cwd / "file").write_text("two\n")
    read = "git diff --stat HEAD | head -1; git log --format=%s HEAD; ls -d .git HEAD 2>/dev/null"
    assert (await out(session, read)).splitlines() == ["sub/file | 2 +-", "first"]
    assert "first" in git(session.cwd, "show", "HEAD")
    assert not {".git", "HEAD"}.intersection(found(session.cwd))


@pytest.mark.parametrize("limit", ["no instance", "no watches"])
async def test_without_inotify_places_are_looked_at_again_and_again(
    session: Session, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    class Refuses(inotify._Inotify):
        def __init__(self) -> None:
            if limit == "no instance":
                raise OSError(24, "Too many open files")
            super().__init__()

        def add(self, path: str, mask: int) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(inotify, "_Inotify", Refuses)
    name, cmd, _ = PLANTS["fsmonitor"]
    assert await out(session, f"{cmd}; {WAIT.format(name, 'sleep 60; echo never')}") == ""
    assert len(session.sandbox.take_notices()) == 1


async def test_a_process_has_one_instance_for_all_its_sessions_and_none_between_commands(session: Session) -> None:
    def instances() -> int:
        descriptors = Path("/proc/self/fd")
        return sum("inotify" in str(fd.readlink()) for fd in descriptors.iterdir() if fd.is_symlink())

    assert shared_watcher() is shared_watcher()
    running = [await session.exec("echo ready; sleep 60", yield_time_ms=250) for _ in range(2)]
    hold(session, "bubblewrap")
    running.append(await session.exec("echo ready; sleep 60", yield_time_ms=250))
    assert all("running" in said for said in running)
    assert instances() == 1


@pytest.mark.parametrize("swap", ["rmdir lib; mv x lib", "rmdir lib; ln -s x lib", "rmdir lib; cp -r x lib"])
@every_mounting_backend
async def test_the_repository_of_a_submodule_does_not_come_with_its_directory(
    session: Session, backend: BackendName, swap: str
) -> None:
    git(session.cwd, "init", "-q")
    (session.cwd / "lib").mkdir()
    (session.cwd / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/lib\n')
    hold(session, backend)
    make = "git init -q x && git -C x config core.pager y"
    assert await out(session, f"{make}; {swap} 2>/dev/null; sleep 60; echo never") == ""
    assert not (session.cwd / "lib" / ".git").exists()
    [line] = session.sandbox.take_notices()
    assert MOVED.findall(line)[0][0] == str(session.cwd / ("lib" if "ln" in swap else "lib/.git"))


@every_mounting_backend
async def test_directories_on_the_way_to_what_settings_name_can_be_made(session: Session, backend: BackendName) -> None:
    git(session.cwd, "init", "-q")
    git(session.cwd, "config", "core.hooksPath", "build/hooks")
    git(session.cwd, "config", "include.path", "../config/x")
    hold(session, backend)
    make = (
        "mkdir -p build/hooks config && echo x > build/out && echo x > config/y && echo '[user]' > config/x; echo made"
    )
    assert await out(session, make) == "made"
    assert await out(session, "echo y > build/out; echo y > config/y; rm -r build config && echo removed") == "removed"
    assert session.sandbox.take_notices() == []
    hook = f"mkdir -p build/hooks; echo x > build/hooks/notes; {HOOK.format('build/hooks/pre-commit')}"
    assert await out(session, f"{hook}; sleep 60; echo never") == ""
    moved = found(session.cwd / "build/hooks")
    assert [name.partition(".moved-")[0] for name in moved] == ["notes", "pre-commit"]
    include = "mkdir config; printf '[core]\\npager = x' > config/x"
    assert await out(session, f"{include}; sleep 60; echo never") == ""
    assert not (session.cwd / "config/x").exists() and (session.cwd / "config").is_dir()
    assert len(session.sandbox.take_notices()) == 2
    # A link may lead to what is the user's.
    mine = session.cwd.parent / "mine" / "hooks"
    mine.mkdir(parents=True)
    (mine / "update").write_text("#!/bin/sh\n")
    (mine / "update").chmod(0o755)
    assert await out(session, f"rm -r build; ln -s {mine.parent} build; sleep 60; echo never") == ""
    assert not (session.cwd / "build").exists() and found(mine) == ["update"]


@pytest.mark.parametrize(
    "cmd", ["git -C deep init -q && git -C deep config core.pager x", "echo 'gitdir: x' > deep/.git"]
)
@every_backend
async def test_a_repository_among_tracked_files_is_looked_at_after_the_command(
    session: Session, repo: Path, backend: BackendName, cmd: str
) -> None:
    hold(session, backend, home=repo.parent / "home")
    # What a command makes elsewhere is its own.
    elsewhere = "mkdir new; git init -q new; git -C new config core.pager x"
    assert await out(session, f"{elsewhere}; {cmd}; echo done") == "done"
    session.sandbox.look_at_repositories()
    lines = session.sandbox.take_notices()
    runs = "pager" in cmd
    assert [line for line in lines if f"`{session.cwd}/deep/.git`" in line and "it is now" in line] == lines[
        : int(runs)
    ]
    assert lines[int(runs) :] == [
        f"git may run a program in repositories that commands made: `{session.cwd}/new/.git` (its `config` sets "
        "`core.pager`)"
    ]
    assert (".git" in found(session.cwd / "deep")) is not runs and ".git" in found(session.cwd / "new")
    # It is no other command's either, and can be removed.
    assert await out(session, "git -C new config core.editor x; rm -rf new && echo removed") == "removed"
    session.sandbox.look_at_repositories()
    assert session.sandbox.take_notices() == []


async def test_a_repository_in_a_temporary_directory_is_named_only(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    session.policy = WorkspaceWrite(exclude_slash_tmp=True)
    hold(session, "bubblewrap", TMPDIR=str(temporary))
    make = "git init -q {0} && git -C {0} config core.pager x"
    cmd = f"cd {temporary}; {make.format('.')}; {make.format('a/b')}; git init -q c; echo done"
    assert await out(session, cmd) == "done"
    assert await out(session, f"cd {temporary}; git config core.editor x && echo again") == "again"
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    assert [f"`{temporary}/{name}`" in line for name in (".git", "a/b/.git", "c/.git")] == [True, True, False]
    assert found(temporary) == [".git", "a", "c"]
    session.sandbox.look_at_repositories()
    assert session.sandbox.take_notices() == []


PROGRAMS = {
    "git init -q made && git -C made config core.fsmonitor ./run": "its `config` sets `core.fsmonitor`",
    "git init -q made && git -C made config include.path ../x": "its `config` sets `include.path`",
    "git init -q made && git -C made remote add o ext::sh": "its `config` sets `remote.o.url`",
    "git init -q made && install -D -m 755 /bin/true made/.git/hooks/post-checkout": "the hook `post-checkout`",
    "git init -q --bare made && git -C made config gpg.program x": "its `config` sets `gpg.program`",
    "git init -q --separate-git-dir x/store made && git -C made config core.pager x": "its `config` sets `core.pager`",
}


@pytest.mark.parametrize("make", PROGRAMS)
async def test_the_user_hears_of_a_repository_that_names_programs(session: Session, make: str) -> None:
    assert await out(session, "echo start") == "start"
    assert await out(session, f"mkdir x; {make}") == ""
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    path = session.cwd / "made" if "--bare" in make else session.cwd / "made/.git"
    assert f": `{path}` ({PROGRAMS[make]})" in line
    assert await out(session, "echo last") == "last"
    session.sandbox.look_at_repositories()
    assert session.sandbox.take_notices() == []


async def test_many_repositories_are_one_line(session: Session) -> None:
    make = "for n in 1 2 3 4 5 6 7 8; do git init -q d/$n; git -C d/$n config core.pager x; done"
    assert await out(session, make) == ""
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    assert line.count("core.pager") == 5 and line.endswith(" and 3 more")


async def test_settings_of_other_programs_that_a_command_made_are_one_line(session: Session) -> None:
    assert await out(session, "mkdir -p .vscode web/.codex; echo x | tee .vscode/tasks.json .envrc web/.codex/a") == "x"
    assert session.sandbox.take_notices() == []
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    assert line == (
        f"commands made settings that other programs use: `{session.cwd}/.envrc`, `{session.cwd}/.vscode/tasks.json`, "
        f"`{session.cwd}/web/.codex/a`; look at them first"
    )
    # Those of the user are not named; what exists is protected.
    (session.cwd / "web" / ".envrc").write_text("x")
    assert "Read-only" in await out(session, "echo y > .vscode/tasks.json")
    session.sandbox.look_at_repositories()
    assert session.sandbox.take_notices() == []


async def test_a_move_that_a_kill_has_interrupted_is_done_by_the_next_session(session: Session) -> None:
    home = session.cwd.parent / "home"
    (home / "moved").mkdir(parents=True)
    aside = session.cwd / ".git.moved-abcdef"
    git(session.cwd, "init", "-q", "--separate-git-dir", str(aside), str(session.cwd / "x"))
    (home / "moved" / "2026-01-02T03-04-05-abcdef.unfinished").write_bytes(os.fsencode(aside))
    # A part of it was copied already.
    (home / "moved" / "2026-01-02T03-04-05-abcdef-git").mkdir()
    hold(session, "bubblewrap", home=home)
    assert await out(session, "echo next") == "next"
    assert found(home / "moved") == ["2026-01-02T03-04-05-abcdef-git"]
    assert (home / "moved" / "2026-01-02T03-04-05-abcdef-git" / "HEAD").exists() and not aside.exists()


async def test_what_the_directory_cannot_take_stays_beside_its_place(session: Session) -> None:
    home = session.cwd.parent / "home"
    home.mkdir()
    (home / "moved").write_text("")
    hold(session, "bubblewrap", home=home)
    name, cmd, _ = PLANTS["fsmonitor"]
    assert await out(session, f"{cmd}; {WAIT.format(name, 'sleep 60; echo never')}") == ""
    [line] = session.sandbox.take_notices()
    place = Path(MOVED.findall(line)[0][2])
    assert place.parent == session.cwd and (place / "config").exists() and not (session.cwd / ".git").exists()
