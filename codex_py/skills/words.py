"""Shell commands as values: words after expansion, what a word may stand for, and which words are the command meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

_SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ksh"))
# Commands that run the command in their arguments, with the options of theirs that take a word.
_WRAPPERS: Final[Mapping[str, frozenset[str]]] = {
    "builtin": frozenset(),
    "command": frozenset(),
    "env": frozenset(("-u", "-C", "-S", "--unset", "--chdir", "--split-string")),
    "exec": frozenset(("-a",)),
    "nice": frozenset(("-n", "--adjustment")),
    "nohup": frozenset(),
    "stdbuf": frozenset(("-i", "-o", "-e", "--input", "--output", "--error")),
    "sudo": frozenset(("-u", "-g", "-C", "-D", "-p", "-h", "-R", "-T", "--user", "--group", "--chdir", "--prompt")),
    "time": frozenset(("-f", "-o", "--format", "--output")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
}
_SPLIT_STRING: Final = re.compile(r"--split-string=?|-[0iv]*S")
_ESCAPE: Final = re.compile(
    r"\\(?:x(?P<x>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})|[uU](?P<u>[0-9A-Fa-f]{1,8})|(?P<plain>.))", re.DOTALL
)
_NAMED_ESCAPES: Final[Mapping[str, str]] = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


class Word(NamedTuple):
    """A word after expansion; `text` is None when it cannot be known.

    A pattern is one that the shell may yet turn into several words: `*`, `?`, `[…]`, `{a,b}`. A word that is the list
    another command prints has no text, and what is `listed`.
    """

    text: str | None
    is_pattern: bool = False
    listed: tuple[Listed, ...] = ()


class FileSearch(NamedTuple):
    """The files that a `find` lists: those below `folder`, from so many levels to so many, that pass all tests.

    `written` is the folder as the command has it, which the paths it prints begin with.
    """

    folder: str
    written: str
    tests: tuple[NameTest, ...]
    least: int
    most: int


class NameTest(NamedTuple):
    """A test of a `find`: whether the name, or the whole path as printed, fits a pattern, in which `*` is anything."""

    pattern: str
    of_path: bool
    any_case: bool
    negated: bool


Listed: TypeAlias = Word | FileSearch


class PlainCommand(NamedTuple):
    """A program with its arguments; `stdin` is the file that `<` puts at its input, `listed` the files a pipe lists.

    `folder` is where it runs, absolute unless the script changes to a relative place of an unknown one; None when that
    is unknown. `written` are the words with what runs it before them, such as `sudo`.
    """

    words: tuple[Word, ...]
    stdin: Word | None
    folder: str | None
    listed: tuple[Listed, ...] = ()
    written: tuple[Word, ...] = ()

    @property
    def program(self) -> str:
        return self.words[0].text or ""


def unwrapped(words: list[Word]) -> list[Word]:
    """The words without what runs them: `env A=1`, `timeout 10`, `sudo -u me`."""
    while words and words[0].text and (name := words[0].text.rpartition("/")[2]) in _WRAPPERS:
        words = words[1:]
        while words and (text := words[0].text) is not None and (text.startswith("-") or _is_assignment(name, text)):
            split = _split_string(name, words)
            words = split if split is not None else words[2 if text in _WRAPPERS[name] else 1 :]
        if name == "timeout":
            words = words[1:]
    return words


def _split_string(wrapper: str, words: list[Word]) -> list[Word] | None:
    """The words of `env -S "NAME -a b" c`, when it is that."""
    text = words[0].text or ""
    option = _SPLIT_STRING.match(text) if wrapper == "env" else None
    if option is None:
        return None
    glued = text[option.end() :]
    packed = Word(glued) if glued else words[1] if len(words) > 1 else Word(None)
    rest = words[1 if glued else 2 :]
    return rest if packed.text is None else [*map(Word, _quoted_words(packed.text)), *rest]


def _quoted_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _is_assignment(wrapper: str, text: str) -> bool:
    return wrapper in ("env", "sudo") and "=" in text and text.partition("=")[0].isidentifier()


def quoted_script(name: str, words: list[Word]) -> str | None:
    """The script in an argument: of `bash -lc "…"` and its like, and of `eval`."""
    texts = [word.text for word in words[1:]]
    if name == "eval":
        return None if None in texts else " ".join(filter(None, texts))
    if name.removesuffix(".exe") not in _SHELLS:
        return None
    for place, text in enumerate(texts[:-1]):
        if text is None or not text.startswith(("-", "+")):
            # The word of `-o pipefail` is no script file.
            if place and texts[place - 1] in ("-o", "+o", "-O", "+O"):
                continue
            return None
        if text.startswith("-") and not text.startswith("--") and "c" in text:
            return next((rest for rest in texts[place + 1 :] if rest is None or not rest.startswith("-")), None)
    return None


def folder_of(words: list[Word], home: str | None) -> str | None:
    """Where `cd` goes; None when that cannot be known."""
    targets = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "--")]
    if not targets:
        return home
    return None if targets[0].text in (None, "-") or targets[0].is_pattern else targets[0].text


def literal_between(raw: bytes, is_string: bool) -> str:
    text = raw.decode("utf-8", "replace")
    if not is_string or "\\" not in text:
        return text
    for char in ("\\\n", '\\"', "\\$", "\\`"):
        text = text.replace(char, char[1:].strip("\n"))
    return text.replace("\\\\", "\\")


def unescaped(text: str) -> str:
    """A bare word without its backslashes."""
    if "\\" not in text:
        return text
    plain: list[str] = []
    characters = iter(text)
    for char in characters:
        following = next(characters, "") if char == "\\" else char
        plain.append("" if char == "\\" and following == "\n" else following)
    return "".join(plain)


def ansi_c(text: str) -> str:
    """What stands between the quotes of `$'…'`, without its backslashes."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    if digits := escape["x"] or escape["u"]:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else ""
    if escape["octal"]:
        return chr(int(escape["octal"], 8) & 0xFF)
    return _NAMED_ESCAPES.get(escape["plain"], escape["plain"])


def printed_text(words: list[Word]) -> str | None:
    """What `echo`, `printf`, `which` and `command -v` print of words that are known; None when that cannot be told."""
    texts = [word.text for word in words]
    if not texts or None in texts:
        return None
    name, *rest = [text or "" for text in texts]
    match name, rest:
        case "echo", _:
            while rest and rest[0] in ("-n", "-e", "-E"):
                rest = rest[1:]
            return " ".join(rest)
        case "printf", [text] | ["%s" | r"%s\n", text] if "%" not in text:
            return text
        case ("which", [program]) | ("command", ["-v", program]) | ("type", ["-p" | "-P", program]):
            return program
        case _:
            return None
