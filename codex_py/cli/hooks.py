"""`codex-py hooks`: lists, trusts and tests the commands that run at points of a session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from codex_py.cli.console import (
    is_agreed,
    load_local_config,
    local_request,
    print_json,
    print_note,
    print_rows,
    print_warnings,
)
from codex_py.cli.typer_command import Json, Overrides, Profile, Yes, run_commands
from codex_py.config.load import LoadedConfig
from codex_py.errors import UsageError
from codex_py.hooks.answer import HookVerdict
from codex_py.hooks.engine import HookRun
from codex_py.hooks.schema import HOOK_EVENTS, Hook
from codex_py.hooks.skill_hooks import find_skill_hooks
from codex_py.hooks.sources import FoundHooks, find_hooks
from codex_py.paths import codex_home
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.services.hook_check import HookCheck, HookCheckContext, HookSample, try_hooks
from codex_py.services.skill_admin import look_at_skills
from codex_py.skills.model import Skill
from codex_py.skills.scan import SKILL_FILE
from codex_py.text.display import counted
from codex_py.text.files import json_reason
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line


def print_hooks(places: Sequence[FoundHooks], *, as_json: bool) -> None:
    """Print all hooks, those that do not run last."""
    every = [
        *((found, hook, hook not in found.untrusted) for found in places for hook in found.hooks),
        *((found, hook, False) for found in places for hook in found.waiting),
    ]
    rows = (
        (hook.event, hook.filter_text or "*", hook.origin.source, _status(found, hook, runs=runs), hook.command_line)
        for found, hook, runs in every
    )
    records = (_as_json(hook, runs=runs) for _, hook, runs in every)
    print_rows(("EVENT", "MATCHER", "SOURCE", "STATUS", "COMMAND"), rows, records, as_json=as_json)


def hook_lines(found: FoundHooks, free: Collection[Hook]) -> Iterator[str]:
    """The hooks that would run if the user agreed, as lines; `free` are to run outside the sandbox."""
    for number, hook in enumerate(found.of_the_project, 1):
        if hook not in found.untrusted and hook not in free:
            continue
        matcher = f" for `{hook.filter_text}`" if hook.filter_text else ""
        changed = " (not what you agreed to before)" if found.has_changed(hook) and hook in found.untrusted else ""
        outside = ", outside the sandbox" if hook in free else ""
        yield f"{number}. {hook.event}{matcher}, in {hook.origin.where}{changed}{outside}:"
        yield f"  {hook.command_line}"
    if any(hook.origin.skill for hook in found.untrusted):
        yield "they run in the sandbox of the session, in the turns that use the skill"
        return
    others = "the others run" if free else "they run"
    if len(free) < len(found.untrusted) or not free:
        yield f"{others} in the sandbox of the session; `--outside N` lets hook N run outside"


def print_trusted(project: Path, hooks: Sequence[Hook], *, as_json: bool) -> None:
    """Print the hooks of a project that run from now on."""
    if as_json:
        print_json({"project": str(project), "trusted": [_as_json(hook, runs=True) for hook in hooks]})
        return
    print(f"trusted as they are now: {counted(len(hooks), 'hook')} of {sanitize_line(str(project))}")


def print_check(event: str, check: HookCheck, *, as_json: bool) -> None:
    """Print what hooks did and printed."""
    if as_json:
        print_json(_check_object(event, check))
        return
    if not check.runs:
        print(f"no hook is run at {event}")
        return
    for run in check.runs:
        print("\n".join(map(sanitize_line, _run_lines(run))))
    print(f"together: {sanitize_line(_in_words(check.verdict))}")


def _status(found: FoundHooks, hook: Hook, *, runs: bool) -> str:
    is_outside = hook.origin.layer == "project" and found.runs_outside(hook, Path.cwd())
    more = [*(["outside"] if is_outside else []), *(["fail closed"] if hook.fail_closed else [])]
    status = "run" if runs else "changed" if found.has_changed(hook) else "not trusted"
    return ", ".join([status, *more])


def _run_lines(run: HookRun) -> Iterator[str]:
    result = run.result
    yield f"{run.hook.command_line}  ({run.hook.origin.source})"
    yield f"  exit code {result.exit_code}" if result.exit_code is not None else f"  {result.error}"
    for name, raw in (("stdout", result.stdout), ("stderr", result.stderr)):
        text = raw.decode("utf-8", "replace").strip()
        if text:
            yield f"  {name}: {text[:2000]}"
    if run.answer.warning and result.exit_code is not None:
        yield f"  warning: it {run.answer.warning}"


def _in_words(verdict: HookVerdict) -> str:
    pieces = [
        *([verdict.permission] if verdict.permission else []),
        *(["block"] if verdict.blocks else []),
        *([f"reason: {verdict.reason}"] if verdict.reason else []),
        *([f"stop: {verdict.stop}"] if verdict.stop is not None else []),
        *(f"for you: {message}" for message in verdict.messages),
        *(["the input is changed"] if verdict.updated and verdict.permission != "deny" else []),
        *([f"context for the model: {len(''.join(verdict.contexts))} characters"] if verdict.contexts else []),
    ]
    return "; ".join(pieces) or "go on"


def _check_object(event: str, check: HookCheck) -> dict[str, Any]:
    verdict = check.verdict
    return {
        "event": event,
        "inputs": [dict(values) for values in check.inputs],
        "hooks": [
            {
                **_as_json(values.hook, runs=True),
                "exit_code": values.result.exit_code,
                "stdout": values.result.stdout.decode("utf-8", "replace"),
                "stderr": values.result.stderr.decode("utf-8", "replace"),
                "warning": values.answer.warning or None,
            }
            for values in check.runs
        ],
        "verdict": {
            "permission": verdict.permission,
            "blocks": verdict.blocks,
            "reason": verdict.reason,
            "stop": verdict.stop,
            "context": list(verdict.contexts),
            "updated_input": None if verdict.updated is None else dict(verdict.updated),
            "messages": list(verdict.messages),
        },
    }


def _as_json(hook: Hook, *, runs: bool) -> dict[str, Any]:
    return {
        "event": hook.event,
        "matcher": hook.matcher.text,
        "if": hook.condition.text or None,
        "command": hook.command if isinstance(hook.command, str) else list(hook.command),
        "timeout": hook.timeout,
        "layer": hook.origin.layer,
        "file": None if hook.origin.path is None else str(hook.origin.path),
        "plugin": hook.origin.plugin or None,
        "skill": hook.origin.skill or None,
        "async": hook.background,
        "fail_closed": hook.fail_closed,
        "trusted": runs,
    }


_ABOUT: Final = "The commands that run at points of a session: list them, agree to a project's, try them."


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py hooks` with these arguments; give back the exit status."""
    return run_commands({"list": list_hooks, "trust": trust, "test": test}, arguments, name="hooks", about=_ABOUT)


