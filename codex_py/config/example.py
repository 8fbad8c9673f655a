"""`config.example.toml`: every key with its default and what it is for, written from the schema."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Final

from codex_py.config.keys import toml_key, toml_value
from codex_py.config.kinds import ListOf, MapOf, OneOf, Shape, Table
from codex_py.config.record import Record, Section, Setting, settings_of
from codex_py.config.schema import Config

_HEAD: Final = """\
# Every setting of codex-py, as it is when you set nothing. Copy what you want to change to
# $CODEX_HOME/config.toml (usually ~/.codex/config.toml). A line that begins with `#` and no space is a setting
# that has no value yet, or a table to copy.
"""


def render_example() -> str:
    """The text of the file. It loads without a warning, and so it does with every setting uncommented."""
    keys = {name: one for name, one in settings_of(Config).items() if not _is_table(one)}
    tables = {name: one for name, one in settings_of(Config).items() if _is_table(one)}
    blocks = [_HEAD, *(_key_block(name, one) for name, one in keys.items())]
    for name, one in tables.items():
        blocks += _table_blocks(name, one)
    return "\n".join(blocks)


def _is_table(one: Setting) -> bool:
    return isinstance(one.kind, Section | MapOf | Shape | Table)


def _table_blocks(header: str, one: Setting) -> Iterator[str]:
    match one.kind:
        case Section():
            yield from _record_blocks(header, one.kind.record, one.doc)
        case MapOf() if isinstance(one.kind.kind, Section):
            inner = f"{header}.{toml_key(one.sample)}"
            yield from _record_blocks(inner, one.kind.kind.record, one.doc, commented=True)
        case MapOf() if isinstance(one.kind.kind, Shape):
            for entry, table in one.sample.items():
                lines = [_comment(one.doc), f"#[{header}.{toml_key(entry)}]"]
                lines += [f"#{name} = {toml_value(value)}" for name, value in table.items()]
                yield "\n".join(lines) + "\n"
        case _:
            yield f"{_comment(one.doc)}\n#[{header}]\n"


def _record_blocks(header: str, record: type[Record], doc: str, *, commented: bool = False) -> Iterator[str]:
    """A table, and after it the tables inside it."""
    settings = settings_of(record)
    mark = "#" if commented else ""
    yield f"{_comment(doc)}\n{mark}[{header}]"
    for name, one in settings.items():
        if not isinstance(one.kind, Section) and not _is_list_of_tables(one):
            yield _key_block(name, one, commented=commented).rstrip("\n")
    yield ""
    for name, one in settings.items():
        if isinstance(one.kind, Section):
            yield from _record_blocks(f"{header}.{name}", one.kind.record, one.doc)
        elif isinstance(one.kind, ListOf) and isinstance(one.kind.kind, Section):
            yield from _entry_block(f"{header}.{name}", one.kind.kind.record, one.doc)


def _is_list_of_tables(one: Setting) -> bool:
    return isinstance(one.kind, ListOf) and isinstance(one.kind.kind, Section)


def _entry_block(header: str, record: type[Record], doc: str) -> Iterator[str]:
    yield f"{_comment(doc)}\n#[[{header}]]"
    for name, one in settings_of(record).items():
        yield _key_block(name, one, commented=True).rstrip("\n")
    yield ""


def _key_block(name: str, one: Setting, *, commented: bool = False) -> str:
    words = f" ({' | '.join(one.kind.words)})" if isinstance(one.kind, OneOf) else ""
    unset = one.default is None or (commented and one.sample is not None)
    value = one.sample if unset else one.default
    mark = "#" if unset or commented else ""
    return f"{_comment(one.doc + words)}\n{mark}{toml_key(name)} = {toml_value(value)}\n"


def _comment(text: str) -> str:
    return fill(text, 116, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
