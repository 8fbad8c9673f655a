"""What the model is sent ahead of a user's message: everything at first, later only what changed."""

from __future__ import annotations

from typing import Any, Final

from codex_py.context.agents_md import replacement
from codex_py.context.environment import Environment, render_environment
from codex_py.context.instructions import plan_mode_off
from codex_py.context.markup import cut_to, quoted
from codex_py.protocol.encoding import as_object
from codex_py.protocol.items import ResponseItem, message
from codex_py.protocol.value import Value

_MAX_BLOCK_BYTES: Final = 256 * 1024
_NO_SKILLS: Final = (
    "<skills_instructions>\n## Host skills update\nNo host skills are currently available.\n</skills_instructions>"
)


class ContextSnapshot(Value):
    """The context that the model should have now. The texts are rendered blocks; "" and None leave a block out."""

    model: str
    developer_instructions: str = ""
    skills: str = ""
    permissions: str = ""
    agents_md: str = ""
    environment: Environment | None = None
    plan: str = ""

    def to_record(self) -> dict[str, Any]:
        """The snapshot as JSON for the rollout's `world_state`, under the field names other readers know."""
        record: dict[str, Any] = {
            "model": self.model,
            "developer_instructions": self.developer_instructions,
            "host_skills": {"body": self.skills},
            "permissions": {"instructions": self.permissions},
            "agents_md": {"text": self.agents_md},
        }
        if self.environment:
            local = {"cwd": self.environment.cwd, "status": "available", "shell": self.environment.shell}
            record["environments"] = {
                "environments": {"local": local},
                "current_date": self.environment.current_date,
                "timezone": self.environment.timezone,
                "filesystem": self.environment.filesystem,
            }
        if self.plan:
            record["plan_mode"] = {"instructions": self.plan}
        return record

    @classmethod
    def from_record(cls, record: object) -> ContextSnapshot | None:
        """Read `to_record` back, or as much as a record of another program says; None when it names no model."""
        fields = as_object(record)
        model = fields.get("model")
        if not isinstance(model, str):
            return None
        return cls(
            model=model,
            developer_instructions=_text(fields, "developer_instructions"),
            skills=_text(fields.get("host_skills"), "body"),
            permissions=_text(fields.get("permissions"), "instructions"),
            agents_md=_text(fields.get("agents_md"), "text"),
            environment=_environment(fields.get("environments")),
            plan=_text(fields.get("plan_mode"), "instructions"),
        )


def context_items(last_sent: ContextSnapshot | None, now: ContextSnapshot) -> list[ResponseItem]:
    """The items to append before the user's message; `last_sent` is the snapshot sent last, None when none was.

    No change gives no items. A single block is cut at 256 KiB.
    """
    return _initial(now) if last_sent is None else _changes(last_sent, now)


def _initial(now: ContextSnapshot) -> list[ResponseItem]:
    environment = render_environment(now.environment) if now.environment else ""
    developer = (cut_to(now.developer_instructions, _MAX_BLOCK_BYTES), _skills(now), now.permissions, now.plan)
    return [*_message("developer", *developer), *_message("user", now.agents_md, environment)]


def _changes(last_sent: ContextSnapshot, now: ContextSnapshot) -> list[ResponseItem]:
    items: list[ResponseItem] = []
    if now.model != last_sent.model:
        items += _message("developer", _model_switch(last_sent.model, now.model))
    if now.agents_md != last_sent.agents_md:
        items += _message("user", replacement(now.agents_md) if last_sent.agents_md else now.agents_md)
    developer: list[str] = []
    if now.developer_instructions != last_sent.developer_instructions:
        developer.append(
            _changed_developer_instructions(now.developer_instructions, first=not last_sent.developer_instructions)
        )
    if now.skills != last_sent.skills:
        developer.append(_skills(now) or _NO_SKILLS)
    if now.permissions != last_sent.permissions:
        developer.append(now.permissions)
    if now.plan != last_sent.plan:
        developer.append(now.plan or plan_mode_off())
    items += _message("developer", *developer)
    if now.environment:
        items += _message("user", render_environment(now.environment, last_sent.environment))
    return items


def _message(role: str, *blocks: str) -> list[ResponseItem]:
    """One message of the blocks that say something; none when no block does."""
    texts = [block for block in blocks if block]
    return [message(role, *texts)] if texts else []


def _skills(now: ContextSnapshot) -> str:
    return cut_to(now.skills, _MAX_BLOCK_BYTES)


def _model_switch(before: str, after: str) -> str:
    return (
        f"<model_switch>\nUp to here the model of this session was {quoted(before[:200])}; from now on it is "
        f"{quoted(after[:200])}. Go on with the work as it stands, under the instructions of this request.\n"
        "</model_switch>"
    )


def _changed_developer_instructions(text: str, *, first: bool) -> str:
    if not text:
        return "The developer instructions given earlier no longer apply."
    shown = cut_to(text, _MAX_BLOCK_BYTES)
    return shown if first else f"These developer instructions replace the ones given earlier.\n\n{shown}"


def _environment(record: object) -> Environment | None:
    fields = as_object(record)
    local = as_object(as_object(fields.get("environments")).get("local"))
    if not local:
        return None
    return Environment(
        cwd=_text(local, "cwd"),
        shell=_text(local, "shell"),
        current_date=_text(fields, "current_date"),
        timezone=_text(fields, "timezone"),
        filesystem=_text(fields, "filesystem"),
    )


def _text(record: object, key: str) -> str:
    value = as_object(record).get(key)
    return value if isinstance(value, str) else ""
