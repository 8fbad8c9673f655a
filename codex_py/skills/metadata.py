"""What a skill says about itself besides its name and description: how it is shown, what it needs, when it may be used.

Read from `agents/openai.yaml`, and from keys of the same names in `SKILL.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from codex_py.errors import CodexError
from codex_py.skills.model import ToolDependency
from codex_py.skills.record import InterfaceText
from codex_py.text.frontmatter import Plain, YamlRefused, YamlValue, parse_yaml

MAX_SHORT_CHARS: Final = 64
MAX_LONG_CHARS: Final = 1024
# A hostile file could fill the memory with what nobody reads.
MAX_DEPENDENCY_CHARS: Final = 16 * 1024
_COLOR: Final = r"#[0-9A-Fa-f]{6}"
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_PRODUCTS: Final = frozenset({"codex", "chatgpt", "atlas"})
_OUR_PRODUCT: Final = "codex"
_IMPLICIT: Final = "allow_implicit_invocation"
T = TypeVar("T")


CLOSED: Final = "until it is corrected, the model cannot choose this skill"


class MetadataRefused(CodexError):
    """A value that cannot be used; the message says why."""


class Metadata(NamedTuple):
    """Everything is optional: None and () mean that the file does not say.

    `faults` says for each field that was ignored why.
    """

    interface: InterfaceText = InterfaceText()
    dependencies: tuple[ToolDependency, ...] = ()
    allow_implicit: bool | None = None
    products: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def for_this_program(self) -> bool:
        return not self.products or _OUR_PRODUCT in self.products

    def over(self, other: Metadata) -> Metadata:
        """These values, and the other's where these say nothing."""
        return Metadata(
            InterfaceText(*(mine or theirs for mine, theirs in zip(self.interface, other.interface, strict=True))),
            self.dependencies or other.dependencies,
            other.allow_implicit if self.allow_implicit is None else self.allow_implicit,
            self.products or other.products,
            self.faults,
        )


def parse_metadata(text: str) -> Metadata:
    """Read the text of an `agents/openai.yaml`; unknown keys are ignored."""
    try:
        value = parse_yaml(text.removeprefix("\ufeff"))
    except YamlRefused as error:
        return unreadable_metadata(text, f"invalid YAML: {error}")
    if value is not None and not isinstance(value, dict):
        return unreadable_metadata(text, "not a mapping")
    return read_metadata(value or {})


def unreadable_metadata(text: str, reason: str) -> Metadata:
    """The metadata of a file that cannot be read: nothing except a restriction that the text may set."""
    if any(_IMPLICIT in line.partition("#")[0] for line in text.splitlines()):
        return Metadata(allow_implicit=False, faults=(f"{reason}; {CLOSED}",))
    return Metadata(faults=(reason,))


def read_metadata(mapping: dict[str, YamlValue]) -> Metadata:
    """Read the keys `interface`, `dependencies` and `policy`, each field by itself.

    A field of the wrong type is left out, and so is a text that is empty or too long and a dependency without `type` or
    `value`. If `allow_implicit_invocation` is present and cannot be read, it is false.
    """
    reader = _FieldReader()
    interface = reader.read(
        InterfaceText(), lambda: _interface(_mapping(mapping.get("interface"), "interface"), reader)
    )
    dependencies = reader.read((), lambda: _dependencies(mapping.get("dependencies"), reader))
    allow_implicit, products = _policy(mapping.get("policy"), reader)
    return Metadata(interface, dependencies, allow_implicit, products, tuple(reader.faults))


