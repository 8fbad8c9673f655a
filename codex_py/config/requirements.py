"""Reads `requirements.toml`, an administrator's limits that win over all layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from codex_py.config.files import read_text
from codex_py.config.keys import toml_value
from codex_py.config.layers import Checked, Layer, LayerSource, parse_toml
from codex_py.config.reader import check_tree, unknown_key
from codex_py.config.schema import APPROVAL_POLICIES, SANDBOX_MODES, Config, word_for
from codex_py.config.value_types import AnyTable, Flag, ListOf, Shape, WordChoice
from codex_py.errors import UserError
from codex_py.protocol.policy import ApprovalWord, SandboxMode
from codex_py.protocol.value import Value

_SHAPE: Final = Shape(
    {
        "allowed_approval_policies": ListOf(WordChoice(*APPROVAL_POLICIES)),
        "allowed_sandbox_modes": ListOf(WordChoice(*SANDBOX_MODES)),
        "allow_managed_hooks_only": Flag(),
        "hooks": AnyTable(),
    }
)
# What a session without a chosen sandbox mode may use.
_UNCHOSEN: Final = frozenset({"read-only", "workspace-write"})


class Requirements(Value):
    """The allowed values, strictest first; an administrator's `hooks`, and whether they are the only ones to run."""

    approval_policies: tuple[ApprovalWord, ...] = APPROVAL_POLICIES
    sandbox_modes: tuple[SandboxMode, ...] = SANDBOX_MODES
    source: LayerSource | None = None
    hooks: Mapping[str, Any] = MappingProxyType({})
    managed_hooks_only: bool = False


def read_requirements(path: Path) -> Requirements:
    """Read the requirements. Raises `UserError` for an unreadable file and for an unknown key.

    An administrator's rules do not fail open: a requirement that cannot be enforced stops the program.
    """
    text = read_text(path)
    if text is None:
        return Requirements()
    source = LayerSource(Layer("managed", path), text)
    tree = parse_toml(text, path)
    checked, unknown = check_tree(_SHAPE, tree, source=source, directory=path.parent, home="")
    for name, allowed in checked.items():
        if name.startswith("allowed_") and not allowed:
            raise UserError(f"cannot use `{name} = []` {source.where((name,))}: at least one value is needed")
    if unknown:
        try:
            unknown_key(unknown[0], source, strict=True)
        except UserError as error:
            known = ", ".join(f"`{name}`" for name in _SHAPE.value_types)
            raise UserError(f"cannot enforce a requirement: {error}", hint=f"known requirements are {known}") from error
    return Requirements(
        _in_order(APPROVAL_POLICIES, checked.get("allowed_approval_policies")),
        _in_order(SANDBOX_MODES, checked.get("allowed_sandbox_modes")),
        source,
        checked.get("hooks", {}),
        checked.get("allow_managed_hooks_only", False),
    )


def required_layer(requirements: Requirements, tree: Mapping[str, Any]) -> tuple[Checked | None, list[str]]:
    """A layer on top of all others with the strictest allowed value for each one that is not, and the warnings."""
    if requirements.source is None:
        return None, []
    forced: dict[str, Any] = {}
    warnings: list[str] = []
    approval, sandbox = tree.get("approval_policy"), tree.get("sandbox_mode")
    if word_for(approval or Config().approval_policy) not in requirements.approval_policies:
        forced["approval_policy"] = requirements.approval_policies[0]
    if sandbox not in requirements.sandbox_modes and (sandbox or not _UNCHOSEN.issubset(requirements.sandbox_modes)):
        forced["sandbox_mode"] = requirements.sandbox_modes[0]
    for name, value in forced.items():
        if name in tree:
            where = f"`{requirements.source.layer.path}`"
            warnings.append(f"`{name} = {toml_value(tree[name])}` is not allowed by {where}: using `{value}`")
    return (Checked(requirements.source, forced) if forced else None), warnings


def _in_order(order: Sequence[Any], allowed: Sequence[str] | None) -> tuple[Any, ...]:
    return tuple(order) if allowed is None else tuple(word for word in order if word in allowed)
