"""`codex-py plugin` as scripts and people use it: what is installed, what is refused, and that nothing runs."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import threading
import tomllib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.support.home import Place
from tests.support.loopback import Loopback
from tests.support.plugins import add_server, commit, enabled, install, make_plugin, tag, write
from tests.support.process import run
from tests.support.terminal import Terminal

COMMENTED = '# mine\nmodel = "m" # the good one\n'


def cache(place: Place) -> list[str]:
    """Everything below the directory of plugins, hidden leftovers included."""
    top = place.codex_home / "plugins/cache"
    return sorted(str(path.relative_to(top)) for path in top.glob("*/*/*")) if top.exists() else []


def config(place: Place) -> str:
    return (place.codex_home / "config.toml").read_text()


def with_everything(directory: Path, marker: Path) -> Path:
    """A plugin whose every part would leave a mark when it was run."""
    touch = f"touch {marker}"
    make_plugin(directory, description="does it all", apps="./.app.json")
    write(
        directory / ".mcp.json",
        json.dumps({"mcpServers": {"theirs": {"command": "sh", "args": ["-c", touch], "env": {"T_KEY": "${T_KEY}"}}}}),
    )
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": touch}]}
    write(directory / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [hook]}}))
    write(directory / ".app.json", json.dumps({"apps": {"tracker": {"id": "conn_1"}}}))
    write(directory / "commands/do.md", "Do it.\n")
    return directory


def test_what_a_plugin_brings_is_shown_with_every_command_and_nothing_is_run(place: Place, tmp_path: Path) -> None:
    place.configure(COMMENTED)
    marker = tmp_path / "marker"
    added = run(place, "plugin", "add", with_everything(tmp_path / "p", marker), "--yes")
    assert (added.status, added.out) == (0, "")
    assert added.err.splitlines() == [
        "plugin `demo@local` 1.2: does it all",
        "  skills: demo:greet",
        "  MCP servers, which run outside the sandbox:",
        "    theirs",
        f"      command: sh -c 'touch {marker}'",
        "      gets of your environment: T_KEY",
        "  hooks, commands that are run at moments of a turn:",
        f"    PreToolUse (Bash): touch {marker}",
        "  connectors: tracker (conn_1)",
        "  not used: its commands, which are for other programs",
        "added the plugin `demo@local`; sessions have it from now on",
    ]
    assert not marker.exists()
    assert config(place).startswith(COMMENTED)
    assert tomllib.loads(config(place))["plugins"] == {"demo@local": {"enabled": True}}
    assert cache(place) == ["local/demo/1.2"]


def test_without_a_terminal_it_needs_a_word_and_leaves_nothing(place: Place, tmp_path: Path) -> None:
    place.configure(COMMENTED)
    refused = run(place, "plugin", "add", make_plugin(tmp_path / "p"))
    assert refused.status == 2
    assert refused.err.splitlines()[-1] == (
        "error: installing the plugin `demo@local` needs approval, and nobody can be asked; pass --yes"
    )
    assert (config(place), cache(place)) == (COMMENTED, [])


@pytest.mark.parametrize(("typed", "there"), [("\r", False), ("n\r", False), ("y\r", True)])
def test_only_a_yes_on_the_terminal_installs(place: Place, tmp_path: Path, typed: str, there: bool) -> None:
    make_plugin(tmp_path / "p")
    with Terminal(place, "plugin", "add", str(tmp_path / "p")) as terminal:
        terminal.wait_for("install it? [y/N]")
        terminal.type(typed)
        assert terminal.wait_for_end() == (0 if there else 1)
    assert bool(cache(place)) == there


def test_a_repository_is_fetched_at_what_it_shows_or_at_a_tag(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    url = commit(directory, place)
    tag(make_plugin(directory, version="2.0"), place, "v2")
    tag(make_plugin(directory, version="3.0"), place, "v3")
    for ref, version in (("", "3.0"), ("#v2", "2.0"), ("#main", "3.0")):
        added = run(place, "plugin", "add", url + ref, "--yes", "--json")
        assert (added.status, json.loads(added.out)["version"]) == (0, version)
        assert cache(place) == [f"git/demo/{version}"]
    [listed] = json.loads(run(place, "plugin", "list", "--json").out)
    assert (listed["id"], listed["version"], listed["skills"], listed["enabled"]) == (
        "demo@git",
        "3.0",
        ["demo:greet"],
        True,
    )
    assert not (Path(listed["path"]) / ".git").exists()
    wrong = run(place, "plugin", "add", f"{url}#nowhere", "--yes")
    assert (wrong.status, wrong.err.count("\n"), "`git fetch` failed" in wrong.err) == (1, 1, True)
    assert cache(place) == ["git/demo/3.0"]


def test_no_filter_hook_or_helper_of_the_users_is_started_for_a_plugin(place: Place, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (place.home / ".gitconfig").write_text(
        f'[filter "own"]\n\tclean = "touch {canary}; cat"\n\tsmudge = "touch {canary}; cat"\n'
        f"[core]\n\tfsmonitor = touch {canary}\n\thooksPath = {place.home}\n"
    )
    hook = place.home / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {canary}\n")
    hook.chmod(0o755)
    directory = make_plugin(tmp_path / "p")
    write(directory / ".gitattributes", "* filter=own\n")
    url = commit(directory, place)
    canary.unlink(missing_ok=True)
    assert run(place, "plugin", "add", url, "--yes").status == 0
    assert not canary.exists()


def test_a_marketplace_offers_plugins_by_name(place: Place, tmp_path: Path) -> None:
    make_plugin(tmp_path / "m/plugins/one", "one")
    write(tmp_path / "m/skills/two/SKILL.md", "---\nname: two\ndescription: the second\n---\n")
    listing = {
        "name": "shop",
        "plugins": [
            {"name": "one", "source": "./plugins/one"},
            {"name": "two", "source": "./", "strict": False, "skills": ["./skills/two"], "version": "7"},
            {"name": "out", "source": "../../.."},
            {"name": "far", "source": {"source": "github", "repo": "a/b"}},
        ],
    }
    write(tmp_path / "m/.claude-plugin/marketplace.json", json.dumps(listing))
    several = run(place, "plugin", "add", tmp_path / "m", "--yes")
    assert several.err == (
        f"error: the marketplace `{tmp_path / 'm'}` has more than one plugin;"
        " choose with `--plugin`: `one`, `two`, `out`, `far`\n"
    )
    for name in ("one", "two"):
        assert run(place, "plugin", "add", tmp_path / "m", "--plugin", name, "--yes").status == 0
    for name, status in (("out", 1), ("far", 1), ("none", 2)):
        assert run(place, "plugin", "add", tmp_path / "m", "--plugin", name, "--yes").status == status
    assert cache(place) == ["shop/one/1.2", "shop/two/7"]
    listed = json.loads(run(place, "plugin", "list", "--json").out)
    assert [one["skills"] for one in listed] == [["one:greet"], ["two:two"]]


def test_a_directory_inside_is_named_by_its_path(place: Place, tmp_path: Path) -> None:
    make_plugin(tmp_path / "repository/tools/demo")
    assert run(place, "plugin", "add", tmp_path / "repository", "--yes").status == 1
    assert run(place, "plugin", "add", tmp_path / "repository", "--path", "../..", "--yes").status == 2
    assert run(place, "plugin", "add", tmp_path / "repository", "--path", "tools/demo", "--yes").status == 0
    assert cache(place) == ["local/demo/1.2"]


def link_out(directory: Path) -> None:
    (directory / "skills/greet/secret").symlink_to("/etc/passwd")


def link_up(directory: Path) -> None:
    (directory / "up").symlink_to("../../..")


def fifo(directory: Path) -> None:
    os.mkfifo(directory / "skills/pipe")


def giant(directory: Path) -> None:
    with (directory / "giant").open("wb") as file:
        file.truncate(65 * 1024 * 1024)


def deep(directory: Path) -> None:
    directory.joinpath(*["d"] * 40).mkdir(parents=True)


def hidden_name(directory: Path) -> None:
    (directory / "a\x1b]0;b").write_text("")


def bad_name(directory: Path) -> None:
    make_plugin(directory, "../../evil")


def option_name(directory: Path) -> None:
    make_plugin(directory, "--yes")


def no_manifest(directory: Path) -> None:
    (directory / ".codex-plugin/plugin.json").write_text("[1, 2")


def giant_manifest(directory: Path) -> None:
    make_plugin(directory, description="x" * 70_000)


def linked_manifest(directory: Path) -> None:
    manifest = directory / ".codex-plugin/plugin.json"
    outside = manifest.rename(directory.parent / "outside.json")
    manifest.symlink_to(outside)


@pytest.mark.parametrize(
    "spoil",
    [
        *(link_out, link_up, fifo, giant, deep, hidden_name),
        *(bad_name, option_name, no_manifest, giant_manifest, linked_manifest),
    ],
)
def test_a_hostile_directory_is_refused_in_one_line_and_leaves_nothing(
    place: Place, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    directory = make_plugin(tmp_path / "p")
    spoil(directory)
    refused = run(place, "plugin", "add", directory, "--yes")
    assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert refused.err.startswith("error: ")
    assert "\x1b" not in refused.err
    assert cache(place) == []
    assert not (place.codex_home / "config.toml").exists()


@pytest.mark.parametrize(
    "source",
    [
        "--upload-pack=touch x",
        "ext::sh -c touch% x",
        "https://-oProxyCommand=x/y",
        "ssh://-oProxyCommand=touch/x",
        "http://example.invalid/a.git",
        "git://example.invalid/a.git",
        "https://example.invalid/a.git#--upload-pack=x",
        "https://example.invalid/a.git#a b",
        "fd::17/foo",
        "nowhere at all",
    ],
)
def test_an_address_that_is_none_is_refused_in_one_line(place: Place, source: str) -> None:
    refused = run(place, "plugin", "add", "--yes", "--", source)
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert cache(place) == []
    assert sorted(entry.name for entry in place.repo.iterdir()) == [".git", "README.md"]


def test_what_a_repository_links_or_hooks_is_neither_followed_nor_run(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    (directory / "out").symlink_to("/etc")
    refused = run(place, "plugin", "add", commit(directory, place), "--yes")
    assert (refused.status, refused.err) == (
        1,
        "error: the plugin is refused: `out` in it is a link that leads out of the plugin\n",
    )
    assert cache(place) == []


def test_links_inside_and_modes_are_kept_and_nobody_else_can_read(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    script = write(directory / "bin/run.sh", "#!/bin/sh\n")
    script.chmod(0o4755)
    (directory / "link").symlink_to("bin/run.sh")
    assert run(place, "plugin", "add", directory, "--yes").status == 0
    root = place.codex_home / "plugins/cache/local/demo/1.2"
    assert (root / "link").readlink() == Path("bin/run.sh")
    assert stat.S_IMODE((root / "bin/run.sh").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "skills/greet/SKILL.md").stat().st_mode) == 0o600
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_plugin_that_cannot_be_replaced_leaves_the_earlier_one(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    assert run(place, "plugin", "add", directory, "--yes").status == 0
    fifo(make_plugin(directory, version="9"))
    assert run(place, "plugin", "add", directory, "--yes").status == 1
    assert cache(place) == ["local/demo/1.2"]


def test_plugins_are_switched_and_removed_and_comments_stay(place: Place, tmp_path: Path) -> None:
    place.configure(COMMENTED)
    assert run(place, "plugin", "add", make_plugin(tmp_path / "p"), "--yes").status == 0
    assert run(place, "plugin", "disable", "demo").status == 0
    assert tomllib.loads(config(place))["plugins"] == {"demo@local": {"enabled": False}}
    assert "disabled" in run(place, "plugin", "list").out
    assert "demo:greet" not in run(place, "skills", "list").out
    assert run(place, "plugin", "enable", "demo@local").status == 0
    assert "demo:greet" in run(place, "skills", "list").out
    removed = run(place, "plugin", "remove", "demo", "--json")
    assert json.loads(removed.out) == {"id": "demo@local", "removed": True}
    assert config(place).rstrip() == COMMENTED.rstrip()
    assert cache(place) == []
    again = run(place, "plugin", "remove", "demo")
    assert (again.status, again.err) == (2, "error: no plugin `demo`; `codex-py plugin add` installs one\n")


def test_plugins_are_listed_whether_configured_or_only_there(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory, "one")
    install(place, directory, "demo@shop", "1.9")
    install(place, make_plugin(tmp_path / "q", version="1.10"), "demo@shop", "1.10")
    place.configure(enabled("gone@shop") + enabled("../..@x"))
    listed = json.loads(run(place, "plugin", "list", "--json").out)
    assert [(one["id"], one["installed"], one["enabled"]) for one in listed] == [
        ("../..@x", False, True),
        ("demo@shop", True, False),
        ("gone@shop", False, True),
    ]
    assert listed[1]["version"] == "1.10"
    assert run(place, "plugin", "remove", "../..@x").status == 0
    assert run(place, "plugin", "list").out.splitlines()[0].split()[:3] == ["PLUGIN", "VERSION", "STATUS"]


def test_the_servers_of_a_plugin_are_listed_with_where_they_are_from(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory)
    assert run(place, "plugin", "add", directory, "--yes").status == 0
    [one] = json.loads(run(place, "mcp", "list", "--json").out)
    assert (one["name"], one["origin"], one["plugin"]) == ("theirs", "plugin", "demo@local")
    refused = run(place, "mcp", "remove", "theirs")
    assert (refused.status, "codex-py plugin remove demo@local" in refused.err) == (2, True)
    assert run(place, "mcp", "test", "theirs").status == 0


def test_what_a_killed_one_has_left_is_cleared_away(place: Place, tmp_path: Path) -> None:
    top = place.codex_home / "plugins/cache"
    ended = subprocess.Popen(["true"])
    ended.wait()
    (top / f".old-{ended.pid}-abcd/x").mkdir(parents=True)
    (top / f".new-{os.getpid()}-abcd").mkdir()
    assert run(place, "plugin", "add", make_plugin(tmp_path / "p"), "--yes").status == 0
    assert sorted(entry.name for entry in top.iterdir()) == [f".new-{os.getpid()}-abcd", "local"]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost.evil.example/a",
        "http://127.0.0.1.evil.example/a",
        "http://[::1].evil.example/a",
        "http://localhost@evil.example/a",
        "http://127.0.0.1:80@evil.example/a",
        "git://localhost.evil.example/a",
        "http://evil.example?@localhost/a",
        "http://evil.example\\@localhost/a",
        "http://0x7f.0.0.1/a",
    ],
)
def test_only_this_machine_is_asked_over_plain_http(place: Place, url: str) -> None:
    refused = run(place, "plugin", "add", url, "--yes")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "not protected on its way" in refused.err or "not a repository's address" in refused.err


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "user@127.0.0.1"])
def test_this_machine_may_be_asked_over_plain_http(place: Place, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    refused = run(place, "plugin", "add", f"http://{host}:{port}/a", "--yes")
    assert (refused.status, "`git fetch` failed" in refused.err) == (1, True)


@contextmanager
def answering(target: str | None) -> Generator[tuple[int, list[str]], None, None]:
    """A web server that redirects to `target`, or has nothing: its port, and the paths that it is asked for."""
    question: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            question.append(self.path)
            self.send_response(404 if target is None else 302)
            if target is not None:
                self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with Loopback(Handler) as server:
        listening = threading.Thread(target=server.serve_forever)
        listening.start()
        try:
            yield server.server_port, question
        finally:
            server.shutdown()
            listening.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_no_redirect_is_followed(place: Place, host: str) -> None:
    with answering(None) as (elsewhere, reached):
        target = f"http://{host}:{elsewhere}/b/info/refs?service=git-upload-pack"
        with answering(target) as (port, question):
            refused = run(place, "plugin", "add", f"http://127.0.0.1:{port}/a", "--yes")
    assert (refused.status, len(question), reached) == (1, 1, [])
    assert refused.err.endswith("it redirects, which is not followed: give the address that it leads to\n")


def test_a_setting_of_git_does_not_lead_to_plain_http(place: Place) -> None:
    with answering(None) as (port, question):
        (place.home / ".gitconfig").write_text(
            f'[url "http://127.0.0.1:{port}/"]\n\tinsteadOf = https://example.invalid/\n'
        )
        refused = run(place, "plugin", "add", "https://example.invalid/a.git", "--yes")
    assert (refused.status, question) == (1, [])
    assert "transport 'http' not allowed" in refused.err
