"""Names of languages by file name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

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


def _ranked(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(counts, key=lambda count: (-count[1], count[0]))
