"""Whether installed skills are still what was agreed to: compares them with the `skills.lock` beside them.

Loaded only where there is a lock. A skill whose files have the stamps they had costs one `stat` a file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.skills.capabilities import Capabilities, capabilities_from, read_capabilities
from codex_py.skills.lock import NO_HASH, LockEntry, LockRefused, has_lock, read_lock
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem, SkillRoot
from codex_py.skills.service import LOCK_FILE
from codex_py.skills.tree import TreeFile, TreeRefused, list_tree, stamp_of, tree_hash
from codex_py.text.display import first_names
from codex_py.text.files import load_checked, save_checked

_FORMAT: Final = b"codex-py skill trust 1"
_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_NAMED: Final = 3
# A file written again within one tick of the file system's clock keeps its stamp.
_TICK_NS: Final = 20_000_000

# Of directories with skills, those that differ from what the repository around them has committed.
ChangedOutside: TypeAlias = Callable[[Path, Sequence[Path]], Collection[Path]]


class SkillState(NamedTuple):
    """One locked skill: its directory, how it differs from the lock ("" for not at all), and whether it is held back.

    `added` are the capabilities that were not agreed to.
    """

    name: str
    directory: Path
    entry: LockEntry | None
    difference: str = ""
    is_held: bool = False
    added: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The line for the user about a skill that is held back, or was edited."""
        if self.entry is None:
            return f"held back: {self.difference}"
        remedy = f"`codex-py skills diff {self.name}` shows it"
        if not self.is_held:
            return f"{self.difference}: {remedy}"
        return f"held back: {self.difference}; {remedy}, `codex-py skills accept {self.name}` agrees to it"


class _Known(Value):
    """The findings about files with these stamps. `mentioned` is the hash whose difference the user has seen."""

    stamp: str
    tree: str
    capabilities: Capabilities | None = None
    mentioned: str = ""