def list_hooks(overrides: Overrides = None, profile: Profile = None, as_json: Json = False) -> int:
    """List the hooks of this directory.

    They count in this order; those of the project and of skills that are not run, because you have not agreed to
    them, come last. Hooks of a skill run in the turns that use it.
    """
    _, found = _look(overrides, profile)
    skills = [hooks for _, hooks in _of_skills(overrides, profile)]
    print_warnings(*(warning for hooks in skills for warning in hooks.warnings))
    print_hooks([found, *skills], as_json=as_json)
    if not (as_json or any(hooks.hooks or hooks.untrusted for hooks in (found, *skills))):
        print_note("no hooks are configured")
    return 0


def trust(
    yes: Yes = False,
    outside: Annotated[
        list[int] | None,
        typer.Option("--outside", metavar="N", help="Let hook N run outside the sandbox; may be given again."),
    ] = None,
    skill: Annotated[
        str | None, typer.Option("--skill", metavar="NAME", help="Approve the hooks of this skill, not the project's.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it back: run none of them.")] = False,
    as_json: Json = False,
) -> int:
    """Approve the hooks of the project, or of a skill.

    Those of a project are in its .codex/hooks.json and .codex/config.toml, those of a skill in the front matter of its
    SKILL.md. The commands are shown first, and you are asked. Your approval is pinned to a hash of the commands and of
    the files that they name, and holds until that changes. The hooks run in the sandbox of the session, except those
    named by `--outside`, which run as you.
    """
    if skill and outside:
        raise UsageError(
            "`--outside` is for hooks of the project",
            hint="hooks of a skill always run in the sandbox; one that must not belongs into your own `hooks.json`",
        )
    found = _skill_named(skill) if skill else _look(quiet=True)[1]
    owner = f"the skill `{skill.removeprefix('$')}`" if skill else f"`{found.project}`"
    if remove:
        found.distrust()
        print_note(f"no hook of {owner} is run any more")
        return 0
    hooks = found.of_the_project
    free = _numbered(hooks, outside or ())
    if not hooks:
        print_note(f"{owner} brings no hooks that could be trusted")
        print_warnings(*found.warnings)
        return 0
    if found.untrusted or free:
        print_note(*hook_lines(found, free))
        where = "in the turns that use the skill" if skill else "in sessions of this project"
        if not is_agreed(f"run these {where}?", yes=yes, needs="trusting hooks"):
            return 1
        found.trust(Path.cwd(), free)
    print_trusted(found.project, hooks, as_json=as_json)
    return 0


