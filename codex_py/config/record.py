"""Records and their settings: one line of a record is a key's type, default and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast, dataclass_transform

from codex_py.config.keys import KeyPath
from codex_py.config.kinds import Reading, ValueType, WrongValue, check_names
from codex_py.protocol.value import Value

REQUIRED: Final = object()


class Setting(Value):
    """What is known about one key: how its value is read, what it is when not set, and what it is for.

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
    """Base of all records: a value that knows how its fields are set, and is shown without its secrets."""

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
