"""`codex-py sandbox` and `codex-py doctor` as a user runs them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py.sandbox.linux import BACKENDS, BackendName
from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Finished, run, start

NETWORK = "sandbox_workspace_write.network_access=true"
READABLE = 'sandbox.allow_read=["~/.codex"]'

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")


def sh(place: Place, script: str, *flags: str) -> Finished:
    return run(place, "sandbox", *flags, "--", "/bin/sh", "-c", script)


def test_the_command_gets_the_streams_and_its_status_is_kept(place: Place) -> None:
    ended = run(place, "sandbox", "--", "/bin/sh", "-c", "cat; echo talk >&2; exit 7", stdin=b"typed\n")
    assert (ended.status, ended.out, ended.err) == (7, "typed\n", "talk\n")
    assert sh(place, "kill -9 $$").status == 137


@pytest.mark.parametrize("mode", ["read-only", "danger-full-access"])
@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program", "./missing", ""])
def test_a_command_that_is_not_there_is_reported_in_one_line(place: Place, mode: str, program: str) -> None:
    ended = run(place, "sandbox", "-s", mode, "--", program, "x")
    hint = "there is no such file" if "/" in program else "install it, or give its path"
    assert (ended.status, ended.out, ended.err) == (127, "", f"error: cannot run `{program}`: not found; {hint}\n")


def _under(place: Place, line: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        ["/bin/bash", "-c", line, "bash", COMMAND], env=place.env, cwd=place.repo, capture_output=True, check=False
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def test_a_command_does_not_find_the_streams_closed(place: Place) -> None:
    assert _under(place, '"$1" sandbox -- /bin/sh -c "cat && echo said" <&- >&-') == (0, "", "")


@pytest.mark.parametrize("backend", ["namespaces", "landlock"])
def test_where_no_file_can_be_written_the_reason_is_reported(place: Place, backend: str) -> None:
    status, out, err = _under(place, f'ulimit -f 0; exec "$1" sandbox --backend {backend} -- /bin/true')
    why = f"error: the sandbox is missing and no command runs: {backend} cannot be used: file too large; "
    assert (status, out, err.startswith(why), err.count("\n")) == (1, "", True, 1)


def test_a_command_is_looked_for_where_it_runs(place: Place) -> None:
    inner = place.repo / "inner"
    inner.mkdir()
    (inner / "own").write_text("#!/bin/sh\necho own\n")
    (inner / "own").chmod(0o755)
    assert run(place, "sandbox", "-C", "inner", "--", "./own").out == "own\n"


def test_dashes_are_the_commands_own_after_its_name(place: Place) -> None:
    assert run(place, "sandbox", "echo", "-n", "-s", "x", "--json").out == "-s x --json"
    assert run(place, "sandbox", "--", "echo", "--", "-h").out == "-- -h\n"


def test_the_mode_decides_what_can_be_written(place: Place) -> None:
    assert "Read-only file system" in sh(place, "touch a").err
    assert sh(place, "touch a && touch .git/b", "-s", "workspace-write").status == 1
    assert (place.repo / "a").exists()
    assert not (place.repo / ".git" / "b").exists()
    assert sh(place, "touch .git/b", "-s", "danger-full-access").status == 0
    assert [path.name for path in place.repo.glob(".codex")] == []


def test_another_directory_and_an_extra_root(place: Place) -> None:
    # The whole machine's temporary directory holds the test's, so it is left out.
    other = place.home / "other"
    other.mkdir()
    no_tmp = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    ended = sh(place, f"pwd; touch {place.repo}/a", "-s", "workspace-write", "-C", str(other), *no_tmp)
    assert (ended.status, ended.out) == (1, f"{other}\n")
    assert sh(place, f"touch {other}/a", "-s", "workspace-write", "--add-dir", str(other), *no_tmp).status == 0
    missing = sh(place, "true", "-s", "workspace-write", "--add-dir", "nowhere")
    hint = "name a directory with `--add-dir`"
    assert (missing.status, missing.err) == (2, f"error: cannot add `nowhere`: there is no such directory; {hint}\n")


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_keys_and_logins_cannot_be_read(place: Place, mode: str) -> None:
    (place.codex_home / "auth.json").write_text("key")
    for name in (".ssh", ".aws", ".gnupg"):
        (place.home / name).mkdir()
        (place.home / name / "id").write_text("key")
    script = "cat ~/.codex/auth.json ~/.ssh/id ~/.aws/id ~/.gnupg/id"
    ended = sh(place, script, "-s", mode)
    assert (ended.out, ended.err.count("Permission denied")) == ("", 4)
    assert sh(place, script, "-s", "danger-full-access").out == "keykeykeykey"


def test_a_home_in_the_workspace_cannot_be_written(place: Place) -> None:
    own = place.repo / "own"
    own.mkdir()
    (own / "auth.json").write_text("key")
    (own / "config.toml").write_text("approval_policy = 'untrusted'\n")
    moved = place.with_env(CODEX_HOME=str(own))
    script = "echo x > own/config.toml; mkdir own/rules; cat own/auth.json; mv own away; touch new"
    ended = sh(moved, script, "-s", "workspace-write")
    assert (ended.status, ended.out, len(ended.err.splitlines())) == (0, "", 4)
    assert (own / "config.toml").read_text() == "approval_policy = 'untrusted'\n"
    assert sorted(path.name for path in own.iterdir()) == ["auth.json", "config.toml"]
    assert (place.repo / "new").exists()


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_a_login_that_is_replaced_while_a_command_runs_stays_hidden(place: Place, mode: str) -> None:
    login = place.codex_home / "auth.json"
    login.write_text("old key")
    (place.codex_home / "AGENTS.md").write_text("be brief\n")
    script = "cat ~/.codex/auth.json; until [ -e go ]; do sleep 0.02; done; cat ~/.codex/AGENTS.md ~/.codex/auth.json"
    with start(place, "sandbox", "-s", mode, "--", "/bin/sh", "-c", script) as running:
        running.wait_until(lambda one: b"Permission denied" in one.stderr)
        (place.codex_home / "new").write_text("new key")
        (place.codex_home / "new").replace(login)
        (place.repo / "go").touch()
        ended = running.wait()
    assert (ended.out, ended.err.count("Permission denied")) == ("be brief\n", 2)


def test_a_list_of_the_users_own_is_added_to_the_default_one(place: Place) -> None:
    (place.codex_home / "auth.json").write_text("key")
    (place.home / ".ssh").mkdir()
    (place.home / ".ssh" / "config").write_text("hidden")
    place.write("secrets/token.txt", "secret")
    place.configure('sandbox.deny_read = ["secrets/*.txt"]\n')
    ended = sh(place, "cat ~/.ssh/config ~/.codex/auth.json secrets/token.txt")
    assert (ended.out, ended.err.count("Permission denied")) == ("", 3)


def test_a_directory_that_a_pattern_denies_counts_once_whatever_is_in_it(place: Place) -> None:
    (place.repo / "a/private/deep").mkdir(parents=True)
    for number in range(2_001):
        (place.repo / f"a/private/deep/{number}").touch()
    place.configure('sandbox.deny_read = ["a/private/**"]\n')
    assert "Permission denied" in sh(place, "ls a/private/deep").err


def test_a_range_of_a_pattern_that_is_none_is_the_characters_themselves(place: Place) -> None:
    place.write("[z-a]1", "secret")
    place.configure('sandbox.deny_read = ["[z-a]*"]\n')
    ended = sh(place, "cat '[z-a]1'; echo seen")
    assert (ended.out, ended.err.count("Permission denied")) == ("seen\n", 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_see_no_credentials_settings_and_sessions_unless_allowed(place: Place, backend: BackendName) -> None:
    secrets = (".npmrc", ".netrc", ".config/gh/hosts.yml", ".kube/config", ".codex/sessions/2026/other.jsonl")
    for name in secrets:
        (place.home / name).parent.mkdir(parents=True, exist_ok=True)
        (place.home / name).write_text(f"content of {name}\n")
    place.configure("# settings\n")
    read = " ".join(f"~/{name}" for name in (*secrets, ".codex/config.toml"))
    ended = sh(place, f"cat {read}", "--backend", backend)
    assert (ended.out, ended.err.count("Permission denied")) == ("", 6)
    allowed = (
        "-c",
        'sandbox.allow_read=["~/.npmrc", "~/.codex/sessions", "~/.codex/config.toml", "~/.codex/auth.json"]',
    )
    ended = sh(place, f"cat {read}; cat ~/.codex/auth.json", "--backend", backend, *allowed)
    assert ended.out.startswith("content of .npmrc\ncontent of .codex/sessions/2026/other.jsonl\n# settings\n")
    assert "key" not in ended.out


@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_neither_read_nor_write_the_stored_keys_of_providers(place: Place, backend: BackendName) -> None:
    key = "sk-ant-0123456789abcdef"
    stored = run(place, "login", "--with-api-key", "--provider", "anthropic", stdin=key.encode())
    assert stored.status == 0, stored.err
    keys = place.codex_home / "provider-keys.json"
    before = keys.read_bytes()
    assert key.encode() in before
    script = (
        "cat ~/.codex/provider-keys.json; ln ~/.codex/provider-keys.json linked; cat linked; cp ~/.codex/*.json copied;"
        " ln -s ~/.codex/provider-keys.json link; cat link; echo x > link; rm -f ~/.codex/provider-keys.json;"
        " mv ~/.codex/provider-keys.json ~/.codex/moved; cat ~/.codex/moved; mv ~/.codex moved; cat moved/*; echo ended"
    )
    # Here the home lies in /tmp.
    outside = ("-c", "sandbox_workspace_write.exclude_slash_tmp=true")
    for allowed in ('["~/.codex/provider-keys.json"]', '["~/.codex"]', '["~"]'):
        flags = ("-s", "workspace-write", "--backend", backend, *outside, "-c", f"sandbox.allow_read={allowed}")
        assert sh(place, script, *flags).out == "ended\n"
        assert keys.read_bytes() == before


def test_a_chosen_backend_is_used_or_nothing_is_run(place: Place) -> None:
    ended = sh(place, "echo ran", "--backend", "landlock")
    assert ended.out == "ran\n"
    assert ended.err.startswith("warning: only Landlock works here")
    place.write("store/HEAD", "")
    (place.repo / ".codex").symlink_to("store")
    ended = sh(place, "echo ran", "-s", "workspace-write", "--backend", "bubblewrap")
    assert (ended.status, ended.out) == (1, "")
    assert "bubblewrap cannot hold" in ended.err
    assert sh(place, "rm .codex || echo held", "-s", "workspace-write").out == "held\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no command to run; write one: `codex-py sandbox -- ls`"),
        (["--"], "no command to run; write one: `codex-py sandbox -- ls`"),
        (["ls", "--", "x"], "unexpected argument `ls` before `--`"),
        (["-s", "loose", "--", "ls"], "`loose` is not a value of `--sandbox`"),
        (["--nonsense", "--", "ls"], "--nonsense"),
        (["-C", "/no/such", "--", "ls"], "cannot work in `/no/such`"),
    ],
)
def test_a_wrong_command_line_is_one_line(place: Place, arguments: list[str], said: str) -> None:
    ended = run(place, "sandbox", *arguments)
    assert ended.status in (1, 2)
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_leaves_nothing(place: Place, number: signal.Signals) -> None:
    script = "echo started; sleep 600"
    # Not /bin/sh: a dash forgets an interrupt that comes between its `echo` and the start of the next command.
    with start(place, "sandbox", "-s", "workspace-write", "--", "/bin/bash", "-c", script) as running:
        running.wait_until(lambda one: b"started" in one.stdout)
        running.send_signal(number)
        assert running.wait().status == 128 + number
    assert sorted(path.name for path in place.repo.iterdir()) == [".git", "README.md"]


def test_a_directory_that_is_too_large_to_look_through_is_named(place: Place) -> None:
    for number in range(200):
        for below in range(100):
            (place.repo / f"{number}" / f"{below}").mkdir(parents=True)
    with fake_model(place, *([call(f"c{n}", "exec_command", {"cmd": "true"})] for n in range(2)), [say("done")]):
        ended = run(place, "exec", "-s", "workspace-write", "go")
    assert ended.err.count("has more than 20,000 directories") == 1
    assert run(place, "sandbox", "-s", "workspace-write", "--", "true").err.count("has more than 20,000") == 1
    assert run(place, "sandbox", "-s", "workspace-write", "-C", f"{place.repo}/1", "--", "true").err == ""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only uid 0 owns the kernel's settings")
def test_who_owns_the_kernels_settings_cannot_change_them_under_another_number(place: Place) -> None:
    renamed = ["unshare", "--user", "--map-user=1000", "--map-group=1000", COMMAND, "sandbox", "--"]
    ended = subprocess.run(
        [*renamed, "test", "-w", "/proc/sys/kernel/core_pattern"], cwd=place.repo, env=place.env, check=False
    )
    assert ended.returncode == 1


@pytest.mark.parametrize("flags", [["-s", "read-only"], ["-s", "danger-full-access"]])
def test_ctrl_c_is_the_commands_own(place: Place, flags: list[str]) -> None:
    script = "trap 'echo caught; exit 5' INT; echo started; while :; do sleep 0.05; done"
    with start(place, "sandbox", *flags, "--", "/bin/sh", "-c", script) as running:
        running.wait_until(lambda one: b"started" in one.stdout)
        running.send_signal(signal.SIGINT)
        ended = running.wait()
    assert (ended.status, ended.out) == (5, "started\ncaught\n")


def test_the_doctor_probes_the_sandbox_and_each_probe_is_denied(place: Place, tmp_path: Path) -> None:
    # Longer than the address of a socket may be.
    temporary = tmp_path / ("long" * 30)
    temporary.mkdir()
    ended = run(place.with_env(TMPDIR=str(temporary)), "doctor")
    assert ended.status == 0, ended.out
    assert "ok     sandbox   bubblewrap: in use" in ended.out
    assert "  denied   write into `.git`  (EROFS)" in ended.out
    assert "no API key" in ended.out
    next_step = "next: sign in with `codex-py login`, or set OPENAI_API_KEY\n"
    assert ended.out.endswith(f"\n13 of 13 denied\n\n{next_step}")
    with_key = run(place.with_env(TMPDIR=str(temporary), OPENAI_API_KEY="sk-test"), "doctor")
    assert with_key.out.endswith("\n13 of 13 denied\n")


def test_the_doctors_report_for_programs(place: Place, tmp_path: Path) -> None:
    place.configure("model = 1\n")
    place = place.with_env(TMPDIR=str(tmp_path))
    ended = run(place, "doctor", "--json", "--all")
    report = json.loads(ended.out)
    assert ended.status == 1
    assert [finding["subject"] for finding in report["findings"] if finding["fine"] is False] == ["settings"]
    assert report["next"]
    assert set(report["probes"]) == {"bubblewrap", "namespaces", "landlock"}
    assert not any(one["fault"] for outcomes in report["probes"].values() for one in outcomes)
    assert [path.name for path in tmp_path.glob("codex-probes-*")] == []


def test_the_doctor_names_each_probe_that_is_not_denied_and_fails(place: Place) -> None:
    # One that holds nothing: it runs the command behind its options.
    program = place.home / "bin/bwrap"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    program.chmod(0o755)
    place = place.with_env(PATH=f"{program.parent}:{place.env['PATH']}")
    ended = run(place, "doctor")
    assert ended.status == 1
    assert "  ALLOWED  write a file outside\n" in ended.out
    assert "; not denied: write a file outside, write a file outside through /proc, " in ended.out
    assert ended.out.splitlines()[-1].startswith("next: run nothing here that you do not trust")
    report = json.loads(run(place, "doctor", "--json").out)
    assert "write a file outside" in [one["name"] for one in report["probes"]["bubblewrap"] if one["fault"]]


def test_exec_runs_nothing_where_only_a_part_can_be_held(place: Place) -> None:
    """In a sandbox there can be no further namespaces: what is left there is Landlock."""
    calls = [call("c1", "exec_command", {"cmd": "echo ran", "login": False})]

    def result(*flags: str) -> str:
        with fake_model(place, calls, [say("done")], top='sandbox_mode = "workspace-write"') as model:
            outer = ["-s", "workspace-write", "--add-dir", str(place.home), "-c", NETWORK, "-c", READABLE]
            ended = run(place, "sandbox", *outer, "--", COMMAND, "exec", "--ephemeral", *flags, "work")
            assert ended.status == (0 if flags else 70), ended.err
            assert ("warning: only Landlock works here" in ended.err) == ("sandbox.allow_partial=true" in flags)
        return model.requests[-1].output_of("c1")

    assert result().startswith("refused: no command can run on this machine")
    assert result("-c", "sandbox.allow_partial=true").endswith("Output:\nran\n")
    assert result("-s", "danger-full-access").endswith("Output:\nran\n")


def test_this_program_works_inside_its_own_sandbox_without_the_settings(place: Place) -> None:
    place.configure('model = "hidden"\n')
    skill = place.write(
        "lint-it/SKILL.md", "---\nname: lint-it\ndescription: Use it when code is checked.\n---\nbody\n"
    )
    warning = f"warning: `{place.codex_home}/config.toml` is left out: commands in the sandbox cannot read it\n"
    for backend in BACKENDS:
        inside = ("sandbox", "-s", "workspace-write", "--backend", backend, "-c", "sandbox.allow_partial=true", "--")
        assert run(place, *inside, COMMAND, "--version").status == 0
        listed = run(place, *inside, COMMAND, "skills", "list")
        assert (listed.status, listed.err.count(warning)) == (0, 1)
        assert run(place, *inside, COMMAND, "skills", "lint", skill).status == 0
        assert warning.removeprefix("warning: ").strip() in run(place, *inside, COMMAND, "doctor").out


def test_settings_that_cannot_be_read_are_an_error_outside_of_our_sandbox(place: Place) -> None:
    place.configure('model = "hidden"\n')
    ended = run(place, "sandbox", "--", "/usr/bin/env", "-u", "CODEX_SANDBOX", COMMAND, "skills", "list")
    assert ended.status != 0
    assert f"error: cannot read `{place.codex_home}/config.toml`: permission denied" in ended.err
