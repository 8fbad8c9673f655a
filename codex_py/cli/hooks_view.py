"""How `codex-py hooks` prints: tables and lines for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from codex_py.cli.tables import print_json, print_table
from codex_py.core.hook_check import HookCheck
from codex_py.core.hook_sources import FoundHooks
from codex_py.hooks.engine import Tried
from codex_py.hooks.schema import Hook
from codex_py.hooks.verdict import HookVerdict
from codex_py.text.sanitize import sanitize_line


def print_hooks(found: FoundHooks, out: TextIO, *, as_json: bool) -> None:
    """All hooks, those that are not run at the end."""
    every = [*((hook, hook not in found.untrusted) for hook in found.hooks), *((hook, False) for hook in found.waiting)]
    if as_json:
        print_json([_as_json(hook, runs=runs) for hook, runs in every], out)
        return
    rows = [
        (hook.event, hook.narrowed or "*", hook.origin.source, _status(found, hook, runs=runs), hook.written)
        for hook, runs in every
    ]
    print_table(("EVENT", "MATCHER", "SOURCE", "STATUS", "COMMAND"), rows, out)


def hook_lines(found: FoundHooks, free: Collection[Hook]) -> Iterator[str]:
    """What would run besides what runs now, for a decision about it; `free` are to run outside the sandbox."""
    for number, hook in enumerate(found.of_the_project, 1):
        if hook not in found.untrusted and hook not in free:
            continue
        matcher = f" for `{hook.narrowed}`" if hook.narrowed else ""
        changed = " (not what you agreed to before)" if found.has_changed(hook) and hook in found.untrusted else ""
        outside = ", outside the sandbox" if hook in free else ""
        yield f"{number}. {hook.event}{matcher}, in {hook.origin.where}{changed}{outside}:"
        yield f"  {hook.written}"
    others = "the others run" if free else "they run"
    if len(free) < len(found.untrusted) or not free:
        yield f"{others} in the sandbox of the session; `--outside N` lets hook N run outside"


def print_trusted(project: Path, hooks: Sequence[Hook], out: TextIO, *, as_json: bool) -> None:
    """The hooks of a project that are run from now on."""
    if as_json:
        print_json({"project": str(project), "trusted": [_as_json(hook, runs=True) for hook in hooks]}, out)
        return
    count = f"{len(hooks)} hooks" if len(hooks) > 1 else "1 hook"
    out.write(f"trusted as they are now: {count} of {sanitize_line(str(project))}\n")


def print_check(event: str, check: HookCheck, out: TextIO, *, as_json: bool) -> None:
    """What hooks did and printed."""
    if as_json:
        print_json(_check_object(event, check), out)
        return
    if not check.tried:
        out.write(f"no hook is run at {event}\n")
        return
    for result in check.tried:
        out.write("".join(f"{sanitize_line(line)}\n" for line in _tried_lines(result)))
    out.write(f"together: {sanitize_line(_in_words(check.verdict))}\n")


def _status(found: FoundHooks, hook: Hook, *, runs: bool) -> str:
    is_outside = hook.origin.layer == "project" and found.runs_outside(hook, Path.cwd())
    more = [*(["outside"] if is_outside else []), *(["fail closed"] if hook.fail_closed else [])]
    return ", ".join(["run" if runs else _reason(found, hook), *more])


def _reason(found: FoundHooks, hook: Hook) -> str:
    return "changed" if found.has_changed(hook) else "not trusted"


def _tried_lines(result: Tried) -> Iterator[str]:
    yield f"{result.hook.written}  ({result.hook.origin.source})"
    yield f"  exit code {result.ran.exit_code}" if result.ran.exit_code is not None else f"  {result.ran.trouble}"
    for name, raw in (("stdout", result.ran.stdout), ("stderr", result.ran.stderr)):
        text = raw.decode("utf-8", "replace").strip()
        if text:
            yield f"  {name}: {text[:2000]}"
    if result.answer.warning and result.ran.exit_code is not None:
        yield f"  warning: it {result.answer.warning}"


def _in_words(verdict: HookVerdict) -> str:
    pieces = [
        *([f"{verdict.permission}"] if verdict.permission else []),
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
                "exit_code": values.ran.exit_code,
                "stdout": values.ran.stdout.decode("utf-8", "replace"),
                "stderr": values.ran.stderr.decode("utf-8", "replace"),
                "warning": values.answer.warning or None,
            }
            for values in check.tried
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
        "async": hook.background,
        "fail_closed": hook.fail_closed,
        "trusted": runs,
    }
