"""What commands must not change, read and reach: every attempt on every backend, all of a backend in one sandbox."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final

import pytest

from codex_py.config.sections import PROTECTED
from codex_py.sandbox.denials import DEFAULT_DENIALS, OWN_SECRETS
from codex_py.sandbox.linux import BACKENDS, BackendName
from tests.cli.test_exec_without_sandbox import REFUSED, run_in_container
from tests.support import holding
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.holding import Row
from tests.support.home import Place
from tests.support.process import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")

GIT, HOOKS, INCLUDED, MODULES = "git files", "hook directories", "included files", "submodules"
SETTINGS, PROFILES, OURS, SKILLS, HOME = "other settings", "shell profiles", "project settings", "skills", "CODEX_HOME"
PATH, SECRETS, OWN, DENIED, SOCKETS, NETWORK = "PATH", "secrets", "own secrets", "deny_read", "sockets", "network"

# What Landlock alone cannot hold, and the words by which it is named before the user accepts that.
UNHELD: Final = {
    GIT: "`.git`",
    HOOKS: "directories of git hooks",
    INCLUDED: "files that git's configuration includes",
    MODULES: "submodules",
    SETTINGS: "settings of editors and other agents",
    PROFILES: "shell profiles",
    OURS: "`.codex`",
    SKILLS: "`.agents`",
    HOME: "`CODEX_HOME`",
}
GITS: Final = (".git", "sub/.git", "made/.git", "store", "common")
OWN_FILES: Final = (
    "config.toml",
    "hooks.json",
    "AGENTS.md",
    "rules/default.rules",
    "prompts/p.md",
    "skills/s/SKILL.md",
)
CONFIG: Final = """
[sandbox]
deny_read = ["**/*.pem", "private", "keys/id"]
[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"""
# What a command makes, and the next one finds.
MADE: Final = "mkdir -p made/.cursor && git init -q --template= made && mkdir made/.git/hooks"
FILES: Final = frozenset(
    ".netrc .npmrc .pypirc .pgpass .my.cnf .mylogin.cnf .git-credentials .databrickscfg .s3cfg .boto "
    "token stored_tokens config".split()
)
SETTINGS_IN_PROJECT: Final = tuple(
    name if name in (".mcp.json", ".envrc") else f"{name}/settings.json" for name in PROTECTED if "/" not in name
)
SETTINGS_AT_HOME: Final = tuple(
    name.removeprefix("~/") + ("" if Path(name).name.startswith(".") else "/file")
    for name in PROTECTED
    if name.startswith("~/")
)


def put(path: Path, text: str = "content\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(text)
    return path


def default_secrets(home: Path) -> list[Path]:
    """A file at or below every path that is denied by default."""
    denied = [Path(denial.path.replace("~", str(home), 1)) for denial in DEFAULT_DENIALS]
    return [path if path.suffix or path.name in FILES else path / "key" for path in denied]


def lay_out(place: Place) -> None:
    """A repository and a home with one of everything that is to be held."""
    repo, home = place.repo, place.home
    for name in (".git", "sub/.git", "store", "common"):
        for file in ("config", "hooks/post-checkout", "HEAD"):
            put(repo / name / file, "")
    with (repo / ".git/config").open("a") as config:
        config.write("[core]\n\thooksPath = .githooks/_\n[include]\n\tpath = ../shared.gitconfig\n")
    (repo / "sub/.git/config").write_text("[core]\n\thooksPath = hooks\n")
    put(repo / "sub/hooks/pre-push")
    put(repo / ".githooks/_/pre-commit")
    put(repo / "shared.gitconfig", "[include]\n\tpath = more.gitconfig\n")
    put(repo / "more.gitconfig", "[alias]\n\tst = status\n")
    put(repo / ".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/lib\n')
    put(repo / "lib/.git/config", "")
    (repo / "made").mkdir()
    put(repo / "tree/.git", "gitdir: ../store\n")
    put(repo / "store/commondir", "../common\n")
    for name in (*SETTINGS_IN_PROJECT, "web/.claude/settings.json", ".codex/config.toml", ".codex/hooks.json"):
        put(repo / name, "# theirs\n")
    for skill in (repo / ".agents/skills/s", repo / ".codex/skills/s", home / ".agents/skills/s"):
        put(skill / "SKILL.md")
    for path in (*default_secrets(home), *(home / name for name in SETTINGS_AT_HOME)):
        put(path)
    for name in (*OWN_FILES, *(name.replace("*", "x") for name in OWN_SECRETS)):
        is_directory = "." not in name
        put(place.codex_home / (f"{name}/file" if is_directory else name), "{}\n" if "json" in name else "# ours\n")
    place.configure(CONFIG)
    for name in ("a/b/c/key.pem", "private/x/y", "keys/id"):
        put(repo / name)
    put(home.parent / "outside/bin/tool")


def rows_of(place: Place, sockets: Path, port: int) -> list[Row]:
    repo, home, own = place.repo, place.home, place.codex_home
    rows = [Row(GIT, "write", f"{git}/{name}") for git in GITS for name in ("config", "hooks/post-checkout", "new")]
    rows += [Row(GIT, "make", f"{git}/modules") for git in GITS]
    rows += [Row(GIT, "move", git) for git in (".git", "sub/.git", "tree/.git", "made/.git", "tree/.git")]
    rows += [Row(GIT, act, ".git/config") for act in ("replace", "write through a link", "write through another name")]
    rows += [Row(GIT, "write", "tree/.git"), Row(GIT, "write", "store/commondir")]
    rows += [Row(HOOKS, "write", ".githooks/_/pre-commit"), Row(HOOKS, "write", ".githooks/_/new")]
    rows += [Row(HOOKS, "move", ".githooks"), Row(HOOKS, "make", "sub/hooks/new")]
    for act in ("write", "replace", "move", "write through a link", "write through another name"):
        rows += [Row(INCLUDED, act, name) for name in ("shared.gitconfig", "more.gitconfig")]
    rows += [Row(MODULES, "move", "lib/.git"), Row(MODULES, "write", "lib/.git/config")]
    for name in (*SETTINGS_IN_PROJECT, "web/.claude/settings.json"):
        rows += [Row(SETTINGS, act, name) for act in ("write", "replace", "write through a link")]
    rows += [Row(SETTINGS, "move", name) for name in PROTECTED if "/" not in name]
    rows += [Row(SETTINGS, "write", "made/.cursor/mcp.json"), Row(SETTINGS, "write through another name", ".mcp.json")]
    for name in SETTINGS_AT_HOME:
        rows += [Row(PROFILES, act, f"{home}/{name}") for act in ("write", "replace", "move")]
    for name in (".codex/config.toml", ".codex/hooks.json", ".codex/skills/s/SKILL.md"):
        rows += [Row(OURS, act, name) for act in ("write", "replace", "write through another name")]
    rows += [Row(OURS, "move", ".codex"), Row(OURS, "make", ".codex/skills/new")]
    for skills in (".agents/skills", f"{home}/.agents/skills"):
        rows += [Row(SKILLS, "write", f"{skills}/s/SKILL.md"), Row(SKILLS, "make", f"{skills}/new")]
    rows += [Row(SKILLS, "move", ".agents"), Row(SKILLS, "move", f"{home}/.agents")]
    for name in OWN_FILES[1:]:
        rows += [Row(HOME, act, f"{own}/{name}") for act in ("write", "replace")]
    rows += [Row(HOME, "make", f"{own}/{name}") for name in ("new", "skills/new", "drafts", "plugins")]
    rows += [Row(HOME, "move", str(own)), Row(HOME, "write", f"{own}/new.md")]
    outside = home.parent / "outside/bin"
    rows += [Row(PATH, act, f"{outside}/tool") for act in ("write", "replace", "move", "write through a link")]
    rows += [Row(PATH, "write", f"{outside}/git"), Row(PATH, "make", f"{outside}/new")]
    rows += [Row(SECRETS, "read", str(path)) for path in default_secrets(home)]
    reads = [act for act in holding.ACTS if act.startswith("read")]
    rows += [Row(SECRETS, act, f"{home}/.ssh/key") for act in reads]
    for name in OWN_SECRETS:
        path = own / name.replace("*", "x")
        rows.append(Row(OWN, "read", str(path / "file" if path.is_dir() else path)))
    rows += [Row(OWN, act, f"{own}/{name}") for name in ("config.toml", "auth.json") for act in reads]
    rows += [Row(DENIED, act, name) for name in ("a/b/c/key.pem", "private/x/y", "keys/id") for act in reads]
    for address in (f"{sockets}/file", f"@{sockets}"):
        rows += [Row(SOCKETS, "connect", address), Row(SOCKETS, "send", address)]
    rows += [Row(SOCKETS, "listen", str(repo / "own-socket")), Row(SOCKETS, "listen", "@own-socket")]
    return [*rows, Row(NETWORK, "reach", str(port))]


@pytest.fixture
def port(tmp_path: Path) -> Generator[int, None, None]:
    """A port that answers; in `tmp_path`, and by the abstract name of that path, wait Unix sockets."""
    (tmp_path / "s").mkdir()
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as file,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        file.bind(f"{tmp_path}/s/file")
        abstract.bind(f"\0{tmp_path}/s")
        for listener in (file, abstract):
            listener.listen()
        yield tcp.getsockname()[1]


@pytest.fixture
def rows(place: Place, tmp_path: Path, port: int) -> list[Row]:
    lay_out(place)
    return rows_of(place, tmp_path / "s", port)


def attempt(place: Place, backend: BackendName, rows: Sequence[Row]) -> dict[Row, str]:
    """How each attempt ends, in one sandbox; a command before that has made a repository and settings."""
    argv = ["sandbox", "--backend", backend, "-s", "workspace-write"]
    argv += ["--add-dir", str(place.home), "--"]
    assert run(place, *argv, "/bin/sh", "-c", MADE).status == 0
    script = [sys.executable, "-I", "-S", holding.__file__]
    ended = run(place, *argv, *script, stdin=json.dumps(rows).encode())
    assert ended.status == 0, ended.err
    return dict(zip(rows, json.loads(ended.out), strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_promise_is_held_or_named_as_not_held(place: Place, rows: list[Row], backend: BackendName) -> None:
    done = [row for row, ending in attempt(place, backend, rows).items() if ending == "done"]
    if backend != "landlock":
        assert done == []
        return
    assert [row for row in done if row.promise not in UNHELD] == []
    assert {row.promise for row in done} == set(UNHELD)
    warned = run(place, "sandbox", "--backend", backend, "--", "/bin/true").err
    assert [words for words in UNHELD.values() if words not in warned] == []


def test_every_attempt_succeeds_without_a_sandbox(place: Place, rows: list[Row]) -> None:
    # Else its refusal would prove nothing.
    subprocess.run(["/bin/sh", "-c", MADE], cwd=place.repo, check=True)
    script = [sys.executable, "-I", "-S", holding.__file__]
    ran = subprocess.run(script, cwd=place.repo, input=json.dumps(rows).encode(), stdout=subprocess.PIPE, check=True)
    endings = dict(zip(rows, json.loads(ran.stdout), strict=True))
    # No datagram socket waits there.
    assert {row: ending for row, ending in endings.items() if ending != "done" and row.act != "send"} == {}


def test_nothing_is_attempted_where_only_landlock_works_until_the_user_accepts_it(place: Place) -> None:
    lay_out(place)
    before = {path: path.read_bytes() for path in place.repo.rglob("*") if path.is_file()}
    cmd = "touch .git/hooks/new .husky/new; echo x > README.md"
    with FakeResponses([call("c", "exec_command", {"cmd": cmd, "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, CONFIG)
        ended = run_in_container(place, "partial", "exec", "-s", "workspace-write", "go")
    assert (ended.status, model.requests[-1].output_of("c")) == (70, REFUSED)
    assert {path: path.read_bytes() for path in place.repo.rglob("*") if path.is_file()} == before
