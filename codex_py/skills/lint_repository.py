"""What a repository's manifests say: its tasks, its packages, the versions it uses; and texts that name older ones."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.skills.lint_document import Document
from codex_py.skills.lint_finding import LintFinding

Version: TypeAlias = tuple[int, ...]

_MAX_BYTES: Final = 1024 * 1024
_NUMBERS: Final = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,2}")
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(.*)")
_TARGET: Final = re.compile(r"^([A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./-]+)*)[ \t]*:(?!=)", re.MULTILINE)
_RECIPE: Final = re.compile(r"^@?([A-Za-z0-9_-]+)(?:[ \t]+[^:\n]*)?:(?!=)", re.MULTILINE)
_PHONY: Final = re.compile(r"^\.PHONY[ \t]*:(.*)$", re.MULTILINE)
# A word for a program, and the version right behind it: `Python 3.8`, `node:14`, `react@17`.
_NAMED: Final = (
    r"(?<![\w/-]){name}(?:\.js)?[ \t]*(?:@|:|==|>=|~=|-)?[ \t]*v?(\d{{1,3}}(?:\.\d{{1,3}}){{0,2}})(?![\w%])(?!\.\w)"
)


class RepositoryFacts(Value):
    """The facts about a repository; None for a manifest that is not there. `versions` are the lowest it uses."""

    root: Path
    npm_scripts: frozenset[str] | None = None
    npm_packages: frozenset[str] | None = None
    make_targets: frozenset[str] | None = None
    just_recipes: frozenset[str] | None = None
    python_packages: frozenset[str] = frozenset()
    versions: Mapping[str, Version] = {}


def find_repository(directory: Path) -> Path | None:
    """The repository that a directory lies in, None outside of one."""
    return next((top for top in (directory, *directory.parents) if (top / ".git").exists()), None)


def read_repository(root: Path) -> RepositoryFacts:
    """Read the manifests at the top of a repository; a damaged one counts as none."""
    package = _read_json(root / "package.json")
    project = _read_toml(root / "pyproject.toml")
    versions: dict[str, Version] = {}
    packages = _npm_versions(package, versions) if package is not None else None
    python = _python_versions(project, root, versions)
    _runtime_versions(root, versions)
    makefile = next((text for name in ("Makefile", "makefile", "GNUmakefile") if (text := _read(root / name))), None)
    justfile = next((text for name in ("justfile", "Justfile", ".justfile") if (text := _read(root / name))), None)
    return RepositoryFacts(
        root,
        frozenset(as_object(package.get("scripts"))) if package is not None else None,
        packages,
        # An included file may have more.
        _targets(makefile) if makefile is not None and not re.search(r"^-?include\b", makefile, re.M) else None,
        frozenset(_RECIPE.findall(justfile)) if justfile is not None else None,
        python,
        versions,
    )


def check_versions(document: Document, repository: RepositoryFacts) -> Iterator[LintFinding]:
    """Versions in a text that are older than what the repository uses, each once."""
    seen: set[tuple[str, str]] = set()
    for name, used in repository.versions.items():
        pattern = re.compile(_NAMED.format(name=re.escape(name)), re.IGNORECASE)
        for line in document.lines:
            for match in pattern.finditer(line.text):
                written = _numbers(match[1])
                if (name, match[1]) in seen or not written or not _is_older(written, used):
                    continue
                seen.add((name, match[1]))
                shown = ".".join(map(str, used))
                message = f"names {name} {match[1]}; the repository uses {shown}"
                remedy = f"write for {name} {shown}"
                yield LintFinding("advice", document.path, message, "old-version", line.number, remedy)


def _is_older(written: Version, used: Version) -> bool:
    """Compares as many numbers as both have."""
    count = min(len(written), len(used))
    return written[:count] < used[:count]


def _npm_versions(package: dict[str, Any], versions: dict[str, Version]) -> frozenset[str]:
    names: set[str] = set()
    for key in ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies"):
        for name, value in as_object(package.get(key)).items():
            names.add(name)
            if isinstance(value, str) and (numbers := _numbers(value)) and len(name) > 2:
                versions.setdefault(name, numbers[:1] if numbers[0] else numbers[:2])
    if isinstance(node := as_object(package.get("engines")).get("node"), str) and (numbers := _numbers(node)):
        versions["node"] = numbers[:1]
    return frozenset(names)


def _python_versions(project: dict[str, Any], root: Path, versions: dict[str, Version]) -> frozenset[str]:
    table = as_object(project.get("project"))
    if isinstance(needs := table.get("requires-python"), str) and (numbers := _numbers(needs)):
        versions["python"] = numbers[:2]
    lines = [*as_list(table.get("dependencies"))]
    for group in (table.get("optional-dependencies"), project.get("dependency-groups")):
        for listed in as_object(group).values():
            lines += as_list(listed)
    for file in root.glob("requirements*.txt"):
        lines += [line for line in _read(file).splitlines() if not line.startswith(("#", "-"))]
    names: set[str] = set()
    for line in lines:
        if not (isinstance(line, str) and (found := _REQUIREMENT.match(line.strip()))):
            continue
        name = found[1].lower().replace("_", "-")
        names.add(name)
        bound = re.search(r"(?:>=|==|~=)\s*([\d.]+)", found[2])
        if bound and (numbers := _numbers(bound[1])) and len(name) > 2:
            versions.setdefault(name, numbers[:1] if numbers[0] else numbers[:2])
    return frozenset(names)


def _runtime_versions(root: Path, versions: dict[str, Version]) -> None:
    for file, name, count in ((".python-version", "python", 2), (".nvmrc", "node", 1), (".node-version", "node", 1)):
        if numbers := _numbers(_read(root / file).strip()):
            versions.setdefault(name, numbers[:count])
    if found := re.search(r"^go (\d+\.\d+)", _read(root / "go.mod"), re.MULTILINE):
        versions["go"] = _numbers(found[1])


def _targets(makefile: str) -> frozenset[str]:
    names = [name for line in _TARGET.findall(makefile) for name in line.split()]
    names += [name for line in _PHONY.findall(makefile) for name in line.split()]
    return frozenset(names)


def _numbers(text: str) -> Version:
    found = _NUMBERS.search(text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return as_object(json.loads(_read(path)))
    except (ValueError, RecursionError):
        return None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except (ValueError, RecursionError):
        return {}
