"""The commands, flags and packages that a skill says to run and that are nowhere to be found."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from codex_py.skills.lint_document import Document, is_placeholder
from codex_py.skills.lint_finding import LintFinding, LintRule
from codex_py.skills.lint_repository import RepositoryFacts

# Of a shell, and this program itself.
_BUILTINS: Final = frozenset(
    "alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown do done "
    "echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs "
    "kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source "
    "suspend test codex-py "
    "then time times trap true type typeset ulimit umask unalias unset until wait while [ [[ ]] { } ! ( )".split()
)
_BEFORE: Final = frozenset("sudo env time nohup command exec xargs then do else ! if while until".split())
_PROGRAM: Final = re.compile(r"[a-z][a-z0-9]*(?:[_.+-][a-z0-9]+)*")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# `--tool claude|codex`: one of several, and no pipe.
_ALTERNATIVE: Final = re.compile(r"(?<=[\w>\]])\|(?=[\w<\[])")
_SPLIT: Final = frozenset(("&&", "||", "|", ";", "&", "(", ")"))
# A text that tells how to get a program has not lost it.
_GETS: Final = r"(?:install|add|tap|download|get|setup|clone)\b[^\n]{{0,200}}(?<![\w-]){}(?![\w])"
_MAX_PROGRAMS: Final = 100
_RUNNERS: Final = frozenset(("python", "python3", "bash", "sh", "node", "uv", "bun", "deno", "ruby", "perl"))
_FLAG: Final = re.compile(r"--[A-Za-z][\w-]+")
# A script that hands its arguments on, or whose options are made by a library from something else.
_PASSES_ON: Final = re.compile(r'"\$@"|\$\*|REMAINDER|parse_known_args|fire\.Fire|argv\[1:\]|argv\.slice|passthrough')


def check_commands(
    document: Document, directory: Path, repository: RepositoryFacts | None, *, search_path: str
) -> Iterator[LintFinding]:
    """The findings about the commands of one document, each program, flag and package once."""
    seen: set[str] = set()
    programs: set[str] = set()
    defined = frozenset(re.findall(r"(?:^|\s)(?:function\s+)?([A-Za-z_][\w-]*)\s*\(\)", document.text))
    for line in chain(document.commands(), document.commands_in_prose()):
        for words in split_commands(line.text):
            # The whole text is searched for each of them.
            is_new = words[0] not in programs and len(programs) < _MAX_PROGRAMS
            programs.update(words[:1] if is_new else ())
            about = _about_program(document, line.number, words, defined=defined, search_path=search_path)
            for finding, key in (
                *(about if is_new else ()),
                *_about_flags(document, line.number, words, directory),
                *_about_packages(document, line.number, words, repository),
            ):
                if key not in seen:
                    seen.add(key)
                    yield finding


def split_commands(text: str) -> list[list[str]]:
    """The words of each command of a line; none of a line that is not plain."""
    try:
        lexer = shlex.shlex(_ALTERNATIVE.sub("/", text), posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        tokens = list(lexer)
    except ValueError:
        return []
    commands: list[list[str]] = [[]]
    for token in tokens:
        if token in _SPLIT:
            commands.append([])
        else:
            commands[-1].append(token)
    return [stripped for words in commands if (stripped := _without_prefix(words))]


def _without_prefix(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at] in _BEFORE or _ASSIGNMENT.fullmatch(words[at])):
        at += 1
    return words[at:]


def _about_program(
    document: Document, number: int, words: Sequence[str], *, defined: frozenset[str], search_path: str
) -> Iterator[tuple[LintFinding, str]]:
    program = words[0]
    if not _PROGRAM.fullmatch(program) or program in _BUILTINS or program in defined or is_placeholder(program):
        return
    if _looks_like_prose(words) or find_program(program, search_path):
        return
    if re.search(_GETS.format(re.escape(program)), document.text, re.IGNORECASE):
        return
    remedy = f"say how to get `{program}`, or use an installed program"
    yield _finding(document, number, "missing-command", f"the command `{program}` is not on `PATH`", remedy), program


def _looks_like_prose(words: Sequence[str]) -> bool:
    """Whether words in a shell block are a sentence, or the output of a command."""
    last = words[-1]
    return len(words) > 2 and (last.endswith((".", "?", ":", "!")) or any(word.endswith(",") for word in words[:3]))


def find_program(name: str, search_path: str) -> bool:
    """Whether an executable file of this name is in a directory of a search path."""
    return any(os.access(Path(top, name), os.X_OK) for top in search_path.split(os.pathsep) if top)


def _about_flags(
    document: Document, number: int, words: Sequence[str], directory: Path
) -> Iterator[tuple[LintFinding, str]]:
    """Flags that a script of the skill is called with and does not know."""
    at = next((index for index, word in enumerate(words[:4]) if _script(word, document, directory)), None)
    if at is None or (at > 0 and words[0] not in _RUNNERS):
        return
    script = _script(words[at], document, directory)
    source = _read(script) if script else ""
    if not source or _PASSES_ON.search(source):
        return
    for word in words[at + 1 :]:
        flag = word.partition("=")[0]
        if word == "--":
            return
        if not _FLAG.fullmatch(flag) or flag in ("--help", "--version") or is_placeholder(flag):
            continue
        name = flag.removeprefix("--")
        if not any(text in source for text in (flag, name, name.replace("-", "_"), _camel(name))):
            message = f"the script `{words[at]}` knows no `{flag}`"
            yield _finding(document, number, "missing-flag", message, "use a flag of the script"), f"{words[at]} {flag}"


def _script(word: str, document: Document, directory: Path) -> Path | None:
    name = word.removeprefix("./")
    if not name.startswith(("scripts/", "assets/")) or ".." in name:
        return None
    return next((top / name for top in (directory, document.path.parent) if (top / name).is_file()), None)


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)


def _about_packages(
    document: Document, number: int, words: Sequence[str], repository: RepositoryFacts | None
) -> Iterator[tuple[LintFinding, str]]:
    """Scripts of `package.json`, targets of a `Makefile` and modules that the repository does not have."""
    if repository is None or (found := _named_task(words, repository)) is None:
        return
    task, known, where = found
    if task in known or is_placeholder(task) or not re.fullmatch(r"[\w:.@/-]+", task):
        return
    message = f"`{' '.join(words[:3])}`: {where} has no `{task}`"
    yield _finding(document, number, "missing-package", message, f"use one that {where} has"), f"{where} {task}"


def _named_task(words: Sequence[str], repository: RepositoryFacts) -> tuple[str, frozenset[str], str] | None:
    """The task a command names, the tasks that exist, and the manifest with them."""
    match list(words):
        case ["npm" | "pnpm" | "yarn" | "bun", "run", task, *_] if repository.npm_scripts is not None:
            return task, repository.npm_scripts, "`package.json`"
        case ["make", target, *_] if repository.make_targets is not None and not target.startswith("-"):
            return (target, repository.make_targets, "the `Makefile`") if "=" not in target else None
        case ["just", recipe, *_] if repository.just_recipes is not None and not recipe.startswith("-"):
            return recipe, repository.just_recipes, "the `justfile`"
        case _:
            return None


def _finding(document: Document, line: int, rule: LintRule, message: str, remedy: str) -> LintFinding:
    return LintFinding("advice", document.path, message, rule, line, remedy)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:500_000]
    except OSError:
        return ""
