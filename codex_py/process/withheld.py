"""Variables that a shell's profile must not bring back: what `[shell_environment_policy]` keeps from commands."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from codex_py.process.env import DEFAULT_EXCLUDES, EnvironmentRules, matches_glob
from codex_py.protocol.value import Value
from codex_py.text.credentials import has_credential

# Globs that can match the name of a variable.
_GLOB: Final = r"[A-Z0-9_*?\[\]!-]+"
# The commonest credentials for awk, some of which know no `{16,}`; `has_credential` knows more.
_TAIL: Final = "[A-Za-z0-9_-]" * 16
_START: Final = "(^|[^A-Za-z0-9])"
_SHAPES: Final = (
    f"{_START}(gh[opsur]_|github_pat_|glpat-|sk-|[rs]k_live_|xox[a-z]-|npm_|pypi-|hf_|AKIA|AIza|eyJ){_TAIL}"
    "|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/@:]*:[^/@]+@"
)


class WithheldEnv(Value):
    """`names` are withheld whatever they hold; of the others `rules` decide, by name and by value."""

    rules: EnvironmentRules = EnvironmentRules()
    names: frozenset[str] = frozenset()

    def holds(self, name: str, value: str) -> bool:
        """Whether commands must not get this variable from a profile."""
        rules = self.rules
        if name in self.names or matches_glob(name, rules.exclude):
            return True
        if rules.ignore_default_excludes or matches_glob(name, rules.allow):
            return False
        return matches_glob(name, DEFAULT_EXCLUDES) or has_credential(value)

    def unset_script(self, passed: Collection[str]) -> str:
        """POSIX shell, one line, that unsets what a profile exported, except the variables `passed` to the shell.

        Names and the commonest shapes only: a shell cannot ask `has_credential`. The `names` go without awk.
        """
        passed_names = " ".join(sorted(filter(_is_name, passed)))
        names = " ".join(sorted(name for name in self.names if _is_name(name) and name not in passed))
        condition = self._condition()
        plain = f"unset {names}; " if names else ""
        if not condition:
            return plain
        program = (
            "BEGIN { for (n in ENVIRON) if (n ~ /^[A-Za-z_][A-Za-z0-9_]*$/"
            f' && !index(" {passed_names} ", " " n " ") && ({condition})) printf "unset %s;", n }}'
        )
        return f"{plain}eval \"$(command -p awk '{program}')\"; "

    def _condition(self) -> str:
        """For awk, where `n` is the name of a variable."""
        rules = self.rules
        found = [f"toupper(n) ~ /{_expression(rules.exclude)}/"] if _expression(rules.exclude) else []
        if not rules.ignore_default_excludes:
            allowed = _expression(rules.allow)
            unless = f" && toupper(n) !~ /{allowed}/" if allowed else ""
            shapes = _SHAPES.replace("/", "\\/")
            found.append(f"(toupper(n) ~ /{_expression(DEFAULT_EXCLUDES)}/ || ENVIRON[n] ~ /{shapes}/){unless}")
        return " || ".join(found)


def _expression(globs: Collection[str]) -> str:
    usable = [glob.upper() for glob in globs if re.fullmatch(_GLOB, glob.upper())]
    translated = [glob.replace("*", ".*").replace("?", ".").replace("[!", "[^") for glob in usable]
    return f"^({'|'.join(translated)})$" if translated else ""


def _is_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()
