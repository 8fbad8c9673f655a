"""`codex-py sandbox explain` as a user runs it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.support.home import Place
from tests.support.process import Finished, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")


def explain(place: Place, *flags: str) -> dict[str, Any]:
    ended = run(place, "sandbox", "explain", "--json", *flags)
    assert ended.status == 0, ended.err
    report: dict[str, Any] = json.loads(ended.out)
    return report


def permission(report: dict[str, Any], action: str, subject: str) -> tuple[bool, str, str | None]:
    [found] = [one for one in report["permissions"] if (one["action"], one["subject"]) == (action, subject)]
    return found["allowed"], found["reason"], found["setting"]


def test_every_default_denial_is_listed_with_the_setting_that_opens_it(place: Place) -> None:
    report = explain(place, "-s", "read-only", "-c", 'sandbox.allow_read=["~/.npmrc"]')
    ssh, npm = f"{place.home}/.ssh", f"{place.home}/.npmrc"
    assert permission(report, "read", ssh) == (False, "denied by default: SSH keys", "sandbox.allow_read")
    assert permission(report, "read", npm) == (True, "your setting opens it: tokens of npm", "sandbox.allow_read")
    login = permission(report, "read", f"{place.codex_home}/auth.json")
    assert login == (False, "in CODEX_HOME: your login", None)
    assert (report["mode"], report["cwd"], report["backend"]) == ("read-only", str(place.repo), "bubblewrap")


def test_what_is_said_of_writing_is_what_commands_can_write(place: Place) -> None:
    (place.repo / ".vscode").mkdir()
    own = place.repo / "own"
    own.mkdir()
    flags = ("-s", "workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    moved = place.with_env(CODEX_HOME=str(own))
    report = explain(moved, *flags)
    written = {one["subject"]: one["allowed"] for one in report["permissions"] if one["action"] == "write"}
    assert written[str(place.repo)] is True
    assert permission(report, "write", f"{place.repo}/.git")[1].startswith("protected name: ")
    assert permission(report, "write", f"{place.repo}/.codex")[1].endswith("; one that a command makes is named")
    assert permission(report, "write", f"{place.repo}/.vscode")[2] == "sandbox.protected"
    assert permission(report, "write", str(own))[1].startswith("CODEX_HOME: ")
    for subject, allowed in written.items():
        if subject.startswith(f"{place.repo}"):
            write = f"if test -e {subject}; then touch {subject}/x; else mkdir {subject}; fi"
            ended = run(moved, "sandbox", *flags, "--", "/bin/sh", "-c", write)
            assert (ended.status == 0) is allowed, subject


def test_what_is_said_of_commits_names_the_setting(place: Place) -> None:
    git, flags = f"{place.repo}/.git", ("-s", "workspace-write")
    assert permission(explain(place, *flags), "write", git)[::2] == (False, "sandbox_workspace_write.git")
    report = explain(place, *flags, "-c", "sandbox_workspace_write.git=true")
    assert permission(report, "write", git) == (
        True,
        "your setting lets commands commit",
        "sandbox_workspace_write.git",
    )
    assert permission(report, "write", f"{git}/config") == (False, "git runs programs by it", None)


def test_the_network_and_sockets_are_explained(place: Place) -> None:
    closed = explain(place, "-s", "workspace-write")
    setting = "sandbox_workspace_write.network_access"
    assert permission(closed, "network", "everything") == (False, "closed by default", setting)
    assert permission(closed, "sockets", "everything")[::2] == (False, "sandbox.allow_unix_sockets")
    opened = explain(place, "-s", "workspace-write", "-c", f"{setting}=true", "-c", "sandbox.allow_unix_sockets=true")
    assert permission(opened, "network", "everything")[0] is True
    assert permission(opened, "sockets", "everything")[0] is True
    free = explain(place, "-s", "danger-full-access")
    assert [one["allowed"] for one in free["permissions"]] == [True] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="macOS holds a list")
def test_a_list_of_sockets_is_refused_in_one_line(place: Place) -> None:
    place.configure('sandbox.allow_unix_sockets = ["/run/x.sock"]\n')
    ran = run(place, "sandbox", "-s", "workspace-write", "--", "/bin/true")
    assert (ran.status, ran.err.count("opens nothing: on Linux commands reach all Unix sockets or none")) == (0, 1)
    closed = explain(place, "-s", "workspace-write")
    assert permission(closed, "sockets", "/run/x.sock")[::2] == (False, "sandbox.allow_unix_sockets")


def test_people_see_the_paths_that_exist_and_how_many_more_there_are(place: Place) -> None:
    (place.home / ".ssh").mkdir()
    ended = run(place, "sandbox", "-s", "workspace-write", "explain", "-c", 'sandbox.deny_read=["**/.env"]')
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[0].startswith("workspace-write in ")
    assert lines[0].endswith("held by bubblewrap")
    shown = " ".join(ended.out.split())
    assert "no ~/.ssh denied by default: SSH keys (sandbox.allow_read)" in shown
    assert "no **/.env your setting denies it (sandbox.deny_read)" in shown
    assert "~/.aws" not in ended.out
    assert "more paths must not be read and do not exist here" in lines[-1]
    assert "~/.aws" in run(place, "sandbox", "explain", "--all").out


def test_a_program_called_explain_is_run_behind_two_dashes(place: Place) -> None:
    ended: Finished = run(place, "sandbox", "--", "explain")
    assert (ended.status, ended.err) == (127, "error: cannot run `explain`: not found; install it, or give its path\n")
    wrong = run(place, "sandbox", "explain", "ls")
    assert (wrong.status, "unexpected argument `ls` after `explain`" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("~/.ssh/known_hosts", "`{home}/.ssh` stays denied; allow that directory instead"),
        ("~/.codex/auth.json", "`{home}/.codex/auth.json` stays denied"),
        ("~/.codex/sessions/2026", "`{home}/.codex/sessions` stays denied; allow that directory instead"),
    ],
)
def test_an_allowance_that_opens_nothing_is_warned_of(place: Place, path: str, said: str) -> None:
    setting = f"sandbox.allow_read=['{path}']"
    warning = f"warning: `{path}` in `sandbox.allow_read` opens nothing: {said.format(home=place.home)}\n"
    assert run(place, "sandbox", "-c", setting, "--", "/bin/true").err == warning
    assert run(place, "sandbox", "explain", "-c", setting).err == warning
