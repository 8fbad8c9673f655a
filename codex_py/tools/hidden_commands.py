"""The commands of a script that a rule may ask about or forbid: all that can be found in it, wherever they hide.

Strictness may guess: a command counts with what runs it, such as `sudo`, without it, and with what it runs itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.skills.commands import plain_commands
from codex_py.skills.words import PlainCommand, Word, quoted_script
from codex_py.text.bash_tree import parse_bash, text_of
from codex_py.tools.carried_scripts import readings, scripts_in_program, scripts_of_variable, scripts_of_words
from codex_py.tools.danger import PROGRAMMABLE, WHOLE_SCRIPT, scripts_in, spelled_out
from codex_py.tools.fed_scripts import assigned_texts, fed_script, piped_scripts, sourced_scripts
from codex_py.tools.plain_script import Words
from codex_py.tools.readable_script import may_be_misread, readable_script
from codex_py.tools.readers import scripts_read
from codex_py.tools.runners import SCRIPT_TAKERS, WRAPPERS, commands_carried, program
from codex_py.tools.written_scripts import may_write, written_scripts

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_SCRIPTS: Final = 64
_MAX_NODES: Final = 50_000
_SEARCHED_WORDS: Final = 32
_WITH_SUBCOMMANDS: Final = frozenset(("docker", "kubectl", "oc", "podman"))


def hidden_commands(script: str, folder: str, variables: Mapping[str, str]) -> tuple[Words, ...]:
    """Their words, in the order they are found, each once; words that are not known before it runs are empty."""
    found: dict[Words, None] = {}
    seen: dict[str, None] = {script: None}
    mended: set[str] = set()
    waiting = [script]
    while waiting:
        text = waiting.pop()
        again = [] if text in mended else list(_mended(text))
        mended.update(again)
        text = spelled_out(text)
        commands = plain_commands(text, folder, variables, limits=WHOLE_SCRIPT)
        found |= dict.fromkeys(words for command in commands for words in _readings(command) if words)
        carried = (one for command in commands for one in _carried(command))
        written = _written(text, folder, variables, commands)
        for inner in (*carried, *scripts_fed(text, folder, variables), *written, *again):
            if inner not in seen and len(seen) < _MAX_SCRIPTS:
                seen[inner] = None
                waiting.append(inner)
    return tuple(found)


def _readings(command: PlainCommand) -> Iterator[Words]:
    for start in range(len(command.written) - len(command.words)):
        yield _texts(command.written[start:])
    yield _texts(command.words)
    yield from _behind_options(_texts(command.words))
    for carried in commands_carried(command.words):
        yield _texts(carried)
    name = program(command.words)
    if name in WRAPPERS:
        # A subcommand such as `docker rm` is not the program of that name.
        first = 2 if name in _WITH_SUBCOMMANDS else 1
        for start in range(first, min(len(command.words), _SEARCHED_WORDS)):
            yield _texts(command.words[start:])


def _behind_options(words: Words) -> Iterator[Words]:
    """The command without the options before its subcommand, such as `git -C x push`; any of them may take a word."""
    place = 1
    while place < min(len(words), _SEARCHED_WORDS) and words[1].startswith("-"):
        if not words[place].startswith("-") and not words[place - 1].startswith("-"):
            break
        place += 1
        yield (words[0], *words[place:])


def _carried(command: PlainCommand) -> Iterator[str]:
    """The scripts in the words and variables of a command; a single word is no script, but a name or a setting."""
    name, arguments = program(command.words), _texts(command.words[1:])
    before = _texts(command.written[: len(command.written) - len(command.words)])
    scripts = [script for word in before for script in scripts_of_variable(*word.partition("=")[::2])]
    scripts += scripts_of_words(name, arguments)
    scripts += [quoted_script(program(inner), inner) or "" for inner in commands_carried(command.words) if inner]
    if name in SCRIPT_TAKERS:
        scripts += scripts_in(name, arguments)
    if name.rstrip("0123456789.") in PROGRAMMABLE:
        scripts += [script for text in arguments for script in scripts_in_program(text)]
    return (script for script in scripts if " " in script)


def scripts_fed(text: str, folder: str, variables: Mapping[str, str]) -> Iterator[str]:
    """The scripts that a shell in this one is given to read: through a pipe, as a here-document or a here-string."""
    if not any(mark in text for mark in ("<<", "<(", "|", "=")):
        return
    root = parse_bash(text, WHOLE_SCRIPT.script_bytes)
    waiting = [root] if root else []
    nodes = 0

    def words_of(node: Node) -> list[Word]:
        return _last_words(node, folder, variables)

    while waiting and nodes < _MAX_NODES:
        node = waiting.pop()
        nodes += 1
        waiting.extend(reversed(node.named_children))
        match node.type:
            case "redirected_statement" | "command":
                sourced = sourced_scripts(node, words_of)
                yield from (script for one in sourced for script in scripts_read(one.reader, one.text))
                fed = fed_script(node, words_of)
                reads = [(reader, one) for reader in fed.readers for one in fed.texts] if fed else []
                yield from (script for reader, one in reads for script in scripts_read(reader, one))
            case "pipeline":
                piped = [(each.into, one) for each in piped_scripts(node, words_of) for one in each.texts[:1]]
                yield from (script for reader, one in piped for script in scripts_read(reader, one))
            case "variable_assignment":
                name = text_of(node).partition("=")[0].rstrip("+")
                values = assigned_texts(node, words_of) if scripts_of_variable(name, "x") else []
                yield from (one for text in values for one in scripts_of_variable(name, text) if " " in one)
            case _:
                pass


def _mended(text: str) -> Iterator[str]:
    """A script that has errors to the grammar, as it has none or fewer."""
    root = parse_bash(text, WHOLE_SCRIPT.script_bytes) if may_be_misread(text) else None
    if root is not None and root.has_error:
        yield readable_script(text)


def _written(text: str, folder: str, variables: Mapping[str, str], commands: Sequence[PlainCommand]) -> Iterator[str]:
    """The scripts that a script writes to files and has run."""
    root = parse_bash(text, WHOLE_SCRIPT.script_bytes) if may_write(text) else None
    if root is not None:
        found = written_scripts(root, commands, lambda node: _last_words(node, folder, variables))
        yield from (script for one in found for text in scripts_read(one.reader, one.text) for script in readings(text))


def _last_words(node: Node, folder: str, variables: Mapping[str, str]) -> list[Word]:
    commands = plain_commands(text_of(node), folder, variables)
    return list(commands[-1].words) if commands else []


def _texts(words: Sequence[Word]) -> Words:
    return tuple(word.text or "" for word in words)
