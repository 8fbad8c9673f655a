"""The layers of the project the user works in: found, judged, read and cut down to what they may say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codex_py.config.files import read_text
from codex_py.config.keys import dotted, toml_key
from codex_py.config.layers import Checked, Layer, LayerSource, merge, parse_toml
from codex_py.config.project import (
    MAX_PROJECT_FILE_BYTES,
    PINNED,
    RefusedKey,
    merge_pinned,
    project_files,
    restrict,
    split_tree,
    unsafe_file,
)
from codex_py.config.reader import LayerReader
from codex_py.config.record import settings_of
from codex_py.config.schema import Config
from codex_py.config.trust import Trust, TrustList
from codex_py.protocol.value import Value


class Project(Value):
    """What a project's files add: layers (lowest first), and what they ask to run."""

    layers: list[Checked]
    mcp_servers: dict[str, Any]
    hooks: dict[str, Any]


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
    """Read every project file that is trusted; one warning tells about all that are not.

    `below` are the layers under the project's, the defaults included: what tightening is measured against.
    """
    layers: list[Checked] = []
    pinned: list[dict[str, Any]] = []
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
        pinned.append({name: checked.tree.pop(name) for name in PINNED if name in checked.tree})
        accepted, refused = restrict(checked.tree, merge([*below, *layers]))
        _warn_refused(reader, refused, checked.source)
        layers.append(Checked(checked.source, accepted))
    if ignored:
        reader.warn(_not_trusted(ignored, project, trusts.of(project.cwd, project.root)))
    return Project(layers, merge_pinned(pinned, "mcp_servers"), merge_pinned(pinned, "hooks"))


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
