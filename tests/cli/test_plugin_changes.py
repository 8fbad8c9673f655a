"""A plugin whose files are not as they were installed is not used until the user agrees."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.mcp_servers import odd_words, tool_names
from tests.support.plugins import add_server, install, make_plugin, write
from tests.support.process import Finished, run
from tests.support.skills import NO_BUNDLED

ID = "demo@local"


@pytest.fixture
def root(place: Place, tmp_path: Path) -> Path:
    """An installed plugin with a skill, a server and a hook that leaves a mark."""
    place.configure("")
    directory = make_plugin(tmp_path / "p")
    add_server(directory)
    hook = {"hooks": [{"type": "command", "command": "touch hooked"}]}
    write(directory / "hooks/hooks.json", json.dumps({"hooks": {"SessionStart": [hook]}}))
    (directory / "also").symlink_to("skills")
    assert run(place, "plugin", "add", directory, "--yes").status == 0
    return place.codex_home / "plugins/cache/local/demo/1.2"


def use(place: Place) -> tuple[Finished, tuple[bool, bool, bool]]:
    """A run, and whether it had the skill, the server and the hook of the plugin."""
    (place.repo / "hooked").unlink(missing_ok=True)
    with fake_model(place, [say("done")], top="") as model:
        config = place.codex_home / "config.toml"
        config.write_text(f'{config.read_text()}{NO_BUNDLED}[plugins."{ID}"]\nenabled = true\n')
        ended = run(place, "exec", "go")
    body = model.requests[0].body
    has_server = any("theirs" in name for name in tool_names(body))
    return ended, ("demo:greet" in json.dumps(body), has_server, (place.repo / "hooked").exists())


ALL, NONE = (True, True, True), (False, False, False)


def test_a_plugin_as_it_was_installed_is_used_and_nothing_is_said(place: Place, root: Path) -> None:
    ended, parts = use(place)
    assert (ended.status, parts) == (0, ALL)
    assert "demo@local" not in ended.err
    # Times say nothing when the content is the same.
    for path in root.rglob("*.json"):
        os.utime(path, (1, 1))
    assert use(place)[1] == ALL


def edit(root: Path) -> None:
    path = root / "skills/greet/SKILL.md"
    status = path.stat()
    path.write_text(path.read_text().replace("Say hi", "Say ho"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def relink(root: Path) -> None:
    (root / "also").unlink()
    (root / "also").symlink_to("hooks")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "edited, its time put back": (edit, "`skills/greet/SKILL.md` has changed since it was installed"),
    "new": (lambda root: write(root / "bin/git", "#!/bin/sh\n"), "`bin/git` is new since it was installed"),
    "gone": (lambda root: (root / ".mcp.json").unlink(), "`.mcp.json` is gone since it was installed"),
    "mode": (lambda root: (root / ".mcp.json").chmod(0o755), "`.mcp.json` has changed since it was installed"),
    "link": (relink, "`also` has changed since it was installed"),
    "several": (
        lambda root: (edit(root), (root / ".mcp.json").unlink()),
        "`.mcp.json` is gone since it was installed, and 1 more file",
    ),
    "version": (
        lambda root: shutil.copytree(root, root.with_name("9.9"), symlinks=True),
        "it was installed as version `1.2`, and now there is `9.9`",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_plugin_that_has_changed_is_held_back_with_one_line(place: Place, root: Path, kind: str) -> None:
    change, reason = CHANGES[kind]
    change(root)
    for _ in range(2):
        ended, parts = use(place)
        assert (ended.status, parts) == (0, NONE)
        [line] = [line for line in ended.err.splitlines() if ID in line]
        assert line.endswith(
            f"the plugin `{ID}` is not used: {reason} (`codex-py plugin accept {ID}` shows it, and asks;"
            " `codex-py plugin add` installs it again)"
        )


def test_accepting_shows_what_it_brings_now_and_lets_it_be_used(place: Place, root: Path) -> None:
    edit(root)
    [listed] = json.loads(run(place, "plugin", "list", "--json").out)
    assert listed["change"] == "`skills/greet/SKILL.md` has changed since it was installed"
    assert "changed" in run(place, "plugin", "list").out
    refused = run(place, "plugin", "accept", "demo")
    assert (refused.status, "nobody can be asked" in refused.err) == (2, True)
    assert use(place)[1] == NONE
    accepted = run(place, "plugin", "accept", "demo", "--yes")
    assert accepted.status == 0
    assert accepted.err.splitlines()[0] == "plugin `demo@local` 1.2"
    assert "  changed: `skills/greet/SKILL.md` has changed since it was installed" in accepted.err.splitlines()
    ended, parts = use(place)
    assert (ID in ended.err, parts) == (False, ALL)
    assert run(place, "plugin", "accept", "demo").err == "the plugin `demo@local` is as it was installed\n"


def test_installing_again_lets_it_be_used(place: Place, root: Path, tmp_path: Path) -> None:
    edit(root)
    assert run(place, "plugin", "add", tmp_path / "p", "--yes").status == 0
    ended, parts = use(place)
    assert parts == ALL, ended.err


def test_one_without_a_record_is_recorded_when_it_is_loaded(place: Place, tmp_path: Path) -> None:
    root = install(place, make_plugin(tmp_path / "p"))
    assert use(place)[1][0]
    edit(root)
    assert not use(place)[1][0]


def test_a_server_in_python_leaves_nothing_in_its_plugin(place: Place, tmp_path: Path) -> None:
    place.configure("")
    directory = make_plugin(tmp_path / "p")
    write(directory / "beside.py", "import runpy\n")
    write(
        directory / "serve.py",
        "import sys, beside\ndel sys.argv[0]\nbeside.runpy.run_path(sys.argv[0], None, '__main__')\n",
    )
    command, *words = odd_words("good")
    entry = {"command": command, "args": ["${PLUGIN_ROOT}/serve.py", *words]}
    write(directory / ".mcp.json", json.dumps({"mcpServers": {"theirs": entry}}))
    assert run(place, "plugin", "add", directory, "--yes").status == 0
    for _ in range(2):
        ended, (_, has_server, _) = use(place)
        assert (ID in ended.err, has_server) == (False, True)


def test_a_hook_of_a_plugin_that_changes_during_the_session_is_not_run_any_more(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    hook = {"hooks": [{"type": "command", "command": "sh ${PLUGIN_ROOT}/count.sh"}]}
    write(directory / "count.sh", "echo run >> counted\n")
    write(directory / "hooks/hooks.json", json.dumps({"hooks": {"PreToolUse": [hook]}}))
    changed = install(place, directory) / "count.sh"
    calls = [[call(f"c{n}", "exec_command", {"cmd": "true", "login": False})] for n in range(2)]
    # A hook of the user's changes the plugin: no command in the sandbox could.
    use_hooks(place, PostToolUse=[entry(f"echo 'echo more >> counted' >> {changed}", "Bash")])
    with fake_model(place, *calls, [say("done")], top=""):
        config = place.codex_home / "config.toml"
        config.write_text(f'{config.read_text()}{NO_BUNDLED}[plugins."{ID}"]\nenabled = true\n')
        ended = run(place, "exec", "go")
    assert f"is not run: its plugin `{ID}` has changed: `count.sh` has changed since it was installed" in ended.err
    assert (place.repo / "counted").read_text() == "run\n"
