"""Paths that commands must not read: finding them, and keeping them from commands."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.policy import is_writable
from codex_py.sandbox.unreadable import ReadRules, find_unreadable, is_readable
from tests.unit.command_builders import Session, output_of

WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """`repo` to work in, `keys` beside it."""
    directory = Path(os.path.realpath(tmp_path))
    for name in ("repo/.git/HEAD", "repo/.env", "repo/a/b/.env", "repo/a/x.pem", "repo/a/y.txt", "keys/id"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(f"content of {name}\n")
    return directory


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/etc/passwd", ["/etc/passwd"]),
        ("~/keys", ["{top}/keys"]),
        ("~/missing", ["{top}/missing"]),
        ("~", ["{top}"]),
        ("../keys/id", ["{top}/keys/id"]),
        (".env", ["{top}/repo/.env"]),
        ("*.env", ["{top}/repo/.env"]),
        ("**/.env", ["{top}/repo/.env", "{top}/repo/a/b/.env"]),
        ("a/**", ["{top}/repo/a/b", "{top}/repo/a/x.pem", "{top}/repo/a/y.txt"]),
        ("a/*.p?m", ["{top}/repo/a/x.pem"]),
        ("a/[xz].*", ["{top}/repo/a/x.pem"]),
        ("a/[!x].*", ["{top}/repo/a/y.txt"]),
        ("a/*/.env", ["{top}/repo/a/b/.env"]),
        ("~/k*/id", ["{top}/keys/id"]),
        ("nothing*", []),
        ("a/[x", []),
        ("/no/such/**", []),
    ],
)
def test_patterns_name_real_paths(top: Path, pattern: str, found: list[str]) -> None:
    expected = tuple(Path(path.format(top=top)) for path in found)
    assert find_unreadable([pattern], top / "repo", {"HOME": str(top)}) == expected


def test_links_are_followed_and_what_lies_below_another_is_left_out(top: Path) -> None:
    (top / "repo" / "link").symlink_to(top / "keys")
    found = find_unreadable(["link", "../keys/id", "../keys"], top / "repo", {})
    assert found == (top / "keys",)
    assert not is_readable(top / "repo" / "link" / "id", found)
    assert not is_readable(top / "keys", found)
    assert is_readable(top / "keys2", found)


def test_a_name_with_brackets_that_exists_is_meant_literally(top: Path) -> None:
    (top / "repo" / "[x].txt").write_text("")
    assert find_unreadable(["[x].txt"], top / "repo", {}) == (top / "repo" / "[x].txt",)


@pytest.mark.parametrize("pattern", ["x" * 256, "x/" * 3000, "~/" + "y" * 5000])
def test_a_name_that_no_file_can_have_is_left_out(top: Path, pattern: str) -> None:
    assert find_unreadable([pattern, "../keys"], top / "repo", {"HOME": str(top)}) == (top / "keys",)


@on_linux
@pytest.mark.parametrize("backend", BACKENDS)
def test_without_reading_anything_no_command_is_run(top: Path, backend: BackendName) -> None:
    sandbox = Sandbox({"PATH": os.environ["PATH"]}, deny_read=["/"], backends=(backend,))
    with pytest.raises(ToolError, match="`/` must not be read"):
        sandbox.wrap(PreparedCommand(("/bin/true",), top / "repo", {}), policy=WORKSPACE, cwd=top / "repo")


@on_linux
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_temporary_directory_that_must_not_be_read_is_no_exception(
    session: Session, backend: BackendName
) -> None:
    tmpdir = session.cwd.parent / "keys"
    user = {"PATH": os.environ["PATH"], "TMPDIR": str(tmpdir)}
    session.sandbox = Sandbox(user, deny_read=[str(tmpdir)], backends=(backend,))
    session.policy = WorkspaceWrite(exclude_slash_tmp=True)
    assert "Permission denied" in await _out(session, f"cat {tmpdir}/id")
    assert "Permission denied" in await _out(session, f"echo new > {tmpdir}/new")


def test_tools_are_held_to_the_same_paths(top: Path) -> None:
    sandbox = Sandbox({"HOME": str(top)}, deny_read=["~/keys", "**/.env"])
    repo = top / "repo"
    policies: list[SandboxPolicy] = [ReadOnly(), WORKSPACE]
    for policy in policies:
        assert not sandbox.may_read(top / "keys" / "id", policy, repo)
        assert not sandbox.may_read(repo / ".env", policy, repo)
        assert sandbox.may_read(repo / "a" / "y.txt", policy, repo)
    assert sandbox.may_read(top / "keys" / "id", DangerFullAccess(), repo)
    assert not is_writable(repo / ".env", sandbox.roots(WORKSPACE, repo))


@pytest.fixture
async def session(top: Path) -> AsyncGenerator[Session, None]:
    made = Session(top / "repo", WORKSPACE)
    yield made
    await made.processes.kill_all()


def deny(session: Session, *patterns: str, backend: BackendName = "bubblewrap") -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent)}
    session.sandbox = Sandbox(user, deny_read=patterns, backends=(backend,))


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


@on_linux
@pytest.mark.parametrize("policy", [ReadOnly(), WORKSPACE], ids=["read-only", "workspace-write"])
@pytest.mark.parametrize("backend", BACKENDS)
async def test_commands_cannot_read_what_is_denied(
    session: Session, backend: BackendName, policy: SandboxPolicy
) -> None:
    deny(session, "~/keys", "**/.env", "~/missing", backend=backend)
    session.policy = policy
    assert "Permission denied" in await _out(session, "cat ../keys/id")
    assert "Permission denied" in await _out(session, "cat .env")
    assert "Permission denied" in await _out(session, "cat a/b/.env")
    assert await _out(session, "cat a/y.txt") == "content of repo/a/y.txt"
    assert (session.cwd / ".env").read_text() == "content of repo/.env\n"


@on_linux
async def test_full_access_reads_everything(session: Session) -> None:
    deny(session, "~/keys")
    session.policy = DangerFullAccess()
    assert await _out(session, "cat ../keys/id") == "content of keys/id"


@on_linux
async def test_what_is_denied_stays_so_when_its_directory_is_moved(session: Session) -> None:
    deny(session, "**/.env")
    await _out(session, "mv a/b a/c")
    assert "Permission denied" in await _out(session, "cat a/c/.env")


@on_linux
@pytest.mark.parametrize("policy", [ReadOnly(), WORKSPACE], ids=["read-only", "workspace-write"])
@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_comes_to_match_a_pattern_is_denied_to_the_next_command(
    session: Session, backend: BackendName, policy: SandboxPolicy
) -> None:
    deny(session, "**/.env", "*.pem", backend=backend)
    session.policy = policy
    assert "Permission denied" in await _out(session, "cat .env")
    moved = session.cwd.parent / "moved"
    (moved / "deep").mkdir(parents=True)
    (moved / "deep" / ".env").write_text("secret\n")
    moved.rename(session.cwd / "moved")
    (session.cwd / "a" / ".env").write_text("secret\n")
    (session.cwd / "new.pem").write_text("secret\n")
    for path in ("moved/deep/.env", "a/.env", "new.pem", ".env"):
        assert "Permission denied" in await _out(session, f"cat {path}"), path
    (session.cwd / "a" / ".env").unlink()
    assert await _out(session, "cat a/y.txt") == "content of repo/a/y.txt"


@on_linux
async def test_what_a_command_makes_is_denied_to_the_next_one(session: Session) -> None:
    deny(session, "**/.env")
    await _out(session, "touch -r a stamp; echo secret > a/.env; touch -r stamp a")
    assert "Permission denied" in await _out(session, "cat a/.env")


@on_linux
@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_the_workspace_below_a_denied_directory_can_be_used(session: Session, backend: BackendName) -> None:
    deny(session, "~", backend=backend)
    assert await _out(session, "cat a/y.txt && echo new > new && cat new") == "content of repo/a/y.txt\nnew"
    assert "Permission denied" in await _out(session, "ls ..")
    assert "No such file" in await _out(session, "cat ../keys/id")


@on_linux
def test_a_command_does_not_start_in_a_denied_directory(top: Path) -> None:
    sandbox = Sandbox({"HOME": str(top), "PATH": os.environ["PATH"]}, deny_read=["~/keys"])
    with pytest.raises(ToolError, match="must not be read"):
        sandbox.wrap(PreparedCommand(("/bin/true",), top / "keys", {}), policy=ReadOnly(), cwd=top / "repo")


@on_linux
@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_pattern_hides_all_of_many_files(session: Session, backend: BackendName) -> None:
    for number in range(320):
        (session.cwd / f"p{number}").mkdir()
        (session.cwd / f"p{number}" / ".env").write_text("secret\n")
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent)}
    # Where bubblewrap is too slow for so many, namespaces take over.
    backends: tuple[BackendName, ...] = ("bubblewrap", "namespaces") if backend == "bubblewrap" else (backend,)
    session.sandbox = Sandbox(user, deny_read=["**/.env"], backends=backends)
    assert await _out(session, "cat p*/.env 2>&- | wc -c; cat p319/.env") == "0\ncat: p319/.env: Permission denied"


@on_linux
async def test_a_pattern_finds_what_lies_behind_many_files(session: Session) -> None:
    bulk = session.cwd / "a" / "bulk"
    bulk.mkdir()
    for number in range(21_000):
        (bulk / str(number)).touch()
    (bulk / "z").mkdir()
    (bulk / "z" / ".env").write_text("secret\n")
    deny(session, "**/.env")
    assert "Permission denied" in await _out(session, "cat a/bulk/z/.env")


@on_linux
async def test_no_command_runs_when_a_pattern_matches_more_than_can_be_hidden(session: Session) -> None:
    for number in range(2_001):
        (session.cwd / f"{number}.key").touch()
    deny(session, "*.key")
    said = await session.exec("true")
    assert said.startswith("error: no command is run: `*.key` in `sandbox.deny_read` matches more than 2,000 paths")
    # Readers of ours need no list.
    rules = ReadRules(["*.key"], session.cwd, {})
    assert not rules.allows(session.cwd / "2000.key")
    assert rules.allows(session.cwd / "a" / "y.txt")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("repo/.env", False),
        ("repo/a/b/.env", False),
        ("repo/new/.env", False),
        ("repo/.env/inside", False),
        ("repo/.envrc", True),
        ("keys/id", False),
        ("keys2/id", True),
        ("home/config.toml", False),
        ("home/work.config.toml", False),
        ("home/AGENTS.md", True),
    ],
)
def test_readers_ask_rules_that_look_nothing_up(top: Path, path: str, allowed: bool) -> None:
    rules = ReadRules(
        ["**/.env", "~/keys"],
        top / "repo",
        {"HOME": str(top)},
        secrets=[Path("../home/config.toml"), Path("../home/*.config.toml")],
    )
    assert rules.allows(top / path) is allowed


def test_readers_ask_about_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "open").mkdir()
    for name in ("keys/id", "open/a.md"):
        (tmp_path / name).touch()
    (tmp_path / "open/secret.md").symlink_to("../keys/id")
    (tmp_path / "through").symlink_to("keys")
    (tmp_path / "beside").symlink_to("open")
    rules = ReadRules(["keys"], tmp_path, {})
    allowed = {name: rules.allows(tmp_path / name) for name in ("beside/a.md", "beside/secret.md", "through/id", "x/y")}
    assert allowed == {"beside/a.md": True, "beside/secret.md": False, "through/id": False, "x/y": True}
