"""The skills of a session: all scans in one catalogue, the user's switches applied, and its warnings."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from codex_py.paths import real_path
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem, SkillRoot, catalogue_key
from codex_py.skills.record import NEVER, FoundFile, Scan, are_current, load_scan, remarks_of, save_scan, skill_of
from codex_py.skills.roots import SYSTEM_DIRECTORIES, SkillRootsRequest, skill_roots
from codex_py.skills.rules import SkillSwitch, apply_rules
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.sanitize import sanitize_line

_MAX_LINES: Final = 5
_MORE: Final = "`codex-py skills doctor` tells all"


def load_warnings(catalog: SkillCatalog) -> tuple[str, ...]:
    """One line a skill that could not be loaded, or one for all when they are more than five; then the limits hit.

    Leaves out the system's own skills, which the user cannot fix.
    """
    problems = [problem for problem in catalog.problems if problem.scope != "system"]
    lines = [f"failed to load skill {problem.path}: {problem.message}" for problem in problems]
    if len(lines) > _MAX_LINES:
        lines = [f"failed to load {len(lines)} skills, such as {problems[0].path}: {problems[0].message} ({_MORE})"]
    lines += [f"skill file {remark.path}: {remark.message}" for remark in catalog.remarks[:1]]
    if (others := len(catalog.remarks) - 1) > 0:
        lines[-1] += f", and that of {others} more ({_MORE})"
    notes = catalog.notes
    if notes:
        others = len(notes) - 1
        lines.append(notes[0] + (f", and {others} more of this kind ({_MORE})" if others else ""))
    if catalog.replaced:
        names = ", ".join(f"`{name}`" for name in catalog.replaced)
        lines.append(f"your own or the project's {names} is used instead of the bundled skill of that name")
    return tuple(sanitize_line(line) for line in lines)


_MAX_CACHED: Final = 64
# Below CODEX_HOME. The names stand here so that a start without records imports nothing of them.
RECORDS: Final = "skill-records"
# Of versions up to 0.1, beside the skills.
OLD_LOCK: Final = "skills.lock"
# So much of two files is compared.
_MAX_COMPARED: Final = 1024 * 1024
_DENIED: Final = "`sandbox.deny_read` denies reading it"

_K = TypeVar("_K")
_V = TypeVar("_V")
_Key: TypeAlias = tuple[tuple[SkillRoot, ...], tuple[SkillSwitch, ...]]


class SkillChecker(Protocol):
    """Compares installed skills with what the user agreed to; loaded where there are records of that."""

    def apply(self, roots: Sequence[SkillRoot], catalog: SkillCatalog) -> SkillCatalog:
        """The catalogue without the skills that are held back; the same object when there are none."""
        ...

    def take_mentions(self) -> tuple[str, ...]:
        """A line for each change that is to be mentioned once."""
        ...


def _has_records(home: Path, roots: Sequence[SkillRoot]) -> bool:
    """Whether any skill was installed, as far as a look at names tells; `home` is CODEX_HOME."""
    return os.path.lexists(home / RECORDS) or any(os.path.lexists(f"{root.path}/{OLD_LOCK}") for root in roots)


class SkillService:
    """Gives the catalogue for a turn; asking again costs one `stat` a file, and nothing is read that did not change.

    `cache` is a directory that stores what was read, or None to keep it in memory only. Files that `may_read`
    denies are left out; unless `checks_plain`, only files reached through links are asked about. `load_checker` is
    called where a skill was installed.
    """

    def __init__(
        self,
        cache: Path | None = None,
        may_read: Callable[[Path], bool] = bool,
        *,
        checks_plain: bool = True,
        load_checker: Callable[[], SkillChecker] | None = None,
    ) -> None:
        self._load_checker = load_checker
        self._checker: SkillChecker | None = None
        self._checked: tuple[SkillCatalog, SkillCatalog] | None = None
        self._cache = cache
        self._checks_plain = checks_plain
        self._may_read = may_read
        self._scans: dict[SkillRoot, Scan] = {}
        self._assembled: dict[_Key, tuple[tuple[Scan, ...], SkillCatalog]] = {}
        self._last: tuple[SkillRootsRequest, tuple[Scan, ...]] | None = None
        # By path, whether the file is new.
        self._changed: dict[str, bool] = {}

    def catalog(
        self, request: SkillRootsRequest, rules: Sequence[SkillSwitch] = (), *, force_reload: bool = False
    ) -> SkillCatalog:
        """The skills as they are on disk now; the same object as before when nothing changed. Never raises.

        `force_reload` forgets everything that was kept.
        """
        if force_reload:
            self._scans.clear()
            self._assembled.clear()
        roots = skill_roots(request)
        scans = tuple(self._scan(root, force_reload=force_reload) for root in roots)
        if self._last is not None:
            changed = _changed_files(self._last[1], scans, same_places=self._last[0] == request)
            self._changed = changed | self._changed
        self._last = (request, scans)
        key = (roots, tuple(rules))
        known = self._assembled.get(key)
        if known is None or any(old is not new for old, new in zip(known[0], scans, strict=True)):
            catalog = assemble(scans, rules, may_read=self._may_list)
            known = (scans, catalog)
            _keep(self._assembled, key, known)
        return self._without_held(request.home, roots, known[1])

    def take_mentions(self) -> tuple[str, ...]:
        """A line for each installed skill that was edited since it was installed, the first time only."""
        return self._checker.take_mentions() if self._checker else ()

    def _without_held(self, home: Path, roots: Sequence[SkillRoot], catalog: SkillCatalog) -> SkillCatalog:
        """The catalogue without the skills that differ from their record and have to be agreed to."""
        if self._checker is None and self._load_checker and _has_records(home, roots):
            self._checker = self._load_checker()
        if self._checker is None:
            return catalog
        checked = self._checker.apply(roots, catalog)
        earlier = self._checked
        if earlier is not None and earlier[0] is catalog and earlier[1] == checked:
            return earlier[1]
        self._checked = (catalog, checked)
        return checked

    def take_changes(self) -> dict[str, bool]:
        """The `SKILL.md` files that have changed since this was last called, as reached from the root, and whether each
        is new."""
        changed, self._changed = self._changed, {}
        return changed

    def _may_list(self, file: FoundFile) -> bool:
        return (not self._checks_plain and file.path == file.real) or self._may_read(Path(file.path))

    def _scan(self, root: SkillRoot, *, force_reload: bool) -> Scan:
        earlier = self._scans.get(root)
        if earlier is None and self._cache and not force_reload:
            earlier = load_scan(self._cache, root)
        if earlier is None or not are_current(earlier.stamps):
            from codex_py.skills.scan import scan_root  # the seam: at most starts nothing has changed

            earlier = scan_root(root, earlier)
            if self._cache:
                save_scan(self._cache, earlier)
        _keep(self._scans, root, earlier)
        return earlier


def _changed_files(before: Sequence[Scan], now: Sequence[Scan], *, same_places: bool) -> dict[str, bool]:
    """The files that have changed, and whether each is new. In a root that was not there everything is new, but not
    after a change of directory. A search that was cut short, and what was written while it was read, tell of no change.
    """
    known = {scan.root: scan for scan in before}
    changed: dict[str, bool] = {}
    for scan in now:
        earlier = known.get(scan.root)
        if earlier is None and same_places:
            changed |= {record.file.path: True for record in scan.records}
        if earlier is None or earlier is scan:
            continue
        for path in (record.file.path for record in scan.records):
            is_new = path not in earlier.stamps
            if (not earlier.notes) if is_new else earlier.stamps[path] not in (NEVER, scan.stamps.get(path)):
                changed[path] = is_new
    return changed


def assemble(
    scans: Sequence[Scan],
    rules: Sequence[SkillSwitch] = (),
    *,
    may_read: Callable[[FoundFile], bool] = bool,
) -> SkillCatalog:
    """One catalogue of the scans of all roots, in their order: the first root to reach a file has it.

    A link of a project that leads into a root outside of the project is no problem: that root has its skills. A link
    of a plugin must stay in the plugin or lead into a root.
    """
    skills: list[Skill] = []
    problems: list[SkillProblem] = []
    remarks: list[SkillProblem] = []
    notes: list[str] = []
    seen: set[str] = set()
    tops = [scan.root.path for scan in scans]
    other_roots = [scan.root.path for scan in scans if scan.root.inside is None]
    outside: dict[str, SkillProblem] = {}
    for scan in scans:
        scope = scan.root.scope
        others = other_roots if scan.root.inside else ()
        problems.extend(refusal for refusal in scan.refused if not _leads_into(refusal.path, others))
        notes.extend(scan.notes)
        for record in scan.records:
            if record.file.real in seen:
                continue
            if link := _link_out_of_plugin(record.file, scan.root, tops):
                outside.setdefault(link, SkillProblem(Path(link), "a link that leads out of the plugin", scope))
                continue
            if not may_read(record.file):
                problems.append(SkillProblem(Path(record.file.path), _DENIED, scope))
                continue
            seen.add(record.file.real)
            if record.error:
                problems.append(SkillProblem(Path(record.file.path), record.error, scope))
                continue
            if record.ours:
                skills.append(skill_of(record, scan.root))
            remarks.extend(SkillProblem(Path(path), remark, scope) for path, remark in remarks_of(record))
    problems.extend(outside.values())
    skills = _without_copies(_without_doubles(skills))
    skills.sort(key=catalogue_key)
    disabled = apply_rules(skills, rules)
    skills, replaced = _without_replaced(skills, disabled)
    return SkillCatalog(tuple(skills), disabled, tuple(problems), tuple(remarks), tuple(notes), replaced)


def _leads_into(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path leads into a root: in the end, or where a link there says, which may be another link."""
    target = Path(real_path(path.parent), path.readlink() if path.is_symlink() else path.name)
    ends = (Path(real_path(path)), Path(real_path(target.parent), target.name))
    return any(end.is_relative_to(root) for end in ends for root in roots)


