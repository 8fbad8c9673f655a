"""`codex-py hooks`: the commands that run at points of a session, listed, agreed to and tried out."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, cast

import typer

from codex_py.cli import hooks_view as view
from codex_py.cli import typer_options as options
from codex_py.cli.consent import is_agreed
from codex_py.cli.typer_command import run_commands
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.core.hook_check import HookCheckContext, HookSample, try_hooks
from codex_py.core.hook_sources import FoundHooks, find_hooks
from codex_py.errors import UsageError
from codex_py.hooks.events import MOMENTS
from codex_py.hooks.schema import Hook
from codex_py.paths import codex_home
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.text.nearest import did_you_mean
from codex_py.text.reasons import json_reason
from codex_py.text.sanitize import sanitize_line

_ABOUT: Final = "The commands that run at points of a session: list them, agree to a project's, try them."

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py hooks` with these arguments; give back the exit status."""
    return run_commands({"list": list_hooks, "trust": trust, "test": test}, arguments, name="hooks", about=_ABOUT)


def list_hooks(overrides: options.Overrides = None, profile: options.Profile = None, as_json: Json = False) -> int:
    """List the hooks of this directory.

    They count in this order; those of the project that are not run, because you have not agreed to them, come last.
    """
    found = _look(overrides, profile).found
    view.print_hooks(found, sys.stdout, as_json=as_json)
    if not (found.hooks or found.untrusted or as_json):
        _print_note("no hooks are configured")
    return 0


def trust(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")] = False,
    outside: Annotated[
        list[int] | None,
        typer.Option("--outside", metavar="N", help="Let hook N run outside the sandbox; may be given again."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it back: run none of the project's hooks.")] = False,
    as_json: Json = False,
) -> int:
    """Agree to what the project's hooks run.

    These are in its .codex/hooks.json and .codex/config.toml. What would run is shown first, and you are asked. The yes
    is pinned to a hash of the commands and of the files that they name, and holds until that changes. They run in the
    sandbox of the session, except those named by `--outside`, which run as you.
    """
    found = _look(None, None, quiet=True).found
    if remove:
        found.distrust()
        _print_note(f"no hook of `{found.project}` is run any more")
        return 0
    hooks = found.of_the_project
    if not hooks:
        _print_note(f"`{found.project}` brings no hooks that could be trusted")
        for warning in found.warnings:
            _print_note(f"warning: {warning}")
        return 0
    free = _numbered(hooks, outside or ())
    if found.untrusted or free:
        for line in view.hook_lines(found, free):
            _print_note(line)
        if not yes and not is_agreed("run these in sessions of this project?", needs="trusting hooks"):
            _print_note("nothing was changed")
            return 1
        found.trust(Path.cwd(), free)
    view.print_trusted(found.project, hooks, sys.stdout, as_json=as_json)
    return 0


def test(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="Event name, for example `PreToolUse`.")],
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="For events of tools: the tool.")] = "Bash",
    command: Annotated[str, typer.Option("--command", metavar="TEXT", help="What Bash would run.")] = "echo hello",
    file: Annotated[str, typer.Option("--file", metavar="PATH", help="What Edit or Write would change.")] = "a.txt",
    input_json: Annotated[
        str, typer.Option("--input", metavar="JSON", help="Fields of the input, over the made-up ones.")
    ] = "{}",
    as_json: Json = False,
) -> int:
    """Run the hooks of an event now.

    They are really run, with a made-up input, and what they say is shown. Exit status 1 when one of them fails.
    """
    if event not in MOMENTS:
        guess = did_you_mean(event, MOMENTS) or f"there are {', '.join(f'`{name}`' for name in MOMENTS)}"
        raise UsageError(f"no event `{event}`", hint=guess)
    looked = _look(None, None)
    check = asyncio.run(
        try_hooks(
            looked.loaded,
            looked.found,
            event,
            context=HookCheckContext(codex_home(os.environ), Path.cwd(), os.environ),
            sample=HookSample(tool, command, file, _fields(input_json)),
        )
    )
    view.print_check(event, check, sys.stdout, as_json=as_json)
    return 1 if any(result.answer.warning for result in check.tried) else 0


def _numbered(hooks: Sequence[Hook], numbers: Sequence[int]) -> list[Hook]:
    for number in numbers:
        if not 1 <= number <= len(hooks):
            raise UsageError(f"there is no hook {number}", hint=f"the project brings hooks 1 to {len(hooks)}")
    return [hooks[number - 1] for number in numbers]


class _Looked(NamedTuple):
    loaded: LoadedConfig
    found: FoundHooks


def _look(overrides: Sequence[str] | None, profile: str | None, *, quiet: bool = False) -> _Looked:
    home, cwd = codex_home(os.environ), Path.cwd()
    loaded = load_config(
        ConfigRequest(home=home, cwd=cwd, env=os.environ, overrides=tuple(overrides or ()), profile=profile)
    )
    found = find_hooks(loaded, home=home, cwd=cwd)
    for warning in () if quiet else (*loaded.warnings, *found.warnings, *found.notices):
        _print_note(f"warning: {warning}")
    return _Looked(loaded, found)


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


def _print_note(text: str) -> None:
    print(sanitize_line(text), file=sys.stderr)
