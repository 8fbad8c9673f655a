"""The hooks in the front matter of a skill, which run for the turn in which it is used, once the user trusts them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.hooks.schema import Hook, HookOrigin, ParsedHooks, hook_tables, parse_hooks
from codex_py.hooks.sources import FoundHooks, trusted_of
from codex_py.hooks.trust import TrustedHooks
from codex_py.protocol.encoding import decode_json
from codex_py.skills.model import Skill

# A relative path in a command; an absolute one, and what follows a variable, is left alone.
_RELATIVE: Final = re.compile(r"(?<![\w./$}~\"'-])(['\"]?)(?:\./)?([\w-][\w.-]*(?:/[\w.-]+)+|[\w-][\w.-]*\.\w+)")
_PLAIN: Final = re.compile(r"[\w./-]+")


def find_skill_hooks(skill: Skill, loaded: LoadedConfig, *, home: Path, cwd: Path, trusts_all: bool) -> FoundHooks:
    """The hooks of a skill, of which those run that the user trusts; empty where the user switched hooks off.

    They are trusted for the skill's directory, as the hooks of a project are for the project.
    """
    directory = skill.directory
    trusted = TrustedHooks(home)
    if not loaded.config.features.hooks or loaded.requirements.managed_hooks_only:
        return FoundHooks(project=directory, hooks=(), untrusted=(), warnings=(), trusted=trusted)
    origin = HookOrigin("skill", skill.canonical_path, directory, skill=skill.name)
    if skill.scope == "repo" and loaded.trust == "untrusted":
        read = ParsedHooks((), (f"hooks in {origin.where} are ignored: you marked the project as untrusted",))
    else:
        read = parse_hooks(hook_tables(decode_json(skill.options.hooks)), origin)
    own = ParsedHooks(tuple(_in_directory(hook, directory) for hook in read.hooks), read.warnings, read.notice)
    found = trusted_of([own], directory, trusted, cwd, trusts_all=trusts_all)
    # A session sees a skill rarely, so what other programs would run is no line for once in a lifetime.
    return found.replace(warnings=(*found.notices, *found.warnings), notices=())


def _in_directory(hook: Hook, directory: Path) -> Hook:
    """The hook with the paths of files that the skill has made absolute: hooks run in the session's directory."""
    real = os.path.realpath(directory)
    if not _PLAIN.fullmatch(real):
        return hook

    def absolute(found: re.Match[str]) -> str:
        is_own = Path(real, found[2]).is_file()
        return f"{found[1]}{real}/{found[2]}" if is_own else found[0]

    if isinstance(hook.command, str):
        return hook.replace(command=_RELATIVE.sub(absolute, hook.command))
    return hook.replace(command=tuple(_RELATIVE.sub(absolute, word) for word in hook.command))
