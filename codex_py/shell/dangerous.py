"""Command lines that destroy files beyond undo, or run code that nobody has read.

A guard against accidents: it reads what a line says and cannot know what it computes. The boundary is the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from codex_py.shell.command_line import CommandLine, ShellCommand
from codex_py.shell.destructive import TO_DISK, destroys, is_judged, reads_statements, stays_inside
from codex_py.shell.reader import Danger
from codex_py.shell.runners import INTERPRETERS, SHELLS, reads_script_from_input, scripts_in_arguments
from codex_py.shell.words import Words

_FETCHERS: Final = frozenset(("curl", "wget", "fetch", "aria2c", "http", "nc", "ncat", "ftp", "scp"))
# Programs that make readable what was not, with their options that say so.
_DECODERS: Final[Mapping[str, frozenset[str]]] = {
    "base32": frozenset(("-d", "--decode")),
    "base64": frozenset(("-d", "-D", "-di", "--decode")),
    "openssl": frozenset(("-d",)),
    "xxd": frozenset(("-r", "-rp")),
}
_REMOVERS: Final = frozenset(("rimraf", "rm", "shred", "srm", "unlink"))
_COPIERS: Final = frozenset(("cp", "find", "mv", "tee", "install"))
_DEVICE: Final = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|loop|k?mem\b|port\b)|/proc/sysrq-trigger"
)
_MAX_STATEMENT_WORDS: Final = 64
_BOMB: Final = "it starts copies of itself without end (a fork bomb)"
_FETCHED: Final = "it runs what it downloads"
_DECODED: Final = "it runs what it decodes"
_PRINTED: Final = "it runs what another command prints as a script"


def find_danger(line: CommandLine, home: str | None = None) -> Danger | None:
    """The danger in a command line; None when none is seen in it."""
    if line.forks_itself:
        return Danger(_BOMB)
    fetched = frozenset(_fetched_files(line.commands))
    found = [(reason, command) for command in line.commands if (reason := _danger_of(command, home, fetched))]
    if not found:
        return None
    if any(_DEVICE.match(redirect.target.text or "") for _, command in found for redirect in command.redirects):
        return Danger(found[0][0])
    return Danger(found[0][0], tuple(command for _, command in found), line.commands)


def _danger_of(command: ShellCommand, home: str | None, fetched: frozenset[str]) -> str | None:
    name = command.program
    if command.is_guess and not (is_judged(name) or name in SHELLS):
        return None
    texts = list(command.texts[1:])
    if reason := _unread_script(command, fetched):
        return reason
    if name in _REMOVERS and command.gets_names:
        return f"it deletes whatever it is given (`{name}`)"
    if name == "find" and "-delete" in texts:
        return "it deletes whatever it finds (`find -delete`)"
    written = [redirect.target.text or "" for redirect in command.redirects]
    if any(_DEVICE.match(text) for text in (*written, *(texts if name in _COPIERS else ()))):
        return TO_DISK
    # A whole home is deleted under its name, too.
    texts = ["~" if text == home else text for text in texts]
    if reads_statements(name) and command.input.text:
        texts += [command.input.text, *command.input.text.split()[:_MAX_STATEMENT_WORDS]]
    reason = destroys(name, texts)
    return None if reason and command.in_file and stays_inside(name, texts) else reason


def _unread_script(command: ShellCommand, fetched: frozenset[str]) -> str | None:
    """Why the script is dangerous that a command runs and that the command line does not show."""
    words, name = command.words, command.program.rstrip("0123456789.")
    if name in _SHELL_LIKE or name in INTERPRETERS:
        operands = [word for word in words[1:] if not (word.text or "").startswith("-")][:1]
        if name in INTERPRETERS and operands and _CODE.match(command.texts[1]):
            scripts = operands
        else:
            scripts = [*scripts_in_arguments(words), *(word for word in words[1:] if word.is_stream)]
        if reason := _reason_for([program for word in scripts for program in word.printed_by]):
            return reason
        if reads_script_from_input(words) and command.input.text is None:
            is_shown = name in INTERPRETERS or _HANDED_ON.issuperset(command.input.programs)
            return _reason_for(command.input.programs) or (None if is_shown else _PRINTED)
        if any((word.text or "").rpartition("/")[2] in fetched for word in operands):
            return _FETCHED
    elif "/" in (words[0].text or "") and (words[0].text or "").rpartition("/")[2] in fetched:
        return _FETCHED
    return _reason_for(words[0].printed_by)


# They hand on what they read.
_HANDED_ON: Final = frozenset(("cat", "tee"))
_CODE: Final = re.compile(r"-[a-z]*[cer]$")
_SHELL_LIKE: Final = SHELLS | {"eval", "source", ".", "at", "batch"}


def _reason_for(programs: Sequence[str]) -> str | None:
    if not _FETCHERS.isdisjoint(programs):
        return _FETCHED
    return None if set(_DECODERS).isdisjoint(programs) else _DECODED


def _fetched_files(commands: Sequence[ShellCommand]) -> Iterator[str]:
    """The names of the files that downloads are written to."""
    for command in commands:
        texts: Words = command.texts
        is_decoder = not _DECODERS.get(command.program, frozenset()).isdisjoint(texts)
        piped = command.program == "tee" and not _FETCHERS.isdisjoint(command.input.programs)
        if command.program in _FETCHERS or is_decoder or piped:
            named = (*texts[1:], *(redirect.target.text or "" for redirect in command.redirects))
            # A file whose name is not known may be any such file.
            yield from (text.rpartition("/")[2] for text in named if not text.startswith("-"))
