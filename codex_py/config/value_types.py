"""Types of configuration values: how a TOML value is checked, and records that declare their keys.

`check` runs once a layer, because a wrong value is reported by file and line and a relative path starts at its file.
`build` runs once, on the merged result.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast, dataclass_transform

from codex_py.config.keys import KeyPath, dotted, toml_value
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.text.nearest import did_you_mean

LARGEST: Final = 2**63 - 1
_ON: Final = ("true", "yes", "on", "True")
_OFF: Final = ("false", "no", "off", "False")


class WrongValue(Exception):
    """A value that its key does not take. `allowed` ends a sentence: `allowed are …`, `` `enabled` is missing ``."""

    def __init__(self, path: KeyPath, value: object, allowed: str, *, secret: bool = False) -> None:
        super().__init__(path, allowed)
        self.path = path
        self.value: object = value
        self.allowed = allowed
        self.secret = secret


class UnknownKey(Value):
    """An unknown key, and the known names in its table."""

    path: KeyPath
    known: tuple[str, ...]


class Reading(Value):
    """The context of a check: where relative paths start, what `~` means, and the list that collects unknown keys."""

    directory: Path
    home: str
    unknown: list[UnknownKey]


class ValueType:
    """Base of all types. A container that is merged key by key keeps plain dicts in `check`."""

    # Whether the value is never shown, whether the names inside it decide that, and whether it is safe in a log.
    secret = False
    secret_by_name = False
    loggable = True

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        """The value as the program wants it; raise `WrongValue` for one it does not take."""
        raise NotImplementedError

    def build(self, checked: Any) -> Any:
        """The final value from what `check` gave, merged over all layers."""
        return checked


class Text(ValueType):
    """A string; control characters are refused unless it may have several lines."""

    def __init__(self, *, lines: bool = False, secret: bool = False) -> None:
        self._lines = lines
        self.secret = secret
        self.loggable = not secret

    def check(self, value: object, path: KeyPath, reading: Reading) -> str:
        if not isinstance(value, str):
            raise WrongValue(path, value, _text_wanted(value, secret=self.secret), secret=self.secret)
        if value.isprintable():
            return value
        if any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in value):
            raise WrongValue(path, value, "it holds characters that no text may have", secret=self.secret)
        if not self._lines and any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in value):
            raise WrongValue(path, value, "it must be text on one line", secret=self.secret)
        return value


class Url(Text):
    """An `http://` or `https://` address; it may hold a password."""

    def __init__(self) -> None:
        super().__init__()
        self.loggable = False

    def check(self, value: object, path: KeyPath, reading: Reading) -> str:
        text = super().check(value, path, reading).strip()
        scheme, separator, rest = text.partition("://")
        if scheme.lower() not in ("http", "https") or not separator or not rest.strip("/") or " " in rest:
            raise WrongValue(path, value, "it must be a URL that begins with `https://` or `http://`")
        return text


class WordChoice(ValueType):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words: Final = words

    def check(self, value: object, path: KeyPath, reading: Reading) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise WrongValue(path, value, wrong_word(value, self.words))
        return value


class Flag(ValueType):
    """`true` or `false`, or one of a few words with a meaning of their own."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def check(self, value: object, path: KeyPath, reading: Reading) -> bool | str:
        if isinstance(value, bool) or (isinstance(value, str) and value in self._words):
            return value
        words = ("true", "false", *self._words)
        meant = "true" if value in _ON else "false" if value in _OFF else None
        raise WrongValue(path, value, f"write `{meant}` without quotes" if meant else wrong_word(value, words))


