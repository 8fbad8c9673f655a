"""Where a plugin writes its hooks. What they mean is read in the room of hooks; nothing is run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.protocol.encoding import as_list, as_object
from codex_py.skills.plugins import Plugin, inside, read_json

_FILE: Final = "hooks/hooks.json"
_MAX_FILES: Final = 16


class WrittenHooks(NamedTuple):
    """A JSON document with hooks, and the file it is from; None where it stands in the manifest."""

    document: dict[str, Any]
    path: Path | None


def written_hooks(plugin: Plugin) -> list[WrittenHooks]:
    """The hooks of `hooks/hooks.json`, or those that the manifest's `hooks` has or names.

    A file that is missing, outside the plugin, over 64 KiB or no JSON object counts as none.
    """
    named: object = plugin.manifest.get("hooks")
    found: list[WrittenHooks] = []
    for source in ([_FILE] if named is None else as_list(named) or [named])[:_MAX_FILES]:
        if not isinstance(source, str):
            found.append(WrittenHooks(as_object(source), None))
        elif (path := inside(plugin.root, source)) is not None and (document := read_json(plugin.root, path)):
            found.append(WrittenHooks(document, path))
    return found
