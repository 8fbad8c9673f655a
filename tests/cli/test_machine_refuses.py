"""What the machine refuses is said in one line with a true status: no bug of ours, and nothing lost in silence."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

import pytest

from tests.drills.disk import can_mount
from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, run

LISTS = (["sessions", "list"], ["skills", "list"], ["mcp", "list"], ["hooks", "list"], ["plugin", "list"], ["doctor"])
READ_ONLY = 'mount --bind "$CODEX_HOME" "$CODEX_HOME"; mount -o remount,ro,bind "$CODEX_HOME"; exec "$@"'


def in_shell(place: Place, script: str, *arguments: str) -> tuple[int, str]:
    """The status of `codex-py ARGUMENTS`, which `script` starts as "$@", and what it prints."""
    ended = subprocess.run(
        ["bash", "-ec", script, "-", COMMAND, *arguments],
        cwd=place.repo,
        env=place.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return ended.returncode, ended.stdout.decode()


def on_read_only_home(place: Place, *arguments: str) -> tuple[int, str]:
    if not can_mount():
        pytest.skip("no user namespaces")
    unshare = f"exec unshare --user --map-root-user --mount sh -ec '{READ_ONLY}' - \"$@\""
    return in_shell(place, unshare, *arguments)


@pytest.mark.parametrize("arguments", [*LISTS, ["apply-patch", "x"]], ids=" ".join)
def test_a_deleted_current_directory_is_no_bug(place: Place, arguments: Sequence[str]) -> None:
    ended = in_shell(place, 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', *arguments)
    assert ended == (2, "error: the current directory was deleted; `cd` to one that exists\n")


@pytest.mark.parametrize(
    ("arguments", "status"), [(["nosuch"], 2), (["exec", "--modle", "x"], 2), (["config", "get", "model"], 0)]
)
def test_the_status_is_true_where_stderr_takes_nothing(place: Place, arguments: Sequence[str], status: int) -> None:
    place.use_model("http://127.0.0.1:9")
    assert in_shell(place, 'exec "$@" 2>/dev/full', *arguments)[0] == status


def test_a_resumed_session_that_cannot_be_saved_says_so(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two", id="msg_2")]):
        assert run(place, "exec", "first").status == 0
        status, err = on_read_only_home(place, "exec", "resume", "--last", "again")
    assert status == 0
    reason = f"not saved: cannot write `{place.rollouts()[0]}`: read-only file system"
    assert err.count(f"warning: {reason}\n") == 1
    assert err.splitlines()[-1] == f"warning: this session cannot be resumed: {reason}"


def test_signing_out_with_nothing_stored_works_on_a_read_only_disk(place: Place) -> None:
    assert on_read_only_home(place, "logout") == (0, "not signed in\n")


def test_a_home_that_cannot_be_written_is_a_fault_for_doctor(place: Place) -> None:
    status, out = on_read_only_home(place, "doctor")

    assert status == 1
    assert f"`{place.codex_home}` cannot be written: sessions, logins and settings are not kept" in out


def test_a_full_disk_is_a_fault_for_doctor(place: Place) -> None:
    if not can_mount():
        pytest.skip("no user namespaces")
    mount = 'mount -t tmpfs -o size=300k,mode=700 none "$CODEX_HOME"'
    fill = f'{mount}; head -c 280K /dev/zero > "$CODEX_HOME/fill"; exec "$@"'
    unshare = f"exec unshare --user --map-root-user --mount sh -ec '{fill}' - \"$@\""
    status, out = in_shell(place, unshare, "doctor")
    assert status == 1
    assert f"the disk of `{place.codex_home}` is full: sessions, logins and settings are not kept" in out


@pytest.mark.parametrize("is_set", [True, False])
@pytest.mark.parametrize(
    "arguments", [["exec", "--offline", "hi"], ["config", "set", "model", "x"], ["sessions", "list"]]
)
def test_a_home_that_is_a_link_to_nothing_is_named(place: Place, arguments: list[str], is_set: bool) -> None:
    home, target = place.home / ".codex", place.home / "not-mounted"
    place.codex_home.rename(target)
    home.symlink_to(target)
    target.rename(place.home / "elsewhere")
    env = {name: value for name, value in place.env.items() if is_set or name != "CODEX_HOME"}
    argv = [COMMAND, *arguments]
    ended = subprocess.run(argv, env=env, cwd=place.repo, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    reason = f"it is a link to `{target}`, which does not exist; create `{target}`, or remove the link"
    assert (ended.returncode, ended.stderr.decode()) == (2, f"error: cannot use `{home}`: {reason}\n")
    assert not target.exists()


def test_a_read_only_disk_is_named(place: Place) -> None:
    status, err = on_read_only_home(place, "plugin", "add", ".")
    assert (status, err.startswith("error: cannot write `"), "bug" in err) == (1, True, False)


@pytest.mark.parametrize(
    "env", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}], ids=["utf-8", "c"]
)
def test_the_prompt_is_utf_8_whatever_the_locale(place: Place, env: dict[str, str]) -> None:
    with fake_model(place, [say("one")], [say("two")], excuse={"threads"}) as model:
        status, err = in_shell(place.with_env(**env), 'exec "$@"', "exec", "größer")
        assert (status, "warning" in err) == (0, False)
        status, err = in_shell(place.with_env(**env), r"""exec "$@" $'gr\xf6\xdfer'""", "exec")
    assert [request.texts("user")[-1] for request in model.requests] == ["größer", "gr��er"]
    assert "warning: the prompt is not UTF-8 at byte 2: such bytes are replaced\n" in err
