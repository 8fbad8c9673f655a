"""What `make` runs of a makefile: the recipes of its goals and of what these need. Pure; nothing is judged here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

# Where it looks when no option names a file.
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
FILE_OPTIONS: Final = frozenset(("-f", "--file", "--makefile"))
_VALUE_OPTIONS: Final = FILE_OPTIONS | {"-C", "--directory", "-I", "-W", "-o"}
_MOST_TARGETS: Final = 32
_MOST_VALUE: Final = 300
_MOST_LINE: Final = 4096
_RULE: Final = re.compile(r"(?P<targets>[^\t#:=][^#:=]*):{1,2}(?![:=])(?P<needs>[^;#]*)(?:;(?P<recipe>.*))?")
_VARIABLE: Final = re.compile(r" *(?:export +|override +)*([\w.-]+) *(?:::?:?|[?+])?= *(.*)")
_NAMED: Final = re.compile(r"\$[({]([\w.-]+)[)}]")
_SHELL: Final = re.compile(r"\$[({]shell +([^)}\n]*)|^[\w.-]+ *!= *(.*)", re.MULTILINE)
# A target that stands for many, or for one whose name is not known here.
_OPEN: Final = re.compile(r"[%$]|\.[^/]*\Z")


class _Rule(NamedTuple):
    needs: list[str]
    recipe: list[str]


def recipes(makefile: str, arguments: Sequence[str]) -> Iterator[str]:
    """The scripts that `make` with these arguments runs; of all targets when one of its goals is not known."""
    text = makefile.replace("\\\n", " ")
    yield from (one or other for one, other in _SHELL.findall(text))
    rules, variables = _read(text)
    for target in _reached(rules, _goals(arguments)):
        lines = (_spelled_out(line, variables).lstrip("\t @+-") for line in rules[target].recipe)
        if script := "\n".join(lines).replace("$$", "$"):
            yield script


def _goals(arguments: Sequence[str]) -> list[str]:
    return [
        word
        for before, word in pairwise(("", *arguments))
        if not word.startswith("-") and "=" not in word and not word.isdigit() and before not in _VALUE_OPTIONS
    ]


def _read(text: str) -> tuple[dict[str, _Rule], dict[str, str]]:
    rules: dict[str, _Rule] = {}
    variables = {"RM": "rm -f"}
    current: list[_Rule] = []
    for line in text.split("\n"):
        if line.startswith("\t"):
            for rule in current:
                rule.recipe.append(line)
        elif found := _VARIABLE.fullmatch(line):
            variables[found[1]] = found[2][:_MOST_VALUE]
        elif found := _RULE.fullmatch(line):
            targets = found["targets"].split()[:_MOST_TARGETS]
            current = [rules.setdefault(target, _Rule([], [])) for target in targets]
            for rule in current:
                rule.needs.extend(found["needs"].split())
                rule.recipe.extend([found["recipe"]] if found["recipe"] else [])
    return rules, variables


def _reached(rules: Mapping[str, _Rule], goals: Sequence[str]) -> Sequence[str]:
    """The targets that are made for the goals; without any, for the first target."""
    if not goals:
        goals = [next((target for target in rules if not _OPEN.match(target)), "")]
    if not all(goal in rules for goal in goals):
        return list(rules)
    reached = dict.fromkeys(goals)
    waiting = list(goals)
    # What no rule names is there already, or is made by one that stands for many.
    for_many = [target for target in rules if _OPEN.search(target)]
    while waiting:
        needs = rules[waiting.pop()].needs
        names = [need for need in needs if need in rules]
        if len(names) < len(needs):
            names, for_many = names + for_many, []
        waiting += [name for name in dict.fromkeys(names) if name not in reached]
        reached |= dict.fromkeys(names)
    return list(reached)


def _spelled_out(line: str, variables: Mapping[str, str]) -> str:
    if len(line) > _MOST_LINE:
        return line
    return _NAMED.sub(lambda found: variables.get(found[1], ""), line)
