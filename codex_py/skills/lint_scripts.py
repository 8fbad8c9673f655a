"""The scripts of a skill: whether they can be parsed, are executable, and import what a manifest names."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.skills.lint_finding import LintFinding
from codex_py.skills.lint_repository import RepositoryFacts

_MAX_FILES: Final = 200
_MAX_BYTES: Final = 512 * 1024
# The name that a module is installed by, where it is another one.
_DISTRIBUTIONS: Final = {
    "yaml": "pyyaml",
    "PIL": "pillow",
    "cv2": "opencv-python",
    "bs4": "beautifulsoup4",
    "sklearn": "scikit-learn",
    "dotenv": "python-dotenv",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "fitz": "pymupdf",
    "dateutil": "python-dateutil",
    "git": "gitpython",
    "jwt": "pyjwt",
    "serial": "pyserial",
    "Crypto": "pycryptodome",
    "OpenSSL": "pyopenssl",
    "magic": "python-magic",
    "attr": "attrs",
    "slugify": "python-slugify",
}
_INSTALLS: Final = re.compile(r"\b(?:install|uv add|uv run|requires?|needs)\b", re.IGNORECASE)
_MANIFESTS: Final = ("requirements*.txt", "pyproject.toml", "environment.y*ml", "Pipfile", "setup.py", "setup.cfg")


def script_files(directory: Path) -> list[Path]:
    """The files below the `scripts` directory of a skill, bounded."""
    found = islice((directory / "scripts").rglob("*"), _MAX_FILES)
    return sorted(path for path in found if path.is_file() and "node_modules" not in path.parts)


def check_scripts(directory: Path, text: str, repository: RepositoryFacts | None) -> Iterator[LintFinding]:
    """The findings about the scripts of a skill, without running one; `text` is what the skill says in all."""
    files = script_files(directory)
    declared = _declared(directory, text, repository)
    local = {path.stem for path in files} | {path.parent.name for path in files} | {directory.name}
    seen: set[str] = set()
    for path in files:
        if has_interpreter(path) and not os.access(path, os.X_OK):
            yield LintFinding(
                "advice",
                path,
                "begins with `#!` and is not executable: `chmod +x` it",
                "executable",
                1,
                "`chmod +x` it",
            )
        if path.suffix != ".py":
            continue
        source = _read(path)
        try:
            tree = parse_python(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            message = f"does not parse: {getattr(error, 'msg', None) or error}"
            yield LintFinding("advice", path, message, "script", line, "correct the script")
            continue
        for line, module in imported_modules(tree):
            if module in local or module in seen or _is_known(module, declared, source):
                continue
            seen.add(module)
            name = _DISTRIBUTIONS.get(module, module)
            message = f"imports `{module}`, which no manifest names and which is not installed"
            remedy = f"name `{name}` in `scripts/requirements.txt`, or say how to install it"
            yield LintFinding("advice", path, message, "missing-package", line, remedy)


def parse_python(source: str) -> ast.Module:
    """The tree of a Python source. Raises `SyntaxError` and `ValueError`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def imported_modules(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The packages that a script needs to start: imported at its top level, outside of `try` and `if`."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def has_interpreter(script: Path) -> bool:
    """Whether a file begins with `#!`."""
    try:
        with script.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _declared(directory: Path, text: str, repository: RepositoryFacts | None) -> str:
    """The texts that may name a package: the manifests of the skill, and how it says to install things."""
    texts = [
        _read(path)
        for top in (directory, directory / "scripts")
        for pattern in _MANIFESTS
        for path in islice(top.glob(pattern), 10)
    ]
    lines = [
        line for line in text.splitlines() if re.search(r"\b(?:install|uv add|uv run|requires?|needs)\b", line, re.I)
    ]
    names = repository.python_packages if repository else ()
    return "\n".join([*texts, *lines, *names]).lower()


def _is_known(module: str, declared: str, source: str) -> bool:
    if module in sys.stdlib_module_names or module.startswith("_"):
        return True
    lower = module.lower()
    names = (lower, lower.replace("_", "-"), _DISTRIBUTIONS.get(module, module).lower())
    inline = source.partition("# /// script")[2].partition("# ///")[0].lower()
    if any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w])", text) for name in names for text in (declared, inline)):
        return True
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""
