"""The commands of a script that a rule may ask about or forbid: all that can be found in it, wherever they hide.

Strictness may guess: a command counts with what runs it, such as `sudo`, without it, and with what it runs itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from codex_py.skills.commands import plain_commands
from codex_py.skills.words import PlainCommand, Word
from codex_py.tools.danger import WHOLE_SCRIPT
from codex_py.tools.plain_script import Words
from codex_py.tools.runners import commands_carried


def hidden_commands(script: str, folder: str, variables: Mapping[str, str]) -> tuple[Words, ...]:
    """Their words, in the order they are found, each once; words that are not known before it runs are empty."""
    found = plain_commands(script, folder, variables, limits=WHOLE_SCRIPT)
    return tuple(dict.fromkeys(words for command in found for words in _readings(command) if words))


def _readings(command: PlainCommand) -> Iterator[Words]:
    for start in range(len(command.written) - len(command.words)):
        yield _texts(command.written[start:])
    yield _texts(command.words)
    for carried in commands_carried(command.words):
        yield _texts(carried)


def _texts(words: Sequence[Word]) -> Words:
    return tuple(word.text or "" for word in words)
