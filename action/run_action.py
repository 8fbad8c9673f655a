"""The step of the GitHub action: checks who runs it, runs `codex-py exec`, sets the outputs, and keeps one comment.

Only the standard library. Inputs come as `INPUT_…` variables, the rest from the runner's `GITHUB_…` variables.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from pathlib import Path
from typing import Any

MARK = "<!-- codex-py action -->"
MAX_COMMENT = 60_000
# A wrong command line.
CONFIG_STATUS = 2
STRATEGIES = ("drop-sudo", "unprivileged-user", "read-only", "unsafe")
PROFILES = {":read-only": "read-only", ":workspace": "workspace-write", ":danger-full-access": "danger-full-access"}


class WrongInput(Exception):
    """An input that makes no sense; the message says which."""


def value_of(name: str) -> str:
    return os.environ.get("INPUT_" + name.upper().replace("-", "_"), "").strip()


def names_in(text: str) -> list[str]:
    return [name.strip().removesuffix("[bot]").lower() for name in text.split(",") if name.strip()]


def call_github(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        os.environ.get("GITHUB_API_URL", "https://api.github.com") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {value_of('github-token')}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def check_actor() -> None:
    """Raise `WrongInput` for somebody without write access who is not listed."""
    actor = os.environ.get("GITHUB_ACTOR", "")
    name = actor.removesuffix("[bot]").lower()
    if actor.endswith("[bot]"):
        allowed = names_in(value_of("allow-bot-users")) + ["github-actions"] * (value_of("allow-bots") == "true")
        if name not in allowed:
            raise WrongInput(f"the bot `{actor}` may not run this: see `allow-bots` and `allow-bot-users`")
        return
    listed = names_in(value_of("allow-users"))
    if not actor or "*" in listed or name in listed:
        return
    try:
        found = call_github("GET", f"/repos/{os.environ['GITHUB_REPOSITORY']}/collaborators/{actor}/permission")
        permission = found["permission"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise WrongInput(f"cannot check the permission of `{actor}`: {error}") from error
    if permission not in ("admin", "maintain", "write"):
        raise WrongInput(f"`{actor}` has no write access to the repository: see `allow-users`")


def read_prompt() -> str:
    prompt, file, skill = value_of("prompt"), value_of("prompt-file"), value_of("skill")
    if prompt and file:
        raise WrongInput("give `prompt` or `prompt-file`, not both")
    if file:
        try:
            prompt = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise WrongInput(f"cannot read `prompt-file`: {error}") from error
    if not (prompt.strip() or skill):
        raise WrongInput("give `prompt`, `prompt-file` or `skill`")
    return f"${skill} {prompt}".strip() if skill else prompt


def sandbox_of(strategy: str) -> str:
    sandbox, profile = value_of("sandbox"), value_of("permission-profile")
    if sandbox and profile:
        raise WrongInput("give `sandbox` or `permission-profile`, not both")
    if profile and profile not in PROFILES:
        raise WrongInput(f"`permission-profile` is one of {', '.join(PROFILES)}, not `{profile}`")
    return "read-only" if strategy == "read-only" else PROFILES.get(profile) or sandbox or "workspace-write"


def more_arguments() -> list[str]:
    text = value_of("codex-args")
    if not text.startswith("["):
        return shlex.split(text)
    try:
        found = json.loads(text)
    except ValueError as error:
        raise WrongInput(f"`codex-args` is not JSON: {error}") from error
    if not all(isinstance(word, str) for word in found):
        raise WrongInput("`codex-args` must be an array of strings")
    return found


def command_line(artifacts: Path, scratch: Path, strategy: str) -> list[str]:
    """The arguments of `codex-py`; the prompt comes on standard input."""
    words = ["exec", "-s", sandbox_of(strategy), "--artifacts", str(artifacts)]
    options = (
        ("-C", "working-directory"),
        ("-m", "model"),
        ("-o", "output-file"),
        ("--max-usd", "max-usd"),
        ("--session-id", "session-id"),
        ("--output-schema", "output-schema-file"),
    )
    for flag, name in options:
        if value := value_of(name):
            words += [flag, value]
    if schema := value_of("output-schema"):
        if value_of("output-schema-file"):
            raise WrongInput("give `output-schema` or `output-schema-file`, not both")
        (scratch / "schema.json").write_text(schema, encoding="utf-8")
        words += ["--output-schema", str(scratch / "schema.json")]
    if effort := value_of("effort"):
        words += ["-c", f"model_reasoning_effort={json.dumps(effort)}"]
    if endpoint := value_of("responses-api-endpoint"):
        base = endpoint.rstrip("/").removesuffix("/responses")
        words += ["-c", f"openai_base_url={json.dumps(base)}"]
    return [*words, *more_arguments(), "-"]


def drop_sudo() -> None:
    """Take sudo from this user for the rest of the job. Raises `WrongInput` where it is still there afterwards."""
    user = os.environ.get("USER") or "runner"
    script = f"gpasswd -d {shlex.quote(user)} sudo; gpasswd -d {shlex.quote(user)} docker; rm -f /etc/sudoers.d/runner"
    subprocess.run(["sudo", "-n", "sh", "-c", script], capture_output=True, check=False)
    if subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0:
        raise WrongInput("sudo could not be dropped: use another `safety-strategy`")


def run_codex(words: list[str], prompt: str, strategy: str) -> int:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("INPUT_", "CODEX_HOME"))}
    if home := value_of("codex-home"):
        env["CODEX_HOME"] = home
    if key := value_of("openai-api-key"):
        env["OPENAI_API_KEY"] = key
    # `sudo` looks for programs in directories of its own.
    argv = [shutil.which("codex-py") or "codex-py", *words]
    if strategy == "unprivileged-user":
        # Without `codex-home`, settings and sessions are in the home directory of that user.
        names = [name for name in ("CODEX_HOME", "OPENAI_API_KEY", "PATH") if name in env]
        argv = ["sudo", "-n", "-H", f"--preserve-env={','.join(names)}", "-u", value_of("codex-user"), "--", *argv]
    else:
        home = home or str(Path(os.environ.get("RUNNER_TEMP") or tempfile.gettempdir()) / "codex-py-home")
        Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)
        env["CODEX_HOME"] = home
    if strategy == "drop-sudo" and Path("/usr/bin/sudo").exists():
        drop_sudo()
    return subprocess.run(argv, input=prompt.encode(), env=env, check=False).returncode


def share_with(user: str, artifacts: Path, scratch: Path) -> None:
    """Let a user without other rights write the artifacts, and read the schema. Raises `WrongInput`."""
    scratch.chmod(0o755)
    argv = ["sudo", "-n", "install", "-d", "-o", user, str(artifacts)]
    ended = subprocess.run(argv, capture_output=True, check=False)
    if ended.returncode:
        reason = ended.stderr.decode(errors="replace").strip()
        raise WrongInput(f"cannot make `{artifacts}` for `{user}`: {reason}")


def set_output(name: str, value: str) -> None:
    end = f"end-{uuid.uuid4()}"
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}<<{end}\n{value}\n{end}\n")


def comment_text(result: dict[str, Any]) -> str:
    answer = str(result.get("answer") or result.get("message") or "")
    if len(answer) > MAX_COMMENT:
        answer = answer[:MAX_COMMENT] + "\n\n… shortened"
    files = [entry["path"] for entry in result.get("files_changed", [])]
    cost = result.get("cost_usd")
    facts = [f"{result.get('status')}" + (f" ({result['code']})" if result.get("code") else "")]
    facts += [f"{len(files)} file{'s' * (len(files) > 1)} changed"] * bool(files) + [f"${cost:.4f}"] * isinstance(
        cost, float
    )
    return f"{MARK}\n{answer}\n\n---\n*codex-py: {', '.join(facts)}*"


def keep_comment(result: dict[str, Any]) -> None:
    """One comment of this action on the pull request or issue: the one that is there is changed."""
    event: dict[str, Any] = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    about: dict[str, Any] = event.get("pull_request") or event.get("issue") or {}
    number = about.get("number")
    if number is None:
        print("no comment: the event is not about a pull request or an issue")
        return
    repository, body = os.environ["GITHUB_REPOSITORY"], {"body": comment_text(result)}
    page = 1
    while found := call_github("GET", f"/repos/{repository}/issues/{number}/comments?per_page=100&page={page}"):
        for comment in found:
            if str(comment.get("body", "")).startswith(MARK):
                call_github("PATCH", f"/repos/{repository}/issues/comments/{comment['id']}", body)
                return
        page += 1
    call_github("POST", f"/repos/{repository}/issues/{number}/comments", body)


def main() -> int:
    try:
        strategy = value_of("safety-strategy") or "drop-sudo"
        if strategy not in STRATEGIES:
            raise WrongInput(f"`safety-strategy` is one of {', '.join(STRATEGIES)}, not `{strategy}`")
        if strategy == "unprivileged-user" and not value_of("codex-user"):
            raise WrongInput("`unprivileged-user` needs `codex-user`")
        prompt = read_prompt()
        check_actor()
        artifacts = Path(value_of("artifacts") or "codex-py-artifacts").absolute()
        with tempfile.TemporaryDirectory() as scratch:
            if strategy == "unprivileged-user":
                share_with(value_of("codex-user"), artifacts, Path(scratch))
            status = run_codex(command_line(artifacts, Path(scratch), strategy), prompt, strategy)
    except WrongInput as error:
        print(f"::error::{error}")
        return 2
    result: dict[str, Any] = {}
    try:
        result = json.loads((artifacts / "result.json").read_bytes())
    except (OSError, ValueError) as error:
        print(f"no result: {error}")
    if result.get("exit_status") != status:
        # Nothing, or of an earlier run: this one has ended before it could write its own.
        result = {"status": "failed", "code": "config" if status == CONFIG_STATUS else "internal"}
    set_output("final-message", str(result.get("answer") or ""))
    set_output("codex-version", str(result.get("versions", {}).get("codex_py", "")))
    set_output("status", str(result.get("status", "failed")))
    set_output("code", str(result.get("code") or ""))
    set_output("artifacts", str(artifacts))
    if value_of("comment") == "true":
        try:
            keep_comment(result)
        except (OSError, KeyError, ValueError) as error:
            print(f"::warning::cannot write the comment: {error}")
    return status


if __name__ == "__main__":
    sys.exit(main())
