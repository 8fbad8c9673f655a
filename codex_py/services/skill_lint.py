"""Checking skills with all there is: their repository, each other's descriptions, and their scripts in the sandbox."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.errors import CodexError
from codex_py.protocol.ops import SkillScope
from codex_py.protocol.policy import ReadOnly
from codex_py.protocol.value import Value
from codex_py.services.single_command import CommandResult, SandboxCommand, SingleCommand
from codex_py.services.skill_trust import lock_check
from codex_py.skills.lint import LintContext, lint_file, skill_files
from codex_py.skills.lint_commands import find_program
from codex_py.skills.lint_finding import LintFinding
from codex_py.skills.lint_repository import find_repository, read_repository
from codex_py.skills.lint_scripts import has_interpreter, parse_python, script_files
from codex_py.skills.lock import has_lock
from codex_py.skills.model import SkillRoot
from codex_py.skills.overlaps import find_overlaps
from codex_py.skills.parse import SkillRefused, parse_skill, read_skill_text
from codex_py.skills.scan import SKILL_FILE

_SECONDS: Final = 5.0
# The exit status of a command that took too long.
_TIMED_OUT: Final = 124
_MAX_SCRIPTS: Final = 20
_AT_ONCE: Final = 2
# How a script of a kind is parsed without running it, and run for its help.
_PARSERS: Final[Mapping[str, tuple[str, ...]]] = {
    ".sh": ("bash", "-n"),
    ".bash": ("bash", "-n"),
    ".js": ("node", "--check"),
    ".mjs": ("node", "--check"),
    ".cjs": ("node", "--check"),
    ".rb": ("ruby", "-c"),
}
_RUNNERS: Final[Mapping[str, str]] = {".py": "python3", ".sh": "bash", ".bash": "bash", ".js": "node", ".mjs": "node"}
_MAIN: Final = re.compile(r"__main__|argparse|sys\.argv|\bclick\b|\btyper\b")
_LINE: Final = re.compile(r"\bline (\d{1,6})\b|:(\d{1,6})(?::|$)", re.MULTILINE)


class LintServices(Value):
    """The environment for scripts. Without `runs_scripts` they are only parsed; no program runs without `loaded`."""

    loaded: LoadedConfig | None
    home: Path
    env: Mapping[str, str]
    runs_scripts: bool = True


def lint_skills(paths: Sequence[Path], services: LintServices) -> tuple[LintFinding, ...]:
    """Everything there is to say about the skills of some paths, errors first. Raises `UsageError`."""
    files = list(dict.fromkeys(file for path in paths for file in skill_files(path)))
    found = [finding for file in files for finding in lint_whole(file, services)]
    found += _held_back(files, services)
    found += _overlaps(files)
    return tuple(sorted(found, key=lambda finding: (finding.level != "error", str(finding.path.parent))))


def _held_back(files: Sequence[Path], services: LintServices) -> Iterator[LintFinding]:
    """A finding for each skill that a `skills.lock` keeps from loading."""
    real = {Path(os.path.realpath(file.parent)): file for file in files}
    roots = [root for root in dict.fromkeys(directory.parent for directory in real) if has_lock(root)]
    check = lock_check(services.home, services.env) if roots else None
    for root in roots:
        scope: SkillScope = "repo" if _repository_of(root / "SKILL.md", services.home) else "user"
        for state in check.states(SkillRoot(root, scope, "agents")) if check else ():
            held = [directory for directory in real if directory.is_relative_to(state.directory)]
            for directory in held if state.is_held else ():
                remedy = "restore the files with `codex-py skills sync`, or agree to them with `skills accept`"
                yield LintFinding("error", real[directory], state.message, "held", 1, remedy)


def lint_whole(file: Path, services: LintServices) -> list[LintFinding]:
    """The findings about one skill, those of its scripts in the sandbox with them."""
    search_path = services.env.get("PATH", os.defpath)
    root = _repository_of(file, services.home)
    context = LintContext(read_repository(root) if root else None, search_path)
    found = list(lint_file(file, context))
    broken = {finding.path for finding in found if finding.rule in ("script", "missing-package")}
    sound = [path for path in script_files(file.parent) if path not in broken][:_MAX_SCRIPTS]
    scripts = [(path, str(path.absolute())) for path in sound]
    return [*found, *asyncio.run(_probe_all(scripts, file.parent.absolute(), services))] if scripts else found


def _repository_of(file: Path, home: Path) -> Path | None:
    """The repository whose skill a file is; the user's own skills belong to none."""
    directory = Path(os.path.realpath(file)).parent
    return None if directory.is_relative_to(os.path.realpath(home)) else find_repository(directory)


