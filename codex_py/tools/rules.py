"""Rules about commands, by the first words of a command, and the `.rules` files they are kept in.

They are values here; `tools.rule_files` reads and writes them.

The files are Starlark to other programs. Here they are read as a syntax tree and never run, so only literals,
names given to literals, `+` between lists and strings, and `for` over a list are understood.
"""

from __future__ import annotations

import ast
import shlex
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.errors import CodexError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.value import Value
from codex_py.shell.command_line import Words
from codex_py.text.nearest import did_you_mean

Decision: TypeAlias = Literal["allow", "prompt", "forbidden"]
STRICTNESS: Final[tuple[Decision, ...]] = ("allow", "prompt", "forbidden")

# Where a program of a name is believed to be that program, when no `host_executable` says otherwise.
_SYSTEM_DIRECTORIES: Final = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin"))


class PrefixRule(Value):
    """A rule for commands that begin with `pattern`: at each place one of a few words.

    `sandbox_off` lets an allowed command run outside the sandbox; allowing alone only saves the question. `files` are
    those the pattern named when the user agreed, each as `sha256:HASH PATH`: the rule holds while they stay the same.
    None binds it to no file.
    """

    pattern: tuple[tuple[str, ...], ...]
    decision: Decision = "allow"
    justification: str = ""
    sandbox_off: bool = False
    files: tuple[str, ...] | None = None

    def fits(self, words: Sequence[str]) -> bool:
        """Whether a command begins with the pattern, word for word."""
        return len(words) >= len(self.pattern) and all(
            word in alternatives for word, alternatives in zip(words, self.pattern, strict=False)
        )


class RuleBook(Value):
    """All rules that hold, and where programs are that may be named by their path.

    `faults` say which rules could not be read: any of them might forbid a command, so none may run.
    """

    rules: tuple[PrefixRule, ...] = ()
    executables: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    faults: tuple[str, ...] = ()

    def matching(self, words: Words) -> tuple[PrefixRule, ...]:
        """The rules that fit a command.

        One given by a path counts as its bare name: for stricter decisions wherever it lies, for `allow` only where
        `host_executable` puts it, or in a directory of the system.
        """
        exact = tuple(rule for rule in self.rules if rule.fits(words))
        directory, slash, name = words[0].rpartition("/") if words else ("", "", "")
        if not slash:
            return exact
        by_name = tuple(rule for rule in self.rules if rule.fits((name, *words[1:])))
        paths = self.executables.get(name)
        known = words[0] in paths if paths is not None else directory in _SYSTEM_DIRECTORIES
        return (*exact, *(rule for rule in by_name if known or rule.decision != "allow"))

    def joined(self, other: RuleBook) -> RuleBook:
        """The rules of both."""
        executables = {**self.executables, **other.executables}
        return RuleBook((*self.rules, *other.rules), executables, (*self.faults, *other.faults))

    def without_allowing(self) -> RuleBook:
        """Only what is stricter: for a file that may not allow anything."""
        return self.replace(rules=tuple(rule for rule in self.rules if rule.decision != "allow"))


def strictest(rules: Sequence[PrefixRule]) -> PrefixRule | None:
    """The rule that wins: the strictest decision, and of several that allow one that keeps the sandbox, unless none."""
    if not rules:
        return None
    return max(rules, key=lambda rule: (STRICTNESS.index(rule.decision), rule.sandbox_off))


MAX_FILE_BYTES: Final = 256 * 1024
# Loops may stand in loops.
_MAX_STATEMENTS: Final = 10_000
_RULE_KEYS: Final = ("pattern", "decision", "justification", "match", "not_match", "sandbox", "files")
_HOST_KEYS: Final = ("name", "paths")


class RuleError(CodexError):
    """A rules file that cannot be used: what is wrong, with its line."""


class _Rule(Value):
    rule: PrefixRule
    line: int
    match: tuple[Words, ...]
    not_match: tuple[Words, ...]


