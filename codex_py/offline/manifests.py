"""What a project's manifest says: name, purpose, what it starts, how it is run. Nothing here reads files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.offline.text import clip
from codex_py.protocol.encoding import as_list, as_object, decode_json

MANIFESTS: Final = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "composer.json",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
)
_TARGET: Final = Pattern(r"^([A-Za-z][\w-]*)\s*:(?!=)", re.MULTILINE)
_SETUP_FIELD: Final = Pattern(r"^\s*(name|description)\s*=\s*[\"']?([^\"'\n,]+)", re.MULTILINE)
_CONSOLE_SCRIPT: Final = Pattern(r"^\s*[\"']?([\w.-]+)\s*=\s*([\w.]+:[\w.]+)", re.MULTILINE)
_POM_PARENT: Final = Pattern(r"<(parent|build|dependencies)>(?:(?!</\1>|<\1>).)*</\1>", re.DOTALL)
_POM_FIELD: Final = Pattern(r"<(artifactId|name|description)>([^<]{1,600})</\1>")
_CMAKE_PROJECT: Final = Pattern(r"^\s*project\s*\(\s*[\"']?([\w.+-]+)", re.MULTILINE | re.IGNORECASE)
_GO_MODULE: Final = Pattern(r"^module\s+(\S+)", re.MULTILINE)


class Manifest(NamedTuple):
    """`entries` are places where the program starts, `run` commands that start or build it; both in Markdown."""

    file: str
    name: str = ""
    description: str = ""
    entries: tuple[str, ...] = ()
    run: tuple[str, ...] = ()


def read_manifests(texts: Mapping[str, str]) -> list[Manifest]:
    """Read each text by its file's name; one that cannot be parsed tells nothing and stops nothing."""
    readers = {
        "pyproject.toml": _pyproject,
        "setup.cfg": _setup,
        "setup.py": _setup,
        "package.json": _package_json,
        "Cargo.toml": _cargo,
        "go.mod": _go,
        "composer.json": _composer,
        "pom.xml": _pom,
        "build.gradle": _gradle,
        "build.gradle.kts": _gradle,
        "CMakeLists.txt": _cmake,
        "Makefile": _makefile,
    }
    return [readers[name](name, text) for name, text in texts.items() if name in readers]


def toml_table(text: str) -> dict[str, Any]:
    """A TOML text as a table; anything else as an empty one."""
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def json_object(text: str) -> dict[str, Any]:
    """A JSON text as an object; anything else as an empty one."""
    try:
        return as_object(decode_json(text))
    except ValueError:
        return {}


def make_targets(makefile: str) -> tuple[str, ...]:
    """The names of the targets that are words, in order."""
    return tuple(dict.fromkeys(_TARGET.findall(makefile)))


def _pyproject(file: str, text: str) -> Manifest:
    table = toml_table(text)
    project, poetry = as_object(table.get("project")), as_object(as_object(table.get("tool")).get("poetry"))
    scripts = {
        **as_object(poetry.get("scripts")),
        **as_object(project.get("gui-scripts")),
        **as_object(project.get("scripts")),
    }
    entries = tuple(f"command `{name}` → `{target}`" for name, target in scripts.items() if isinstance(target, str))
    install = ("pip install .",) if project or poetry or "build-system" in table else ()
    run = tuple(f"{name} --help" for name in scripts)[:2]
    return Manifest(
        file,
        _text(project.get("name")) or _text(poetry.get("name")),
        _text(project.get("description")) or _text(poetry.get("description")),
        entries,
        (*install, *run),
    )


def _setup(file: str, text: str) -> Manifest:
    fields = {key: value.strip() for key, value in reversed(_SETUP_FIELD.findall(text))}
    scripts = tuple(
        f"command `{name}` → `{target}`" for name, target in _CONSOLE_SCRIPT.findall(text) if "console_scripts" in text
    )
    return Manifest(file, fields.get("name", ""), fields.get("description", ""), scripts, ("pip install .",))


def _package_json(file: str, text: str) -> Manifest:
    package = json_object(text)
    name, binary = _text(package.get("name")), package.get("bin")
    commands = {name: binary} if isinstance(binary, str) else as_object(binary)
    entries = [f"command `{command}` → `{target}`" for command, target in commands.items()]
    if isinstance(main := package.get("main"), str):
        entries.append(f"`{main}` (`main`)")
    scripts = as_object(package.get("scripts"))
    run = ["npm install"] if package.get("dependencies") or package.get("devDependencies") else []
    known = ("start", "dev", "build", "test")
    run += [f"npm {key}" if key in ("start", "test") else f"npm run {key}" for key in known if key in scripts]
    return Manifest(file, name, _text(package.get("description")), tuple(entries), tuple(run))


def _cargo(file: str, text: str) -> Manifest:
    table = toml_table(text)
    package = as_object(table.get("package"))
    binaries = [as_object(binary) for binary in as_list(table.get("bin"))]
    entries = tuple(f"binary `{_text(binary.get('name'))}` → `{_text(binary.get('path'))}`" for binary in binaries)
    return Manifest(
        file, _text(package.get("name")), _text(package.get("description")), entries, ("cargo build", "cargo run")
    )


def _go(file: str, text: str) -> Manifest:
    module = _GO_MODULE.search(text)
    return Manifest(file, module[1].rsplit("/", 1)[-1] if module else "", "", (), ("go build ./...",))


def _composer(file: str, text: str) -> Manifest:
    package = json_object(text)
    return Manifest(file, _text(package.get("name")), _text(package.get("description")), (), ("composer install",))


def _pom(file: str, text: str) -> Manifest:
    fields = {key: " ".join(value.split()) for key, value in reversed(_POM_FIELD.findall(_POM_PARENT.sub("", text)))}
    name = fields.get("name") or fields.get("artifactId", "")
    # A name may be built from properties, which nobody resolves here.
    name = fields.get("artifactId", "") if "${" in name else name
    return Manifest(file, name, fields.get("description", ""), (), ("mvn package",))


def _gradle(file: str, text: str) -> Manifest:
    runs = re.search(r"\bapplication\b|spring-?boot", text, re.IGNORECASE) is not None
    return Manifest(file, run=("gradle build", *(("gradle run",) if runs else ())))


def _cmake(file: str, text: str) -> Manifest:
    project = _CMAKE_PROJECT.search(text)
    return Manifest(file, project[1] if project else "", "", (), ("cmake -B build", "cmake --build build"))


def _makefile(file: str, text: str) -> Manifest:
    telling = ("all", "build", "install", "run", "start", "serve", "dev", "test", "check")
    return Manifest(file, run=tuple(f"make {target}" for target in make_targets(text) if target in telling))


def _text(value: object) -> str:
    return clip(value, 300) if isinstance(value, str) else ""
