"""Commands that destroy what no undo brings back, wherever in a script they hide.

A guard against accidents: it reads what a script says and cannot know what it computes. The boundary is the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from codex_py.skills.commands import ReadLimits, plain_commands
from codex_py.skills.words import Word, quoted_script, unescaped, unwrapped
from codex_py.text.bash_tree import parse_bash, text_of
from codex_py.tools.destroying import FORCED_RM, TO_DISK, destroys, is_judged
from codex_py.tools.runners import (
    FINDERS,
    RUNNERS,
    SCRIPT_TAKERS,
    WRAPPERS,
    behind_options,
    command_of_runner,
    program,
)
from codex_py.tools.script_sources import (
    FETCHED,
    FETCHERS,
    INTERPRETERS,
    PRINTERS,
    SHELLS,
    fetched_reason,
    reads_script,
    streamed_reason,
)

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
_PROGRAMMABLE: Final = INTERPRETERS | {"awk", "gawk", "mawk", "tar", "vi", "vim", "nvim", "zip"}
_RM_CALL: Final = re.compile(
    r"(?:\b(?:system|popen|run|call|check_call|check_output|exec\w{0,9}|spawn\w{0,9}|sh|qx)\b|[`!=])"
    r"\W{0,6}(?:sudo\W{1,4})?rm\W{1,4}(?:-\w+\W{1,4})*?(?:-\w*f|--force)",
    re.IGNORECASE,
)
_FORKS: Final = re.compile(r"\bfork\s+while\b|\bwhile\b[^\n]{0,20}\bfork\s{0,4}\(")
_COPIERS: Final = frozenset(("cp", "dd", "mv", "tee", "install"))
_REMOVERS: Final = frozenset(("rm", "unlink"))
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


class _Search:
    """One look through a script and the scripts inside it."""

    def __init__(self, folder: str, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._variables = variables
        self._scripts = 0
        self._places = 0

    def script(self, text: str) -> str | None:
        self._scripts += 1
        text = _BRACED.sub(lambda found: found[1] + found[2].replace(",", " "), _BLANKS.sub(" ", text))
        root = parse_bash(text, WHOLE_SCRIPT.script_bytes) if self._scripts <= _MAX_SCRIPTS else None
        if root is None:
            return _UNREADABLE
        commands = plain_commands(text, self._folder, self._variables, limits=WHOLE_SCRIPT)
        if len(commands) >= WHOLE_SCRIPT.commands:
            return _UNREADABLE
        found = (self._command(list(command.words)) for command in commands)
        return next((reason for reason in found if reason), None) or fetched_reason(commands, text) or self._tree(root)

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
        if name in FINDERS:
            return self._find(rest, FINDERS[name])
        if name == "git" and (reason := self._of_git(rest)):
            return reason
        if name in SCRIPT_TAKERS and (reason := self._first(map(_script_in(name), rest))):
            return reason
        if name in WRAPPERS and (reason := self._anywhere(rest)):
            return reason
        if name in RUNNERS:
            inner = command_of_runner(words)
            if name in ("xargs", "parallel") and self._removes(inner):
                return "it deletes whatever it is given (`xargs rm`)"
            return self._command(inner)
        if name in SHELLS and (quoted := _after(rest, "c")) is not None:
            return self.script(quoted)
        written = [word for word in rest if name != "dd" or (word.text or "").startswith("of=")]
        if name in _COPIERS and any(_DEVICE.search(word.text or "") for word in written):
            return TO_DISK
        if name.rstrip("0123456789.") in _PROGRAMMABLE and (reason := _in_a_program(rest)):
            return reason
        # What the reader made of `~` is undone: a whole home is deleted under its name, too.
        home = self._variables.get("HOME")
        return destroys(name, ["~" if word.text == home else word.text or "" for word in rest])

    def _anywhere(self, rest: list[Word]) -> str | None:
        """Why the command is dangerous that begins at any of the first words."""
        for place, word in enumerate(rest[:_SEARCHED_WORDS]):
            name = (word.text or "").rpartition("/")[2]
            if not (name in SHELLS or name in FINDERS or name == "xargs" or is_judged(name)):
                continue
            behind = rest[place + 1 : place + _MOST_ARGUMENTS]
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
            if word.text == "-delete":
                return "it deletes whatever it finds (`find -delete`)"
            if word.text in runs:
                inner = unwrapped(rest[place + 1 :])
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
            scripts = [one.text for one in inner[:1] if word.text in ("foreach", "--exec", "-x")]
            # `-c alias.x='!rm …'`, and the same for good with `git config`.
            scripts += [one.text.partition("!")[2] for one in inner[:2] if one.text and word.text in ("-c", "config")]
            if reason := self._first(iter(scripts)):
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
                return self._fed(node)
            case "pipeline":
                return self._pipe(node)
            case "array" if "rm" in (text := text_of(node)[1:-1]):
                return self.script(text)
            case _:
                return None

    def _pipe(self, node: Node) -> str | None:
        stages = node.named_children
        for place, after in enumerate(stages[1:], 1):
            into = self._words(after)
            if not into or not reads_script(into):
                continue
            before = stages[place - 1]
            source = self._words(before)
            # What is only handed on.
            for earlier in reversed(stages[: place - 1]):
                if not source or program(source) not in ("cat", "tee") or (len(source) > 1 and source[0].text == "cat"):
                    break
                before, source = earlier, self._words(earlier)
            if reason := self._piped(source, into) or streamed_reason(before):
                return reason
        return None

    def _piped(self, source: list[Word], into: list[Word]) -> str | None:
        """Why it is dangerous to run what `source` prints."""
        name = program(source)
        if name in FETCHERS or (program(into) in SHELLS and name not in (*PRINTERS, "cat")):
            return FETCHED if name in FETCHERS else _FROM_PIPE
        if name not in PRINTERS:
            return None
        texts = [word.text or "" for word in source[1:]]
        return self._first(text.replace("\\n", "\n") for text in dict.fromkeys([" ".join(texts), *texts]))

    def _fed(self, node: Node) -> str | None:
        """Why it is dangerous that a shell runs the here-documents, here-strings and `< <(…)` of a statement."""
        texts: list[str] = []
        streams: list[Node] = []
        for child in node.named_children:
            if child.type == "heredoc_redirect":
                texts += [text_of(part) for part in child.named_children if part.type == "heredoc_body"]
            elif child.type == "herestring_redirect":
                texts += [_unquoted(text_of(part)) for part in child.named_children]
                streams.append(child)
            elif child.type == "file_redirect" and child.children[0].type == "<":
                streams.append(child)
        if not texts and not streams:
            return None
        # What reads it may stand before the here-document, or behind a pipe after it: `cat <<END | sh`.
        line = re.sub(r"<<<.*|<<-?\s*\S+|<\s*<\(.*", " ", text_of(node).partition("\n")[0])
        commands = plain_commands(line, "/", {})
        if not any(reads_script(list(command.words)) for command in commands):
            return None
        interpreters = all(program(command.words) in INTERPRETERS for command in commands)
        found = None if interpreters else self._first(iter(texts))
        return found or next((reason for stream in streams if (reason := streamed_reason(stream))), None)

    def _words(self, node: Node) -> list[Word]:
        commands = plain_commands(text_of(node), self._folder, self._variables)
        return list(commands[-1].words) if commands else []


def _script_in(name: str) -> Callable[[Word], str | None]:
    def script(word: Word) -> str | None:
        text = word.text or ""
        return text.partition("=")[2] if name == "alias" or text.startswith("--command=") else text

    return script


def _after(words: list[Word], letter: str) -> str | None:
    """The word behind the bundle of short options that has `letter`."""
    for place, word in enumerate(words[:-1]):
        text = word.text or ""
        if text.startswith("-") and not text.startswith("--") and letter in text:
            return words[place + 1].text
    return None


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') else unescaped(text)


def _in_a_program(words: Sequence[Word]) -> str | None:
    texts = [word.text or "" for word in words]
    if any(_RM_CALL.search(text) for text in texts):
        return FORCED_RM
    return _BOMB if any(_FORKS.search(text) for text in texts) else None


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