def parse_rules(text: str) -> RuleBook:
    """The rules of a file, their `match` and `not_match` examples tried. Raises `RuleError`."""
    reader = _Reader()
    try:
        for statement in _tree(text).body:
            reader.statement(statement)
    except RecursionError:
        raise RuleError("nested too deeply") from None
    book = RuleBook(tuple(rule.rule for rule in reader.rules), reader.executables)
    for rule in reader.rules:
        alone = RuleBook((rule.rule,), reader.executables)
        for example in rule.match:
            if not alone.matching(example):
                raise RuleError(f"line {rule.line}: the rule does not match `{shlex.join(example)}`, as `match` says")
        for example in rule.not_match:
            if alone.matching(example):
                raise RuleError(f"line {rule.line}: the rule matches `{shlex.join(example)}`, against `not_match`")
    return book


def rule_line(pattern: Words, *, sandbox_off: bool, files: Sequence[str] | None = None) -> str:
    """The line for a rule that allows a pattern, as a person would write it."""
    ending = ', sandbox = "off"' if sandbox_off else ""
    ending += "" if files is None else f", files = [{_listed(files)}]"
    return f'prefix_rule(pattern = [{_listed(pattern)}], decision = "allow"{ending})\n'


def _listed(words: Sequence[str]) -> str:
    return ", ".join(encode_json(word).decode() for word in words)


def _tree(text: str) -> ast.Module:
    if len(text) > MAX_FILE_BYTES:
        raise RuleError(f"longer than {MAX_FILE_BYTES // 1024} KiB")
    try:
        with warnings.catch_warnings():
            # What Python thinks of `"\d"` concerns nobody here.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise RuleError(f"line {error.lineno or 1}: {error.msg.lower()}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise RuleError(str(error).lower() or "nested too deeply") from None


