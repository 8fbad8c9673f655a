"""Commands that are known to only read: they need no approval.

The list saves questions and protects nothing: the sandbox does that. So an option that is not known asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from codex_py.shell.command_line import Words

# No argument of these makes them write a file or start a program.
_ANY_ARGUMENTS: Final = frozenset(
    "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tail tr true uname wc which "
    "whoami".split()
)
# Part of every shell: not looked up in PATH.
BUILTINS: Final = frozenset(("cd", "echo", "false", "pwd", "true"))

_BASE64: Final = re.compile(r"-[dDi]+|--decode|--ignore-garbage|-w\d*|--wrap(?:=\d+)?|--help|--version")
_UNIQ: Final = re.compile(r"-[cdDiuz]+|-[fsw]\d+|--(count|repeated|unique|ignore-case|zero-terminated)")
_SED_PRINT: Final = re.compile(r"\d{1,9}(,\d{1,9})?p")

_FIND_FLAGS: Final = frozenset(
    "! -a -and -o -or -not , ( ) -H -L -P -daystart -depth -d -mount -xdev -noleaf -true -false -empty -readable "
    "-writable -executable -nouser -nogroup -print -print0 -ls -prune -quit -follow -warn -nowarn".split()
)
_FIND_TESTS: Final = frozenset(
    "-maxdepth -mindepth -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size "
    "-mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile "
    "-lname -ilname -fstype -used -printf".split()
)
_RG_FLAGS: Final = frozenset(
    "--files --files-with-matches --files-without-match --count --count-matches --line-number --no-line-number "
    "--ignore-case --smart-case --case-sensitive --word-regexp --line-regexp --fixed-strings --invert-match --hidden "
    "--no-ignore --no-ignore-vcs --no-ignore-parent --follow --text --multiline --multiline-dotall --only-matching "
    "--heading --no-heading --with-filename --no-filename --column --json --stats --pcre2 --trim --vimgrep --null "
    "--no-messages --no-config --quiet --type-list --version --help --unrestricted --byte-offset --passthru --crlf "
    "--no-hidden --one-file-system --pretty --no-require-git --glob-case-insensitive".split()
)
_RG_VALUES: Final = frozenset(
    "--glob --iglob --type --type-not --max-count --max-depth --max-filesize --max-columns --context --after-context "
    "--before-context --regexp --file --color --colors --sort --sortr --threads --replace --encoding --engine "
    "--context-separator --path-separator --field-match-separator --ignore-file".split()
)
_RG_SHORT: Final = frozenset("nNilLcHIoqswxvFUuaPhpb.S0V")
_RG_SHORT_VALUES: Final = frozenset("gtTmdABCefjrEM")


def is_known_safe(words: Words) -> bool:
    """Whether the command, a bare name with literal arguments, only reads and prints."""
    name, *arguments = words
    check = _CHECKED.get(name)
    return check(arguments) if check is not None else name in _ANY_ARGUMENTS


def _base64(arguments: list[str]) -> bool:
    return all(not word.startswith("-") or word == "-" or _BASE64.fullmatch(word) for word in arguments)


def _uniq(arguments: list[str]) -> bool:
    """The second operand of `uniq` is the file it writes."""
    operands = [word for word in arguments if not _UNIQ.fullmatch(word)]
    return len(operands) <= 1 and not any(word.startswith(("-", "+")) and word != "-" for word in operands)


def _tac(arguments: list[str]) -> bool:
    """Only with file arguments: `tac` writes a pipe to a temporary file first."""
    return bool(arguments) and all(word and not word.startswith("-") for word in arguments)


def _sed(arguments: list[str]) -> bool:
    """Only `sed -n 1,5p [file]`."""
    match arguments:
        case ["-n", script]:
            return _SED_PRINT.fullmatch(script) is not None
        case ["-n", script, file]:
            return _SED_PRINT.fullmatch(script) is not None and bool(file) and not file.startswith("-")
        case _:
            return False


def _find(arguments: list[str]) -> bool:
    waiting = iter(arguments)
    for word in waiting:
        if word in _FIND_TESTS:
            if next(waiting, None) is None:
                return False
        elif (
            word.startswith("-") and word not in _FIND_FLAGS and not re.fullmatch(r"-newer[aBcm][aBcmt]|-O[0-3]", word)
        ):
            return False
    return True


def _rg(arguments: list[str]) -> bool:
    waiting = iter(arguments)
    for word in waiting:
        if word == "--":
            return True
        if word in _RG_VALUES:
            if next(waiting, None) is None:
                return False
        elif word.startswith("--"):
            name, equals, _ = word.partition("=")
            if word not in _RG_FLAGS and not (equals and name in _RG_VALUES):
                return False
        elif word.startswith("-") and len(word) > 1:
            needs_value = _rg_cluster(word[1:])
            if needs_value is None or (needs_value and next(waiting, None) is None):
                return False
    return True


def _rg_cluster(letters: str) -> bool | None:
    """Whether a bundle of short options takes the next word as a value; None when one of them is not known."""
    for index, letter in enumerate(letters):
        if letter in _RG_SHORT_VALUES:
            return index == len(letters) - 1
        if letter not in _RG_SHORT:
            return None
    return False


_CHECKED: Final[Mapping[str, Callable[[list[str]], bool]]] = {
    "base64": _base64,
    "find": _find,
    "rg": _rg,
    "sed": _sed,
    "tac": _tac,
    "uniq": _uniq,
}
