"""Where a script comes from that nobody has read: downloads, decoded texts, what other commands print. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.skills.commands import plain_commands
from codex_py.skills.words import PlainCommand, Word
from codex_py.text.bash_tree import text_of
from codex_py.tools.runners import command_of_runner, program

if TYPE_CHECKING:
    from tree_sitter import Node

SHELLS: Final = frozenset(("ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"))
INTERPRETERS: Final = frozenset(("python", "python3", "perl", "ruby", "node", "php", "lua", "osascript"))
AWKS: Final = frozenset(("awk", "gawk", "mawk", "nawk"))
FETCHERS: Final = frozenset(("curl", "wget", "fetch", "aria2c", "http", "nc", "ncat", "ftp", "scp"))
# Programs beside shells that read a script to run later.
_SCHEDULERS: Final = frozenset(("at", "batch"))
# Options of shells that take a word.
_SHELL_VALUES: Final = frozenset(("--init-file", "--rcfile", "-O", "-o", "+O", "+o"))
_OWN_INPUT: Final = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))
# Options with which an interpreter still reads its program from its input.
_UNTOLD: Final = frozenset(("-", "-u", "-B", "-E", "-I", "-s", "-w", "-q"))
# Programs that make readable what was not, with their options that say so.
_DECODERS: Final[Mapping[str, frozenset[str]]] = {
    "base32": frozenset(("-d", "--decode")),
    "base64": frozenset(("-d", "-D", "-di", "--decode")),
    "openssl": frozenset(("-d",)),
    "xxd": frozenset(("-r", "-rp")),
}
PRINTERS: Final = frozenset(("echo", "printf"))
_MOST_STREAMS: Final = 64
# The options before a script that stands on the command line itself.
_BEFORE_CODE: Final = re.compile(r"-[a-z]*[ce]")
# A redirect to a file whose name is not known, and a stream that is given as one.
_TO_UNKNOWN: Final = re.compile(r">\|?\s*[\"']?[\w./-]*[$`]|<\(")
# `bash -c`, to which `xargs` adds the script.
_REPLACED: Final = frozenset(("{}", "%"))
_ENDS_IN_C: Final = re.compile(r"-[a-z]*c")

FETCHED: Final = "it runs what it downloads"
DECODED: Final = "it runs what it decodes"


def fetched_reason(found: Sequence[PlainCommand], text: str) -> str | None:
    """A download, or something decoded, and in the same script a shell that is given something unknown, or the file."""
    commands = [[word.text or "" for word in command.words] for command in found]
    fetchers = [words for words in commands if words[0].rpartition("/")[2] in FETCHERS]
    reason = FETCHED if fetchers else DECODED
    if not fetchers and not any(map(_decodes, commands)):
        return None
    writers = [words for words in commands if words[0].rpartition("/")[2] in {*FETCHERS, *_DECODERS, "tee"}]
    named = [word for words in writers for word in words[1:] if not word.startswith("-")]
    redirected: list[str] = re.findall(r">\|?\s*([\w./-]+)", text)
    files = {word.rpartition("/")[2] for word in (*named, *redirected)} - {"", "null"}
    # What is kept as `-o "$FILE"` may be in any file whose name is not known.
    hidden = "" in named or _TO_UNKNOWN.search(text) is not None
    for path, *rest in commands:
        name = path.rpartition("/")[2]
        if name in SHELLS | INTERPRETERS | {"eval", "source", "."}:
            operand = next((word for word in rest if not word.startswith("-")), None)
            is_code = name == "eval" or any(map(_BEFORE_CODE.fullmatch, rest))
            if (is_code or hidden) if operand == "" else operand and operand.rpartition("/")[2] in files:
                return reason
        elif "/" in path and name in files:
            return reason
    return None


def _decodes(words: Sequence[str]) -> bool:
    """Whether a command makes a text readable that nobody could read before."""
    options = _DECODERS.get(words[0].rpartition("/")[2])
    return options is not None and not options.isdisjoint(words)


def reads_script(words: list[Word]) -> bool:
    """Whether a program takes its script from its input."""
    name, rest = program(words), [word.text or "" for word in words[1:]]
    if name == "xargs":
        inner = command_of_runner(words)
        # `{}` is where it is added.
        texts = [word.text or "" for word in inner if word.text not in _REPLACED]
        return bool(inner) and program(inner) in SHELLS and _ENDS_IN_C.fullmatch(texts[-1]) is not None
    if name == "parallel":
        return not command_of_runner(words)
    if name in _SCHEDULERS:
        return "-f" not in rest
    if name in SHELLS:
        return "-s" in rest or script_operand(rest) in (None, *_OWN_INPUT)
    if name in ("source", "."):
        return not _OWN_INPUT.isdisjoint(rest[:1])
    if name == "crontab":
        return "-" in rest
    if name in ("make", "gmake", *AWKS):
        return "-f" in rest and ("-" in rest or not _OWN_INPUT.isdisjoint(rest))
    # What follows a `-` is for the program.
    return name in INTERPRETERS and _UNTOLD.issuperset(rest[: rest.index("-")] if "-" in rest else rest)


def script_operand(options: Sequence[str]) -> str | None:
    """The file that a shell with these words runs; None for its input, empty for a script among them, or for none."""
    waiting = iter(options)
    for word in waiting:
        if word in _SHELL_VALUES:
            next(waiting, None)
        elif word in ("-", "--"):
            return next(waiting, None)
        elif not word.startswith(("-", "+")):
            return word
        elif not word.startswith("--") and ("c" in word or "n" in word):
            return ""
    return None


def streamed_reason(node: Node) -> str | None:
    """Why it is dangerous to run what the `<(…)` and `$(…)` in a statement or in its redirects print."""
    waiting, streams = [node], 0
    while waiting and streams < _MOST_STREAMS:
        one = waiting.pop()
        if one.type not in ("process_substitution", "command_substitution"):
            waiting.extend(one.named_children)
            continue
        streams += 1
        inner = plain_commands(text_of(one).strip("<>$()`"), "/", {})
        if not FETCHERS.isdisjoint(program(command.words) for command in inner):
            return FETCHED
        if any(_decodes([word.text or "" for word in command.words]) for command in inner):
            return DECODED
    return None
