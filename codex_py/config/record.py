"""Frozen records and their settings: one line of a record is a key's type, default and meaning.

They are dataclasses (`fields`, `replace`, `match`) without generated methods: compiling those for a hundred keys
would take longer than all the rest of reading the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, ClassVar, Final, NamedTuple, cast, dataclass_transform

from codex_py.config.keys import KeyPath
from codex_py.config.kinds import Kind, Reading, WrongValue, check_names

REQUIRED: Final = object()
_METADATA: Final = "setting"


class Setting(NamedTuple):
    """What is known about one key: how its value is read, what it is when not set, and what it is for.

    `sample` stands in the example file for a key that has no default.
    """

    kind: Kind
    default: Any
    doc: str
    sample: Any = None


def setting(kind: Kind, doc: str, *, default: Any = REQUIRED, sample: Any = None) -> Any:
    """Declare one key of a record. A default of `None` is "not set"; without a default the key must be there."""
    metadata = {_METADATA: Setting(kind, default, doc, sample)}
    if default is REQUIRED:
        return field(metadata=metadata)
    return field(default_factory=lambda: default, metadata=metadata)


@dataclass_transform(frozen_default=True, field_specifiers=(setting, field))
class Record:
    """Base of all records: set once, compared by value, shown without its secrets."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *args: Any, **values: Any) -> None:
        """Take the fields by position or by name; raise `TypeError` for one too many or one too few."""
        declared = fields(self)
        if len(args) > len(declared):
            raise TypeError(f"{type(self).__name__} takes at most {len(declared)} values, got {len(args)}")
        given = dict(zip((one.name for one in declared), args, strict=False))
        given.update(values)
        own = self.__dict__
        for one in declared:
            own[one.name] = given.pop(one.name) if one.name in given else _default(self, one)
        if given:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(given)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __repr__(self) -> str:
        known = settings_of(type(self))
        shown = (
            f"{name}={'…' if value and name in known and not known[name].kind.loggable else repr(value)}"
            for name, value in self.__dict__.items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class Section(Kind):
    """A table that becomes a record."""

    def __init__(self, record: type[Record]) -> None:
        self.record: Final = record

    def check(self, value: object, path: KeyPath, reading: Reading) -> dict[str, Any]:
        settings = settings_of(self.record)
        checked = check_names(value, path, reading, {name: one.kind for name, one in settings.items()})
        for name, one in settings.items():
            if one.default is REQUIRED and name not in checked:
                raise WrongValue(path, value, f"`{name}` is missing")
        return checked

    def build(self, checked: Any) -> Record:
        settings = settings_of(self.record)
        values = cast("dict[str, Any]", checked)
        return self.record(**{name: settings[name].kind.build(value) for name, value in values.items()})


def settings_of(record: type[Record]) -> Mapping[str, Setting]:
    """The settings of a record by key, in the order they are declared."""
    return {
        name: cast("Setting", one.metadata[_METADATA])
        for name, one in record.__dataclass_fields__.items()
        if _METADATA in one.metadata
    }


def _default(owner: Record, one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    if one.default is MISSING:
        raise TypeError(f"{type(owner).__name__} needs `{one.name}`")
    return one.default