def _link_out_of_plugin(file: FoundFile, root: SkillRoot, tops: Sequence[Path]) -> str:
    """The link below a plugin's root through which a file outside of the plugin and all roots was found; else ""."""
    if file.path == file.real or root.plugin_root is None or _leads_into(Path(file.real), (*tops, root.plugin_root)):
        return ""
    reached = (directory for directory in reversed(Path(file.path).parents) if directory.is_relative_to(root.path))
    return next((str(directory) for directory in reached if directory.is_symlink()), file.path)


def _without_doubles(skills: list[Skill]) -> list[Skill]:
    """Of two system skills with one name ours counts: another program's own directory is beside it for those who use
    both, and the name would mean neither."""
    ours = {skill.name for skill in skills if skill.root.path.name == SYSTEM_DIRECTORIES[-1]}
    return [
        skill
        for skill in skills
        if skill.scope != "system" or skill.name not in ours or skill.root.path.name == SYSTEM_DIRECTORIES[-1]
    ]


def _without_copies(skills: list[Skill]) -> list[Skill]:
    """The skills without those of Claude Code that another root has under the same name, and with the same content."""
    if not any(skill.root.root_type == "claude" for skill in skills):
        return skills
    others: defaultdict[str, list[Skill]] = defaultdict(list)
    left: list[Skill] = []
    for skill in skills:
        is_copy = skill.root.root_type == "claude" and any(
            _has_same_content(skill, other) for other in others[skill.name]
        )
        if not is_copy:
            others[skill.name].append(skill)
            left.append(skill)
    return left


def _has_same_content(skill: Skill, other: Skill) -> bool:
    if skill.description != other.description:
        return False
    try:
        heads = [
            read_inside(each.root.inside or each.canonical_path.parent, each.canonical_path, _MAX_COMPARED)
            for each in (skill, other)
        ]
    except FileRefused:
        return False
    return heads[0] is not None and heads[1] is not None and heads[0].raw == heads[1].raw


def _without_replaced(skills: list[Skill], disabled: frozenset[Path]) -> tuple[list[Skill], tuple[str, ...]]:
    """The skills without the bundled ones whose name somebody else's enabled skill has, and these names."""
    others = {skill.name for skill in skills if skill.scope != "system" and skill.canonical_path not in disabled}
    replaced = tuple(skill.name for skill in skills if skill.scope == "system" and skill.name in others)
    if not replaced:
        return skills, ()
    return [skill for skill in skills if skill.scope != "system" or skill.name not in others], replaced


def _keep(cache: dict[_K, _V], key: _K, value: _V) -> None:
    """Put a value last, and drop the one that was used longest ago when there are too many."""
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > _MAX_CACHED:
        del cache[next(iter(cache))]
