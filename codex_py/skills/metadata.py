"""What a skill says about itself besides its name and description: how it is shown, what it needs, when it may be used.

Read from `agents/openai.yaml`, and from keys of the same names in `SKILL.md`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.errors import CodexError
from codex_py.skills.model import ToolDependency
from codex_py.skills.record import InterfaceText
from codex_py.text.frontmatter import Plain, YamlRefused, YamlValue, parse_yaml

_SHORT: Final = 64
_LONG: Final = 1024
# A hostile file could fill the memory with what nobody reads.
_MAX_DEPENDENCY_CHARS: Final = 16 * 1024
_COLOR: Final = r"#[0-9A-Fa-f]{6}"
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_PRODUCTS: Final = frozenset({"codex", "chatgpt", "atlas"})
_OUR_PRODUCT: Final = "codex"


class MetadataRefused(CodexError):
    """The metadata cannot be used; the message says why.

    With `policy_known`, `allow_implicit` is what the file says in spite of that, None when it does not say.
    """

    def __init__(self, message: str, *, policy_known: bool = False, allow_implicit: bool | None = None) -> None:
        super().__init__(message)
        self._policy_known = policy_known
        self._allow_implicit = allow_implicit

    @property
    def allow_implicit(self) -> bool | None:
        """What holds of the policy: a restriction that cannot be read is taken to be there."""
        return self._allow_implicit if self._policy_known else False

    @property
    def remark(self) -> str:
        """The message, and what follows from it for the user."""
        return str(self) if self._policy_known else f"{self}; until it is corrected, the model cannot choose this skill"


class Metadata(NamedTuple):
    """Everything is optional: None and () mean that the file does not say."""

    interface: InterfaceText = InterfaceText()
    dependencies: tuple[ToolDependency, ...] = ()
    allow_implicit: bool | None = None
    products: tuple[str, ...] = ()

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
        )


def parse_metadata(text: str) -> Metadata:
    """Read the text of an `agents/openai.yaml`; unknown keys are ignored. Raises `MetadataRefused`."""
    try:
        value = parse_yaml(text.removeprefix("\ufeff"))
    except YamlRefused as error:
        raise MetadataRefused(f"invalid YAML: {error}") from None
    return read_metadata(_mapping(value, "the file"))


def read_metadata(mapping: dict[str, YamlValue]) -> Metadata:
    """Read the keys `interface`, `dependencies` and `policy`. Raises `MetadataRefused` for a value of the wrong kind.

    A text that is empty or too long leaves its field out, and a dependency without `type` or `value` is dropped.
    """
    policy = _mapping(mapping.get("policy"), "policy")
    allow_implicit = _boolean(policy.get("allow_implicit_invocation"), "policy.allow_implicit_invocation")
    try:
        return Metadata(
            _interface(_mapping(mapping.get("interface"), "interface")),
            _dependencies(_mapping(mapping.get("dependencies"), "dependencies")),
            allow_implicit,
            _products(policy.get("products")),
        )
    except MetadataRefused as error:
        raise MetadataRefused(str(error), policy_known=True, allow_implicit=allow_implicit) from None


def as_text(value: YamlValue, name: str) -> str | None:
    """A scalar as it is written. Raises `MetadataRefused` for a list or a mapping, which it calls by `name`."""
    if isinstance(value, list | dict):
        type_name = "a list" if isinstance(value, list) else "a mapping"
        raise MetadataRefused(f"`{name}` is {type_name}, not a text")
    return value


def collapse(text: str) -> str:
    """The text on one line, each run of white space as one space."""
    return " ".join(text.split())


def _interface(mapping: dict[str, YamlValue]) -> InterfaceText:
    def line(key: str, limit: int) -> str | None:
        return _line(mapping.get(key), f"interface.{key}", limit)

    color = (as_text(mapping.get("brand_color"), "interface.brand_color") or "").strip()
    return InterfaceText(
        line("display_name", _SHORT),
        line("short_description", _LONG),
        _icon_path(as_text(mapping.get("icon_small"), "interface.icon_small")),
        _icon_path(as_text(mapping.get("icon_large"), "interface.icon_large")),
        color if re.fullmatch(_COLOR, color) else None,
        line("default_prompt", _LONG),
    )


def _dependencies(mapping: dict[str, YamlValue]) -> tuple[ToolDependency, ...]:
    tools = mapping.get("tools")
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise MetadataRefused("`dependencies.tools` is not a list")
    found: list[ToolDependency] = []
    left = _MAX_DEPENDENCY_CHARS
    for item in tools:
        if not isinstance(item, dict):
            raise MetadataRefused("`dependencies.tools` has an item that is not a mapping")
        tool = _dependency(item)
        left -= sum(len(text or "") for text in tool or ())
        if tool and left >= 0:
            found.append(tool)
    return tuple(found)


def _dependency(item: dict[str, YamlValue]) -> ToolDependency | None:
    def line(key: str, limit: int) -> str | None:
        return _line(item.get(key), f"dependencies.tools.{key}", limit)

    # All are read before any is judged, so that a value of the wrong kind is found in a dropped item too.
    need_type, value = line("type", _SHORT), line("value", _LONG)
    rest = (line("description", _LONG), line("transport", _SHORT), line("command", _LONG), line("url", _LONG))
    return ToolDependency(need_type, value, *rest) if need_type and value else None


def _products(value: YamlValue) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise MetadataRefused("`policy.products` is not a list")
    names = [as_text(item, "policy.products") or "" for item in value]
    for name in names:
        if name.lower() not in _PRODUCTS or name not in (name.lower(), name.upper()):
            raise MetadataRefused(f"`policy.products` has an unknown product `{name[:_SHORT]}`")
    return tuple(name.lower() for name in names)


def _icon_path(text: str | None) -> str | None:
    if not text or text.startswith("/") or "\0" in text:
        return None
    segments = [segment for segment in text.split("/") if segment not in ("", ".")]
    return "/".join(segments) if len(text) <= _LONG and segments and segments[0] in ("assets", "..") else None


def _line(value: YamlValue, name: str, limit: int) -> str | None:
    text = collapse(as_text(value, name) or "")
    return text if 0 < len(text) <= limit else None


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
        raise MetadataRefused(f"`{name}` is not a mapping" if name != "the file" else "not a mapping")
    return value
