"""Names of languages by file name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from codex_py.offline.pattern import Pattern

_BY_SUFFIX: Final[Mapping[str, str]] = MappingProxyType(
    {
        suffix: language
        for language, suffixes in {
            "Python": ".py .pyi .pyx",
            "Rust": ".rs",
            "Go": ".go",
            "TypeScript": ".ts .tsx .mts .cts",
            "JavaScript": ".js .jsx .mjs .cjs",
            "Java": ".java",
            "Kotlin": ".kt .kts",
            "Scala": ".scala .sc",
            "C": ".c .h",
            "C++": ".cc .cpp .cxx .hh .hpp .hxx",
            "C#": ".cs",
            "F#": ".fs .fsx",
            "Swift": ".swift",
            "Objective-C": ".m .mm",
            "Ruby": ".rb .rake .gemspec",
            "PHP": ".php",
            "Perl": ".pl .pm",
            "Lua": ".lua",
            "R": ".r",
            "Julia": ".jl",
            "Haskell": ".hs",
            "OCaml": ".ml .mli",
            "Elixir": ".ex .exs",
            "Erlang": ".erl .hrl",
            "Clojure": ".clj .cljs .cljc",
            "Dart": ".dart",
            "Zig": ".zig",
            "Nim": ".nim",
            "Vue": ".vue",
            "Svelte": ".svelte",
            "Shell": ".sh .bash .zsh .fish",
            "PowerShell": ".ps1 .psm1",
            "SQL": ".sql",
            "Assembly": ".s .asm",
            "CUDA": ".cu .cuh",
            "Fortran": ".f90 .f .f95",
            "Solidity": ".sol",
            "Terraform": ".tf",
            "Nix": ".nix",
            "Protocol Buffers": ".proto",
            "Jupyter notebooks": ".ipynb",
        }.items()
        for suffix in suffixes.split()
    }
)
_BY_INTERPRETER: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: suffix
        for suffix, names in {
            ".py": "python python2 python3 pypy pypy3",
            ".sh": "sh bash dash zsh ksh fish",
            ".js": "node nodejs bun",
            ".ts": "deno ts-node tsx",
            ".rb": "ruby",
            ".pl": "perl",
            ".php": "php",
            ".lua": "lua luajit",
            ".r": "Rscript",
            ".ps1": "pwsh",
        }.items()
        for name in names.split()
    }
)
_FIRST_LINE: Final = Pattern(r"#!\s*\S*?/(?:env\s+(?:-S\s+)?)?([\w-]+?)[\d.]*(?:\s|$)")
_OTHER: Final[Mapping[str, str]] = MappingProxyType(
    {
        suffix: kind
        for kind, suffixes in {
            "Markdown": ".md .mdx .markdown",
            "reStructuredText": ".rst",
            "plain text": ".txt",
            "HTML": ".html .htm",
            "CSS": ".css .scss .sass .less",
            "JSON": ".json .jsonl .json5",
            "YAML": ".yml .yaml",
            "TOML": ".toml",
            "XML": ".xml",
            "CSV": ".csv .tsv",
            "INI": ".ini .cfg",
        }.items()
        for suffix in suffixes.split()
    }
)


def count_languages(suffixes: Mapping[str, int]) -> tuple[list[tuple[str, int]], list[tuple[str, int]], int]:
    """Files per programming language, files per other known format, and how many are neither; most frequent first."""
    languages, formats = Counter[str](), Counter[str]()
    rest = 0
    for suffix, number in suffixes.items():
        if language := _BY_SUFFIX.get(suffix):
            languages[language] += number
        elif kind := _OTHER.get(suffix):
            formats[kind] += number
        else:
            rest += number
    return _ranked(languages.items()), _ranked(formats.items()), rest


def suffix_of_script(first_line: str) -> str:
    """The suffix a script might have by the interpreter its first line names; '' for any other line."""
    found = _FIRST_LINE.match(first_line)
    return _BY_INTERPRETER.get(found[1], "") if found else ""


def _ranked(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(counts, key=lambda count: (-count[1], count[0]))
