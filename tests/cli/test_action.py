"""The GitHub action, as far as it runs without GitHub: its step, against a model and an API on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.support.fake_responses import api_error, fake_model, say
from tests.support.home import Place

ACTION = Path(__file__).parents[2] / "action"
# The inputs of the action that people come from.
KNOWN = (
    "prompt prompt-file output-file openai-api-key responses-api-endpoint working-directory sandbox permission-profile "
    "codex-version codex-args output-schema output-schema-file model effort codex-home safety-strategy codex-user "
    "allow-users allow-bots allow-bot-users"
).split()


SUDO = f"""#!{sys.executable}
import os, sys
words, kept = sys.argv[1:], ["TEST_KEY"]
while words[0].startswith("-"):
    word = words.pop(0)
    kept += word.partition("=")[2].split(",") if word.startswith("--preserve-env=") else []
    if word == "-u":
        words.pop(0)
if words[0] == "install":
    os.makedirs(words[-1])
    sys.exit()
env = {{name: os.environ[name] for name in kept if name in os.environ}}
os.environ["PATH"] = "/usr/bin:/bin"
os.execvpe(words[0], words, {{**env, "PATH": "/usr/bin:/bin", "HOME": os.environ["OTHER_HOME"]}})
"""


class FakeGitHub:
    """Comments of one issue, and the permission of everybody."""

    def __init__(self, permission: str = "write") -> None:
        self.comments: list[dict[str, Any]] = [{"id": 1, "body": "a person's"}]
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None: ...

            def answer(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
                value: Any = {}
                if self.path.endswith("/permission"):
                    value = {"permission": permission}
                elif self.command == "GET":
                    value = fake.comments if self.path.endswith("page=1") else []
                elif self.command == "POST":
                    fake.comments.append({"id": len(fake.comments) + 1, **body})
                else:
                    next(c for c in fake.comments if c["id"] == int(self.path.rpartition("/")[2])).update(body)
                raw = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_PATCH = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


def step(place: Place, github: FakeGitHub, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the step: its exit status, its outputs, and what it printed."""
    output, event = place.home / "output", place.home / "event.json"
    output.write_text("")
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    content = {"safety_strategy": "unsafe", "codex_home": str(place.codex_home), "github_token": "t", **inputs}
    env = {
        **place.env,
        **{f"INPUT_{name.upper()}": value for name, value in content.items()},
        "GITHUB_OUTPUT": str(output),
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": github.url,
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_ACTOR": "ada",
        "RUNNER_TEMP": str(place.home),
    }
    argv = [sys.executable, "-I", str(ACTION / "run_action.py")]
    ended = subprocess.run(argv, cwd=place.repo, env=env, capture_output=True, check=False, timeout=60)
    lines, found = iter(output.read_text().splitlines()), dict[str, str]()
    for line in lines:
        name, _, end = line.partition("<<")
        found[name] = "\n".join(iter(lambda: next(lines), end))
    return ended.returncode, found, (ended.stdout + ended.stderr).decode()


def test_it_has_the_inputs_of_the_other_action_and_passes_each_on() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    assert set(KNOWN) <= set(action["inputs"])
    passed = " ".join(json.dumps(part.get("env", {})) for part in action["runs"]["steps"])
    assert [name for name in action["inputs"] if f"inputs.{name} " not in passed] == []
    assert {"final-message", "codex-version"} <= set(action["outputs"])


def test_a_run_sets_the_outputs_and_keeps_one_comment(place: Place) -> None:
    github = FakeGitHub()
    with fake_model(place, [say("all\ngood")], [say("still good")], excuse={"threads"}):
        inputs = {"prompt": "check it", "comment": "true", "artifacts": "out"}
        status, outputs, printed = step(place, github, **inputs)
        step(place, github, **inputs)
    assert (status, outputs["final-message"], outputs["status"], outputs["code"]) == (0, "all\ngood", "ok", ""), printed
    assert outputs["artifacts"] == os.fspath(place.repo / "out")
    assert (place.repo / "out/result.json").exists()
    assert [comment["body"].splitlines()[0] for comment in github.comments] == [
        "a person's",
        "<!-- codex-py action -->",
    ]
    assert "still good" in github.comments[1]["body"]


def test_a_failed_run_has_its_status_and_its_code(place: Place) -> None:
    with fake_model(place, api_error(401, "no")):
        status, outputs, _ = step(place, FakeGitHub(), prompt="go")
    assert (status, outputs["status"], outputs["code"]) == (77, "failed", "auth")


def test_a_run_that_writes_no_result_has_not_the_one_of_an_earlier_run(place: Place) -> None:
    with fake_model(place, [say("good")]):
        assert step(place, FakeGitHub(), prompt="go")[1]["status"] == "ok"
    status, outputs, _ = step(place, FakeGitHub(), prompt="go", codex_args="--no-such-flag")
    assert (status, outputs["status"], outputs["code"], outputs["final-message"]) == (2, "failed", "config", "")


def test_another_user_runs_it_and_writes_the_artifacts(place: Place) -> None:
    # Stands in for `sudo`, which has a PATH of its own, and keeps only the named variables.
    sudo = place.write("bin/sudo", SUDO)
    sudo.chmod(0o755)
    other = place.home.parent / "other"
    other.mkdir()
    (other / ".codex").mkdir()
    place = place.with_env(PATH=f"{sudo.parent}:{place.env['PATH']}", OTHER_HOME=str(other))
    with fake_model(place, [say('{"a": 1}')]):
        (place.codex_home / "config.toml").rename(other / ".codex/config.toml")
        inputs = {"safety_strategy": "unprivileged-user", "codex_user": "ada", "codex_home": ""}
        schema = '{"type": "object"}'
        status, outputs, printed = step(place, FakeGitHub(), prompt="go", output_schema=schema, **inputs)
    assert (status, outputs["final-message"]) == (0, '{"a": 1}'), printed
    assert list((other / ".codex").glob("sessions/*/*/*/*.jsonl"))


def test_wrong_inputs_and_people_without_access_run_nothing(place: Place) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({}, "give `prompt`"),
        ({"prompt": "a", "prompt_file": "b"}, "not both"),
        ({"prompt": "a", "safety_strategy": "none"}, "`safety-strategy` is one of"),
        ({"prompt": "a", "sandbox": "read-only", "permission_profile": ":workspace"}, "not both"),
        ({"prompt": "a", "codex_args": "[1"}, "not JSON"),
        ({"prompt": "a"}, "no write access"),
    ]
    for inputs, message in cases:
        status, outputs, printed = step(place, FakeGitHub("read"), **{"allow_users": "", **inputs})
        if message != "no write access":
            status, outputs, printed = step(place, FakeGitHub(), **inputs)
        assert (status, outputs) == (2, {}), printed
        assert message in printed
