"""Bad input and bad servers: one line that says what to do, the right exit status, never a traceback."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    cut,
    fake_model,
    hang,
    html,
    raw,
    redirect,
    repeat,
    reset,
    say,
    stall_headers,
    status,
)
from tests.support.home import Place, fake_config
from tests.support.process import COMMAND, Finished, Running, run

# Longer than any file system lets a name be.
LONG = "x" * 300


def refused(place: Place, *arguments: str | Path, code: int, **options: Any) -> str:
    """Run something that must be refused before any request; give back the one line it says."""
    with FakeResponses() as model:
        config = place.codex_home / "config.toml"
        if not config.exists():
            place.use_model(model.base_url)
        ended = run(place, *arguments, **options)
    assert (ended.status, ended.stdout) == (code, b""), ended.err
    [line] = ended.err.splitlines()
    assert line.startswith("error: ")
    assert place.rollouts() == []
    return line


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["exec", "-Z", "go"], "-Z"),
        (["exec", "one", "two"], "two"),
        (["exec", "-c", "no_equals_sign", "go"], "no_equals_sign"),
        (["exec", "-c", "=value", "go"], "=value"),
        (["exec", "--last", "go"], "--last"),
        (["exec", "--offline", "--oss", "go"], "--oss"),
        (["no-such-command"], "no-such-command"),
        (["--no-such-flag"], "--no-such-flag"),
    ],
)
def test_a_wrong_command_line_is_status_2(place: Place, arguments: list[str], named: str) -> None:
    assert named in refused(place, *arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-i", "absent.png", "go"], "absent.png"),
        (["-i", "README.md", "go"], "README.md"),
        (["-i", ".", "go"], "repo"),
        (["--output-schema", "absent.json", "go"], "absent.json"),
        (["--output-schema", ".", "go"], "."),
        (["--output-schema", "README.md", "go"], "README.md"),
        (["--output-schema", "list.json", "go"], "list.json"),
        (["-C", "absent", "go"], "absent"),
        (["--add-dir", "absent", "go"], "absent"),
        (["-o", "absent/answer.txt", "go"], "absent"),
        (["-o", ".", "go"], "`.`"),
        (["-o", "", "go"], "cannot write"),
        (["-o", LONG, "go"], "too long"),
        (["-i", LONG, "go"], "cannot attach"),
        (["--add-dir", LONG, "go"], "cannot add"),
        (["-C", LONG, "go"], "too long"),
        (["--output-schema", LONG, "go"], "too long"),
        (["--output-schema", "/dev/zero", "go"], "over 8 MiB"),
        (["-C", "README.md", "go"], "README.md"),
        (["-p", "absent", "go"], "absent.config.toml"),
        (["-c", 'sandbox_mode="ful"', "go"], "read-only"),
        (["-c", 'model_provider="nobody"', "go"], "nobody"),
        (["-c", "model_reasoning_effort=7", "go"], "model_reasoning_effort"),
        (["--strict-config", "-c", "modle=x", "go"], "modle"),
        ([""], "prompt"),
    ],
)
def test_what_the_command_line_names_and_cannot_be_used_is_status_2(
    place: Place, arguments: list[str], named: str
) -> None:
    place.write("list.json", "[1]")
    assert named in refused(place, "exec", *arguments, code=2)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('model = "m\n', ["config.toml", "line 1"]),
        ('model = "m"\n\nsandbox_mode = "ful"\n', ["config.toml", "line 3", "sandbox_mode", "ful", "workspace-write"]),
        ("a = 1\na = 2\n", ["config.toml"]),
        ('[model_providers.openai]\nname = "x"\n', ["config.toml", "openai"]),
        ('[model_providers.x]\nname = "x"\nbase_url = "http://127.0.0.1:9"\nwire_api = "grpc"\n', ["wire_api", "grpc"]),
        ("project_doc_max_bytes = -1\n", ["project_doc_max_bytes"]),
    ],
)
def test_a_bad_config_file_is_named_with_its_line(place: Place, text: str, named: list[str]) -> None:
    place.configure(text)
    line = refused(place, "exec", "go", code=2)
    assert [word for word in named if word not in line] == []


def test_a_config_that_is_not_utf_8_or_a_directory_is_one_line(place: Place) -> None:
    config = place.codex_home / "config.toml"
    config.write_bytes(b'model = "\xff"\n')
    assert "config.toml" in refused(place, "exec", "go", code=2)
    config.unlink()
    config.mkdir()
    assert "config.toml" in refused(place, "exec", "go", code=2)


def test_a_config_that_is_a_link_to_nothing_is_one_line(place: Place) -> None:
    (place.codex_home / "config.toml").symlink_to("moved-away.toml")
    with FakeResponses() as model:
        ended = run(place, "exec", "-c", f"openai_base_url={model.base_url}", "go")

    assert (ended.status, ended.stdout) == (2, b"")
    path = place.codex_home / "config.toml"
    assert ended.err == f"error: cannot read `{path}`: it is a link to a file that does not exist\n"


def test_an_unknown_key_is_a_warning_with_the_nearest_one(place: Place) -> None:
    with FakeResponses([say("done")]) as model:
        place.configure("modle_verbosity = 1\n" + fake_config(model.base_url))
        ended = run(place, "exec", "go")

    [warning] = [line for line in ended.err.splitlines() if line.startswith("warning:")]
    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert "modle_verbosity" in warning
    assert "model_verbosity" in warning


def test_a_missing_key_names_the_ways_out(place: Place) -> None:
    place.configure("")
    line = refused(place, "exec", "go", code=77)
    assert [word for word in ("OPENAI_API_KEY", "codex-py login") if word not in line] == []


def test_a_missing_env_key_is_named_with_its_instructions(place: Place) -> None:
    place.use_model("http://127.0.0.1:9/v1", env_key="FAKE_KEY", env_key_instructions="get one at the help centre")
    for env in (place, place.with_env(FAKE_KEY=""), place.with_env(FAKE_KEY=" \n")):
        line = refused(env, "exec", "go", code=77)
        assert "FAKE_KEY" in line
        assert "get one at the help centre" in line


def test_a_home_of_an_impossible_name_is_one_line(place: Place) -> None:
    assert "CODEX_HOME" in refused(place.with_env(CODEX_HOME=f"/{LONG}"), "exec", "go", code=2)


def test_a_directory_that_was_deleted_under_it_is_one_line(place: Place) -> None:
    argv = ["/bin/sh", "-c", 'mkdir gone && cd gone && rmdir ../gone && exec "$0" config', COMMAND]
    with Running(argv, env=place.env, cwd=place.repo) as running:
        ended = running.wait()

    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: cannot work in `.`: ")


def test_a_fifo_that_nobody_reads_does_not_hold_up_the_end(place: Place) -> None:
    os.mkfifo(place.repo / "fifo")
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "-o", "fifo", "go")

    assert (ended.status, ended.stdout) == (1, b"done\n")
    assert ended.err.splitlines()[-1].startswith("error: cannot write `fifo`: ")


def test_a_home_that_is_not_there_is_one_line(place: Place) -> None:
    assert "absent" in refused(place.with_env(CODEX_HOME=str(place.home / "absent")), "exec", "go", code=2)


def failed_turn(place: Place, status: int) -> tuple[Finished, str]:
    """Run a turn that must fail with this exit status; give back its one final error line."""
    ended = run(place, "exec", "go")
    final = [line for line in ended.err.splitlines() if line.startswith("ERROR:") and "Reconnecting" not in line]
    assert (ended.status, ended.stdout, len(final)) == (status, b"", 1), ended.err
    return ended, final[0]


def test_a_server_that_is_not_there_is_given_up_in_time(place: Place) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        # Bound and not listening: every connection is refused.
        place.use_model(f"http://127.0.0.1:{port}/v1", connect_retry_seconds=0.5)
        ended, final = failed_turn(place, 68)

    assert f"127.0.0.1:{port}" in final
    # Waiting says the same each time: once is enough.
    assert sum("waiting for network" in line for line in ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("answer", "words", "code"),
    [
        (html("<html><head><title>Sign in</title></head><body>" + "x" * 5000), ["Sign in"], 2),
        (html("<title>Blocked</title>", 403), ["403", "Blocked"], 77),
        (redirect("https://elsewhere.example/v1"), ["elsewhere.example"], 2),
        (status(200, {"error": {"message": "not a stream"}}), ["not a stream"], 1),
        (api_error(400, "bad \x1b[31mschema\x07"), ["400", "schema"], 1),
        (api_error(401, "wrong key", headers={"x-request-id": "req_7"}), ["401", "wrong key", "req_7"], 77),
        (api_error(403, "no access"), ["403", "no access"], 77),
        (status(404, "nothing here"), ["404", "nothing here"], 2),
        (api_error(422, "unprocessable"), ["422", "unprocessable"], 1),
        (api_error(429, "no money left", kind="insufficient_quota"), ["no money left"], 72),
        (status(400, b"\xff\xfe" + b"y" * 1_000_000), ["400"], 1),
    ],
)
def test_an_answer_that_cannot_be_mended_is_reported_at_once(
    place: Place, answer: Any, words: list[str], code: int
) -> None:
    with fake_model(place, answer):
        _, final = failed_turn(place, code)

    assert [word for word in words if word not in final] == []
    assert len(final) < 1200
    assert "\x1b" not in final
    assert "<" not in final


@pytest.mark.parametrize(
    ("answer", "limits", "requests", "code"),
    [
        (status(500, "boom", {"retry-after": "0"}), {}, 6, 69),
        ([reset()], {"request_max_retries": 2, "stream_max_retries": 2}, 3, 68),
        ([raw(b"data: {}\n\n"), cut()], {"stream_max_retries": 1}, 2, 68),
        ([raw(b"data: {}\n\n"), reset()], {"stream_max_retries": 0}, 1, 68),
    ],
)
def test_a_server_that_always_fails_is_given_up(
    place: Place, answer: Any, limits: dict[str, Any], requests: int, code: int
) -> None:
    with fake_model(place, repeat(answer), **limits) as model:
        ended, _ = failed_turn(place, code)

    assert len(model.requests) == requests
    assert ended.err.count("Reconnecting... ") == requests - 1


@pytest.mark.parametrize("before", [[stall_headers(1000.0)], [raw(b": ping\n\n"), hang(1000.0)]])
def test_a_silent_server_hits_the_idle_deadline(place: Place, before: list[Any]) -> None:
    with fake_model(place, before, before, stream_idle_timeout_ms=300, stream_max_retries=1, request_max_retries=1):
        _, final = failed_turn(place, 74)

    assert "0.3 s" in final


def test_a_last_message_that_cannot_be_written_is_an_error_and_still_printed(place: Place) -> None:
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "-o", "/dev/full", "go")

    assert (ended.status, ended.stdout) == (1, b"done\n")
    assert ended.err.splitlines()[-1].startswith("error: cannot write `")


@pytest.mark.parametrize(
    ("redirection", "codes", "stdout"),
    [
        ("<&-", {0}, b"done\n"),
        ("2>&-", {0}, b"done\n"),
        ("<&- 2>&-", {0}, b"done\n"),
        (">/dev/full", {1}, b""),
        ("2>/dev/full", {0}, b"done\n"),
        (">&-", {0, 1}, b""),
        ("<&- >&- 2>&-", {0, 1}, b""),
    ],
)
def test_missing_standard_files_do_not_crash_it(place: Place, redirection: str, codes: set[int], stdout: bytes) -> None:
    with fake_model(place, [say("done")]):
        ended = redirected(place, redirection, "go")

    assert ended.status in codes, ended.err
    assert ended.stdout == stdout
    assert "bug" not in ended.err
    assert list(place.codex_home.rglob("*.log")) == []


def test_a_listing_that_cannot_be_written_is_one_line_and_no_bug(place: Place) -> None:
    ended = redirected(place, ">/dev/full", "--help")

    assert (ended.status, ended.err) == (1, "error: cannot write the output: no space left on device\n")


def test_no_prompt_and_no_stdin_at_all_is_one_line(place: Place) -> None:
    with fake_model(place):
        ended = redirected(place, "<&-")

    assert (ended.status in (1, 2), ended.stdout, len(ended.err.splitlines())) == (True, b"", 1)
    assert "prompt" in ended.err


def redirected(place: Place, redirection: str, *arguments: str) -> Finished:
    argv = ["/bin/sh", "-c", f'exec "$0" exec "$@" {redirection}', COMMAND, *arguments]
    with Running(argv, env=place.env, cwd=place.repo) as running:
        ended = running.wait()
    assert not ended.has_traceback
    return ended


def test_help_and_version_are_on_stdout(place: Place) -> None:
    outputs = [run(place, *arguments) for arguments in (["--version"], ["--help"], ["exec", "--help"], ["exec", "-h"])]

    assert [one.status for one in outputs] == [0, 0, 0, 0]
    assert [one.stderr for one in outputs] == [b"", b"", b"", b""]
    assert outputs[0].out.startswith("codex-py ")
    for flag in ("--json", "--output-schema", "--sandbox", "--image", "--offline", "resume"):
        assert flag in outputs[2].out


def test_a_model_without_a_name_is_refused(place: Place) -> None:
    with fake_model(place):
        ended = run(place, "exec", "-m", "", "go")

    assert (ended.status, ended.stdout) == (2, b"")
    assert ended.err == "error: the model has no name; give `-m` or `model` a name, or omit it to use the default\n"
