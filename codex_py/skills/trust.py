"""Whether installed skills are still what the user agreed to: compares their files with the records in CODEX_HOME.

Loaded only where there are records. A skill whose files have the stamps they had costs one `stat` a file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.skills.capabilities import read_capabilities
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem, SkillRoot
from codex_py.skills.records import NO_HASH, InstallRecord, RecordsRefused, read_agreed
from codex_py.skills.tree import TreeFile, TreeRefused, list_tree, stamp_of, tree_hash
from codex_py.text.display import first_names
from codex_py.text.files import load_checked, save_checked

_CACHE: Final = Path("cache", "skill-trust")
_FORMAT: Final = b"codex-py skill trust 2"
_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_NAMED: Final = 3
# A file written again within one tick of the file system's clock keeps its stamp.
_TICK_NS: Final = 20_000_000

# Of directories with skills, those that differ from what the repository around them has committed.
ChangedOutside: TypeAlias = Callable[[Path, Sequence[Path]], Collection[Path]]


class SkillState(NamedTuple):
    """One installed skill: how it differs from its record ("" for not at all), and whether it is held back."""

    name: str
    directory: Path
    difference: str = ""
    is_held: bool = False

    @property
    def message(self) -> str:
        """The line for the user about a skill that is held back, or was edited."""
        if not self.name:
            return f"held back: {self.difference}"
        remedy = f"`codex-py skills update --diff {self.name}` shows it"
        if not self.is_held:
            return f"{self.difference}: {remedy}"
        return f"held back: {self.difference}; {remedy}, `codex-py skills update --accept {self.name}` agrees to it"


class _Known(Value):
    """The findings about files with these stamps."""

    stamp: str
    tree: str
    mentioned: str = ""
    """The hash whose difference the user has seen."""


class ConsentCheck:
    """Compares skills with their records; `home` is CODEX_HOME, which keeps the hashes too."""

    def __init__(self, home: Path, changed_outside: ChangedOutside) -> None:
        self._home = home
        self._cache = home / _CACHE
        self._changed_outside = changed_outside
        self._known = _load(self._cache)
        self._is_stale = False
        self._mentions: list[str] = []

    def apply(self, roots: Sequence[SkillRoot], catalog: SkillCatalog) -> SkillCatalog:
        """The catalogue without the skills that are held back, which become problems, and with those edited."""
        states = [state for root in roots for state in self.states(root)]
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
        """Every installed skill in a directory."""
        try:
            entries = read_agreed(self._home, root.path)
        except RecordsRefused as error:
            yield SkillState("", root.path, f"{error}; restore it, or delete it to go on without", is_held=True)
            return
        changed: list[tuple[str, Path, InstallRecord]] = []
        for name, entry in entries.items():
            directory = Path(os.path.realpath(root.path / name))
            if not os.path.lexists(root.path / name):
                continue
            try:
                tree = self._tree(directory)
            except (TreeRefused, OSError) as error:
                reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                yield SkillState(name, directory, f"it cannot be checked: {reason}", is_held=True)
                continue
            if tree in (entry.tree_hash, entry.pending.tree_hash if entry.pending else None):
                yield SkillState(name, directory)
            elif entry.tree_hash != NO_HASH:
                changed.append((name, directory, entry))
        yield from self._changed(root, changed)

    def _changed(self, root: SkillRoot, changed: list[tuple[str, Path, InstallRecord]]) -> Iterator[SkillState]:
        outside: Collection[Path] = ()
        if changed and root.scope == "repo":
            outside = self._changed_outside(root.path, [directory for _, directory, _ in changed])
        for name, directory, entry in changed:
            try:
                added = read_capabilities(directory).added_to(entry.declared)
            except (TreeRefused, OSError):
                added = ["files that cannot be read"]
            difference = "it differs from what was installed"
            if added:
                difference = f"it has more capabilities than you agreed to: {first_names(added, _MAX_NAMED)}"
            if directory in outside:
                difference += ", and the change is not in git's history"
            yield SkillState(name, directory, difference, bool(added) or directory in outside)

    def _tree(self, directory: Path) -> str:
        key = str(directory)
        known = self._known.get(key)
        # The start of every session comes here: nothing is read, and names that were checked before are not again.
        if known is not None and known.stamp and known.stamp == stamp_of(list_tree(directory, checks=False)):
            return known.tree
        files = list_tree(directory)
        stamp = stamp_of(files)
        tree = tree_hash(directory, files)
        self._known[key] = _Known(stamp if _is_settled(files) else "", tree, known.mentioned if known else "")
        self._is_stale = True
        return tree

    def _mention(self, state: SkillState) -> Iterator[str]:
        known = self._known[str(state.directory)]
        if known.mentioned != known.tree:
            self._known[str(state.directory)] = known.replace(mentioned=known.tree)
            self._is_stale = True
            yield f"the skill `{state.name}` is used, but {state.message}"

    def _save(self) -> None:
        if self._is_stale:
            self._is_stale = False
            found = {path: list(vars(known).values()) for path, known in self._known.items() if os.path.lexists(path)}
            save_checked(self._cache, _FORMAT, json.dumps(found).encode(), max_bytes=_MAX_BYTES)


def _is_settled(files: Sequence[TreeFile]) -> bool:
    return all(time.time_ns() - max(file.stamp[:2]) > _TICK_NS for file in files)


def _load(cache: Path) -> dict[str, _Known]:
    body = load_checked(cache, _FORMAT, max_bytes=_MAX_BYTES)
    found: dict[str, _Known] = {}
    with suppress(ValueError, RecursionError):
        for path, fields in as_object(json.loads(body)).items() if body else ():
            texts = [text for text in as_list(fields) if isinstance(text, str)]
            if len(texts) == len(_Known.__match_args__):
                found[path] = _Known(*texts)
    return found
