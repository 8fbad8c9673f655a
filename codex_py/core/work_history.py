"""The state of the work read back from a history: for a session that an earlier run has begun."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from codex_py.core.work_log import WorkState
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import Message, ResponseItem, ToolCall
from codex_py.protocol.readable import output_of, plan_of

if TYPE_CHECKING:
    from codex_py.skills.implicit import SkillUse

SkillUses: TypeAlias = "Callable[[str, Path], Sequence[SkillUse]]"

# How a patch says what it did: the format of `patch.summary`, which other programs share.
_PATCHED: Final = "Success. Updated the following files:\n"
_FILE: Final = re.compile(r"([AMD]) (\S.*)")
_CHANGE_TYPES: Final = {"A": "add", "M": "update", "D": "delete"}
_FUNCTION_CALL: Final = b'{"type":"function_call",'
_LOADED: Final = re.compile(r'<skill-loaded name="([^"\n]*)">\n<path>([^\n]*)</path>\n')
_SKILL: Final = re.compile(r"<skill>\n<name>([^\n]*)</name>\n<path>([^\n]*)</path>\n")


def work_state_of(items: Sequence[ResponseItem], cwd: Path, skill_uses: SkillUses) -> WorkState:
    """The last plan, the files that patches changed, and the skills that were put before the model or that commands
    read: `skill_uses` tells those of a command in a folder.

    Paths a patch wrote relative are taken from `cwd`.
    """
    state = WorkState()
    for item in items:
        if newer := _state_of(item, cwd, skill_uses):
            state = state.then(newer)
    return state


def last_plan(items: Sequence[ResponseItem]) -> tuple[PlanStep, ...] | None:
    """The plan made last, None where there is none; quick, as the rest of the work is not looked at."""
    plans = (_planned(item) for item in reversed(items) if b'"update_plan"' in item.encoded)
    return next((state.plan for state in plans if state is not None), None)


def _state_of(item: ResponseItem, cwd: Path, skill_uses: SkillUses) -> WorkState | None:
    # The bytes tell most items apart; a long history has thousands.
    encoded = item.encoded
    if b'"update_plan"' in encoded:
        return _planned(item)
    if b"Success. Updated the following files:" in encoded:
        return _patched(item, cwd)
    if b"<skill>" in encoded:
        return _shown(item)
    if b"<skill-loaded name=" in encoded:
        return _loaded(item)
    if encoded.startswith(_FUNCTION_CALL):
        return _read_by_the_way(item, cwd, skill_uses)
    return None


def _planned(item: ResponseItem) -> WorkState | None:
    view = item.view()
    if not isinstance(view, ToolCall) or view.name != "update_plan":
        return None
    try:
        return WorkState(plan=plan_of(as_object(decode_json(view.arguments)).get("plan")))
    except ValueError:
        return None


def _patched(item: ResponseItem, cwd: Path) -> WorkState | None:
    if not item.type.endswith("_call_output"):
        return None
    output = item.decode().get("output")
    texts = [as_object(part).get("text") for part in as_list(output)]
    text = output if isinstance(output, str) else "\n".join(part for part in texts if isinstance(part, str))
    files: dict[str, str] = {}
    for line in text.partition(_PATCHED)[2].splitlines():
        found = _FILE.fullmatch(line)
        if found is None:
            break
        files[str(cwd / found[2])] = _CHANGE_TYPES[found[1]]
    return WorkState(files=files)


def _shown(item: ResponseItem) -> WorkState | None:
    view = item.view()
    if not isinstance(view, Message) or view.role != "user":
        return None
    found = _SKILL.match(view.text)
    return WorkState(skills={found[2]: found[1]}) if found else None


def _loaded(item: ResponseItem) -> WorkState | None:
    if not item.type.endswith("_call_output"):
        return None
    found = _LOADED.match(output_of(item))
    return WorkState(skills={found[2]: found[1]}) if found else None


def _read_by_the_way(item: ResponseItem, cwd: Path, skill_uses: SkillUses) -> WorkState | None:
    view = item.view()
    if not isinstance(view, ToolCall):
        return None
    try:
        arguments = as_object(decode_json(view.arguments))
    except ValueError:
        return None
    command, directory = arguments.get("cmd") or arguments.get("command"), arguments.get("workdir")
    words = [word for word in as_list(command) if isinstance(word, str)]
    text = command if isinstance(command, str) else shlex.join(words)
    uses = skill_uses(text, cwd / directory if isinstance(directory, str) else cwd) if text else ()
    return WorkState(skills={str(use.skill.canonical_path): use.skill.name for use in uses})
