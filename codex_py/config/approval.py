"""The approval policy in the configuration: one of a few words, or a table that names each kind of question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from codex_py.config.keys import KeyPath
from codex_py.config.kinds import Flag, Reading, ValueType, WordChoice, WrongValue, check_names, check_table, wrong_word
from codex_py.protocol.policy import GRANULAR, ApprovalPolicy, ApprovalWord, GranularApproval

_REQUIRED: Final = ("sandbox_approval", "rules", "mcp_elicitations")


class Approval(WordChoice):
    """One of the words, or `{ granular = { … } }`, whose first three flags must be there."""

    def check(self, value: object, path: KeyPath, reading: Reading) -> Any:
        if not isinstance(value, dict):
            if value == GRANULAR:
                raise WrongValue(path, value, "it is a table: `{ granular = { sandbox_approval = true, … } }`")
            if not isinstance(value, str) or value not in self.words:
                raise WrongValue(
                    path, value, f"{wrong_word(value, self.words)}, or a table `{{ {GRANULAR} = {{ … }} }}`"
                )
            return value
        table = check_table(cast("object", value), path)
        if list(table) != [GRANULAR]:
            raise WrongValue(path, table, f"a table here has `{GRANULAR}` and nothing else")
        below = (*path, GRANULAR)
        value_types: dict[str, ValueType] = {name: Flag() for name in GranularApproval.__match_args__}
        flags = check_names(table[GRANULAR], below, reading, value_types)
        for name in _REQUIRED:
            if name not in flags:
                raise WrongValue(below, table[GRANULAR], f"`{name}` is missing")
        return GranularApproval(**flags)


def word_for(policy: ApprovalPolicy) -> ApprovalWord:
    """Where a policy stands among the words: a granular one asks about nothing that `on-request` does not ask about."""
    return "on-request" if isinstance(policy, GranularApproval) else policy


def not_looser_approval(order: Sequence[str]) -> Any:
    """The rule for a project's own policy: a word or table that stands at or left of the one before.

    Over a table only one with fewer questions: the user wants the others refused.
    """

    def rule(before: ApprovalPolicy | None, value: ApprovalPolicy) -> ApprovalPolicy | None:
        if isinstance(before, GranularApproval):
            fewer = isinstance(value, GranularApproval) and all(
                had or not has for had, has in zip(vars(before).values(), vars(value).values(), strict=True)
            )
            return value if fewer else None
        limit = order.index(before) if before in order else 0
        return value if order.index(word_for(value)) <= limit else None

    return rule