class LockCheck:
    """Compares skills with their locks. `cache` is a file that keeps the hashes, or None."""

    def __init__(self, cache: Path | None, changed_outside: ChangedOutside) -> None:
        self._cache = cache
        self._changed_outside = changed_outside
        self._known = _load(cache)
        self._is_stale = False
        self._mentions: list[str] = []

    def apply(self, roots: Sequence[SkillRoot], catalog: SkillCatalog) -> SkillCatalog:
        """The catalogue without the skills that are held back, which become problems, and with those edited."""
        states = [state for root in roots if has_lock(root.path) for state in self.states(root)]
        held = {str(state.directory): state for state in states if state.is_held}
        edited = {str(state.directory): state for state in states if state.difference and not state.is_held}
        self._save()
        if not (held or edited):
            return catalog
        left: list[Skill] = []
        problems = list(catalog.problems)
        remarks: list[SkillProblem] = []
        for skill in catalog.skills:
            directories = [str(parent) for parent in skill.canonical_path.parents]
            if state := next((held[path] for path in directories if path in held), None):
                problems.append(SkillProblem(skill.path, state.message, skill.scope))
                continue
            left.append(skill)
            if state := next((edited[path] for path in directories if path in edited), None):
                remarks.append(SkillProblem(skill.path, state.message, skill.scope))
        self._mentions += [line for state in edited.values() for line in self._mention(state)]
        self._save()
        return catalog._replace(skills=tuple(left), problems=tuple(problems), edited=tuple(remarks))

    def take_mentions(self) -> tuple[str, ...]:
        """A line for each edited skill whose difference has never been shown."""
        mentions, self._mentions = tuple(self._mentions), []
        return mentions

    def states(self, root: SkillRoot) -> Iterator[SkillState]:
        """Every locked skill in a directory."""
        try:
            entries = read_lock(root.path)
        except LockRefused as error:
            reason = f"`{root.path / LOCK_FILE}` cannot be read: {error}; restore it, or delete it to go on without"
            yield SkillState("", root.path, None, reason, is_held=True)
            return
        changed: list[tuple[str, Path, LockEntry]] = []
        for name, entry in entries.items():
            directory = Path(os.path.realpath(root.path / name))
            if not os.path.lexists(root.path / name):
                continue
            try:
                tree = self._tree(directory)
            except (TreeRefused, OSError) as error:
                reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                yield SkillState(name, directory, entry, f"it cannot be checked: {reason}", is_held=True)
                continue
            if tree in (entry.tree_hash, entry.pending.tree_hash if entry.pending else None):
                yield SkillState(name, directory, entry)
            elif entry.tree_hash != NO_HASH:
                changed.append((name, directory, entry))
        yield from self._changed(root, changed)

    def _changed(self, root: SkillRoot, changed: list[tuple[str, Path, LockEntry]]) -> Iterator[SkillState]:
        outside: Collection[Path] = ()
        if changed and root.scope == "repo":
            outside = self._changed_outside(root.path, [directory for _, directory, _ in changed])
        for name, directory, entry in changed:
            try:
                added = tuple(self._capabilities(directory).added_to(entry.declared))
            except (TreeRefused, OSError):
                added = ("files that cannot be read",)
            if added:
                names = first_names(added, _MAX_NAMED)
                difference = f"it has more capabilities than `{LOCK_FILE}` agreed to: {names}"
            else:
                difference = f"it differs from `{LOCK_FILE}`"
            if directory in outside:
                difference += ", and the change is not in git's history"
            is_held = bool(added) or directory in outside
            yield SkillState(name, directory, entry, difference, is_held, added)

    def _tree(self, directory: Path) -> str:
        key = str(directory)
        known = self._known.get(key)
        # The start of every session comes here: nothing is read, and names that were checked before are not again.
        if known is not None and known.stamp and known.stamp == stamp_of(list_tree(directory, checks=False)):
            return known.tree
        files = list_tree(directory)
        stamp = stamp_of(files)
        tree = tree_hash(directory, files)
        self._known[key] = _Known(stamp if _is_settled(files) else "", tree, None, known.mentioned if known else "")
        self._is_stale = True
        return tree

    def _capabilities(self, directory: Path) -> Capabilities:
        known = self._known[str(directory)]
        if known.capabilities is not None:
            return known.capabilities
        found = read_capabilities(directory)
        if known.stamp:
            self._known[str(directory)] = known.replace(capabilities=found)
            self._is_stale = True
        return found

    def _mention(self, state: SkillState) -> Iterator[str]:
        known = self._known[str(state.directory)]
        if known.mentioned != known.tree:
            self._known[str(state.directory)] = known.replace(mentioned=known.tree)
            self._is_stale = True
            yield f"the skill `{state.name}` is used, but {state.message}"

    def _save(self) -> None:
        if self._is_stale and self._cache is not None:
            self._is_stale = False
            found = {
                path: [known.stamp, known.tree, known.capabilities and known.capabilities.as_json(), known.mentioned]
                for path, known in self._known.items()
                if os.path.lexists(path)
            }
            save_checked(self._cache, _FORMAT, json.dumps(found).encode(), max_bytes=_MAX_BYTES)


def _is_settled(files: Sequence[TreeFile]) -> bool:
    return all(time.time_ns() - max(file.stamp[:2]) > _TICK_NS for file in files)


def _load(cache: Path | None) -> dict[str, _Known]:
    body = load_checked(cache, _FORMAT, max_bytes=_MAX_BYTES) if cache is not None else None
    found: dict[str, _Known] = {}
    with suppress(ValueError, RecursionError):
        written: Mapping[str, Any] = as_object(json.loads(body)) if body else {}
        for path, fields in written.items():
            stamp, tree, capabilities, mentioned = (*as_list(fields), None, None, None, None)[:4]
            if isinstance(stamp, str) and isinstance(tree, str) and isinstance(mentioned, str):
                read = capabilities_from(capabilities) if capabilities is not None else None
                found[path] = _Known(stamp, tree, read, mentioned)
    return found