class Integer(ValueType):
    """A whole number between two bounds, both included."""

    def __init__(self, minimum: int = 0, maximum: int = LARGEST) -> None:
        self._minimum = minimum
        self._maximum = maximum

    def check(self, value: object, path: KeyPath, reading: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not self._minimum <= value <= self._maximum:
            if isinstance(value, str) and value.isascii() and value.isdigit():
                raise WrongValue(path, value, f"write `{value}` without quotes")
            end = "up" if self._maximum == LARGEST else f"to {self._maximum}"
            raise WrongValue(path, value, f"it must be a whole number from {self._minimum} {end}")
        return value


class Seconds(ValueType):
    """A duration in seconds, fractions included."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongValue(path, value, "it must be a number of seconds")
        if not 0 <= value <= LARGEST or math.isnan(value):
            raise WrongValue(path, value, "it must be a number of seconds from 0 up")
        return float(value)


class FilePath(ValueType):
    """A path. `~` is the user's home; a relative one starts at the directory of the file it is written in."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        text = Text(lines=True).check(value, path, reading)
        if not text:
            raise WrongValue(path, value, "it must be a path")
        return reading.directory / expand_home(text, reading.home)


class DirectoryText(FilePath):
    """A path that the program keeps as text."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        return str(super().check(value, path, reading))


class ProjectDirectory(DirectoryText):
    """The same; a relative path that leads down stays as it is written, because it is about each project."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        absolute = super().check(value, path, reading)
        text = str(value)
        return absolute if text.startswith(("/", "~")) or ".." in Path(text).parts else text


class PathPattern(Text):
    """A path pattern, stored as text; `~` and relative patterns are resolved where it is used."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> str:
        text = super().check(value, path, reading)
        if not text:
            raise WrongValue(path, value, "it must be a path pattern")
        return text


class ListOf(ValueType):
    """A list; it replaces the one of a lower layer."""

    def __init__(self, value_type: ValueType) -> None:
        self.value_type: Final = value_type

    def check(self, value: object, path: KeyPath, reading: Reading) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            example = f", as in `[{toml_value(value)}]`" if isinstance(value, str) else ""
            raise WrongValue(path, value, f"it must be a list{example}")
        items = cast("list[object]", value)
        return tuple(self.value_type.check(item, (*path, index), reading) for index, item in enumerate(items))

    def build(self, checked: Any) -> tuple[Any, ...] | None:
        return None if checked is None else tuple(self.value_type.build(item) for item in checked)


class PathsOrAll(ValueType):
    """A list of paths, or `true` for all paths; `false` is an empty list."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        if isinstance(value, bool):
            return True if value else ()
        if not isinstance(value, list | tuple):
            raise WrongValue(path, value, "allowed are a list of paths, `true` and `false`")
        return ListOf(FilePath()).check(cast("object", value), path, reading)


class TextOrTexts(ValueType):
    """One string or a list of them; always a tuple afterwards."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> tuple[str, ...]:
        if isinstance(value, str):
            return (Text().check(value, path, reading),)
        if not isinstance(value, list):
            raise WrongValue(path, value, "it must be text in quotes or a list of texts")
        return ListOf(Text()).check(cast("object", value), path, reading)


class MapOf(ValueType):
    """A table with any names, whose values all have one type."""

    def __init__(self, value_type: ValueType, *, secret_by_name: bool = False) -> None:
        self.value_type: Final = value_type
        self.secret = value_type.secret
        self.secret_by_name = secret_by_name
        self.loggable = value_type.loggable and not secret_by_name

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        table = check_table(value, path)
        return {name: self.value_type.check(inner, (*path, name), reading) for name, inner in table.items()}

    def build(self, checked: Any) -> dict[str, Any]:
        return {name: self.value_type.build(inner) for name, inner in checked.items()}


class Shape(ValueType):
    """A table with known names that stays a table."""

    def __init__(self, value_types: Mapping[str, ValueType]) -> None:
        self.value_types: Final = value_types
        self.loggable = all(value_type.loggable for value_type in value_types.values())

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        return check_names(value, path, reading, self.value_types)

    def build(self, checked: Any) -> dict[str, Any]:
        return {name: self.value_types[name].build(inner) for name, inner in checked.items()}


class TableKey(Value):
    """A key of a table that is taken as it is, for `config.example.toml`: its default or a sample, and its purpose."""

    name: str
    sample: Any
    purpose: str


class AnyTable(ValueType):
    """A table that is not checked. `keys` are the known ones, in each table of the array `entries` if that is set."""

    secret_by_name = True
    loggable = False

    def __init__(self, *keys: TableKey, entries: str = "") -> None:
        self.keys = keys
        self.entries = entries

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        return check_table(value, path)


def check_table(value: object, path: KeyPath) -> dict[str, Any]:
    """The value as a table; raise `WrongValue` for any other value."""
    if not isinstance(value, dict):
        raise WrongValue(path, value, f"it must be a table: a line `[{dotted(path)}]` with its keys below")
    return as_object(cast("object", value))


def check_names(value: object, path: KeyPath, reading: Reading, value_types: Mapping[str, ValueType]) -> dict[str, Any]:
    """Check each key of a table with its type; note unknown keys and leave them out."""
    checked: dict[str, Any] = {}
    for name, inner in check_table(value, path).items():
        value_type = value_types.get(name)
        if value_type is None:
            reading.unknown.append(UnknownKey((*path, name), tuple(value_types)))
        else:
            checked[name] = value_type.check(inner, (*path, name), reading)
    return checked


def wrong_word(value: object, words: tuple[str, ...]) -> str:
    """For a wrong word: the nearest allowed word, and all allowed words."""
    guess = did_you_mean(value, words) if isinstance(value, str) else ""
    return f"{guess} {allowed_words(words)}".lstrip()


def _text_wanted(value: object, *, secret: bool) -> str:
    """The text to write in place of a value of another type."""
    if isinstance(value, int | float) and not secret:
        return f'it must be text: write `"{toml_value(value)}"` in quotes'
    return "it must be text in quotes" + (", not a list" if isinstance(value, list) else "")


def allowed_words(words: tuple[str, ...]) -> str:
    """`` allowed are `a`, `b` ``."""
    verb = "is" if len(words) == 1 else "are"
    return f"allowed {verb} {', '.join(f'`{word}`' for word in words)}"


def expand_home(text: str, home: str) -> str:
    """`~` and `~/…` with the given home; `~name/…` with the system's own list of users."""
    if home and (text == "~" or text.startswith("~/")):
        return home + text[1:]
    return os.path.expanduser(text)  # noqa: PTH111  (Path.expanduser raises for a user that does not exist)


REQUIRED: Final = object()


class Setting(Value):
    """The declaration of one key: the type of its value, its default, and what it is for.

    `sample` stands in the example file for a key that has no default.
    """

    value_type: ValueType
    default: Any
    doc: str
    sample: Any = None


def setting(value_type: ValueType, doc: str, *, default: Any = REQUIRED, sample: Any = None) -> Any:
    """Declare one key of a record. A default of `None` is "not set"; without a default the key must be there."""
    return Setting(value_type, default, doc, sample)


@dataclass_transform(frozen_default=True, field_specifiers=(setting,))
class ConfigRecord(Value):
    """Base of all records: a value that declares its keys, and whose `repr` hides its secrets."""

    declared_settings: ClassVar[Mapping[str, Setting]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = {name: declaration for name, declaration in vars(cls).items() if isinstance(declaration, Setting)}
        for name, declaration in declared.items():
            if declaration.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, declaration.default)
        cls.declared_settings = MappingProxyType(declared)

    def __repr__(self) -> str:
        known = self.declared_settings
        shown = (
            f"{name}={'…' if value and name in known and not known[name].value_type.loggable else repr(value)}"
            for name, value in self.__dict__.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class RecordSection(ValueType):
    """A table that becomes a record."""

    def __init__(self, record: type[ConfigRecord]) -> None:
        self.record: Final = record

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        settings = settings_of(self.record)
        checked = check_names(value, path, reading, {name: declared.value_type for name, declared in settings.items()})
        for name, declared in settings.items():
            if declared.default is REQUIRED and name not in checked:
                raise WrongValue(path, value, f"`{name}` is missing")
        return checked

    def build(self, checked: Any) -> ConfigRecord:
        settings = settings_of(self.record)
        values = cast("dict[str, Any]", checked)
        return self.record(**{name: settings[name].value_type.build(value) for name, value in values.items()})


def settings_of(record: type[ConfigRecord]) -> Mapping[str, Setting]:
    """The settings of a record by key, in the order they are declared."""
    return record.declared_settings
