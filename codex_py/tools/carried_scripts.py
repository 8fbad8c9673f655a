"""Scripts in variables, options and strings, for programs that run what they find there. Found here, not judged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

_RUN_VARIABLE: Final = re.compile(
    r"\w*(PAGER|EDITOR|ASKPASS|BROWSER|COMMAND|_RSH|_CMD|_SHELL)|VISUAL|GIT_SSH|GIT_EXTERNAL_DIFF|LESSOPEN|LESSCLOSE"
    r"|(BASH_)?ENV|PS[0-4]|SHELL|TAR_OPTIONS|GIT_CONFIG_(VALUE_\d+|PARAMETERS)|FZF_DEFAULT_OPTS"
    r"|LESS",
    re.ASCII,
)
# Keys of git's settings whose value is run.
_RUN_SETTING: Final = re.compile(
    r"pager|editor|command|helper|external|fsmonitor|textconv|\.clean|\.smudge|\.process|\.driver|cmd|askpass|program"
    r"|proxy|sendmail|uploadpack|receivepack|extcmd"
)
# Between the words of the command in a URL `ext::…`.
_EXT_BLANK: Final = re.compile(r"(?<!%) ")
_SETTING: Final = re.compile(r"[A-Za-z][\w-]*\.[^\s=]+")
# Options whose value is run. A word that begins with one and goes on with `=`, or right away, holds it as well.
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "apt-get": ("-o", "--option"),
    "bat": ("--pager",),
    "bind": ("-x",),
    "capsh": ("-c",),
    "cargo": ("-s", "--shell"),
    "complete": ("-C",),
    "delta": ("--pager",),
    "dpkg": ("--pre-invoke", "--post-invoke"),
    "fzf": ("--preview", "--bind"),
    "gdb": ("-ex", "-iex", "--eval-command"),
    "git": (
        *("-u", "-x", "-O", "--upload-pack", "--receive-pack", "--exec", "--extcmd", "--open-files-in-pager"),
        *("--sendmail-cmd", "--to-cmd", "--cc-cmd", "--tool-cmd", "--access-hook", "--browser"),
    ),
    "less": ("+",),
    "lldb": ("-o", "--one-line"),
    "make": ("--eval", "SHELL"),
    "man": ("-P", "-H", "--pager", "--html"),
    "mapfile": ("-C",),
    "nc": ("-e", "-c", "--exec", "--sh-exec"),
    "nix": ("-c", "--command"),
    "nix-shell": ("--run", "--command"),
    "nodemon": ("-x", "--exec"),
    "npm": ("-c", "--call", "script-shell"),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S", "-o"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "tar": (
        *("-I", "-F", "--use-compress-program", "--to-command", "--rsh-command", "--info-script"),
        *("--new-volume-script", "--checkpoint-action"),
    ),
    "vim": ("-c", "--cmd", "+"),
    "wget": ("--use-askpass",),
    "zip": ("-TT", "--unzip-command"),
}
_SAME: Final[Mapping[str, str]] = {
    **dict.fromkeys(("apt", "aptitude"), "apt-get"),
    **dict.fromkeys(("bsdtar", "gtar"), "tar"),
    "batcat": "bat",
    **dict.fromkeys(("ex", "vi", "view", "nvim", "gvim"), "vim"),
    **dict.fromkeys(("ncat", "netcat"), "nc"),
    **dict.fromkeys(("npx", "pnpm", "yarn"), "npm"),
    "compgen": "complete",
    "gmake": "make",
    "more": "less",
    "readarray": "mapfile",
    "sftp": "scp",
}
# Programs any of whose words may hold a command for a shell.
_ANY_WORD: Final = frozenset("ed mariadb mysql psql socat sqlite3".split())
_NPM_RUNS: Final = (["exec"], ["x"], ["dlx"])
_LEAST_LONG: Final = len("--pre")
# What stands before a command in the languages of such values.
_BEFORE: Final = re.compile(
    r"(?:\"[^\"]{0,20}\":)?[\s!|:+@'\"\\-]*"
    r"(?:(?:platform\s+)?shell\s+|\.(?:shell|system)\s+|(?:exec|system):|\$\(shell\s+"
    r"|(?:local|remote|proxy)command\s+|(?:[\d*/,-]+\s+){5}|[\w.:-]+\s*=\s*)?[!|'\"\s-]*",
    re.IGNORECASE,
)
_PROGRAM_BYTES: Final = 64 * 1024
_CALL: Final = (
    r"\b(?:system|popen|run|call|check_call|check_output|exec\w{0,9}|spawn\w{0,9}|shell_exec|passthru|shell-command|qx"
    r"|do\s+shell\s+script)"
    r"\b\s{0,4}[(,]?\s{0,4}"
)
_QUOTED: Final = r"(?:\"((?:[^\"\\]|\\.){1,300})\"|'((?:[^'\\]|\\.){1,300})')"
_CALLED: Final = re.compile(rf"{_CALL}{_QUOTED}", re.IGNORECASE)
_CALLED_LIST: Final = re.compile(rf"{_CALL}\[([^\]]{{1,300}})\]", re.IGNORECASE)
_STRING: Final = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_TO_PIPE: Final = re.compile(r"\|&?\s{0,4}\"((?:[^\"\\]|\\.){1,300})\"")
_FROM_PIPE: Final = re.compile(r"\"((?:[^\"\\]|\\.){1,300})\"\s{0,4}\|")
_SED_BYTES: Final = 2048
_SED_RUNS: Final = re.compile(r"(?:\A|[;{}\n/\d$])\s{0,4}e\s+([^\n]+)")
_SED_RUNS_RESULT: Final = re.compile(r"s([/|#,!])(?:[^\\\n]|\\.){0,100}?\1((?:[^\\\n]|\\.){0,100}?)\1[gpIi\d]{0,9}e")


def scripts_of_variable(name: str, value: str) -> tuple[str, ...]:
    """What a program would run that finds this variable in its environment."""
    return readings(value) if _RUN_VARIABLE.fullmatch(name) else ()


def scripts_of_words(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """What a program would run because its arguments say so, beyond what its whole purpose is to run."""
    name = _SAME.get(name, name)
    for value in _values(_OPTIONS.get(name, ()), arguments):
        yield from readings(value)
    if name in _ANY_WORD:
        for word in arguments:
            yield from readings(word)
    if name == "git":
        yield from _of_git(arguments)
    elif name == "npm":
        inner = [word for word in arguments[1:] if word != "--"] if arguments[:1] in _NPM_RUNS else []
        yield from (joined(inner) for joined in (" ".join, shlex.join))
    elif name == "sed":
        yield from _of_sed(arguments)


def scripts_in_program(text: str) -> Iterator[str]:
    """The commands in the strings of a program in another language, which it hands to a shell."""
    text = text[:_PROGRAM_BYTES]
    for found in _CALLED.finditer(text):
        yield found[1] or found[2]
    for found in _CALLED_LIST.finditer(text):
        yield shlex.join(one or other for one, other in _STRING.findall(found[1]))
    for pattern in (_TO_PIPE, _FROM_PIPE):
        yield from pattern.findall(text)


def readings(text: str) -> tuple[str, ...]:
    """A value as it stands, and without what stands before a command in some: `!`, `exec=`, `| `, `shell `."""
    bare = text[found.end() :] if (found := _BEFORE.match(text)) else text
    return (text, bare) if bare != text else (text,)


def _values(options: Sequence[str], arguments: Sequence[str]) -> Iterator[str]:
    for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        for option in options:
            if word == option:
                yield after
            elif equals and (name == option or (len(name) >= _LEAST_LONG and option.startswith(name))):
                yield value
            elif not option.startswith("--") and word.startswith(option):
                yield word.removeprefix(option)


def _of_git(arguments: Sequence[str]) -> Iterator[str]:
    is_setting = False
    for word, after in zip(arguments, [*arguments[1:], ""], strict=False):
        is_setting = is_setting or word == "config"
        if word in ("-c", "--config"):
            key, _, value = after.partition("=")
            yield from _of_setting(key, value)
        elif is_setting and _SETTING.fullmatch(word):
            yield from _of_setting(word, after)
        elif word.startswith("ext::"):
            command = word.removeprefix("ext::")
            yield command
            yield shlex.join(part.replace("% ", " ") for part in _EXT_BLANK.split(command))


def _of_setting(key: str, value: str) -> Iterator[str]:
    if key.lower().startswith("alias."):
        yield value[1:] if value.startswith("!") else f"git {value}"
    elif _RUN_SETTING.search(key.lower()):
        yield from readings(value)


def _of_sed(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        yield from _SED_RUNS.findall(word[:_SED_BYTES])
        yield from (found[2] for found in _SED_RUNS_RESULT.finditer(word[:_SED_BYTES]))