class _Reader:
    """Collects what the statements of a file say."""

    def __init__(self) -> None:
        self.rules: list[_Rule] = []
        self.executables: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, Any] = {}
        self._statements = 0

    def statement(self, node: ast.stmt) -> None:
        self._statements += 1
        if self._statements > _MAX_STATEMENTS:
            raise RuleError(f"line {node.lineno}: more than {_MAX_STATEMENTS} statements")
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.For(target=ast.Name(id=name), iter=values, body=body, orelse=[]):
                for value in self._list(values):
                    self._names[name] = value
                    for inner in body:
                        self.statement(inner)
            case ast.Expr(value=ast.Call(func=ast.Name(id=function)) as call):
                self._call(function, call)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._names[name] = self._literal(value)
            case _:
                raise RuleError(f"line {node.lineno}: only calls of `prefix_rule` and `host_executable` are understood")

    def _call(self, function: str, call: ast.Call) -> None:
        line = call.lineno
        if function == "network_rule":
            # Of other programs; the network is the sandbox's business here.
            return
        keys = {"prefix_rule": _RULE_KEYS, "host_executable": _HOST_KEYS}.get(function)
        if keys is None:
            guess = did_you_mean(function, ("prefix_rule", "host_executable"))
            raise RuleError(f"line {line}: unknown function `{function}`" + (f"; {guess}" if guess else ""))
        if len(call.args) > len(keys):
            raise RuleError(f"line {line}: `{function}` takes at most {len(keys)} arguments")
        values = {name: self._literal(value) for name, value in zip(keys, call.args, strict=False)}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg not in keys or keyword.arg in values:
                guess = did_you_mean(keyword.arg or "", set(keys) - set(values))
                hint = f"; {guess}" if guess else ""
                raise RuleError(f"line {line}: `{function}` does not take `{keyword.arg or '**'}` here{hint}")
            values[keyword.arg] = self._literal(keyword.value)
        if function == "prefix_rule":
            self.rules.append(_prefix_rule(values, line))
        else:
            name, paths = _host_executable(values, line)
            self.executables[name] = (*self.executables.get(name, ()), *paths)

    def _list(self, node: ast.expr) -> list[Any]:
        value = self._literal(node)
        if not isinstance(value, list):
            raise RuleError(f"line {node.lineno}: `for` goes over a list")
        return cast("list[Any]", value)

    def _literal(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | bool() | None):
                return node.value
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return [self._literal(part) for part in elements]
            case ast.Name(id=name) if name in self._names:
                return self._names[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _sum(self._literal(left), self._literal(right), node.lineno)
            case _:
                raise RuleError(
                    f"line {node.lineno}: `{ast.unparse(node)[:60]}` is neither a string nor a list of strings"
                )


def _sum(left: Any, right: Any, line: int) -> Any:
    if type(left) is not type(right) or not isinstance(left, str | list):
        raise RuleError(f"line {line}: `+` joins two strings or two lists")
    total: Any = left + right
    # Names may double themselves, again and again.
    if len(total) > MAX_FILE_BYTES:
        raise RuleError(f"line {line}: too long")
    return total


def _host_executable(values: Mapping[str, Any], line: int) -> tuple[str, Words]:
    name, paths = values.get("name"), values.get("paths")
    if not isinstance(name, str) or not name or "/" in name or not isinstance(paths, list):
        raise RuleError(f"line {line}: `host_executable` needs a bare `name` and `paths`, a list of paths")
    for path in cast("list[Any]", paths):
        if not isinstance(path, str) or not path.startswith("/") or path.rpartition("/")[2] != name:
            raise RuleError(f"line {line}: `paths` are absolute and end with `/{name}`, found `{path}`")
    return name, tuple(cast("list[str]", paths))


def _prefix_rule(values: Mapping[str, Any], line: int) -> _Rule:
    pattern = values.get("pattern")
    if not isinstance(pattern, list) or not pattern:
        raise RuleError(f'line {line}: `pattern` must be a list of words, for example `["git", "status"]`')
    decision = values.get("decision", "allow")
    if decision not in STRICTNESS:
        guess = did_you_mean(str(decision), STRICTNESS)
        allowed = f"{guess} " if guess else ""
        raise RuleError(f"line {line}: `decision` is `{decision}`; {allowed}allowed are `allow`, `prompt`, `forbidden`")
    sandbox = values.get("sandbox", "on")
    if sandbox not in ("on", "off") or (sandbox == "off" and decision != "allow"):
        raise RuleError(f'line {line}: `sandbox` is "on", or "off" with the decision `allow`')
    justification = values.get("justification") or ""
    if not isinstance(justification, str):
        raise RuleError(f"line {line}: `justification` must be a string")
    files = values.get("files")
    if files is not None and (decision != "allow" or (files != [] and _words(files) is None)):
        raise RuleError(f"line {line}: `files` is a list of strings, for the decision `allow`")
    words = tuple(_alternatives(part, line) for part in cast("list[Any]", pattern))
    bound = None if files is None else tuple(files)
    rule = PrefixRule(words, decision, justification, sandbox == "off", bound)
    return _Rule(rule, line, _examples(values, "match", line), _examples(values, "not_match", line))


def _alternatives(part: Any, line: int) -> tuple[str, ...]:
    words = (part,) if isinstance(part, str) else _words(part)
    if not words or not all(words):
        raise RuleError(f"line {line}: each part of `pattern` is a word or a list of words, none of them empty")
    return words


def _examples(values: Mapping[str, Any], key: str, line: int) -> tuple[Words, ...]:
    examples: Any = values.get(key) or []
    if not isinstance(examples, list):
        raise RuleError(f"line {line}: `{key}` must be a list of commands")
    return tuple(_example(example, key, line) for example in cast("list[Any]", examples))


def _example(example: Any, key: str, line: int) -> Words:
    try:
        words = tuple(shlex.split(example)) if isinstance(example, str) else _words(example)
    except ValueError as error:
        raise RuleError(f"line {line}: `{key}` has `{example}`: {str(error).lower()}") from None
    if not words:
        raise RuleError(f"line {line}: each of `{key}` is a command line or a list of words")
    return words


def _words(value: Any) -> Words | None:
    if not isinstance(value, list):
        return None
    words = tuple(cast("list[Any]", value))
    return words if words and all(isinstance(word, str) for word in words) else None
