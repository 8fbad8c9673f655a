#!/usr/bin/env python3
"""Print a map of a repository: size, layout, manifests, entry points, tests, and what changes most.

Reads only, runs nothing but git, and prints at most some 120 lines. Usage: tour.py [DIRECTORY]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

MAX_FILES = 50_000
MAX_READ = 1_000_000
SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "target", "dist", "build", ".tox"}
LANGUAGES = {
    "py": "Python", "pyi": "Python", "js": "JavaScript", "mjs": "JavaScript", "cjs": "JavaScript", "jsx": "JavaScript",
    "ts": "TypeScript", "tsx": "TypeScript", "rs": "Rust", "go": "Go", "java": "Java", "kt": "Kotlin", "rb": "Ruby",
    "c": "C", "h": "C/C++ headers", "cc": "C++", "cpp": "C++", "hpp": "C++", "cs": "C#", "php": "PHP", "swift": "Swift",
    "scala": "Scala", "ex": "Elixir", "exs": "Elixir", "erl": "Erlang", "hs": "Haskell", "lua": "Lua", "sh": "Shell",
    "bash": "Shell", "sql": "SQL", "html": "HTML", "css": "CSS", "scss": "CSS", "vue": "Vue", "svelte": "Svelte",
    "tf": "Terraform", "ipynb": "Notebooks", "md": "Markdown", "yaml": "YAML", "yml": "YAML", "toml": "TOML",
    "dart": "Dart", "zig": "Zig", "r": "R", "jl": "Julia", "proto": "Protocol Buffers",
}  # fmt: skip
MANIFESTS = {
    "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json", "Cargo.toml", "go.mod", "go.work",
    "pom.xml", "build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "CMakeLists.txt", "Makefile", "justfile",
    "Dockerfile", "docker-compose.yml", "compose.yaml", "mix.exs", "Package.swift", "pubspec.yaml", "deno.json",
    "pnpm-workspace.yaml", "tox.ini", "noxfile.py", "flake.nix", "Taskfile.yml", "stack.yaml", "build.zig",
}  # fmt: skip
GUIDES = ("README", "AGENTS", "CONTRIBUTING", "ARCHITECTURE", "DESIGN", "HACKING", "CHANGELOG", "SECURITY")
ENTRY = re.compile(
    r"(^|/)(__main__|main|app|server|cli|manage|wsgi|asgi|index|cmd/[^/]+/main|bin/[^/]+|src/lib|Program|Application)"
    r"\.(py|js|mjs|ts|tsx|go|rs|java|kt|rb|c|cc|cpp|cs|php|swift|ex|dart)$"
)
TESTS = re.compile(
    r"(^|/)(tests?|specs?|__tests__|testing)/|(^|/)(test_[^/]+|[^/]+([._]test|[._]spec|Test|_spec))\.\w+$"
)
CI = re.compile(r"^(\.github/workflows/|\.gitlab-ci\.yml|\.circleci/|\.buildkite/|azure-pipelines|Jenkinsfile|\.ci/)")
NOISE = re.compile(
    r"(^|/)(vendor|third_party|node_modules)/|(^|/)[^/]*([.-]lock(\.\w+)?|\.lock|\.min\.\w+|\.snap|\.svg)$"
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Print a map of a repository. Reads only.")
    parser.add_argument("directory", nargs="?", default=".", help="where to look (default: here)")
    root = Path(parser.parse_args().directory)
    if not root.is_dir():
        print(f"error: not a directory: {root}", file=sys.stderr)
        return 2
    files, complete = list_files(root)
    if not files:
        print(f"{root.resolve()} holds no files.")
        return 0
    sizes = {name: size_of(root / name) for name in files}
    print(f"# {root.resolve().name}: {len(files)}{'' if complete else '+'} files, {human(sum(sizes.values()))}")
    show("Languages (code lines)", languages(root, files, sizes))
    show("Layout", layout(files))
    show("Guides", [name for name in files if is_guide(name)][:12])
    show("Manifests and the commands they declare", manifests(root, files))
    show("Entry points by name", [name for name in files if ENTRY.search(name) and not TESTS.search(name)][:15])
    show("Tests", tests(files))
    show("CI", [name for name in files if CI.search(name)][:10])
    show("Changed most often (last 300 commits)", churn(root, set(files)))
    largest = sorted((name for name in files if is_code(name)), key=lambda name: -sizes[name])[:8]
    show("Largest code files", [f"{name} ({human(sizes[name])})" for name in largest])
    show("Last commits", git(root, "log", "-6", "--format=%h %as %s"))
    return 0


def show(title: str, lines: list[str]) -> None:
    if lines:
        print(f"\n## {title}")
        for line in lines:
            print("  " + printable(line))


def printable(text: str) -> str:
    """File names and commit messages are other people's words: nothing in them may steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)[:160]