class _FieldReader:
    """Reads field after field; one that cannot be read costs a line in `faults`."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def read(self, default: T, read: Callable[[], T], *, more: str = "") -> T:
        try:
            return read()
        except MetadataRefused as error:
            self.faults.append(f"{error}{more}")
            return default


def _policy(value: YamlValue, reader: _FieldReader) -> tuple[bool | None, tuple[str, ...]]:
    """Whether the model may choose the skill, and the programs that it is for."""
    if value is not None and not isinstance(value, dict):
        unreadable = unreadable_metadata(repr(value), "`policy` is not a mapping")
        reader.faults += unreadable.faults
        return unreadable.allow_implicit, ()
    policy = value or {}
    allow_implicit = reader.read(
        False, lambda: _boolean(policy.get(_IMPLICIT), f"policy.{_IMPLICIT}"), more=f"; {CLOSED}"
    )
    return allow_implicit, reader.read((), lambda: _products(policy.get("products")))


def as_text(value: YamlValue, name: str) -> str | None:
    """A scalar as it is written. Raises `MetadataRefused` for a list or a mapping, which it calls by `name`."""
    if isinstance(value, list | dict):
        type_name = "a list" if isinstance(value, list) else "a mapping"
        raise MetadataRefused(f"`{name}` is {type_name}, not a text")
    return value


def collapse(text: str) -> str:
    """The text on one line, each run of white space as one space."""
    return " ".join(text.split())


def _interface(mapping: dict[str, YamlValue], reader: _FieldReader) -> InterfaceText:
    def text(key: str) -> str | None:
        return reader.read(None, lambda: as_text(mapping.get(key), f"interface.{key}"))

    def line(key: str, limit: int) -> str | None:
        return _fitting(text(key), limit)

    color = (text("brand_color") or "").strip()
    return InterfaceText(
        line("display_name", MAX_SHORT_CHARS),
        line("short_description", MAX_LONG_CHARS),
        _icon_path(text("icon_small")),
        _icon_path(text("icon_large")),
        color if re.fullmatch(_COLOR, color) else None,
        line("default_prompt", MAX_LONG_CHARS),
    )


def _dependencies(value: YamlValue, reader: _FieldReader) -> tuple[ToolDependency, ...]:
    tools = _mapping(value, "dependencies").get("tools")
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise MetadataRefused("`dependencies.tools` is not a list")
    found: list[ToolDependency] = []
    left = MAX_DEPENDENCY_CHARS
    if not all(isinstance(item, dict) for item in tools):
        reader.faults.append("`dependencies.tools` has an item that is not a mapping")
    for item in tools:
        tool = _dependency(item, reader) if isinstance(item, dict) else None
        left -= sum(len(text or "") for text in tool or ())
        if tool and left >= 0:
            found.append(tool)
    return tuple(found)


def _dependency(item: dict[str, YamlValue], reader: _FieldReader) -> ToolDependency | None:
    def line(key: str, limit: int) -> str | None:
        return _fitting(reader.read(None, lambda: as_text(item.get(key), f"dependencies.tools.{key}")), limit)

    need_type, value = line("type", MAX_SHORT_CHARS), line("value", MAX_LONG_CHARS)
    rest = (
        line("description", MAX_LONG_CHARS),
        line("transport", MAX_SHORT_CHARS),
        line("command", MAX_LONG_CHARS),
        line("url", MAX_LONG_CHARS),
    )
    return ToolDependency(need_type, value, *rest) if need_type and value else None


def _products(value: YamlValue) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise MetadataRefused("`policy.products` is not a list")
    names = [as_text(item, "policy.products") or "" for item in value]
    for name in names:
        if name.lower() not in _PRODUCTS or name not in (name.lower(), name.upper()):
            raise MetadataRefused(f"`policy.products` has an unknown product `{name[:MAX_SHORT_CHARS]}`")
    return tuple(name.lower() for name in names)


def _icon_path(text: str | None) -> str | None:
    if not text or text.startswith("/") or "\0" in text:
        return None
    segments = [segment for segment in text.split("/") if segment not in ("", ".")]
    return "/".join(segments) if len(text) <= MAX_LONG_CHARS and segments and segments[0] in ("assets", "..") else None


def _fitting(text: str | None, limit: int) -> str | None:
    line = collapse(text or "")
    return line if 0 < len(line) <= limit else None


def _boolean(value: YamlValue, name: str) -> bool | None:
    if value is None:
        return None
    if isinstance(value, Plain):
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
    raise MetadataRefused(f"`{name}` is neither `true` nor `false`")


def _mapping(value: YamlValue, name: str) -> dict[str, YamlValue]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise MetadataRefused(f"`{name}` is not a mapping")
    return value
