"""Judging a trial of a skill: a command in the sandbox, a file, the answer, and whether the skill was used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from codex_py.config.load import ConfigRequest, LoadedConfig
from codex_py.errors import CodexError
from codex_py.services.single_command import SandboxCommand, SingleCommand
from codex_py.skills.eval_results import CheckResult
from codex_py.skills.evals import AnswerCheck, Check, CommandCheck, EvalCase, FileCheck, SentenceCheck, SkillCheck
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.sanitize import sanitize_line

_COMMAND_SECONDS: Final = 120.0
_MAX_BYTES: Final = 1024 * 1024
_MAX_DETAIL: Final = 300


async def judge_run(
    case: EvalCase, config: ConfigRequest, loaded: LoadedConfig, *, workspace: Path, answer: str, used: bool
) -> tuple[CheckResult, ...]:
    """The result of every check of a case, in their order, in the workspace as the session has left it."""
    results: list[CheckResult] = []
    for check in case.checks:
        match check:
            case CommandCheck(command):
                detail = await _run(command, config, loaded, workspace)
            case FileCheck(file, matches):
                detail = _look_at(workspace, file, matches)
            case AnswerCheck(pattern):
                found = re.search(pattern, answer, re.MULTILINE)
                detail = "" if found else f"the answer does not match `{pattern}`"
            case SkillCheck(is_used):
                detail = "" if used == is_used else f"the skill was {'used' if used else 'not used'}"
            case SentenceCheck():
                continue
        results.append(CheckResult(check, not detail, sanitize_line(detail)[:_MAX_DETAIL]))
    return tuple(results)


def describe_check(check: Check) -> str:
    """A check in a few words."""
    match check:
        case CommandCheck(command):
            return f"command `{command}`"
        case FileCheck(file, matches):
            return f"file `{file}`" + (f" matches `{matches}`" if matches else "")
        case AnswerCheck(pattern):
            return f"answer matches `{pattern}`"
        case SkillCheck(is_used):
            return "skill used" if is_used else "skill unused"
        case SentenceCheck(sentence):
            return f"sentence `{sentence}`, judged by the model"


async def _run(command: str, config: ConfigRequest, loaded: LoadedConfig, workspace: Path) -> str:
    """Why a command did not succeed; "" when it did."""
    request = SandboxCommand(("/bin/sh", "-c", command), workspace, seconds=_COMMAND_SECONDS)
    try:
        result = await SingleCommand(loaded, request).run(config.home, config.env)
    except CodexError as error:
        return f"`{command}` could not be run: {error}"
    if result.exit_code == 0:
        return ""
    last = (result.stderr or result.stdout).decode(errors="replace").strip().splitlines()[-1:]
    return f"`{command}` ended with {result.exit_code}" + (f": {last[0]}" if last else "")


def _look_at(workspace: Path, file: str, matches: str | None) -> str:
    """Why a file is not as it should be; "" when it is."""
    path = workspace / file
    if matches is None and path.is_dir():
        return ""
    try:
        head = read_inside(workspace, path, _MAX_BYTES)
    except FileRefused as error:
        return f"`{file}` cannot be read: {error}"
    if head is None:
        return f"`{file}` is not there"
    if matches is not None and not re.search(matches, head.raw.decode(errors="replace"), re.MULTILINE):
        return f"`{file}` does not match `{matches}`"
    return ""
