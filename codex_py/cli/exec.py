"""`codex-py exec`: its command line, and everything that is checked before the first request."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.cli.commands import load
from codex_py.cli.exec_parser import exec_help, exec_parser
from codex_py.cli.options import (
    find_images,
    load_settings,
    read_limits,
    split_at_dashes,
    working_directory,
    writable_directories,
)
from codex_py.config.edit import trust_project
from codex_py.config.load import LoadedConfig
from codex_py.core.answer_schema import check_schema
from codex_py.core.build import OFFLINE_PROVIDER, ResumeTarget, SessionRequest, open_session
from codex_py.core.session_settings import choose_policy
from codex_py.errors import NothingToDo, UsageError, UserError
from codex_py.exec.run import ExecRequest, failure_of, print_error, run_exec
from codex_py.exec.streams import fix_target, read_prompt
from codex_py.paths import codex_home, is_directory, is_file
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.failures import exit_status
from codex_py.protocol.policy import ApprovalPolicy, ReadOnly
from codex_py.protocol.value import Value
from codex_py.text.files import json_reason, os_reason

_ORIGINATOR: Final = "codex_exec"
# How the Python SDK calls itself: its reader ends at a line of 64 KiB, whatever the line says.
_READS_SHORT_LINES: Final = "codex_sdk_py"
_JSON_FLAGS: Final = frozenset(("--json", "--experimental-json"))
# Of runs that write files about themselves, or are safe to repeat.
_COLLECTED_FLAGS: Final = frozenset(("--session-id", "--again", "--artifacts", "--session-dir", "--cwd-map"))
_OF_REVIEW: Final = ("uncommitted", "base", "commit", "title")
# No provider takes a tenth of this, and a device never ends.
_MAX_SCHEMA_BYTES: Final = 8 * 1024 * 1024


class ExecTask(Value):
    """The task of one run: a prompt (None: on stdin), in a new session, in an earlier one or in a fork of that."""

    prompt: str | None
    resume: ResumeTarget | None
    review: bool = False


def run(arguments: Sequence[str]) -> int:
    """Run one command line; give back the exit status. Raises `UserError`, with that of its failure."""
    parser = exec_parser()
    flags, behind = split_at_dashes(arguments)
    if "-h" in flags or "--help" in flags:
        print(exec_help(parser, flags))
        return 0

    def read() -> argparse.Namespace:
        options = parser.read(flags)
        options.is_literal = bool(behind) and not options.words
        options.words += behind
        return options

    try:
        if any(flag.partition("=")[0] in _COLLECTED_FLAGS for flag in flags):
            return load("run_collected")(flags, read, _prepare)
        session, request = _prepare(read())
        status = asyncio.run(_run(session, request))
        if days := session.loaded.config.sessions.keep_days:
            load("note_expired_sessions")(session.home, days)
        return status
    except NothingToDo as reason:
        print(reason, file=sys.stderr)
        return 0
    except UserError as error:
        code = failure_of(error)
        if code != "internal" and not _JSON_FLAGS.isdisjoint(flags):
            print_error(error)
        error.status = exit_status(code)
        raise


def _prepare(options: argparse.Namespace) -> tuple[SessionRequest, ExecRequest]:
    """Check everything that can be wrong before anything runs."""
    task = read_task(options)
    cwd = working_directory(options.cd)
    home = codex_home(os.environ)
    if options.trust:
        trust_project(home, cwd)
    loaded = load_settings(options, home, cwd)
    if task.review and loaded.config.review_model and not options.model:
        options.model = loaded.config.review_model
        loaded = load_settings(options, home, cwd)
    check_directory(options, loaded, cwd)
    if options.allow_skills and isinstance(choose_policy(loaded), ReadOnly):
        raise UsageError("`--allow-skills` has no effect in a read-only sandbox", hint="add `-s workspace-write`")
    if options.output_schema is not None and loaded.config.model_provider == OFFLINE_PROVIDER:
        raise UsageError(
            "the built-in offline model cannot answer in the form of `--output-schema`",
            hint="leave the option out, or use a real model",
        )
    originator = os.environ.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or _ORIGINATOR
    hooked_approval = None if options.bypass else _hook_approval(loaded)
    request = ExecRequest(
        prompt=_prompt(options, task, cwd),
        images=find_images(options.image),
        output_schema=read_schema(options.output_schema),
        last_message_file=find_message_file(options.output_last_message),
        last_message_name=options.output_last_message,
        json_lines=options.json,
        needs_approvals=hooked_approval not in (None, "never"),
        short_messages=originator == _READS_SHORT_LINES,
        color=options.color,
        hide_reasoning=loaded.config.hide_agent_reasoning,
    )
    session = SessionRequest(
        loaded=loaded,
        home=home,
        cwd=cwd,
        env=os.environ,
        originator=originator,
        approval="never",
        hooked_approval=hooked_approval,
        ephemeral=options.ephemeral,
        resume=task.resume,
        ignore_rules=options.ignore_rules,
        trusts_hooks=options.trusts_hooks,
        install_dependencies=options.install_dependencies,
        extra_roots=writable_directories(options, loaded.project_root or cwd),
        limits=read_limits(options),
    )
    return session, request


def _chosen_approval(loaded: LoadedConfig) -> ApprovalPolicy | None:
    """The approval policy the user has set; None where only the default or a project has."""
    is_chosen = loaded.origins["approval_policy"].layer_type not in ("defaults", "project")
    return loaded.config.approval_policy if is_chosen else None


def _hook_approval(loaded: LoadedConfig) -> ApprovalPolicy | None:
    """The policy under which `PermissionRequest` hooks are asked, as `exec` can ask nobody else; None for never.

    Only a policy set by the user counts: neither the default nor a project lets a command leave the sandbox here.
    """
    policy = _chosen_approval(loaded)
    # Under `untrusted`, commands that `exec` runs without a question would need one.
    return "on-request" if policy == "untrusted" else policy


async def _run(session: SessionRequest, request: ExecRequest) -> int:
    async with open_session(session) as opened:
        # From here on a session may last for hours.
        gc.freeze()
        gc.enable()
        return (await run_exec(opened, request)).status


def _prompt(options: argparse.Namespace, task: ExecTask, cwd: Path) -> str:
    if not task.review:
        return read_prompt(task.prompt)
    focus = "" if task.prompt is None else read_prompt(task.prompt)
    return load("review_prompt")(options, focus, cwd)


def read_task(options: argparse.Namespace) -> ExecTask:
    """Read a prompt, `resume …`, `fork …` or `review …`; behind a `--` a prompt. Raise `UsageError` for no task."""
    words: list[str] = list(options.words)
    target = None
    if words and words[0] in ("resume", "fork") and not options.is_literal:
        target = _resume_target(options, words.pop(0), words)
    elif options.last or options.all:
        raise UsageError("`--last` and `--all` go with `resume` and `fork`", hint="try `codex-py exec resume --last`")
    if options.turn is not None and not (target and target.fork):
        raise UsageError("`--turn` goes with `fork`", hint="try `codex-py exec fork --last --turn 1`")
    review = words[:1] == ["review"] and target is None and not options.is_literal
    if review:
        words.pop(0)
        options.sandbox = options.sandbox or "read-only"
    elif flag := next((name for name in _OF_REVIEW if getattr(options, name)), None):
        raise UsageError(f"`--{flag}` goes with `review`", hint="try `codex-py exec review`")
    if len(words) > 1:
        raise UsageError(f"more than one prompt: `{words[1]}`", hint="quote the prompt")
    return ExecTask(words[0] if words else None, target, review)


def _resume_target(options: argparse.Namespace, verb: str, words: list[str]) -> ResumeTarget:
    fork = verb == "fork"
    if options.last:
        return ResumeTarget(any_directory=options.all, fork=fork, turn=options.turn)
    if not words:
        raise UsageError(f"no session to {verb}", hint="give its id or its name, or `--last`")
    return ResumeTarget(thread_id=words.pop(0), fork=fork, turn=options.turn)


def check_directory(options: argparse.Namespace, loaded: LoadedConfig, cwd: Path) -> None:
    """Raise `UserError` for a directory that is neither in a repository nor trusted: mistakes could not be undone."""
    if options.skip_git_repo_check or options.bypass or loaded.trust == "trusted":
        return
    if not any(_is_repository(directory / ".git") for directory in (cwd, *cwd.parents)):
        raise UserError(
            f"not inside a git repository or a trusted directory: `{cwd}`",
            hint="pass --skip-git-repo-check to work here all the same, or --trust to trust it from now on",
        )


def _is_repository(mark: Path) -> bool:
    # Not an empty directory: sandboxes put one there for a moment to keep commands from creating a repository.
    try:
        return is_file(mark) or (is_directory(mark) and any(mark.iterdir()))
    except OSError:
        # It belongs to another user and cannot be read.
        return True


def find_message_file(path: str | None) -> Path | None:
    """The file for the last message; a path that cannot be written is an error before the work and not after it."""
    if path is None:
        return None
    file = Path(path)
    if is_directory(file):
        raise UsageError(f"cannot write `{path}`: it is a directory", hint="name a file with `-o`")
    try:
        try:
            file.lstat()
        except FileNotFoundError as error:
            if not is_directory(file.absolute().parent):
                raise UsageError(
                    f"cannot write `{path}`: there is no directory `{file.parent}`",
                    hint="create it, or name another file",
                ) from error
        return fix_target(file)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {os_reason(error)}", hint="name another file with `-o`") from error


def read_schema(path: str | None) -> dict[str, Any] | None:
    """The JSON schema of the last message."""
    if path is None:
        return None
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_SCHEMA_BYTES + 1)
        if len(raw) > _MAX_SCHEMA_BYTES:
            raise UsageError(f"the output schema `{path}` is over {_MAX_SCHEMA_BYTES // 2**20} MiB")
        schema: object = decode_json(raw)
    except OSError as error:
        raise UsageError(
            f"cannot read the output schema `{path}`: {os_reason(error)}", hint="name a file with `--output-schema`"
        ) from error
    except ValueError as error:
        raise UsageError(f"the output schema `{path}` is not JSON: {json_reason(error)}") from error
    fields = as_object(schema)
    if not fields:
        raise UsageError(
            f"the output schema `{path}` is not a JSON object with keys", hint='an example: `{"type": "object"}`'
        )
    check_schema(fields, f"the output schema `{path}`")
    return fields
