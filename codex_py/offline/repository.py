"""Saying what a repository is: from its README, its manifest and the names of its files."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections import Counter
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from codex_py.offline.skills import SHELL_LANGUAGES, fences, shell_text
from codex_py.offline.steps import Command, Rule
from codex_py.offline.wording import clip, code
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.text.display import counted

_MAX_FILES: Final = 3_000
_LIST: Final = (
    "if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -co --exclude-standard; else find . "
    r"\( -name .git -o -name node_modules -o -name .venv \) -prune -o -type f -print | sed 's|^\./||'; fi | "
    f"head -n {_MAX_FILES}"
)
_MANIFESTS: Final = ("pyproject.toml", "package.json", "Cargo.toml")
_README: Final = re.compile(r"readme(?:\.(?:md|markdown|rst|txt))?", re.IGNORECASE)
_TEST_FILE: Final = re.compile(r"(?:^|/)(?:test_[^/]*\.py|[^/]*(?:_test|_spec|\.test|\.spec|Tests?)\.\w+)$")
_REMOVED: Final = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)|<[^<>\n]{1,300}>|\*\*")
_LINK: Final = re.compile(r"\[([^\]\n]*)\](?:\([^)\n]*\)|\[[^\]\n]*\])?")
_NOT_PROSE: Final = re.compile(r"\s*(?:#|[-*+] |\d+[.)] |\||\.\. |:[\w-]+:|[=~-]{3,}|    |\t|>)")
_LANGUAGES: Final = MappingProxyType({
    suffix: language
    for language, suffixes in {
        "Python": "py pyi", "Rust": "rs", "Go": "go", "TypeScript": "ts tsx mts", "JavaScript": "js jsx mjs cjs",
        "Java": "java", "Kotlin": "kt kts", "C": "c h", "C++": "cc cpp cxx hpp", "C#": "cs", "Swift": "swift",
        "Ruby": "rb", "PHP": "php", "Perl": "pl pm", "Lua": "lua", "Haskell": "hs", "Elixir": "ex exs",
        "Dart": "dart", "Zig": "zig", "Shell": "sh bash", "SQL": "sql", "HTML": "html", "CSS": "css scss",
    }.items()
    for suffix in suffixes.split()
})  # fmt: skip


def describe_repository() -> Rule:
    """Look at the files, read the README and the manifests, and report."""
    listing = yield Command(f"pwd; {_LIST}")
    directory, paths = PurePosixPath(listing.lines[0] if listing.lines else ".").name, listing.lines[1:]
    if not paths:
        return f"`{directory}` is empty: there is no file in it to describe."
    readme = min((path for path in paths if _README.fullmatch(path)), key=len, default="")
    texts: dict[str, str] = {}
    for name in filter(None, (readme, *(name for name in _MANIFESTS if name in paths))):
        read = yield Command(f"head -c 24000 {shlex.quote(name)}")
        texts[name] = read.text if read.is_ok else ""
    return _report(directory, paths, readme, texts)


def first_paragraph(text: str) -> str:
    """The first block of prose in a README: no heading, badge, list, table or code. Empty when there is none."""
    block: list[str] = []
    in_fence = False
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        is_fence = line.strip().startswith(("```", "~~~"))
        in_fence = in_fence != is_fence
        if line.strip() and not in_fence and not is_fence and (block or not _NOT_PROSE.match(line)):
            block.append(line)
            continue
        # An underlined heading is one too.
        is_heading = len(block) > 1 and re.fullmatch(r"\s*([=~-])\1{2,}\s*", block[1]) is not None
        plain = _REMOVED.sub("", " ".join(block[2:] if is_heading else block))
        prose = " ".join(_LINK.sub(r"\1", plain).split())
        if len(prose.split()) >= 3:
            return clip(prose, 420)
        block = []
    return ""


def readme_commands(text: str) -> list[str]:
    """The first commands that a README shows in shell blocks."""
    blocks = [shell_text(fence) for fence in fences(text) if fence.language in SHELL_LANGUAGES]
    lines = [line.split("  #", 1)[0].strip() for block in blocks for line in block.replace("\\\n", " ").split("\n")]
    return list(dict.fromkeys(clip(line, 120) for line in lines if line and not line.startswith(("#", "cd "))))[:5]


def _report(directory: str, paths: list[str], readme: str, texts: dict[str, str]) -> str:
    projects = [project for name in _MANIFESTS if (project := _project(name, texts.get(name, "")))]
    manifest = projects[0] if projects else dict[str, Any]()
    title = re.search(r"^# +(\w[^\n`<\[]*)$", texts.get(readme, ""), re.MULTILINE)
    name = manifest.get("name") or (title[1].strip() if title else directory)
    purpose = first_paragraph(texts.get(readme, ""))
    described = manifest.get("description")
    source = f"(from `{readme}`)" if purpose else ""
    purpose = purpose or (described if isinstance(described, str) else "") or "nothing here says what it is for."
    languages = Counter(
        language for path in paths if (language := _LANGUAGES.get(PurePosixPath(path).suffix.lstrip(".").lower()))
    )
    tests = [path for path in paths if _TEST_FILE.search(path)]
    test_dirs = sorted({str(PurePosixPath(path).parent) for path in tests}, key=lambda path: (path.count("/"), path))
    run = readme_commands(texts.get(readme, "")) or (["npm install"] if "package.json" in paths else [])
    tops = Counter(path.partition("/")[0] for path in paths if "/" in path)
    spoken = ", ".join(f"{language} ({counted(number, 'file')})" for language, number in languages.most_common(8))
    tested = (
        f"{', '.join(map(code, test_dirs[:5]))} ({counted(len(tests), 'test file')})" if tests else "none found by name"
    )
    return "\n".join(
        [
            f"**{name}**: {purpose}",
            *(["", source] if source else []),
            "",
            f"- **Files:** {len(paths)}{' or more' if len(paths) >= _MAX_FILES else ''}",
            f"- **Languages:** {spoken or 'no source code in a language I know'}",
            f"- **Tests:** {tested}",
            f"- **How to run:** {', '.join(map(code, run)) if run else 'neither a README nor a manifest says how'}",
            *(
                [f"- **Directories:** {', '.join(f'`{top}/` ({number})' for top, number in tops.most_common(8))}"]
                if tops
                else []
            ),
        ]
    )


def _project(file: str, text: str) -> dict[str, Any]:
    """The table of a manifest that has the project's name and description; empty for one that cannot be read."""
    try:
        table = as_object(decode_json(text)) if file.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    poetry = as_object(as_object(table.get("tool")).get("poetry"))
    return table if file.endswith(".json") else as_object(table.get("project") or table.get("package") or poetry)
