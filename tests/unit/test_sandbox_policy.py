"""What a policy lets commands write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.protocol.policy import DangerFullAccess, ReadOnly, WorkspaceWrite
from codex_py.sandbox.git_directories import RUN_BY_GIT
from codex_py.sandbox.git_runs import GitLocation
from codex_py.sandbox.policy import WritableRoot, is_writable, writable_roots

ALONE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    directory = Path(os.path.realpath(tmp_path)) / "repo"
    (directory / ".git").mkdir(parents=True)
    (directory / ".git" / "HEAD").touch()
    return directory


def _own(root: Path) -> tuple[Path, ...]:
    names = (root / ".git", root / ".codex", root / ".agents")
    has_repository = (root / ".git" / "HEAD").exists() or (root / ".git").is_file() or (root / "HEAD").exists()
    return names if has_repository else (*names, root / "HEAD")


def _locations(*directories: Path) -> tuple[GitLocation, ...]:
    return tuple(
        location
        for directory in directories
        for location in (GitLocation(directory / ".git", "repository"), GitLocation(directory / "HEAD", "bare"))
    )


def test_read_only_has_no_roots_and_full_access_has_all(repo: Path) -> None:
    assert writable_roots(ReadOnly(), repo, {}) == ()
    roots = writable_roots(DangerFullAccess(), repo, {})
    assert roots == (WritableRoot(Path("/")),)
    assert is_writable(repo / ".git" / "config", roots)
    assert not is_writable(repo / "a", ())


def test_the_workspace_its_extra_roots_and_the_temporary_directories(repo: Path) -> None:
    extra, tmpdir = repo.parent / "extra", repo.parent / "t"
    extra.mkdir()
    tmpdir.mkdir()
    policy = WorkspaceWrite(writable_roots=(extra, Path("../missing"), Path("../extra")))
    roots = writable_roots(policy, repo, {"TMPDIR": str(tmpdir)})
    assert [root.path for root in roots] == [repo, extra, Path(os.path.realpath("/tmp")), tmpdir]
    assert all(root.protected[: len(own := _own(root.path))] == own for root in roots)


def test_temporary_directories_can_be_left_out(repo: Path) -> None:
    env = {"TMPDIR": str(repo.parent)}
    assert writable_roots(ALONE, repo, env) == (WritableRoot(repo, _own(repo), locations=_locations(repo)),)
    only_tmpdir = WorkspaceWrite(exclude_slash_tmp=True)
    assert [root.path for root in writable_roots(only_tmpdir, repo, env)] == [repo, repo.parent]


@pytest.mark.parametrize("tmpdir", ["", "relative", "/no/such/directory"])
def test_a_tmpdir_that_is_no_absolute_directory_is_left_out(repo: Path, tmpdir: str) -> None:
    roots = writable_roots(WorkspaceWrite(exclude_slash_tmp=True), repo, {"TMPDIR": tmpdir})
    assert [root.path for root in roots] == [repo]


@pytest.mark.parametrize("tmpdir", [".git", ".git/tmp", ".codex"])
def test_a_protected_directory_is_no_temporary_one(repo: Path, tmpdir: str) -> None:
    (repo / tmpdir).mkdir(parents=True, exist_ok=True)
    roots = writable_roots(WorkspaceWrite(exclude_slash_tmp=True), repo, {"TMPDIR": str(repo / tmpdir)})
    assert roots == (WritableRoot(repo, _own(repo), locations=_locations(repo)),)


def test_where_a_git_file_points_is_no_temporary_directory(repo: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    (repo / ".git").rmdir()
    (repo.parent / "apart" / "tmp").mkdir(parents=True)
    (repo / ".git").write_text("gitdir: ../apart\n")
    env = {"TMPDIR": str(repo.parent / "apart" / "tmp")}
    assert writable_roots(WorkspaceWrite(exclude_slash_tmp=True), repo, env) == (
        WritableRoot(repo, _own(repo), locations=_locations(repo)),
    )


def test_what_must_not_be_read_is_no_temporary_directory_and_still_one_to_work_in(repo: Path) -> None:
    (repo.parent / "tmp").mkdir()
    env = {"TMPDIR": str(repo.parent / "tmp")}
    roots = writable_roots(WorkspaceWrite(exclude_slash_tmp=True), repo, env, unreadable=[repo.parent])
    assert [root.path for root in roots] == [repo]


def test_the_directories_that_lead_to_another_root_stay_where_they_are(repo: Path) -> None:
    deep = repo / "a" / "b" / "c"
    deep.mkdir(parents=True)
    # Nor does a repository come to be above the one worked in.
    above = [repo / way / name for way in ("a", "a/b") for name in (".git", "HEAD")]
    above.sort()
    locations = _locations(deep, repo, repo / "a" / "b", repo / "a")
    outer = WritableRoot(repo, (*_own(repo), *above), ways=(repo / "a" / "b", repo / "a"), locations=locations)
    policy = WorkspaceWrite(writable_roots=(repo,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    inner, found = writable_roots(policy, deep, {})
    assert (inner.path, inner.ways, found) == (deep, (), outer)


def test_what_git_runs_of_a_repository_without_a_working_tree_is_protected(repo: Path) -> None:
    bare = repo.parent / "project"
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (root,) = writable_roots(ALONE, bare, {})
    assert root.protected == (*_own(bare), *(bare / name for name in RUN_BY_GIT))
    assert set(root.locations) == set(_locations(bare))
    assert not is_writable(bare / "hooks" / "post-update", (root,))
    assert is_writable(bare / "refs" / "heads", (root,))


def test_nested_repositories_are_found_and_links_are_not_followed(repo: Path) -> None:
    outside = repo.parent / "outside"
    (outside / ".git").mkdir(parents=True)
    (repo / "link").symlink_to(outside)
    (repo / "a" / "b" / ".git").mkdir(parents=True)
    (repo / "a" / ".codex").mkdir()
    (repo / "node_modules" / "x" / ".git").mkdir(parents=True)
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == (*_own(repo), repo / "a" / ".codex", repo / "a" / "b" / ".git")


def test_hundreds_of_nested_repositories_are_all_protected(repo: Path) -> None:
    nested = [repo / f"{number:03}" / ".git" for number in range(400)]
    for directory in nested:
        directory.mkdir(parents=True)
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == (*_own(repo), *nested)


def test_a_git_file_protects_what_it_points_to(repo: Path) -> None:
    store = repo / "store" / "worktrees" / "w"
    store.mkdir(parents=True)
    (store / "commondir").write_text("../..\n")
    (repo / "w").mkdir()
    (repo / "w" / ".git").write_text("gitdir: ../store/worktrees/w\n")
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == (*_own(repo), repo / "w" / ".git", store, repo / "store")


def test_a_worktree_protects_the_repository_it_belongs_to_in_another_root(repo: Path) -> None:
    store = repo / ".git" / "worktrees" / "w"
    store.mkdir(parents=True)
    (store / "commondir").write_text("../..\n")
    worktree = repo.parent / "w"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {store}\n")
    roots = writable_roots(WorkspaceWrite(exclude_slash_tmp=True), worktree, {"TMPDIR": str(repo.parent)})
    assert roots[1].protected == (*_own(repo.parent), store, repo / ".git")


@pytest.mark.parametrize("pointer", [b"", b"gitdir:", b"gitdir: \xff\xfe", b"x" * 100_000, b"\0"])
def test_a_broken_git_file_does_no_harm(repo: Path, pointer: bytes) -> None:
    (repo / "w").mkdir()
    (repo / "w" / ".git").write_bytes(pointer)
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected[:4] == (*_own(repo), repo / "w" / ".git")


@pytest.mark.parametrize("location", [b"a\0b", b"x" * 256, b"x/" * 2100, b"gone/" + b"x" * 256])
def test_pointers_to_where_no_file_can_be_are_left_out(repo: Path, location: bytes) -> None:
    (repo / "w").mkdir()
    (repo / "w" / ".git").write_bytes(b"gitdir: " + location)
    (repo / "v" / "store").mkdir(parents=True)
    (repo / "v" / ".git").write_text("gitdir: store")
    (repo / "v" / "store" / "commondir").write_bytes(location)
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == (*_own(repo), repo / "v" / ".git", repo / "w" / ".git", repo / "v" / "store")


def test_a_link_to_where_no_file_can_be_is_kept_alone(repo: Path) -> None:
    (repo / ".codex").symlink_to("x" * 256)
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == _own(repo)


def test_another_name_of_a_protected_file_is_protected(repo: Path) -> None:
    extra = repo.parent / "extra"
    for directory in (repo / "deep" / "er", repo / ".git" / "hooks", repo / ".git" / "objects" / "ab", extra):
        directory.mkdir(parents=True)
    for name in ("config", "hooks/push", "objects/ab/cd"):
        (repo / ".git" / name).write_text("x")
    links = {"config": repo / "deep" / "er" / "notes", "hooks/push": extra / "push", "objects/ab/cd": repo / "object"}
    for name, link in links.items():
        os.link(repo / ".git" / name, link)
    (repo / "free").write_text("x")
    policy = ALONE.replace(writable_roots=(extra,))
    roots = writable_roots(policy, repo, {})
    assert [root.protected[len(_own(root.path)) :] for root in roots] == [(links["config"],), (links["hooks/push"],)]
    assert not is_writable(links["config"], roots)
    assert is_writable(links["objects/ab/cd"], roots)
    assert is_writable(repo / "free", roots)


def test_another_name_of_our_settings_is_protected(repo: Path) -> None:
    home = repo.parent / "home"
    (home / "rules").mkdir(parents=True)
    for name in ("config.toml", "rules/mine.rules"):
        (home / name).write_text("x")
        os.link(home / name, repo / Path(name).name)
    [root] = writable_roots(ALONE, repo, {}, home=home)
    assert sorted(root.protected[len(_own(root.path)) :]) == [repo / "config.toml", repo / "mine.rules"]


def test_a_linked_git_directory_protects_its_target(repo: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    (repo / ".git").rmdir()
    (repo / "real").mkdir()
    (repo / ".git").symlink_to("real")
    (root,) = writable_roots(ALONE, repo, {})
    assert root.protected == (*_own(repo), repo / "real")


def test_the_repository_above_the_working_directory_is_protected_too(repo: Path) -> None:
    (repo / "sub").mkdir()
    roots = writable_roots(WorkspaceWrite(exclude_slash_tmp=True), repo / "sub", {"TMPDIR": str(repo.parent)})
    protected = (*_own(repo.parent), repo / ".git")
    locations = _locations(repo / "sub", repo.parent, repo)
    assert roots[1] == WritableRoot(repo.parent, protected, ways=(repo,), locations=locations)


def test_a_repository_behind_many_directories_is_found(repo: Path) -> None:
    for number in range(700):
        (repo / f"d{number:03}" / ".git").mkdir(parents=True)
    (root,) = writable_roots(ALONE, repo, {})
    assert len(root.protected) == len(_own(repo)) + 700


@pytest.mark.parametrize(
    ("path", "writable"),
    [
        ("a.txt", True),
        ("new/deep/file", True),
        (".gitignore", True),
        (".git", False),
        (".git/config", False),
        (".GIT/config", False),
        (".codex/config.toml", False),
        (".agents/skills/x", False),
        ("sub/.git/hooks/pre-commit", False),
        ("../outside", False),
        ("sub/../../outside", False),
        ("../repo2/file", False),
        ("out/file", False),
        ("in/file", True),
        ("gone/file", False),
    ],
)
def test_where_a_file_may_be_written(repo: Path, path: str, writable: bool) -> None:
    (repo / "sub").mkdir()
    (repo / "out").symlink_to("/usr")
    (repo / "in").symlink_to("sub")
    (repo / "gone").symlink_to("../nowhere")
    assert is_writable(repo / path, writable_roots(ALONE, repo, {})) is writable


def test_a_root_inside_a_protected_directory_is_writable_when_the_user_named_it(repo: Path) -> None:
    hooks = repo / ".git" / "hooks"
    hooks.mkdir()
    policy = WorkspaceWrite(writable_roots=(hooks,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    roots = writable_roots(policy, repo, {})
    assert is_writable(hooks / "pre-commit", roots)
    assert not is_writable(repo / ".git" / "config", roots)


def test_our_home_is_protected_in_every_root_that_holds_it(repo: Path) -> None:
    home = repo / "tools" / "deep" / "home"
    home.mkdir(parents=True)
    (repo.parent / "link").symlink_to(home)
    policy = WorkspaceWrite(writable_roots=(repo / "tools",), exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    locations = _locations(repo / "tools")
    for named in (home, repo.parent / "link"):
        assert writable_roots(policy, repo, {}, home=named) == (
            WritableRoot(
                repo,
                (*_own(repo), home),
                (repo / "tools" / "deep", repo / "tools"),
                locations=(*_locations(repo), *locations),
            ),
            WritableRoot(
                repo / "tools", (*_own(repo / "tools"), home), (repo / "tools" / "deep",), locations=locations
            ),
        )


@pytest.mark.parametrize(
    ("path", "writable"),
    [("config.toml", False), ("new", False), ("skills/mine/SKILL.md", True), ("../other/config.toml", True)],
)
def test_only_what_the_user_named_inside_our_home_is_writable(repo: Path, path: str, writable: bool) -> None:
    home = repo / "home"
    (home / "skills" / "mine").mkdir(parents=True)
    named = (home, home / "skills" / "mine")
    policy = WorkspaceWrite(writable_roots=named, exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    roots = writable_roots(policy, repo, {}, home=home)
    assert [root.path for root in roots] == [repo, home / "skills" / "mine"]
    assert is_writable(home / path, roots) is writable


def test_our_home_is_no_workspace_and_no_temporary_directory(repo: Path) -> None:
    policy = WorkspaceWrite(exclude_slash_tmp=True)
    assert writable_roots(policy, repo, {"TMPDIR": str(repo)}, home=repo) == ()
