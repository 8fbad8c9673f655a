"""Reads a project's own layers: only if the user trusts the project, and they may only tighten settings.

A repository is written by others, so settings that could send work, keys or commands elsewhere are never taken from it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.files import read_text
from codex_py.config.keys import KeyPath, dotted, toml_key, toml_value
from codex_py.config.layers import Checked, Layer, LayerSource, leaves, merge, parse_toml
from codex_py.config.reader import LayerReader
from codex_py.config.schema import (
    APPROVAL_POLICIES,
    ENVIRONMENT_STARTS,
    SANDBOX_MODES,
    WEB_SEARCH,
    Config,
    not_looser_approval,
)
from codex_py.config.trust import Trust, TrustList, real_path
from codex_py.config.value_types import settings_of
from codex_py.protocol.value import Value

MAX_PROJECT_FILE_BYTES: Final = 64 * 1024

# These run programs, so they have no effect until the user has agreed to exactly what would run.
PINNED: Final = frozenset({"mcp_servers", "hooks"})

_SETTABLE: Final[frozenset[KeyPath]] = frozenset(
    {
        *(("model",), ("review_model",), ("personality",), ("developer_instructions",), ("compact_prompt",)),
        *(("model_context_window",), ("model_auto_compact_token_limit",), ("model_auto_compact_token_limit_scope",)),
        *(("model_reasoning_effort",), ("model_reasoning_summary",), ("model_verbosity",)),
        *(("model_supports_reasoning_summaries",), ("tool_output_token_limit",)),
        *(("project_doc_max_bytes",), ("project_doc_fallback_filenames",), ("background_terminal_max_timeout",)),
        *(("skills", "include_instructions"), ("skills", "max_context_tokens"), ("skills", "tool")),
        *(("skills", "budget"), ("skills", "only")),
    }
)


_SKILL_RULES: Final[KeyPath] = ("skills", "config")


class RefusedKey(Value):
    """A key of a project that is ignored, and why."""

    path: KeyPath
    reason: str


def project_files(cwd: Path, root: Path | None, home: Path, name: str = "config.toml") -> list[Path]:
    """The `.codex/config.toml`, or another file there, of every directory from the root down to `cwd` that has one.

    Never the user's own.
    """
    top = root if root is not None else cwd
    directories = [cwd, *(parent for parent in cwd.parents if parent.is_relative_to(top))]
    own = real_path(home)
    files = (directory / ".codex" / name for directory in reversed(directories))
    return [path for path in files if os.path.lexists(path) and real_path(path.parent) != own]


def unsafe_file(path: Path, top: Path) -> str | None:
    """Why a project's file must not be opened, None when it is a regular file inside the project."""
    target = real_path(path)
    if not target.is_relative_to(top):
        return "it is a link that leads out of the project"
    try:
        mode = target.lstat().st_mode
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None if stat.S_ISREG(mode) else "it is not a regular file"


def split_tree(tree: Mapping[str, Any], known: Sequence[str]) -> tuple[dict[str, Any], list[RefusedKey]]:
    """The top-level keys a project may set or that are unknown, and those it may not."""
    tops = {path[0] for path in (*_SETTABLE, *_TIGHTER)} | PINNED
    accepted = {name: value for name, value in tree.items() if name in tops or name not in known}
    refused = [RefusedKey((name,), "a project may not set it") for name in tree if name not in accepted]
    return accepted, refused


def restrict(tree: Mapping[str, Any], below: Mapping[str, Any]) -> tuple[dict[str, Any], list[RefusedKey]]:
    """Split what a trusted project sets into the accepted part and the refused keys; `below` are the lower layers."""
    accepted: dict[str, Any] = {}
    refused: list[RefusedKey] = []
    for path, value in leaves(tree):
        if path == _SKILL_RULES:
            off = tuple(rule for rule in value if not rule["enabled"])
            if len(off) < len(value):
                refused.append(RefusedKey(path, "a project may switch skills off, not on"))
            _put(accepted, path, off)
            continue
        before = _value_at(below, path)
        tighten = _TIGHTER.get(path)
        if path not in _SETTABLE and tighten is None:
            refused.append(RefusedKey(path, "a project may not set it"))
            continue
        taken = value if tighten is None or value == before else tighten(before, value)
        if taken is not None:
            _put(accepted, path, taken)
            continue
        current = "" if before is None else f", and it is `{toml_value(before)}`"
        refused.append(RefusedKey(path, f"a project may only tighten it{current}"))
    return accepted, refused


# A rule gives the value to take, or None to refuse it.
_Rule = Callable[[Any, Any], Any]


def _not_looser(order: Sequence[str]) -> _Rule:
    """Take a word that stands at or left of the one before; not set counts as the strictest."""

    def rule(before: Any, value: Any) -> Any:
        limit = order.index(before) if before in order else 0
        return value if order.index(value) <= limit else None

    return rule


