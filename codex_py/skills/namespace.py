"""The namespace of skills that lie in a plugin: the name in the manifest of the nearest directory that has one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from codex_py.protocol.encoding import as_object, decode_json
from codex_py.skills.record import Stamp, stamp
from codex_py.text.files import FileRefused, read_inside, read_trusted

MANIFEST_DIRECTORIES: Final = (".codex-plugin", ".claude-plugin")
_MANIFEST: Final = "plugin.json"
_MAX_BYTES: Final = 64 * 1024


class Namespaces:
    """Looks manifests up, each once, and notes in `stamps` what it depended on.

    Below `inside` a manifest that is a link out of there counts as none.
    """

    def __init__(self, inside: Path | None, stamps: dict[str, Stamp]) -> None:
        self._inside = inside
        self._stamps = stamps
        self._known: dict[str, str | None] = {}

    def of(self, directory: str) -> str | None:
        """The namespace of a real directory: its own, or that of the nearest directory above with a valid manifest."""
        missing: list[str] = []
        for ancestor in _upwards(directory):
            if ancestor in self._known:
                break
            missing.append(ancestor)
        for ancestor in reversed(missing):
            self._known[ancestor] = self._own(ancestor) or self._known.get(_parent(ancestor))
        return self._known[directory]

    def inherit(self, directory: str) -> None:
        """Note that a directory was read and has no manifest, so that it is not searched again."""
        if directory not in self._known:
            self._known[directory] = self.of(_parent(directory))

    def _own(self, directory: str) -> str | None:
        for name in MANIFEST_DIRECTORIES:
            path = f"{directory.rstrip('/')}/{name}/{_MANIFEST}"
            self._stamps[path] = stamp(path)
            if self._stamps[path] is not None and (found := self._read(Path(path))) is not None:
                return found.strip() or directory.rpartition("/")[2] or None
        return None

    def _read(self, path: Path) -> str | None:
        """The name in a manifest, "" when it has none; None when it is no manifest."""
        try:
            if self._inside and path.is_relative_to(self._inside):
                head = read_inside(self._inside, path, _MAX_BYTES)
            else:
                head = read_trusted(path, _MAX_BYTES)
            if head is None or head.size > _MAX_BYTES:
                return None
            value = decode_json(head.raw)
        except (FileRefused, ValueError):
            return None
        name = as_object(cast("object", value)).get("name", "") if isinstance(value, dict) else None
        return name if isinstance(name, str) else None


def _upwards(directory: str) -> Iterator[str]:
    yield directory
    while (parent := _parent(directory)) != directory:
        directory = parent
        yield directory


def _parent(directory: str) -> str:
    return directory.rpartition("/")[0] or "/"