def list_files(root: Path) -> tuple[list[str], bool]:
    """Tracked and new files by git, or a walk where there is no git; whether these are all."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", split="\0")
    if listed:
        names = [name for name in dict.fromkeys(listed) if (root / name).is_file()]
        return sorted(names)[:MAX_FILES], len(names) <= MAX_FILES
    found: list[str] = []
    for directory, directories, names in os.walk(root):
        directories[:] = sorted(name for name in directories if name not in SKIPPED)
        paths = (Path(directory) / name for name in names)
        found.extend(path.relative_to(root).as_posix() for path in paths if path.is_file())
        if len(found) >= MAX_FILES:
            return sorted(found[:MAX_FILES]), False
    return sorted(found), True


def git(root: Path, *arguments: str, split: str = "\n") -> list[str]:
    try:
        ended = subprocess.run(
            ["git", "-C", str(root), "-c", "core.fsmonitor=false", *arguments],
            capture_output=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    text = ended.stdout.decode("utf-8", "replace") if ended.returncode == 0 else ""
    return [line for line in text.split(split) if line]


def languages(root: Path, files: list[str], sizes: dict[str, int]) -> list[str]:
    lines: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    budget = 200 * MAX_READ
    for name in files:
        language = LANGUAGES.get(suffix(name))
        if language is None or NOISE.search(name) or sizes[name] > MAX_READ or budget < 0:
            continue
        budget -= sizes[name]
        counts[language] += 1
        lines[language] += read(root / name).count("\n")
    return [f"{language}: {total} lines in {counts[language]} files" for language, total in lines.most_common(8)]


def layout(files: list[str]) -> list[str]:
    """Top directories, and one level deeper in those that hold much."""
    top = Counter(name.split("/")[0] + "/" for name in files if "/" in name)
    inner = Counter("/".join(name.split("/")[:2]) + "/" for name in files if name.count("/") > 1)
    lines: list[str] = []
    for directory, count in top.most_common(16):
        lines.append(f"{directory} ({count})")
        below = [(name, number) for name, number in inner.most_common() if name.startswith(directory)]
        if count > 12 and len(below) > 1:
            lines.append("    " + ", ".join(f"{name[len(directory) :]} ({number})" for name, number in below[:10]))
    alone = [name for name in files if "/" not in name]
    if alone:
        lines.append(f"at the top: {', '.join(alone[:14])}" + (" …" if len(alone) > 14 else ""))
    return lines


def manifests(root: Path, files: list[str]) -> list[str]:
    found = sorted((name for name in files if name.split("/")[-1] in MANIFESTS), key=lambda name: name.count("/"))
    lines: list[str] = []
    for name in found[:14]:
        commands = declared(name.split("/")[-1], read(root / name))
        lines.append(name + (f": {', '.join(commands[:12])}" if commands else ""))
    return lines + ([f"… and {len(found) - 14} more"] if len(found) > 14 else [])


def declared(kind: str, text: str) -> list[str]:
    """The commands a manifest offers, as one would type or call them."""
    if kind == "package.json":
        try:
            scripts = json.loads(text).get("scripts", {})
            return [f"npm run {name}" for name in scripts]
        except (ValueError, AttributeError):
            return []
    if kind in ("Makefile", "justfile"):
        tool = "make" if kind == "Makefile" else "just"
        names = re.findall(r"(?m)^([a-zA-Z][\w-]*)(?: [\w=\"'+* -]*)?:(?!=)", text)
        return [f"{tool} {name}" for name in dict.fromkeys(names)]
    if kind == "pyproject.toml":
        section = re.search(r"(?ms)^\[project\.(?:gui-)?scripts\]\s*$(.*?)(?=^\[|\Z)", text)
        return re.findall(r"(?m)^\s*\"?([\w.-]+)\"?\s*=", section[1]) if section else []
    if kind == "Cargo.toml":
        return [f"bin {name}" for name in re.findall(r"(?ms)^\[\[bin\]\][^\[]*?^name\s*=\s*\"([^\"]+)\"", text)]
    return []


def tests(files: list[str]) -> list[str]:
    found = [name for name in files if TESTS.search(name) and is_code(name)]
    places = Counter("/".join(name.split("/")[:-1]) or "." for name in found)
    return [f"{place}: {count} files" for place, count in places.most_common(8)]


def churn(root: Path, files: set[str]) -> list[str]:
    names = git(root, "log", "-300", "--relative", "--name-only", "--format=")
    counts = Counter(name for name in names if name in files and not NOISE.search(name))
    return [f"{count:>4} {name}" for name, count in counts.most_common(10) if count > 1]


def is_guide(name: str) -> bool:
    return name.count("/") < 2 and name.split("/")[-1].upper().startswith(GUIDES)


def is_code(name: str) -> bool:
    language = LANGUAGES.get(suffix(name))
    return language not in (None, "Markdown", "YAML", "TOML", "Notebooks") and not NOISE.search(name)


def suffix(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_READ).decode("utf-8", "replace")
    except OSError:
        return ""


def human(size: int) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size} {unit}"
        size //= 1000
    return f"{size} GB"


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
