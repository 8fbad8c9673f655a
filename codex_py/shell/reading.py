"""Reads a command line into its commands: one walk over the syntax tree, and over the scripts that it hands on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tree_sitter import Node

from codex_py.shell.command_line import CommandLine, Input, ReadFile, Redirect, ShellCommand, Word
from codex_py.shell.runners import (
    commands_in_arguments,
    guess_commands,
    reads_script_from_input,
    script_file,
    scripts_in_arguments,
)
from codex_py.shell.syntax import Expander, ShellState, parse_bash, plain_segments, printed_text, text_of

_MAX_SCRIPT_BYTES: Final = 1024 * 1024
_MAX_DEPTH: Final = 150
_MAX_NESTED: Final = 8
_MAX_SCRIPTS: Final = 64
_MAX_COMMANDS: Final = 2000
_MAX_STEPS: Final = 30_000
_MAX_ROUGH: Final = 8 * 1024
_MAX_INNER_BYTES: Final = 2 * _MAX_SCRIPT_BYTES
_MAX_LOOP_VALUES: Final = 64
_MAX_FILES: Final = 4
_WRITES: Final = frozenset((">", ">>", ">|", "&>", "&>>"))
# What is longer is cut: a command names its files at its start, what follows is data.
_MAX_WORDS: Final = 1000
# What a shell splits at its blanks unless it stands in quotes.
_SPLIT: Final = frozenset(("simple_expansion", "expansion", "command_substitution"))
_SUBSTITUTIONS: Final = ("command_substitution", "process_substitution")
# Blanks in disguise.
_BLANKS: Final = re.compile(r"\$IFS\b|\$\{IFS\}")
_KEYWORDS: Final = frozenset(("!", "do", "elif", "else", "if", "then", "time", "until", "while"))
_SEPARATORS: Final = re.compile(r"[;|&\n(){}]+")


def read_command_line(
    text: str, directory: str, env: Mapping[str, str], read_file: ReadFile | None = None
) -> CommandLine:
    """The commands of a command line that would start in `directory` with `env`.

    Takes time in proportion to its length; what is over the limits is left out. `read_file` gives the script files that
    the line names; without it they are not read.
    """
    walk = _Walk(env, read_file)
    walk.read_script(text, ShellState(directory, {}), nested=0)
    scripts = tuple(dict.fromkeys(walk.scripts))
    return CommandLine(tuple(walk.commands), plain_segments(text, walk.parse), scripts, walk.files > 0)


class _Around(NamedTuple):
    """What stands around a command: its input, its redirections."""

    input: Input = Input()
    redirects: tuple[Redirect, ...] = ()


class _Walk:
    """One walk over a script and the scripts inside it."""

    def __init__(self, env: Mapping[str, str], read_file: ReadFile | None) -> None:
        self.commands: list[ShellCommand] = []
        self.scripts: list[str] = []
        self.files = 0
        self._env = env
        self._read_file = read_file
        self._steps = 0
        self._nested = 0
        self._bytes_left = _MAX_INNER_BYTES
        self._expander = Expander(env)
        self._scripts_left = _MAX_SCRIPTS
        self._roughly_read: set[str] = set()
        self._written: dict[str, str] = {}
        self._trees: dict[str, Node | None] = {}

    def parse(self, text: str) -> Node | None:
        """The syntax tree of a script, each made once."""
        if text not in self._trees:
            self._trees[text] = parse_bash(text, _MAX_SCRIPT_BYTES)
        return self._trees[text]

    def read_script(self, text: str, state: ShellState, *, nested: int) -> None:
        # A loop around `bash -c "…"` must not read the same script again and again.
        self._bytes_left -= len(text)
        if nested > _MAX_NESTED or self._bytes_left < 0 or self._scripts_left < 0:
            return
        if nested and not state.in_file:
            self.scripts.append(text.strip())
        self._scripts_left -= 1
        root = self.parse(_BLANKS.sub(" ", text))
        if root is None:
            return
        outer, self._nested = self._nested, nested
        self._visit(root, state, 0, _Around())
        if root.has_error:
            self._read_roughly(text, state)
        self._nested = outer

    def _read_roughly(self, text: str, state: ShellState) -> None:
        """The commands of a script that the grammar does not take, cut at its separators."""
        text = text[:_MAX_ROUGH]
        if text in self._roughly_read:
            return
        self._roughly_read.add(text)
        for piece in _SEPARATORS.split(text)[:_MAX_SCRIPTS]:
            try:
                words = shlex.split(piece)
            except ValueError:
                words = piece.split()
            while words and words[0] in _KEYWORDS:
                words = words[1:]
            if words:
                self._add(ShellCommand(tuple(map(Word, words)), state.directory, in_file=state.in_file), state)

    def _visit(self, node: Node, state: ShellState, depth: int, around: _Around) -> None:
        self._steps += 1
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS or len(self.commands) >= _MAX_COMMANDS:
            return
        match node.type:
            case "command":
                self._read_command(node, state, depth, around)
            case "redirected_statement":
                self._read_redirected(node, state, depth, around)
            case "pipeline":
                self._read_pipeline(node.named_children, state, depth, around)
            case "variable_assignment":
                self._assign(node, state)
                self._visit_children(node, state, depth, around)
            case "for_statement":
                self._read_loop(node, state, depth, around)
            case "function_definition":
                self._visit_children(node, state.copy(), depth, _Around())
            case "subshell" | "command_substitution" | "process_substitution":
                self._visit_children(node, state.copy(), depth, around)
            case _:
                self._visit_children(node, state, depth, around)

    def _visit_children(self, node: Node, state: ShellState, depth: int, around: _Around) -> None:
        """The parts of a statement; which of them reads its standard input is not distinguished."""
        for child in node.named_children:
            self._visit(child, state, depth + 1, around)

    def _read_redirected(self, node: Node, state: ShellState, depth: int, around: _Around) -> None:
        input_, redirects, behind = around.input, list(around.redirects), list[Node]()
        parts = [child for child in node.named_children if child.type != "ERROR"]
        for child in parts:
            if child.type == "heredoc_redirect":
                body = [text_of(part) for part in child.named_children if part.type == "heredoc_body"]
                input_ = Input("".join(body))
                behind += [part for part in child.named_children if not part.type.startswith("heredoc_")]
                for part in behind:
                    if part.type == "file_redirect":
                        self._redirection(part, state, redirects)
            elif child.type in ("herestring_redirect", "file_redirect"):
                self._visit_inside(child, state, depth)
                input_ = self._redirection(child, state, redirects) or input_
        inner = _Around(input_, tuple(redirects))
        bodies = [child for child in parts if not child.type.endswith("_redirect")]
        if behind and behind[0].type == "pipeline":
            self._read_pipeline([*bodies, *behind[0].named_children], state, depth, inner)
            behind = behind[1:]
        else:
            for body in bodies:
                self._visit(body, state, depth + 1, inner)
        for child in behind:
            if child.type != "file_redirect":
                self._visit(child, state, depth + 1, around)

    def _redirection(self, node: Node, state: ShellState, redirects: list[Redirect]) -> Input | None:
        """The input that a redirection gives; any other is added to `redirects`."""
        targets = node.named_children[-1:]
        if not targets:
            return None
        before = node.prev_sibling
        # The grammar does not know a `<<<` behind another redirection.
        is_cut = before is not None and before.type == "ERROR" and text_of(before).endswith("<<")
        target = self._expander.word(targets[0], state)
        if node.type == "herestring_redirect" or is_cut:
            return Input(target.text)
        operator = next((child.type for child in node.children if not child.is_named), ">")
        if operator != "<":
            redirects.append(Redirect(operator, target))
            return None
        if targets[0].type == "process_substitution":
            return Input(target.text)
        return Input(file=target)

    def _read_pipeline(self, stages: list[Node], state: ShellState, depth: int, around: _Around) -> None:
        for stage in stages:
            before = len(self.commands)
            self._visit(stage, state.copy(), depth + 1, around)
            added = self.commands[before:]
            around = _Around(Input(_output(added[0]) if len(added) == 1 else None), around.redirects)

    def _read_loop(self, node: Node, state: ShellState, depth: int, around: _Around) -> None:
        name = ""
        values: list[Word] = []
        for child in node.named_children:
            if child.type == "variable_name":
                name = text_of(child)
            elif child.type != "do_group":
                values.append(self._expander.word(child, state))
                self._visit_inside(child, state, depth)
        for value in values[:_MAX_LOOP_VALUES] or [Word(None)]:
            state.shell_env[name] = value
            for child in node.named_children:
                if child.type == "do_group":
                    self._visit(child, state, depth + 1, around)

    def _assign(self, node: Node, state: ShellState) -> None:
        parts = node.named_children
        if parts and parts[0].type == "variable_name":
            value = self._expander.word(parts[1], state) if len(parts) > 1 else Word("")
            # The shell expands no pattern here, but where the variable is used.
            state.shell_env[text_of(parts[0])] = value.replace(is_pattern=False)

    def _read_command(self, node: Node, state: ShellState, depth: int, around: _Around) -> None:
        words: list[Word] = []
        input_, redirects = around.input, list(around.redirects)
        for child in node.named_children[:_MAX_WORDS]:
            match child.type:
                case "variable_assignment":
                    pass  # of the command's own environment
                case "herestring_redirect" | "file_redirect":
                    input_ = self._redirection(child, state, redirects) or input_
                case _:
                    words += self._split(child, state)[: _MAX_WORDS - len(words)]
        self._visit_inside(node, state, depth)
        # A variable that is not known may hold nothing, as in `$SUDO rm`.
        while len(words) > 1 and words[0].text is None:
            words = words[1:]
        if words:
            command = ShellCommand(tuple(words), state.directory, tuple(redirects), input_, in_file=state.in_file)
            self._add(command, state)

    def _add(self, command: ShellCommand, state: ShellState) -> None:
        """Keep a command, and read what it runs."""
        if len(self.commands) >= _MAX_COMMANDS:
            return
        self.commands.append(command)
        words = command.words
        # What comes to `xargs` is names, and no script of a shell that it starts.
        input_ = Input() if command.program in ("parallel", "xargs") else command.input
        for inner in commands_in_arguments(words):
            self._add(command.replace(words=tuple(inner), input=input_), state)
        for guess in guess_commands(words):
            self.commands.append(command.replace(words=tuple(guess), is_guess=True))
        self._note_written(command, state)
        match command.program:
            case "cd" | "pushd":
                state.change_directory(_target_directory(words, self._env.get("HOME")))
            case "popd":
                state.directory = None
            case _:
                self._read_scripts(command, state)

    def _note_written(self, command: ShellCommand, state: ShellState) -> None:
        """Remember the text that a command is known to write to a file: a later one may run it."""
        text = _output(command)
        if not text:
            return
        operands = [Redirect(">", word) for word in command.words[1:] if command.program == "tee"]
        for redirect in (*command.redirects, *operands):
            target = redirect.target.text
            path = state.resolve(target) if target and redirect.operator in _WRITES else None
            if path:
                before = self._written.get(path, "") if redirect.operator == ">>" else ""
                self._written[path] = f"{before}{text}\n"

    def _read_scripts(self, command: ShellCommand, state: ShellState) -> None:
        inner = state if command.program in ("eval", "source", ".") else state.copy()
        texts = [script.text for script in scripts_in_arguments(command.words)]
        if reads_script_from_input(command.words):
            texts.append(command.input.text)
        for text in texts:
            if text:
                self.read_script(text, inner, nested=self._nested + 1)
        is_input = command.input.file is not None and reads_script_from_input(command.words)
        name = command.input.file.text if is_input and command.input.file else script_file(command.words)
        path = state.resolve(name) if name else None
        if path in self._written:
            self.read_script(self._written[path], inner, nested=self._nested + 1)
        elif path and self._read_file and self.files < _MAX_FILES:
            text = self._read_file(path)
            if text is not None:
                self.files += 1
                inner.in_file = True
                self.read_script(text, inner, nested=self._nested + 1)

    def _visit_inside(self, node: Node, state: ShellState, depth: int) -> None:
        """The commands whose output makes up a word, or the words of a command: they run first."""
        for inner in _substitutions(node):
            self._visit(inner, state, depth + 1, _Around())

    def _split(self, node: Node, state: ShellState) -> list[Word]:
        """What becomes of a word: what a variable or another command gives is several words, or none at all."""
        word = self._expander.word(node, state)
        named = node.named_children
        inner = named[0] if node.type == "command_name" and len(named) == 1 else node
        if word.text is None or inner.type not in _SPLIT:
            return [word]
        return [word.replace(text=part) for part in word.text.split(None, _MAX_WORDS)]


def _output(command: ShellCommand) -> str | None:
    """The text that a command prints, as far as its words and its input say so."""
    if command.program in ("cat", "tee") and (len(command.words) == 1 or command.program == "tee"):
        return command.input.text
    return printed_text(command.words)


def _target_directory(words: tuple[Word, ...], home: str | None) -> str | None:
    """Where `cd` goes; None when that cannot be known."""
    targets = [word for word in words[1:] if word.text not in ("-P", "-L", "-e", "--")]
    if not targets:
        return home
    return None if targets[0].text in (None, "-") or targets[0].is_pattern else targets[0].text


def _substitutions(node: Node) -> Iterator[Node]:
    """The commands inside of words; found without recursion, since a word may nest as deep as its text is long."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type in _SUBSTITUTIONS:
            yield current
        else:
            waiting.extend(reversed(current.named_children))
