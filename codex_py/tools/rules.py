"""Rules about commands: what the user has said beforehand, by the first words of a command.

They are values here; `tools.rule_files` reads and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from codex_py.protocol.value import Value
from codex_py.shell.words import Words

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
        `host_executable` puts it, or in a folder of the system.
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
