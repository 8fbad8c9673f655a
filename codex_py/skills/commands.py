"""The plain commands of a shell script, each with its words and the folder it would run in.

Read with tree-sitter's Bash grammar and never run: what depends on running it, such as the output of another command,
is unknown. Good enough to notice what a command reads; no ground to allow anything on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from codex_py.text.bash_tree import parse_bash, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

# What is longer is cut: a command names its files at its start, what follows is data.
_MAX_WORDS: Final = 256
_MAX_WORD: Final = 64 * 1024
_MAX_DEPTH: Final = 150
_MAX_NESTED: Final = 4
_MAX_LOOP_VALUES: Final = 64


class ReadLimits(NamedTuple):
    """How much of a script is read: its bytes, those of the scripts quoted in it together, and commands."""

    script_bytes: int = 16 * 1024
    quoted_bytes: int = 64 * 1024
    commands: int = 1000


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
    "sudo": frozenset(("-u", "-g", "-C", "-D", "--user", "--group", "--chdir")),
    "time": frozenset(("-f", "-o", "--format", "--output")),
    "timeout": frozenset(("-s", "-k", "--signal", "--kill-after")),
}


class Word(NamedTuple):
    """A word after expansion; `text` is None when it cannot be known.

    A pattern is one that the shell may yet turn into several words: `*`, `?`, `[…]`, `{a,b}`.
    """

    text: str | None
    is_pattern: bool = False


class PlainCommand(NamedTuple):
    """A program with its arguments; `stdin` is the file that `<` puts at its input.

    `folder` is where it runs, absolute unless the script changes to a relative place of an unknown one; None when that
    is unknown.
    """

    words: tuple[Word, ...]
    stdin: Word | None
    folder: str | None

    @property
    def program(self) -> str:
        return self.words[0].text or ""


_FIRST_PART: Final = ReadLimits()


def plain_commands(
    script: str, folder: str, variables: Mapping[str, str], *, limits: ReadLimits = _FIRST_PART
) -> list[PlainCommand]:
    """The commands of a script in their order, those of pipelines, loops, subshells and `bash -c "…"` included.

    `folder` is the working directory at the start, `variables` what is known of the environment. What is over the
    limits is left out.
    """
    reading = _Reading(dict(variables), limits)
    reading.script(script[: limits.script_bytes], _Place(folder, {}), nested=0)
    return reading.commands


class _Place:
    """The state of a shell that matters here: its folder, None when unknown, and its own variables."""

    __slots__ = ("folder", "variables")

    def __init__(self, folder: str | None, variables: dict[str, str | None]) -> None:
        self.folder = folder
        self.variables = variables

    def copy(self) -> _Place:
        return _Place(self.folder, dict(self.variables))

    def enter(self, target: str | None) -> None:
        if target is None or (self.folder is None and not target.startswith("/")):
            self.folder = None
        else:
            self.folder = os.path.normpath(f"{self.folder}/{target}" if not target.startswith("/") else target)


class _Reading:
    """One walk through a script and the scripts quoted in it."""

    def __init__(self, environment: dict[str, str], limits: ReadLimits) -> None:
        self.commands: list[PlainCommand] = []
        self._environment = environment
        self._steps = 0
        self._nested = 0
        self._limits = limits
        self._unread = limits.quoted_bytes

    def script(self, text: str, place: _Place, *, nested: int) -> None:
        # A loop around `bash -c "…"` must not read the same script again and again.
        self._unread -= len(text)
        if nested > _MAX_NESTED or self._unread < 0:
            return
        before, self._nested = self._nested, nested
        root = parse_bash(text, self._limits.script_bytes)
        if root is not None:
            self._visit(root, place, 0)
        self._nested = before

    def _visit(self, node: Node, place: _Place, depth: int, stdin: Word | None = None) -> None:
        self._steps += 1
        most = self._limits.commands
        if depth > _MAX_DEPTH or self._steps > 20 * most or len(self.commands) >= most:
            return
        match node.type:
            case "command":
                self._command(node, place, depth, stdin)
            case "redirected_statement":
                sources = [self._source(child, place) for child in node.named_children if _is_input(child)]
                self._children(node, place, depth, sources[-1] if sources else stdin)
            case "variable_assignment":
                self._assignment(node, place)
                self._children(node, place, depth)
            case "for_statement":
                self._loop(node, place, depth)
            case "subshell" | "command_substitution" | "process_substitution" | "function_definition":
                self._children(node, place.copy(), depth, stdin)
            case "pipeline":
                for child in node.named_children:
                    self._visit(child, place.copy(), depth + 1, stdin)
            case _:
                self._children(node, place, depth, stdin)

    def _children(self, node: Node, place: _Place, depth: int, stdin: Word | None = None) -> None:
        """The parts of a statement; which of them reads its standard input is not told apart."""
        for child in node.named_children:
            self._visit(child, place, depth + 1, stdin)

    def _source(self, redirect: Node, place: _Place) -> Word:
        return self._word(redirect.named_children[-1], place)

    def _loop(self, node: Node, place: _Place, depth: int) -> None:
        name = ""
        values: list[Word] = []
        for child in node.named_children:
            if child.type == "variable_name":
                name = text_of(child)
            elif child.type != "do_group":
                values.append(self._word(child, place))
                self._inside(child, place, depth)
        for value in values[:_MAX_LOOP_VALUES] or [Word(None)]:
            place.variables[name] = value.text
            for child in node.named_children:
                if child.type == "do_group":
                    self._visit(child, place, depth + 1)

    def _assignment(self, node: Node, place: _Place) -> None:
        parts = node.named_children
        if parts and parts[0].type == "variable_name":
            value = self._word(parts[1], place).text if len(parts) > 1 else ""
            place.variables[text_of(parts[0])] = value

    def _command(self, node: Node, place: _Place, depth: int, stdin: Word | None) -> None:
        words: list[Word] = []
        for child in node.named_children[:_MAX_WORDS]:
            if _is_input(child):
                stdin = self._source(child, place)
            elif child.type not in ("variable_assignment", "herestring_redirect", "file_redirect"):
                words.append(self._word(child, place))
        self._inside(node, place, depth)
        words = _unwrapped(words)
        if not words:
            return
        command = PlainCommand(tuple(words), stdin, place.folder)
        self.commands.append(command)
        name = command.program.rpartition("/")[2]
        if name in ("cd", "pushd"):
            place.enter(_folder_of(words, self._environment.get("HOME")))
        elif name == "popd":
            place.folder = None
        elif (quoted := _quoted_script(name, words)) is not None:
            inner = place if name == "eval" else _Place(place.folder, dict(place.variables))
            self.script(quoted, inner, nested=self._nested + 1)

    def _inside(self, node: Node, place: _Place, depth: int) -> None:
        """The commands whose output makes up a word, or the words of a command: they run first."""
        for inner in _substitutions(node):
            self._visit(inner, place, depth + 1)

    def _word(self, node: Node, place: _Place) -> Word:
        text, is_pattern = self._expanded(node, place)
        if text is not None and node.type != "string" and (text == "~" or text.startswith("~/")):
            home = self._variable("HOME", place)
            text = None if home is None else home + text[1:]
        return Word(text, is_pattern and text is not None)

    def _expanded(self, node: Node, place: _Place) -> tuple[str | None, bool]:
        """The text of a part of a word, and whether it holds a pattern."""
        match node.type:
            case "word" | "number" | "extglob_pattern" | "regex":
                return _unescaped(text_of(node)), any(char in "*?[{" for char in text_of(node))
            case "raw_string":
                return text_of(node)[1:-1], False
            case "ansi_c_string":
                return text_of(node)[2:-1], False
            case "simple_expansion" | "expansion":
                return self._variable(text_of(node).lstrip("$").strip("{}"), place), False
            case "command_substitution":
                return (place.folder if text_of(node) in ("$(pwd)", "`pwd`") else None), False
            case "string" | "concatenation" | "command_name":
                return self._joined(node, place)
            case _:
                return None, False

    def _joined(self, node: Node, place: _Place) -> tuple[str | None, bool]:
        raw, start = node.text or b"", node.start_byte
        is_string = node.type == "string"
        parts: list[str] = []
        pattern, length = False, 0
        done = 1 if is_string else 0
        for child in node.named_children:
            if is_string and child.type == "string_content":
                continue
            parts.append(_between(raw[done : child.start_byte - start], is_string))
            text, has_pattern = self._expanded(child, place)
            if text is None:
                return None, False
            # A variable may hold itself twice, again and again.
            length += len(text)
            if length > _MAX_WORD:
                return None, False
            parts.append(text)
            pattern = pattern or has_pattern
            done = child.end_byte - start
        parts.append(_between(raw[done : -1 if is_string else None], is_string))
        return "".join(parts), pattern

    def _variable(self, name: str, place: _Place) -> str | None:
        if name in place.variables:
            return place.variables[name]
        return place.folder if name == "PWD" else self._environment.get(name)


def _unwrapped(words: list[Word]) -> list[Word]:
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
    if wrapper != "env" or not text.startswith(("-S", "--split-string")):
        return None
    glued = text.removeprefix("--split-string").removeprefix("-S").removeprefix("=")
    packed = Word(glued) if glued else words[1] if len(words) > 1 else Word(None)
    rest = words[1 if glued else 2 :]
    return rest if packed.text is None else [*map(Word, packed.text.split()), *rest]


def _is_assignment(wrapper: str, text: str) -> bool:
    return wrapper in ("env", "sudo") and "=" in text and text.partition("=")[0].isidentifier()


def _quoted_script(name: str, words: list[Word]) -> str | None:
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


def _folder_of(words: list[Word], home: str | None) -> str | None:
    """Where `cd` goes; None when that cannot be known."""
    targets = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "--")]
    if not targets:
        return home
    return None if targets[0].text in (None, "-") or targets[0].is_pattern else targets[0].text


def _substitutions(node: Node) -> Iterator[Node]:
    """The commands inside of words; found without recursion, since a word may nest as deep as its text is long."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.type in ("command_substitution", "process_substitution"):
            yield one
        else:
            waiting.extend(reversed(one.named_children))


def _is_input(redirect: Node) -> bool:
    return (
        redirect.type == "file_redirect"
        and bool(redirect.named_children)
        and any(child.type == "<" for child in redirect.children)
    )


def _between(raw: bytes, is_string: bool) -> str:
    text = raw.decode("utf-8", "replace")
    if not is_string or "\\" not in text:
        return text
    for char in ("\\\n", '\\"', "\\$", "\\`"):
        text = text.replace(char, char[1:].strip("\n"))
    return text.replace("\\\\", "\\")


def _unescaped(text: str) -> str:
    """A bare word without its backslashes."""
    if "\\" not in text:
        return text
    plain: list[str] = []
    characters = iter(text)
    for char in characters:
        following = next(characters, "") if char == "\\" else char
        plain.append("" if char == "\\" and following == "\n" else following)
    return "".join(plain)