def _only(wanted: bool) -> _Rule:
    def rule(before: Any, value: Any) -> Any:
        return value if value is wanted else None

    return rule


def _none(_: Any, value: Any) -> Any:
    return value if value == () else None


def _added(before: Any, value: Any) -> Any:
    have = cast("tuple[str, ...]", before or ())
    return (*have, *(item for item in value if item not in have))


_TIGHTER: Final[Mapping[KeyPath, _Rule]] = {
    ("sandbox_mode",): _not_looser(SANDBOX_MODES),
    ("approval_policy",): not_looser_approval(APPROVAL_POLICIES),
    ("web_search",): _not_looser(WEB_SEARCH),
    ("allow_login_shell",): _only(False),
    ("sandbox_workspace_write", "network_access"): _only(False),
    ("sandbox_workspace_write", "exclude_tmpdir_env_var"): _only(True),
    ("sandbox_workspace_write", "exclude_slash_tmp"): _only(True),
    ("sandbox_workspace_write", "git"): _only(False),
    ("sandbox", "allow_partial"): _only(False),
    ("sandbox", "deny_read"): _added,
    ("sandbox", "protected"): _added,
    ("sandbox", "allow_read"): _none,
    ("sandbox", "allow_unix_sockets"): _none,
    ("shell_environment_policy", "inherit"): _not_looser(ENVIRONMENT_STARTS),
    ("shell_environment_policy", "ignore_default_excludes"): _only(False),
    ("shell_environment_policy", "exclude"): _added,
}


def _value_at(tree: Mapping[str, Any], path: KeyPath) -> Any:
    value: Any = tree
    for key in path:
        value = cast("dict[str | int, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _put(tree: dict[str, Any], path: KeyPath, value: Any) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(str(key), {})
    tree[str(path[-1])] = value


class Project(Value):
    """What a project's files add: layers (lowest first), and the servers of all, the nearest on top."""

    layers: list[Checked]
    mcp_servers: dict[str, Any]


class ProjectContext(Value):
    """Where the user works: real paths, CODEX_HOME among them."""

    cwd: Path
    root: Path | None
    home: Path

    @property
    def top(self) -> Path:
        return self.root or self.cwd


def read_project(
    reader: LayerReader, project: ProjectContext, trusts: TrustList, *, below: Sequence[Checked]
) -> Project:
    """Read every project file that is trusted, with one warning about all that are not.

    `below` are the layers under the project's, the defaults included: what tightening is measured against.
    """
    layers: list[Checked] = []
    servers: dict[str, Any] = {}
    ignored: list[Path] = []
    for path in project_files(project.cwd, project.root, project.home):
        if trusts.of(path.parent.parent, project.root) != "trusted":
            ignored.append(path)
            continue
        unsafe = unsafe_file(path, project.top)
        if unsafe is not None:
            reader.warn(f"`{path}` is ignored: {unsafe}")
            continue
        checked = _read(reader, path)
        if checked is None:
            continue
        servers |= checked.tree.pop("mcp_servers", {})
        checked.tree.pop("hooks", None)  # the user is asked about them when they are read
        accepted, refused = restrict(checked.tree, merge([*below, *layers]))
        _warn_refused(reader, refused, checked.source)
        layers.append(Checked(checked.source, accepted))
    if ignored:
        reader.warn(_not_trusted(ignored, project, trusts.of(project.cwd, project.root)))
    return Project(layers, servers)


def _read(reader: LayerReader, path: Path) -> Checked | None:
    text = read_text(path, limit=MAX_PROJECT_FILE_BYTES)
    if text is None:
        return None
    source = LayerSource(Layer("project", path), text)
    tree, refused = split_tree(parse_toml(text, path), tuple(settings_of(Config)))
    _warn_refused(reader, refused, source)
    return reader.check(source, tree, path.parent)


def _warn_refused(reader: LayerReader, refused: Sequence[RefusedKey], source: LayerSource) -> None:
    for refusal in refused:
        reader.warn(f"`{dotted(refusal.path)}` {source.where(refusal.path)} is ignored: {refusal.reason}")


def _not_trusted(files: Sequence[Path], project: ProjectContext, trust: Trust) -> str:
    shown = f"`{files[0]}`" + (f" and {len(files) - 1} more like it" if len(files) > 1 else "")
    verb = "are" if len(files) > 1 else "is"
    if trust == "untrusted":
        return f"{shown} {verb} ignored: you marked the project as untrusted"
    entry = f"[projects.{toml_key(str(project.top))}]"
    return (
        f"{shown} {verb} ignored: you have not trusted `{project.top}` yet "
        f'(`--trust`, or `{entry} trust_level = "trusted"` in `{project.home / "config.toml"}`)'
    )