async def _probe_all(scripts: Sequence[tuple[Path, str]], directory: Path, services: LintServices) -> list[LintFinding]:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def probe(script: Path, path: str) -> list[LintFinding]:
        async with slots:
            return await _probe(script, path, directory, services)

    found = await asyncio.gather(*(probe(script, path) for script, path in scripts))
    return list(chain.from_iterable(found))


async def _probe(script: Path, path: str, directory: Path, services: LintServices) -> list[LintFinding]:
    """The findings about a script, whose absolute `path` it is run by."""
    run = partial(_run, directory=directory, services=services)
    search_path = services.env.get("PATH", os.defpath)
    parser = _PARSERS.get(script.suffix)
    if parser and find_program(parser[0], search_path):
        result = await run((*parser, path))
        if result is not None and result.exit_code != 0:
            reason = _last_line(result.stderr, path)
            found = _LINE.search(result.stderr.decode(errors="replace"))
            line = int(found[1] or found[2]) if found else 1
            return [LintFinding("advice", script, f"does not parse: {reason}", "script", line, "correct the script")]
    runner = _RUNNERS.get(script.suffix)
    if not (services.runs_scripts and runner and find_program(runner, search_path) and _is_command(script, directory)):
        return []
    result = await run((runner, path, "--help"))
    if result is None or result.exit_code == 0:
        return []
    reason = _last_line(result.stderr or result.stdout, path) or f"exit status {result.exit_code}"
    message = f"`--help` fails in the sandbox with {result.exit_code}: {reason}"
    if result.exit_code == _TIMED_OUT:
        message = f"`--help` does not end within {_SECONDS:g} seconds in the sandbox"
    return [LintFinding("advice", script, message, "script", 1, "let `--help` print its usage and end with status 0")]


def _is_command(script: Path, directory: Path) -> bool:
    """Whether a file of a skill is meant to be run, and not a module or a test of one."""
    if script.name.startswith(("_", "test_")) or script.stem.endswith("_test") or "tests" in script.parts:
        return False
    if script.suffix != ".py":
        return True
    try:
        source = script.read_text("utf-8", "replace")
        parse_python(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return has_interpreter(script) or _MAIN.search(source) is not None or _is_called_by_text(script, directory)


def _is_called_by_text(script: Path, directory: Path) -> bool:
    """Whether the `SKILL.md` calls the script: `python3 scripts/name.py`."""
    try:
        text = read_skill_text(directory / SKILL_FILE, None)
    except SkillRefused:
        return False
    name = script.absolute().relative_to(directory).as_posix()
    return re.search(rf"\bpython3?[ \t]+(?:[^\s`]*/)?{re.escape(name)}\b", text) is not None


async def _run(argv: tuple[str, ...], *, directory: Path, services: LintServices) -> CommandResult | None:
    """The result in a sandbox where nothing can be written; None where there is no sandbox."""
    if services.loaded is None:
        return None
    request = SandboxCommand(argv, directory, ReadOnly(), {"PYTHONDONTWRITEBYTECODE": "1"}, seconds=_SECONDS)
    try:
        return await SingleCommand(services.loaded, request).run(services.home, services.env)
    except CodexError:
        return None


def _last_line(output: bytes, script: str) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line] or lines
    return errors[-1].replace(f"{script}: ", "")[:200] if errors else ""


def _overlaps(files: Sequence[Path]) -> list[LintFinding]:
    """Skills whose descriptions say nearly the same, among those that are checked and their neighbours."""
    shown = {file.absolute(): file for file in files}
    near = {path for file in shown for path in _neighbours(file)}
    described: dict[str, str] = {}
    names: dict[str, str] = {}
    for path in sorted({*shown, *near}):
        try:
            skill = parse_skill(read_skill_text(path, None))
        except SkillRefused:
            continue
        described[str(path)], names[str(path)] = skill.description, skill.name
    overlaps = find_overlaps(described)
    return [
        LintFinding(
            "advice",
            file,
            f"the description is nearly that of `{names[overlaps[str(path)][0]]}`: the model cannot tell them apart",
            "overlap",
            _description_line(file),
            "say in both what the other is not for, or make one skill of them",
        )
        for path, file in shown.items()
        if str(path) in overlaps
    ]


def _neighbours(file: Path) -> list[Path]:
    try:
        return list(skill_files(file.parent.parent))[:500]
    except (CodexError, OSError):
        return []


def _description_line(file: Path) -> int:
    lines = file.read_text("utf-8", "replace").splitlines()[:200]
    return next((number for number, line in enumerate(lines, start=1) if line.startswith("description")), 1)
