"""What a compaction must not lose of the work so far: the plan, the files edited, the skills used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.readable import plan_of
from codex_py.protocol.value import Value


class WorkState(Value):
    """`files` are paths with what was done to each last (`add`, `update`, `delete`); `skills` paths with names."""

    plan: tuple[events.PlanStep, ...] = ()
    files: Mapping[str, str] = {}
    skills: Mapping[str, str] = {}

    def then(self, newer: WorkState) -> WorkState:
        """The state after more work: what was touched last stands last, and a new plan replaces the old one."""
        return WorkState(newer.plan or self.plan, _joined(self.files, newer.files), _joined(self.skills, newer.skills))

    def to_record(self) -> dict[str, Any]:
        """As JSON for the rollout."""
        return {
            "plan": [{"step": step.text, "status": step.status} for step in self.plan],
            "files": [{"path": path, "kind": change} for path, change in self.files.items()],
            "skills": [{"name": name, "path": path} for path, name in self.skills.items()],
        }

    @classmethod
    def from_record(cls, record: object) -> WorkState:
        """Read `to_record` back; what makes no sense is left out."""
        fields = as_object(record)
        return cls(
            plan_of(fields.get("plan")), _pairs(fields.get("files"), "kind"), _pairs(fields.get("skills"), "name")
        )


class WorkLog:
    """Keeps the state up to date from the events of a session."""

    def __init__(self) -> None:
        self.state = WorkState()

    def note(self, event: events.Event) -> None:
        """Hear an event; most say nothing about the work."""
        match event:
            case events.PlanUpdated(steps):
                self.state = self.state.replace(plan=steps)
            case events.PatchFinished(_, changes, True):
                self.state = self.state.then(WorkState(files=_outcomes(changes)))
            case events.SkillUsed(name, _, path):
                self.state = self.state.then(WorkState(skills={str(path): name}))
            case _:
                pass


def _outcomes(changes: Sequence[events.FileChange]) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for change in changes:
        if change.move_path is not None:
            outcomes[str(change.path)] = "delete"
        path = str(change.move_path or change.path)
        # What was touched last stands last.
        outcomes.pop(path, None)
        outcomes[path] = change.kind
    return outcomes


def _joined(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    return {**{path: value for path, value in before.items() if path not in after}, **after}


def _pairs(entries: object, key: str) -> dict[str, str]:
    return {
        path: value
        for entry in map(as_object, as_list(entries))
        if isinstance(path := entry.get("path"), str) and isinstance(value := entry.get(key), str)
    }
