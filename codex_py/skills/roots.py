"""Which directories are searched for skills, in the order of discovery. Nothing below them is looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_py.paths import real_path
from codex_py.protocol.value import Value
from codex_py.skills.model import SkillRoot

# The second is ours, for when another program has put its own skills into the first.
SYSTEM_DIRECTORIES: Final = (".system", ".system-codex-py")


class PluginSkills(Value):
    """An enabled plugin: its skills directory, its own directory, its id and the prefix of its skills' names."""

    skills: Path
    root: Path
    plugin_id: str
    namespace: str


class SkillRootsRequest(Value):
    """The inputs that determine where skills are searched.

    `home` is CODEX_HOME; `project_config_dirs` are the `.codex` directories of the project, nearest to `cwd` first;
    `project_root` is None outside a project. Without `bundled` the system roots are left out. With `claude` the skills
    of Claude Code are included, after all others. A relative one of `extra_roots` is looked for in the project, at its
    root and in `cwd`, and in CODEX_HOME.
    """

    home: Path
    user_home: Path
    cwd: Path
    project_root: Path | None = None
    project_config_dirs: tuple[Path, ...] = ()
    system: Path = Path("/etc/codex")
    plugin_roots: tuple[PluginSkills, ...] = ()
    extra_roots: tuple[Path, ...] = ()
    extra_user_roots: tuple[Path, ...] = ()
    bundled: bool = True
    claude: bool = False


class LinkBase(Value):
    """Where relative links start, and the project that they must not lead out of; both real paths."""

    cwd: Path
    project: Path


def link_base(request: SkillRootsRequest) -> LinkBase:
    """Where the links of a message start."""
    cwd = Path(real_path(request.cwd))
    return LinkBase(cwd, Path(real_path(request.project_root)) if request.project_root else cwd)


def skill_roots(request: SkillRootsRequest) -> tuple[SkillRoot, ...]:
    """The roots that exist, by real path, each once: the first to name a directory decides its scope.

    A root of a project that is a link to a root outside of it does not take that root's place.
    """
    found: dict[Path, SkillRoot] = {}
    for root in _candidates(request):
        if "\0" in str(root.path):
            continue
        path = Path(real_path(root.path))
        if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for what nobody may look at
            continue
        earlier = found.get(path)
        if earlier is None or (root.inside is None and leads_outside(earlier)):
            found[path] = root.replace(path=path)
    return tuple(found.values())


def leads_outside(root: SkillRoot) -> bool:
    """Whether a root is a link that leads out of the project it belongs to."""
    return root.inside is not None and not root.path.is_relative_to(root.inside)


def _candidates(request: SkillRootsRequest) -> Iterator[SkillRoot]:
    cwd = Path(real_path(request.cwd))
    project = Path(real_path(request.project_root)) if request.project_root else cwd
    home = Path(real_path(request.home))
    for directory in request.project_config_dirs:
        real = Path(real_path(directory.parent), directory.name)
        if real != home:
            inside = project if real.is_relative_to(project) else real.parent
            yield SkillRoot(real / "skills", "repo", "project-config", inside=inside)
    yield SkillRoot(request.home / "skills", "user", "home")
    yield SkillRoot(request.user_home / ".agents" / "skills", "user", "user-agents")
    if request.bundled:
        for name in SYSTEM_DIRECTORIES:
            yield SkillRoot(request.home / "skills" / name, "system", "system")
    yield SkillRoot(request.system / "skills", "admin", "admin")
    for plugin in request.plugin_roots:
        root = Path(real_path(plugin.root))
        yield SkillRoot(plugin.skills, "user", "plugin", plugin.namespace, plugin.plugin_id, root)
    yield from _extra_roots(request, cwd, project)
    for directory in request.extra_user_roots:
        yield SkillRoot(directory, "user", "extra")
    for directory in _from_project_to(cwd, project):
        yield SkillRoot(directory / ".agents" / "skills", "repo", "agents", inside=project)
    if request.claude:
        for directory in _from_project_to(cwd, project):
            yield SkillRoot(directory / ".claude" / "skills", "repo", "claude", inside=project)
        yield SkillRoot(request.user_home / ".claude" / "skills", "user", "claude")


def _extra_roots(request: SkillRootsRequest, cwd: Path, project: Path) -> Iterator[SkillRoot]:
    """Those of the settings. The skills in a directory of the project are the repository's, whoever names it."""
    own_project = request.project_root is not None and not Path(real_path(request.user_home)).is_relative_to(project)
    for directory in request.extra_roots:
        if "\0" in str(directory):
            continue
        if not directory.is_absolute():
            yield SkillRoot(request.home / directory, "user", "extra")
            for base in dict.fromkeys((project, cwd)):
                yield SkillRoot(
                    base / directory, "repo", "extra", inside=project if cwd.is_relative_to(project) else cwd
                )
        elif own_project and Path(real_path(directory)).is_relative_to(project):
            yield SkillRoot(directory, "repo", "extra", inside=project)
        else:
            yield SkillRoot(directory, "user", "extra")


def _from_project_to(cwd: Path, project: Path) -> list[Path]:
    """The directories from the project's root down to `cwd`, both included; only `cwd` when it lies elsewhere."""
    if not cwd.is_relative_to(project):
        return [cwd]
    return [directory for directory in reversed((cwd, *cwd.parents)) if directory.is_relative_to(project)]
