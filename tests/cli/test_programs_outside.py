"""Programs that run outside the sandbox for the user are not those that commands of the model may write."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.fake_issuer import FakeIssuer
from tests.support.fake_responses import FakeResponses, call, fake_model, say
from tests.support.home import Place
from tests.support.hostile import PlantedPrograms
from tests.support.mcp_servers import odd_words, server
from tests.support.process import run, start


@pytest.mark.parametrize("is_added", [False, True], ids=["of the project", "of an added directory"])
def test_a_server_that_commands_may_write_is_named_and_not_started(place: Place, is_added: bool) -> None:
    with TemporaryDirectory(dir="/var/tmp") as added, FakeResponses([say("done")]) as model:
        directory = (Path(added) if is_added else place.repo / ".venv") / "bin"
        planted = PlantedPrograms(place, directory, ["my-server"])
        place.use_model(model.base_url)
        place.configure((place.codex_home / "config.toml").read_text() + server("mine", command="my-server"))
        flags = ["-s", "workspace-write", "--add-dir", added] if is_added else []
        ended = run(planted.place, "exec", *flags, "hi")
    assert f"`my-server` of its `command` is not started: it is `{directory}/my-server`" in ended.err
    assert (ended.status, ended.out, planted.ran()) == (0, "done\n", [])


def test_a_server_and_what_it_starts_are_looked_up_elsewhere(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["sh", "env", "true"])
    line = f"true; exec {shlex.join(odd_words('good', 'tools=plain'))}"
    with fake_model(place, [call("c", "mcp__mine__plain", {"text": "hello"})], [say("done")]) as model:
        table = server("mine", command="sh", args=["-c", line], default_tools_approval_mode="approve")
        place.configure((place.codex_home / "config.toml").read_text() + table)
        ended = run(planted.place, "exec", "hi")
    assert (ended.status, planted.ran()) == (0, [])
    assert "said hello" in str(model.requests[-1].body["input"][-1])


def test_a_server_that_fails_without_the_project_s_program_says_what_was_passed_over(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["sh"])
    place.configure(server("mine", command="sh", args=["-c", "echo no module of this name >&2; exit 1"]))
    ended = run(planted.place, "mcp", "test", "mine")
    assert f"`{place.repo}/.venv/bin/sh` was passed over: commands may write it" in ended.out + ended.err
    assert planted.ran() == []


def test_what_the_program_of_notify_starts_is_looked_up_elsewhere(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["sh", "cat"])
    pipe = place.home / "pipe"
    os.mkfifo(pipe)
    program = place.home / "program"
    program.write_text(f"#!/usr/bin/env sh\necho completed | cat > {pipe}\n")
    program.chmod(0o755)
    # Both ends, so that neither side waits for the other to open it.
    descriptor = os.open(pipe, os.O_RDWR)
    with FakeResponses([say("done")]) as model, os.fdopen(descriptor, "rb") as reader:
        place.use_model(model.base_url, f'notify = ["{program}"]')
        assert run(planted.place, "exec", "hi").status == 0
        assert reader.readline() == b"completed\n"
    assert planted.ran() == []


def test_a_sign_in_opens_no_browser_that_commands_may_write(place: Place) -> None:
    names = ["xdg-open", "x-www-browser", "www-browser", "firefox", "my-browser"]
    planted = PlantedPrograms(place, place.repo / ".venv/bin", names)
    there = planted.place.with_env(DISPLAY=":99", BROWSER="my-browser")
    with FakeIssuer() as issuer, start(there, "login", "--issuer", issuer.url, "--port", "0") as running:
        running.wait_until(lambda one: b"waiting for the browser" in one.stderr)
    assert planted.ran() == []


def test_a_sign_in_opens_the_browser_of_the_user(place: Place) -> None:
    browser = place.home / "browser"
    browser.write_text(f"#!/usr/bin/env sh\ncat > {place.home}/opened << end\n$1\nend\n")
    browser.chmod(0o755)
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["sh", "cat"])
    there = planted.place.with_env(BROWSER=str(browser))
    with FakeIssuer() as issuer, start(there, "login", "--issuer", issuer.url, "--port", "0") as running:
        running.wait_until(lambda one: b"waiting for the browser" in one.stderr)
    assert "/oauth/authorize" in (place.home / "opened").read_text()
    assert planted.ran() == []
