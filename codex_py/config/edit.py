"""Edits a configuration file, keeping its comments and layout."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable, Generator, MutableMapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

from codex_py.config.files import read_text
from codex_py.config.keys import KeyPath, dotted
from codex_py.config.layers import parse_toml
from codex_py.config.trust import find_root, real_path
from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir
from codex_py.replace_file import replace_file

# An edit takes some 30 ms.
_LOCK_SECONDS: Final = 2.0
_LOCK_POLL: Final = 0.01

# A parsed file or a table of it, layout and comments included.
Document: TypeAlias = MutableMapping[str, Any]


class NewTable(Protocol):
    """Makes a table to put into another; inside an inline table it is inline too."""

    def __call__(self, parent: Document, *, has_header: bool = True) -> Document: ...


# Edits a document, and says whether it could.
Change: TypeAlias = Callable[[Document, NewTable], bool]


def trust_project(home: Path, directory: Path) -> Path:
    """Trust the git repository around `directory`, or else `directory` itself, in the user's `config.toml`.

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
    edit_file(path, tuple(keys), lambda document, new_table: _put(document, keys, value, new_table))


def edit_file(path: Path, keys: KeyPath, change: Change) -> None:
    """Edit a TOML file as `set_value` does; `keys` name what is changed. Concurrent edits wait for each other.

    `change` edits a document and says whether it could. It is called twice: for the file, and for plain tables, which
    are what reading the edited file must give.
    """
    target = real_path(path)
    try:
        make_private_dir(target.parent)
        with _alone(target.parent):
            replace_file(target, _content_after(path, keys, change), sync=True)
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def edit_text(path: Path, keys: KeyPath, change_text: Callable[[str], str], change: Change) -> None:
    """Edit the text of a TOML file; `change` makes the same change to plain tables, by which the result is checked."""
    target = real_path(path)
    try:
        with _alone(target.parent):
            before = read_text(target) or ""
            after, expected = change_text(before), parse_toml(before, path)
            if not change(expected, _plain_table) or parse_toml(after, path) != expected:
                raise UserError(f"cannot change `{dotted(keys)}` in `{path}`: its tables are written in an unusual way")
            replace_file(target, after.encode(), sync=True)
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def _content_after(path: Path, keys: KeyPath, change: Change) -> bytes:
    before = read_text(real_path(path)) or ""
    expected = parse_toml(before, path)
    after = _edited(before, change)
    if after is None or not change(expected, _plain_table) or tomllib.loads(after) != expected:
        raise UserError(
            f"cannot set `{dotted(keys)}` in `{path}`: its tables are written in a way that cannot be edited"
        )
    return after.encode()


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Lock a directory against other editors; a lock that is held for longer than an edit takes is ignored."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + _LOCK_SECONDS
    try:
        while not lock(descriptor) and time.monotonic() < deadline:
            time.sleep(_LOCK_POLL)
        yield
    finally:
        os.close(descriptor)


def _edited(text: str, change: Change) -> str | None:
    """The text with the change made, None where it could not be."""
    # Loaded here, because reading the configuration does not need it.
    from tomlkit import dumps, exceptions, inline_table, items, parse, table

    def new_table(parent: Document, *, has_header: bool = True) -> Document:
        return inline_table() if isinstance(parent, items.InlineTable) else table(is_super_table=not has_header)

    try:
        document = parse(text)
        return dumps(document) if change(cast("Document", document), new_table) else None
    except (exceptions.TOMLKitError, ValueError):
        return None


def _plain_table(parent: Document, *, has_header: bool = True) -> Document:
    return {}


def _put(document: Document, keys: Sequence[str], value: Any, new_table: NewTable) -> bool:
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


def is_super_table(table: Document) -> bool:
    """Whether a table has no header of its own."""
    check: object = getattr(table, "is_super_table", None)
    return callable(check) and bool(check())
