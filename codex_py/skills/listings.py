"""Lists of files that a command prints or hands on: what `find`, `ls` and `echo` list, and what `xargs` runs with it.

Told from the words alone; the file system is not looked at. What cannot be told is no list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from codex_py.skills.words import FileSearch, Listed, NameTest, PlainCommand, Word, unwrapped

_MAX_LISTED: Final = 256
_MAX_LEVELS: Final = 1000
_NAME_TESTS: Final = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename")
_NO_TESTS: Final = frozenset(("-print", "-print0", "-follow", "-xdev", "-mount", "-depth", "-a", "-and", "-readable"))
_RUNS: Final = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
# The options of xargs that take a word, when it is written apart.
_XARGS_WORDS: Final = frozenset(("-n", "-P", "-L", "-d", "-s", "-E", "-a", "--max-args", "--max-procs", "--delimiter"))


class _Find(NamedTuple):
    """What a `find` looks for, and the first command it runs with it."""

    searches: tuple[FileSearch, ...]
    run: tuple[Word, ...]


def printed(command: PlainCommand) -> tuple[Listed, ...]:
    """The files that a command lists on its output: of `find`, `ls`, `echo`, `printf '%s…'`, `sort` and `uniq`."""
    arguments = [word for word in command.words[1:] if word.listed or not (word.text or "-").startswith("-")]
    match _name(command.words[0]):
        case "find":
            found = _read_find(command)
            return found.searches if found and not found.run else ()
        case "printf" if arguments and (arguments[0].text or "").startswith("%s"):
            return _flat(arguments[1:], command.folder)
        case "ls" | "echo":
            return _flat(arguments, command.folder)
        case "sort" | "uniq" if not arguments:
            return command.listed
        case _:
            return ()


def commands_run(command: PlainCommand) -> Iterator[PlainCommand]:
    """The command itself, and the one that it runs with a list of files: of `find -exec …` and `… | xargs …`."""
    yield command
    words: list[Word] = []
    match _name(command.words[0]):
        case "find" if found := _read_find(command):
            words = [Word(None, listed=found.searches) if word.text == "{}" else word for word in found.run]
        case "xargs":
            words = _xargs(command)
        case _:
            pass
    if words := unwrapped(words):
        yield PlainCommand(tuple(words), None, command.folder)


def is_found(path: str, search: FileSearch) -> bool:
    """Whether a file of this absolute path is among those a search lists."""
    top = f"{search.folder.rstrip('/')}/"
    if not path.startswith(top):
        return False
    below = path.removeprefix(top)
    if not search.least <= below.count("/") + 1 <= search.most:
        return False
    shown = f"{search.written.rstrip('/')}/{below}"
    return all(_passes(shown, test) for test in search.tests)


def _passes(shown: str, test: NameTest) -> bool:
    text = shown if test.of_path else shown.rpartition("/")[2]
    fits = fnmatchcase(text.lower(), test.pattern.lower()) if test.any_case else fnmatchcase(text, test.pattern)
    return fits != test.negated


def _read_find(command: PlainCommand) -> _Find | None:
    """None for an expression with anything in it that is not understood: alternatives, brackets, times, sizes."""
    words = [word for word in command.words[1:] if word.text not in ("-L", "-H", "-P")]
    start = next((place for place, word in enumerate(words) if (word.text or "")[:1] in ("-", "!", "(")), len(words))
    tests: list[NameTest] = []
    run: tuple[Word, ...] = ()
    levels = {"-mindepth": 0, "-maxdepth": _MAX_LEVELS}
    negated = False
    rest = iter(words[start:])
    for word in rest:
        match word.text:
            case "!" | "-not":
                negated = True
                continue
            case str(test) if test in _NAME_TESTS and (pattern := next(rest, Word(None)).text) is not None:
                tests.append(NameTest(pattern, "name" not in test[:6], test.startswith("-i"), negated))
            case "-type" if not negated and next(rest, Word(None)).text == "f":
                pass
            case "-mindepth" | "-maxdepth" as bound if (number := next(rest, Word(None)).text or "").isdecimal():
                levels[bound] = min(int(number[:4]), _MAX_LEVELS)
            case str(action) if action in _RUNS:
                words_run = tuple(_until_end(rest))
                run = run or words_run
            case str(other) if other in _NO_TESTS:
                pass
            case _:
                return None
        negated = False
    searches = [_search(root, command.folder, tests, levels) for root in words[:start] or [Word(".")]]
    return _Find(tuple(search for search in searches if search), run)


def _until_end(words: Iterator[Word]) -> Iterator[Word]:
    """The words up to the `;` or `+` that ends a command in a `find`."""
    for word in words:
        if word.text in (";", "+"):
            return
        yield word


def _search(root: Word, folder: str | None, tests: Sequence[NameTest], levels: dict[str, int]) -> FileSearch | None:
    text = root.text
    if not text or root.is_pattern or (folder is None and not text.startswith("/")):
        return None
    top = os.path.normpath(text if text.startswith("/") else f"{folder}/{text}")
    return FileSearch(top, text, tuple(tests), levels["-mindepth"], levels["-maxdepth"])


def _xargs(command: PlainCommand) -> list[Word]:
    """The words of the command, with the list at their end or in place of what `-I` names."""
    words = list(command.words[1:])
    mark = ""
    while words and (text := words[0].text) is not None and text.startswith("-"):
        if text == "-I" and len(words) > 1:
            mark = words[1].text or ""
        elif text.startswith(("-I", "--replace=")):
            mark = text.removeprefix("-I").removeprefix("--replace=")
        elif text in ("-i", "--replace"):
            mark = "{}"
        words = words[2 if text in _XARGS_WORDS or text == "-I" else 1 :]
    given = Word(None, listed=command.listed)
    return [given if word.text == mark else word for word in words] if mark else [*words, given]


def _flat(words: Sequence[Word], folder: str | None) -> tuple[Listed, ...]:
    """The words and what they stand for, at most 256; paths are absolute, because others may read them elsewhere."""
    flat: list[Listed] = []
    for word in words:
        if word.listed:
            flat.extend(word.listed)
        elif word.text:
            flat.append(
                word if word.text.startswith("/") or folder is None else word._replace(text=f"{folder}/{word.text}")
            )
    return tuple(flat[:_MAX_LISTED])


def _name(word: Word) -> str:
    return (word.text or "").rpartition("/")[2]
