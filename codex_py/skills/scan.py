"""What one root holds: found, read, and known to be current without looking at it all again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from codex_py.skills.discover import find_skill_files
from codex_py.skills.model import SkillProblem, SkillRoot
from codex_py.skills.record import SkillRecord, read_record, sources
from codex_py.skills.stamps import NEVER, Stamp, stamp


class Scan(NamedTuple):
    """One search of a root. While the `stamps` are current, the rest is what a new search would give."""

    root: SkillRoot
    stamps: Mapping[str, Stamp]
    records: tuple[SkillRecord, ...]
    refused: tuple[SkillProblem, ...] = ()
    notes: tuple[str, ...] = ()


def scan_root(root: SkillRoot, earlier: Scan | None, *, until: float) -> Scan:
    """Search a root, reading only the files that changed since an `earlier` scan of it.

    At the moment `until` (`time.monotonic`) it stops and says so; the next scan goes on from there.
    """
    found = find_skill_files(root, until=until)
    known = {record.file: record for record in earlier.records} if earlier else {}
    known_stamps: Mapping[str, Stamp] = earlier.stamps if earlier else {}
    records: list[SkillRecord] = []
    for file in found.files:
        if time.monotonic() > until:
            left = len(found.files) - len(records)
            found.notes.append(f"`{root.path}` takes too long to read: {left} skills were left out")
            found.stamps[str(root.path)] = NEVER
            break
        fresh = {path: stamp(path) for path in sources(file)}
        found.stamps.update(fresh)
        record = known.get(file)
        if record is None or any(new == NEVER or known_stamps.get(path) != new for path, new in fresh.items()):
            record = read_record(file, root.inside)
        records.append(record)
    return Scan(root, found.stamps, tuple(records), tuple(found.refused), tuple(found.notes))
