"""Judging a trial of a skill: a command in the sandbox, a file, the answer, and whether the skill was used."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
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
# A search cannot be stopped from within, and an expression of a stranger may take years.
_SEARCH_SECONDS: Final = 2.0
_SEARCH: Final = (
    "import re, sys; pattern, _, text = sys.stdin.buffer.read().decode().partition(chr(0));"
    " sys.exit(0 if re.search(pattern, text, re.MULTILINE) else 3)"
)


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
                detail = await asyncio.to_thread(_look_at, workspace, file, matches)
            case AnswerCheck(pattern):
                detail = await asyncio.to_thread(_search, "the answer", pattern, answer)
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
    return "" if matches is None else _search(f"`{file}`", matches, head.raw.decode(errors="replace"))


def _search(subject: str, pattern: str, text: str) -> str:
    """Why a text does not match; "" when it does. A pattern that could be slow is searched for in another process."""
    if len(re.findall(r"[*+}]", pattern)) < 2 and not re.search(r"\)[*+{]", pattern):
        return "" if re.search(pattern, text, re.MULTILINE) else f"{subject} does not match `{pattern}`"
    stdin = f"{pattern}\0{text}".encode(errors="replace")
    argv = (sys.executable, "-I", "-S", "-c", _SEARCH)
    try:
        ended = subprocess.run(argv, input=stdin, capture_output=True, timeout=_SEARCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"searching {subject} for `{pattern}` takes more than {_SEARCH_SECONDS:g} seconds"
    return "" if ended.returncode == 0 else f"{subject} does not match `{pattern}`"
