"""Changing one value in a configuration file, comments and layout kept."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Generator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from codex_py.config.files import read_text
from codex_py.config.keys import KeyPath, dotted
from codex_py.config.layers import nested, parse_toml
from codex_py.config.trust import find_root, real_path
from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir, open_private

# An edit takes some 30 ms.
_LOCK_SECONDS: Final = 2.0
_LOCK_POLL: Final = 0.01

# A parsed file or a table of it, layout and comments included.
Document: TypeAlias = MutableMapping[str, Any]


def trust_project(home: Path, directory: Path) -> Path:
    """Note in the user's `config.toml` that they trust the git repository round `directory`, or else `directory`
    itself.

    Gives back the directory that is trusted now. Raises `UserError` when the file cannot be read or written.
    """
    real = real_path(directory)
    root = find_root(real, (".git",)) or real
    set_value(home / "config.toml", ("projects", str(root), "trust_level"), "trusted")
    return root


def set_value(path: Path, keys: Sequence[str], value: Any) -> None:
    """Set one key of a TOML file; the file is replaced as a whole or not at all, and only the user can read it.

    A link is followed, so that a file kept elsewhere stays there. Raises `UserError` when it cannot be done.
    """
    edit_file(
        path,
        tuple(keys),
        change=lambda document: _put(document, keys, value),
        wanted=lambda tree: _with_value(tree, keys, value),
    )


def edit_file(
    path: Path, keys: KeyPath, *, change: Callable[[Document], bool], wanted: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Edit a TOML file in the way of `set_value`; `keys` name what is changed.

    `change` edits the document and says whether it could; `wanted` makes of the tables before what reading the file
    must give afterwards. Edits by several programs at a time come one after the other.
    """
    target = real_path(path)
    try:
        make_private_dir(target.parent)
        with _alone(target.parent):
            _replace(target, _content_after(path, keys, change, wanted))
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def _content_after(
    path: Path, keys: KeyPath, change: Callable[[Document], bool], wanted: Callable[[dict[str, Any]], dict[str, Any]]
) -> bytes:
    before = read_text(real_path(path)) or ""
    tree = parse_toml(before, path)
    after = _edited(before, change)
    if after is None or tomllib.loads(after) != wanted(tree):
        raise UserError(
            f"cannot set `{dotted(keys)}` in `{path}`: its tables are written in a way that cannot be edited"
        )
    return after.encode()


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Have the files of a directory to oneself, among programs that ask for this; a lock held for longer is no edit."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + _LOCK_SECONDS
    try:
        while not lock(descriptor) and time.monotonic() < deadline:
            time.sleep(_LOCK_POLL)
        yield
    finally:
        os.close(descriptor)


def _edited(text: str, change: Callable[[Document], bool]) -> str | None:
    """The text with the change made, None where it could not be."""
    # Loaded here, because reading the configuration does not need it.
    import tomlkit.exceptions

    try:
        document = tomlkit.parse(text)
        return tomlkit.dumps(document) if change(cast("Document", document)) else None
    except (tomlkit.exceptions.TOMLKitError, ValueError):
        return None


def _put(document: Document, keys: Sequence[str], value: Any) -> bool:
    """Set a value; False where a table was expected and something else stands."""
    table = document
    for depth, key in enumerate(keys[:-1]):
        if key not in table:
            # Of new tables only the last one gets a header of its own.
            table[key] = new_table(table, has_header=depth == len(keys) - 2)
        inner: object = table[key]
        if not isinstance(inner, MutableMapping):
            return False
        table = cast("Document", inner)
    table[keys[-1]] = value
    return True


def new_table(parent: Document, *, has_header: bool = True) -> Document:
    """A table to put into another; inside an inline table it is inline too."""
    import tomlkit.items

    inline = isinstance(parent, tomlkit.items.InlineTable)
    return tomlkit.inline_table() if inline else tomlkit.table(is_super_table=not has_header)


def is_super_table(table: Document) -> bool:
    """Whether a table has no header of its own."""
    check: object = getattr(table, "is_super_table", None)
    return callable(check) and bool(check())


def _with_value(tree: dict[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    """What reading the edited file must give."""
    return _overlaid(tree, nested(keys, value))


def _overlaid(tree: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(tree)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[name] = _overlaid(cast("dict[str, Any]", below), cast("dict[str, Any]", value)) if both else value
    return merged


def _replace(target: Path, content: bytes) -> None:
    """Write beside the file, then rename over it: a reader sees the old text or the new one."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(descriptor)
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
