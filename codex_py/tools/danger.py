"""Commands that destroy what no undo brings back, wherever in a script they hide.

A guard against accidents: it reads what a script says and cannot know what it computes. The boundary is the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from codex_py.skills.commands import ReadLimits, plain_commands
from codex_py.skills.words import PlainCommand, Word, quoted_script, unwrapped
from codex_py.text.bash_tree import parse_bash, text_of
from codex_py.tools.carried_scripts import readings, scripts_in_program, scripts_of_variable, scripts_of_words
from codex_py.tools.destroying import FORCED_RM, TO_DISK, destroys, is_judged
from codex_py.tools.fed_scripts import Piped, assigned_texts, fed_script, piped_scripts, sourced_scripts
from codex_py.tools.readable_script import may_be_misread, readable_script
from codex_py.tools.readers import is_interpreter, reads_lines, scripts_read
from codex_py.tools.runners import (
    FINDERS,
    RUNNERS,
    SCRIPT_TAKERS,
    WRAPPERS,
    behind_options,
    command_of_runner,
    commands_carried,
    program,
)
from codex_py.tools.script_sources import (
    FETCHED,
    FETCHERS,
    INTERPRETERS,
    PRINTERS,
    SHELLS,
    fetched_reason,
    streamed_reason,
)
from codex_py.tools.written_scripts import written_scripts

if TYPE_CHECKING:
    from tree_sitter import Node

# All that fits on a command line.
WHOLE_SCRIPT: Final = ReadLimits(script_bytes=1024 * 1024, quoted_bytes=2 * 1024 * 1024, commands=5000)
_MAX_DEPTH: Final = 150
_MAX_SCRIPTS: Final = 64
_MAX_NODES: Final = 200_000
# How many places are looked at where a command may begin: one that runs another may do so again and again.
_MAX_PLACES: Final = 20_000
_SEARCHED_WORDS, _MOST_ARGUMENTS = 32, 1000
# Programs whose arguments may be a program of another language, and what that looks like when it runs a forced `rm`.
PROGRAMMABLE: Final = INTERPRETERS | frozenset(
    "awk bun deno emacs expect gawk groovy guile julia mawk nvim rscript tar tclsh vi vim zip".split()
)
_RM_CALL: Final = re.compile(
    r"(?:\b(?:system|popen|run|call|check_call|check_output|exec\w{0,9}|spawn\w{0,9}|sh|qx)\b|[`!=])"
    r"\W{0,6}(?:sudo\W{1,4})?rm\W{1,4}(?:-\w+\W{1,4})*?(?:-\w*f|--force)",
    re.IGNORECASE,
)
_TREE_CALL: Final = re.compile(
    r"\b(?:rmtree|rm_r|rm_rf|remove_tree|remove_dir_all)\b\s{0,4}[(\s]|\bunlink\b\W{0,4}(?:glob\b|<)"
    r"|\.unlink\([^)]{0,40}\)[^\n]{0,100}\b(?:r?glob|iterdir|walk)\b"
    r"|\bos\.(?:remove|unlink)\([^)]{0,40}\)[^\n]{0,100}\b(?:r?glob|listdir|scandir|walk)\b"
    r"|\bDir(?:\.glob|\.children|\[)[^\n]{0,100}\bFile\.(?:delete|unlink)\b"
    r"|\bunlink\([^)\n]{0,100}\brecursive|\(delete-directory\b[^)\n]{0,100}\st\)|\bdelete\([^)\n]{0,100}[\"']rf[\"']\)"
    r"|\b(?:rmSync|rmdirSync|removeSync|remove|rm|rmdir)\s{0,4}\([^)\n]{0,200}\b(?:recursive|force)\b"
)
_FORKS: Final = re.compile(r"\bfork\s+while\b|\bwhile\b[^\n]{0,20}\bfork\s{0,4}\(")
# A script that starts itself in the background, or into itself.
_SELF: Final = re.compile(
    r"(?:\A|[;&|({\n]|\bdo\b)\s{0,9}(?:(?:\w{0,9}sh|exec|nohup|setsid)\s{1,9}){0,3}(?:\./)?[\"']?\$\{?0\}?[\"']?"
    r"(?:\s{0,9}\|\s{0,9}(?:\./)?[\"']?\$\{?0\b|[^;|&\n]{0,200}&(?!&))"
)
_COPIERS: Final = frozenset(("cp", "dd", "mv", "tee", "install"))
_REMOVERS: Final = frozenset(("rimraf", "rm", "shred", "srm", "unlink"))
# Of `find`: what it prints goes to the file in the next word.
_PRINTS_TO: Final = frozenset(("-fls", "-fprint", "-fprint0", "-fprintf"))
# `fd -Hx rm`.
_FD_RUNS: Final = frozenset(("-x", "-X"))
_FD_BUNDLE: Final = re.compile(r"-[0aHIiLsup]+[xX]")
_MOST_VALUE: Final = 16 * 1024
_NAME: Final = re.compile(r"[\w./:@%+=-]*")
# Blanks in disguise.
_BLANKS: Final = re.compile(r"\$IFS\b|\$\{IFS\}")
# A command written as `{rm,-f,x}`, which the grammar takes for an error.
_BRACED: Final = re.compile(r"(?:\A|(?<=[;&|(\n]))([ \t]*)\{([\w/.-]+(?:,[^{}\s,]*)+)\}")
_DEVICE: Final = re.compile(
    r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md|loop|k?mem\b|port\b)|/proc/sysrq-trigger"
)

_BOMB: Final = "it starts copies of itself without end (a fork bomb)"
_FROM_PIPE: Final = "it runs what another command prints as a script"
_UNREADABLE: Final = "it has more commands, or more tangled ones, than can be judged"


def find_danger(script: str, folder: str, variables: Mapping[str, str]) -> str | None:
    """Why a script is dangerous, as a clause that begins with `it`; None when nothing dangerous is seen in it.

    `folder` and `variables` are what the script would start with.
    """
    return _Search(folder, variables).script(script)


def spelled_out(script: str) -> str:
    """A script with the blanks that stand in it in disguise, as in `{rm,-f,x}`."""
    return _BRACED.sub(lambda found: found[1] + found[2].replace(",", " "), _BLANKS.sub(" ", script))


class _Search:
    """One look through a script and the scripts inside it."""

    def __init__(self, folder: str, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = variables
        self._scripts = 0
        self._places = 0
        self._lends = False

    def script(self, text: str, *, is_mended: bool = False) -> str | None:
        self._scripts += 1
        # `X='rm -rf y' git --config-env=core.pager=X`: any variable may be what is run.
        self._lends = self._lends or "--config-env" in text
        text = spelled_out(text)
        root = parse_bash(text, WHOLE_SCRIPT.script_bytes) if self._scripts <= _MAX_SCRIPTS else None
        if root is None:
            return _UNREADABLE
        if _SELF.search(text):
            return _BOMB
        commands = plain_commands(text, self._folder, self._variables, limits=WHOLE_SCRIPT)
        if len(commands) >= WHOLE_SCRIPT.commands:
            return _UNREADABLE
        found = (self._before(command) or self._command(list(command.words)) for command in commands)
        return (
            next((reason for reason in found if reason), None)
            or fetched_reason(commands, text)
            or self._tree(root)
            or self._written(root, commands)
            or (None if is_mended else self._misread(root, text))
        )

    def _misread(self, root: Node, text: str) -> str | None:
        """Why it is dangerous what the grammar has not seen of a script."""
        if not root.has_error or not may_be_misread(text):
            return None
        return self.script(readable_script(text), is_mended=True)

    def _before(self, command: PlainCommand) -> str | None:
        """Why the variables are dangerous that stand behind `env` or `sudo`."""
        for word in command.written[: len(command.written) - len(command.words)]:
            name, _, value = (word.text or "").partition("=")
            if value and (reason := self._first(iter(scripts_of_variable(name, value)))):
                return reason
        return None

    def _command(self, words: list[Word]) -> str | None:
        # A variable that is not known may hold nothing, as in `$SUDO rm`.
        while words and words[0].text is None:
            words = words[1:]
        if not words:
            return None
        self._places += 1
        if self._places > _MAX_PLACES:
            return _UNREADABLE
        name, rest = program(words), words[1:]
        if words[0].is_pattern and fnmatchcase("rm", name):
            name = "rm"
        texts = [word.text or "" for word in rest]
        if reason := self._first(scripts_of_words(name, texts)):
            return reason
        if name in FINDERS:
            return self._find(rest, FINDERS[name])
        if name == "git" and (reason := self._of_git(rest)):
            return reason
        if name in SCRIPT_TAKERS and (reason := self._first(scripts_in(name, texts))):
            return reason
        if name in WRAPPERS and (reason := self._anywhere(rest)):
            return reason
        if name in RUNNERS:
            inner = command_of_runner(words)
            if name in ("xargs", "parallel") and self._removes(inner):
                return "it deletes whatever it is given (`xargs rm`)"
            carried = commands_carried(words)
            return next((reason for one in carried if (reason := self._command(one))), None)
        if name in SHELLS and (quoted := _after(rest, "c")) is not None:
            return self.script(quoted)
        written = [word for word in rest if name != "dd" or (word.text or "").startswith("of=")]
        if name in _COPIERS and any(_DEVICE.search(word.text or "") for word in written):
            return TO_DISK
        if name.rstrip("0123456789.") in PROGRAMMABLE and (reason := self._in_a_program(texts)):
            return reason
        # What the reader made of `~` is undone: a whole home is deleted under its name, too.
        home = self._variables.get("HOME")
        return destroys(name, ["~" if text == home else text for text in texts])

    def _anywhere(self, rest: list[Word]) -> str | None:
        """Why the command is dangerous that begins at any of the first words."""
        for place, word in enumerate(rest[:_SEARCHED_WORDS]):
            # It may be glued to an option: `--exec=/bin/rm`.
            name = (word.text or "").rpartition("/")[2].rpartition("=")[2]
            if not (name in SHELLS or name in FINDERS or name == "xargs" or is_judged(name)):
                continue
            behind = rest[place + 1 : place + _MOST_ARGUMENTS]
            # A `--` may end the options of what runs it: `start-stop-daemon -S -x /bin/rm -- -f x`.
            split = next((at for at, one in enumerate(behind[:_SEARCHED_WORDS]) if one.text == "--"), None)
            behind = behind if split is None else [*behind[:split], *behind[split + 1 :]]
            if name in SHELLS and (quoted := _after(behind, "c")) is not None and (reason := self.script(quoted)):
                return reason
            if is_judged(name) and (reason := destroys(name, [one.text or "" for one in behind])):
                return reason
            if (name in FINDERS or name == "xargs") and (reason := self._command([word, *behind])):
                return reason
        return None

    def _removes(self, words: list[Word]) -> bool:
        """Whether a command that is given files deletes them, forced or not, itself or in a `sh -c`."""
        quoted = quoted_script(program(words), words) if words else None
        inner = plain_commands(quoted, self._folder, self._variables) if quoted else []
        return not _REMOVERS.isdisjoint((program(words), *(program(one.words) for one in inner)))

    def _find(self, rest: list[Word], runs: frozenset[str]) -> str | None:
        for place, word in enumerate(rest):
            if word.text in _PRINTS_TO and any(
                _DEVICE.match(after.text or "") for after in rest[place + 1 : place + 2]
            ):
                return TO_DISK
            if word.text == "-delete":
                return "it deletes whatever it finds (`find -delete`)"
            name, glued, first = (word.text or "").partition("=")
            bundle = not name.startswith("--") and not _FD_RUNS.isdisjoint(runs) and _FD_BUNDLE.fullmatch(name)
            if name in runs or bundle:
                inner = unwrapped([*([Word(first)] if glued else []), *rest[place + 1 :]])
                if self._removes(inner):
                    return "it deletes whatever it finds (`find -exec rm`)"
                if reason := self._command(inner):
                    return reason
        return None

    def _of_git(self, rest: list[Word]) -> str | None:
        """Why a git command is dangerous for what it has others run."""
        for place, word in enumerate(rest):
            inner = rest[place + 1 :]
            if word.text in ("foreach", "run") and (reason := self._command(behind_options(inner, frozenset()))):
                return reason
            if word.text == "foreach" and (reason := self._first(one.text for one in inner[:1])):
                return reason
        return None

    def _in_a_program(self, texts: Sequence[str]) -> str | None:
        """Why a program of another language is dangerous that stands in one of the words."""
        for text in texts:
            if _RM_CALL.search(text):
                return FORCED_RM
            if _FORKS.search(text):
                return _BOMB
            if _TREE_CALL.search(text):
                return "it deletes a whole folder tree"
            if reason := self._first(scripts_in_program(text)):
                return reason
        return None

    def _first(self, scripts: Iterator[str | None]) -> str | None:
        return next((reason for text in scripts if text and (reason := self._script_or_name(text))), None)

    def _script_or_name(self, text: str) -> str | None:
        """Words are many, and only few scripts are read: one that is a name at most is judged as it is."""
        return self._command([Word(text)]) if _NAME.fullmatch(text) else self.script(text)

    def _tree(self, root: Node) -> str | None:
        """What only the shape of a script shows: fork bombs, pipes into shells, redirects, scripts fed to a shell."""
        waiting = [(root, 0)]
        seen = 0
        while waiting:
            node, depth = waiting.pop()
            seen += 1
            if depth > _MAX_DEPTH or seen > _MAX_NODES:
                return _UNREADABLE
            if reason := self._node(node):
                return reason
            waiting.extend((child, depth + 1) for child in reversed(node.named_children))
        return None

    def _node(self, node: Node) -> str | None:
        match node.type:
            case "function_definition" if _calls_itself_twice(node):
                return _BOMB
            case "file_redirect" if any(child.type.startswith((">", "&>")) for child in node.children):
                # What is only closed has no target: `>&-`.
                targets = node.named_children[-1:]
                return TO_DISK if any(_DEVICE.match(text_of(one).strip("\"'")) for one in targets) else None
            case "redirected_statement" | "command":
                return self._fed(node) or self._sourced(node)
            case "variable_assignment":
                return self._assigned(node)
            case "pipeline":
                return self._pipe(node)
            case "command_name":
                return streamed_reason(node)
            case "array" if "rm" in (text := text_of(node)[1:-1]):
                return self.script(text)
            case _:
                return None

    def _pipe(self, node: Node) -> str | None:
        for piped in piped_scripts(node, self._words):
            streamed = None if reads_lines(piped.into) else streamed_reason(piped.before)
            if reason := self._piped(piped) or streamed:
                return reason
        return None

    def _piped(self, piped: Piped) -> str | None:
        """Why it is dangerous to run what comes through a pipe."""
        name = program(piped.source)
        is_from_shell = name in FETCHERS or (program(piped.into) in SHELLS and name not in (*PRINTERS, "cat"))
        if is_from_shell and not reads_lines(piped.into):
            return FETCHED if name in FETCHERS else _FROM_PIPE
        return next((reason for text in piped.texts if (reason := self._read(piped.into, text))), None)

    def _fed(self, node: Node) -> str | None:
        """Why it is dangerous that a shell runs the here-documents, here-strings and `< <(…)` of a statement."""
        fed = fed_script(node, self._words)
        if fed is None:
            return None
        for reader in fed.readers:
            texts = ((text, place < len(fed.documents)) for place, text in enumerate(fed.texts))
            for text, is_document in texts:
                if reason := self._read(reader, text, is_document=is_document):
                    return reason
        streams = [] if all(map(reads_lines, fed.readers)) else fed.streams
        return next((reason for stream in streams if (reason := streamed_reason(stream))), None)

    def _read(self, reader: list[Word], text: str, *, is_document: bool = False) -> str | None:
        """Why it is dangerous that a program is given a text to run.

        A program of another language in a here-document is not looked into: most of them edit files.
        """
        if is_interpreter(reader):
            return None if is_document else self._in_a_program([text])
        found = self._first(reading for script in scripts_read(reader, text) for reading in readings(script))
        return found or (destroys(program(reader), [text, *text.split()]) if reads_lines(reader) else None)

    def _sourced(self, node: Node) -> str | None:
        """Why it is dangerous that a program runs the file `<(echo …)`."""
        sourced = sourced_scripts(node, self._words)
        return next((reason for one in sourced if (reason := self._read(one.reader, one.text))), None)

    def _written(self, root: Node, commands: Sequence[PlainCommand]) -> str | None:
        """Why it is dangerous to run what the script itself writes to a file."""
        found = written_scripts(root, commands, self._words)
        return next((reason for one in found if (reason := self._read(one.reader, one.text, is_document=True))), None)

    def _assigned(self, node: Node) -> str | None:
        """Why it is dangerous what a variable will have another program run."""
        name, _, value = text_of(node).partition("=")
        name = "SHELL" if self._lends else name.rstrip("+")
        if not value or len(value) > _MOST_VALUE or not scripts_of_variable(name, value):
            return None
        values = assigned_texts(node, self._words)
        return self._first(script for text in values for script in scripts_of_variable(name, text))

    def _words(self, node: Node) -> list[Word]:
        commands = plain_commands(text_of(node), self._folder, self._variables)
        return list(commands[-1].words) if commands else []


def scripts_in(name: str, texts: Sequence[str]) -> Iterator[str]:
    """The scripts in the arguments of a program that takes whole ones."""
    for text in texts:
        yield from readings(text.partition("=")[2] if name == "alias" or text.startswith("--command=") else text)


def _after(words: list[Word], letter: str) -> str | None:
    """The word behind the bundle of short options that has `letter`."""
    for place, word in enumerate(words[:-1]):
        text = word.text or ""
        if text.startswith("-") and not text.startswith("--") and letter in text:
            return words[place + 1].text
    return None


def _calls_itself_twice(function: Node) -> bool:
    """Whether a function calls itself in a pipeline or in the background."""
    name = text_of(function.named_children[0])
    waiting = list(function.named_children[1:])
    while waiting:
        node = waiting.pop()
        waiting.extend(node.named_children)
        if node.type == "pipeline" and any(text_of(child) == name for child in node.named_children):
            return True
        if any(child.type == "&" for child in node.children) and any(text_of(one) == name for one in node.children):
            return True
    return False
