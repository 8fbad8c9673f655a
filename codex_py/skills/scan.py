"""A root searched, and what was found read, as far as it is not known already."""

from __future__ import annotations

import time
from collections.abc import Mapping

from codex_py.skills.discover import find_skill_files
from codex_py.skills.model import SkillRoot
from codex_py.skills.reading import read_record, sources
from codex_py.skills.record import Scan, SkillRecord
from codex_py.skills.stamps import NEVER, Stamp, stamp


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