def test(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Event name, for example `PreToolUse`.")],
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="For events of tools: the tool.")] = "Bash",
    command: Annotated[str, typer.Option("--command", metavar="TEXT", help="Command of the Bash call.")] = "echo hello",
    file: Annotated[str, typer.Option("--file", metavar="PATH", help="File that Edit or Write changes.")] = "a.txt",
    input_json: Annotated[
        str, typer.Option("--input", metavar="JSON", help="Fields of the input, over the made-up ones.")
    ] = "{}",
    as_json: Json = False,
) -> int:
    """Run the hooks of an event now.

    They are really run, with a made-up input, and what they say is shown. Exit status 1 when one of them fails.
    """
    if event not in HOOK_EVENTS:
        guess = did_you_mean(event, HOOK_EVENTS) or f"there are {', '.join(f'`{name}`' for name in HOOK_EVENTS)}"
        raise UsageError(f"no event `{event}`", hint=guess)
    loaded, found = _look()
    check = asyncio.run(
        try_hooks(
            loaded,
            found,
            event,
            context=HookCheckContext(codex_home(os.environ), Path.cwd(), os.environ),
            sample=HookSample(tool, command, file, _fields(input_json)),
        )
    )
    print_check(event, check, as_json=as_json)
    return 1 if any(result.answer.warning for result in check.runs) else 0


def _numbered(hooks: Sequence[Hook], numbers: Sequence[int]) -> list[Hook]:
    for number in numbers:
        if not 1 <= number <= len(hooks):
            raise UsageError(f"there is no hook {number}", hint=_known_numbers(len(hooks)))
    return [hooks[number - 1] for number in numbers]


def _known_numbers(count: int) -> str:
    if not count:
        return "the project has no hooks; leave `--outside` out"
    return "the project has one hook, number 1" if count == 1 else f"the project has hooks 1 to {count}"


def _look(
    overrides: Sequence[str] | None = None, profile: str | None = None, *, quiet: bool = False
) -> tuple[LoadedConfig, FoundHooks]:
    home, cwd, loaded = load_local_config(overrides, profile, quiet=quiet)
    found = find_hooks(loaded, home=home, cwd=cwd)
    if not quiet:
        print_warnings(*found.warnings, *found.notices)
    return loaded, found


def _of_skills(overrides: Sequence[str] | None, profile: str | None) -> list[tuple[Skill, FoundHooks]]:
    """The skills in reach that have hooks, with these."""
    request = local_request(overrides, profile)
    admin = look_at_skills(request)
    return [
        (skill, find_skill_hooks(skill, admin.loaded, home=request.home, cwd=request.cwd, trusts_all=False))
        for skill in admin.catalog.enabled()
        if skill.options.hooks
    ]


def _skill_named(name: str) -> FoundHooks:
    """The hooks of the skill with a name or a file. Raises `UsageError` for another one."""
    known = _of_skills(None, None)
    fit = [found for skill, found in known if skill.name == name.removeprefix("$") or str(skill.canonical_path) == name]
    if len(fit) > 1:
        files = " and ".join(f"`{found.project / SKILL_FILE}`" for found in fit)
        raise UsageError(f"{len(fit)} skills are called `{name}`", hint=f"pass the file of one: {files}")
    if not fit:
        names = [skill.name for skill, _ in known]
        shown = f"there are {', '.join(f'`{name}`' for name in names)}" if names else "no skill in reach has hooks"
        raise UsageError(f"no skill `{name}` with hooks", hint=did_you_mean(name, names) or shown)
    return fit[0]


def _fields(text: str) -> dict[str, Any]:
    try:
        value: object = decode_json(text)
    except ValueError as error:
        raise UsageError(
            f"`--input` is not JSON: {json_reason(error)}", hint='such as --input \'{"prompt": "hello"}\''
        ) from error
    if not isinstance(value, dict):
        raise UsageError("`--input` is not a JSON object", hint='such as --input \'{"prompt": "hello"}\'')
    return as_object(cast("object", value))
