"""Writes `config.example.toml` from the schema: every key with its default and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Final

from codex_py.config.keys import toml_key, toml_value
from codex_py.config.schema import Config
from codex_py.config.value_types import (
    AnyTable,
    ConfigRecord,
    ListOf,
    MapOf,
    RecordSection,
    Setting,
    Shape,
    WordChoice,
    settings_of,
)

_HEAD: Final = """\
# Every setting of codex-py, as it is when you set nothing. Copy what you want to change to
# $CODEX_HOME/config.toml (usually ~/.codex/config.toml). A line that begins with `#` and no space is a setting
# that has no value yet, or a table to copy.
"""


def render_example() -> str:
    """The text of the file. It loads without a warning, also with every setting uncommented."""
    keys = {name: table for name, table in settings_of(Config).items() if not _is_table(table)}
    tables = {name: table for name, table in settings_of(Config).items() if _is_table(table)}
    blocks = [_HEAD, *(_key_block(name, table) for name, table in keys.items())]
    for name, table in tables.items():
        blocks += _table_blocks(name, table)
    return "\n".join(blocks)


def _is_table(setting: Setting) -> bool:
    return isinstance(setting.value_type, RecordSection | MapOf | Shape | AnyTable)


def _table_blocks(header: str, setting: Setting) -> Iterator[str]:
    match setting.value_type:
        case RecordSection():
            yield from _record_blocks(header, setting.value_type.record, setting.doc)
        case MapOf() if isinstance(setting.value_type.value_type, RecordSection):
            inner = f"{header}.{toml_key(setting.sample)}"
            yield from _record_blocks(inner, setting.value_type.value_type.record, setting.doc, commented=True)
        case MapOf() if isinstance(setting.value_type.value_type, Shape):
            for entry, table in setting.sample.items():
                lines = [_comment(setting.doc), f"#[{header}.{toml_key(entry)}]"]
                lines += [f"#{name} = {toml_value(value)}" for name, value in table.items()]
                yield "\n".join(lines) + "\n"
        case AnyTable(keys=keys, entries=entries):
            lines = [_comment(setting.doc), f"#[[{header}.{entries}]]" if entries else f"#[{header}]"]
            for key in keys:
                lines += [_comment(key.purpose), f"#{key.name} = {toml_value(key.sample)}"]
            yield "\n".join(lines) + "\n"
        case _:
            raise TypeError(f"`{header}` is not a table")


def _record_blocks(header: str, record: type[ConfigRecord], doc: str, *, commented: bool = False) -> Iterator[str]:
    """A table, and after it the tables inside it."""
    settings = settings_of(record)
    mark = "#" if commented else ""
    yield f"{_comment(doc)}\n{mark}[{header}]"
    for name, setting in settings.items():
        if not isinstance(setting.value_type, RecordSection) and not _is_list_of_tables(setting):
            yield _key_block(name, setting, commented=commented).rstrip("\n")
    yield ""
    for name, setting in settings.items():
        if isinstance(setting.value_type, RecordSection):
            yield from _record_blocks(f"{header}.{name}", setting.value_type.record, setting.doc)
        elif isinstance(setting.value_type, ListOf) and isinstance(setting.value_type.value_type, RecordSection):
            yield from _entry_block(f"{header}.{name}", setting.value_type.value_type.record, setting.doc)


def _is_list_of_tables(setting: Setting) -> bool:
    return isinstance(setting.value_type, ListOf) and isinstance(setting.value_type.value_type, RecordSection)


def _entry_block(header: str, record: type[ConfigRecord], doc: str) -> Iterator[str]:
    yield f"{_comment(doc)}\n#[[{header}]]"
    for name, setting in settings_of(record).items():
        yield _key_block(name, setting, commented=True).rstrip("\n")
    yield ""


def _key_block(name: str, setting: Setting, *, commented: bool = False) -> str:
    words = f" ({' | '.join(setting.value_type.words)})" if isinstance(setting.value_type, WordChoice) else ""
    unset = setting.default is None or (commented and setting.sample is not None)
    value = setting.sample if unset else setting.default
    mark = "#" if unset or commented else ""
    return f"{_comment(setting.doc + words)}\n{mark}{toml_key(name)} = {toml_value(value)}\n"


def _comment(text: str) -> str:
    return fill(text, 116, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
