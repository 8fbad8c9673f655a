"""Immutable values that cost little to define.

Every start defines all of them, and a frozen dataclass with slots takes half a millisecond: it compiles six methods.
These share theirs. To whoever uses one it is a frozen dataclass.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self, dataclass_transform

_NONE: Final = object()


@dataclass_transform(frozen_default=True)
class Value:
    """Base of immutable values: fields are the annotated names, by position or by name, defaults are class attributes.

    Equal are values of the same type with equal fields. `secret_fields` are left out where a value is printed.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    secret_fields: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        own = [name for name, annotation in cls.__annotations__.items() if not str(annotation).startswith("ClassVar")]
        cls.__match_args__ = (*cls.__match_args__, *own)

    def __init__(self, *args: Any, **values: Any) -> None:
        names = self.__match_args__
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes at most {len(names)} values, got {len(args)}")
        own = self.__dict__
        own.update(zip(names, args, strict=False))
        for name in names[len(args) :]:
            if name in values:
                own[name] = values.pop(name)
            elif (default := getattr(type(self), name, _NONE)) is not _NONE:
                own[name] = default
            else:
                raise TypeError(f"{type(self).__name__} needs `{name}`")
        if values:
            raise TypeError(f"{type(self).__name__} does not take {', '.join(values)}")

    def replace(self, **changes: Any) -> Self:
        """The same value with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set `{name}`")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot delete `{name}`")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.__dict__.items() if name not in self.secret_fields}
        fields = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({fields})"
