"""What a turn works on: its settings, fixed for its length, and the user's input, part of which arrives later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from codex_py.context.images import image_content
from codex_py.model.client import ParentTurn
from codex_py.protocol.events import SettingsChanged
from codex_py.protocol.items import ResponseItem, message_of_content
from codex_py.protocol.ops import ImageInput, ImageUrlInput, OverrideTurnContext, TextInput, UserInput
from codex_py.protocol.policy import ApprovalPolicy, ReadOnly, SandboxPolicy
from codex_py.protocol.value import Value
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.view_image import fitted_url


class ModelSettings(Value):
    """The model and how it is asked; `output_tokens` caps one tool output, `max_output_tokens` one answer.
    `provider` is the id of the provider to ask.

    `auto_compact_tokens` is the user's limit for the history, and its scope what that limit counts.
    """

    model: str
    instructions: str
    effort: str | None
    summary: str | None
    verbosity: str | None
    service_tier: str | None
    parallel_tool_calls: bool
    context_window: int | None
    output_tokens: int
    show_raw_reasoning: bool = False
    auto_compact_tokens: int | None = None
    auto_compact_scope: Literal["total", "body_after_prefix"] = "total"
    max_output_tokens: int | None = None
    pictures: bool = True
    provider: str = ""
    assumes_window: bool = False
    """Whether nobody said how large the context window is."""

    @property
    def known_window(self) -> int | None:
        """The context window; None where its size is assumed."""
        return None if self.assumes_window else self.context_window


class TurnSettings(Value):
    """The settings of the next turn. The user may change them between turns.

    With `plan` the turn runs in plan mode; the policies here apply again once plan mode ends.
    """

    cwd: Path
    model: ModelSettings
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    plan: bool = False

    def in_force(self) -> TurnSettings:
        """The settings in effect: in plan mode nothing is written, and no wider permission is asked for.

        A user who wants to be asked about every command still is.
        """
        if not self.plan:
            return self
        return self.replace(
            sandbox_policy=ReadOnly(), approval="untrusted" if self.approval == "untrusted" else "never"
        )

    def turn(self, thread_id: str, turn_id: str, output_schema: bytes | None = None) -> TurnContext:
        """A turn under these settings."""
        return TurnContext(
            turn_id=turn_id,
            thread_id=thread_id,
            cwd=self.cwd,
            settings=self.model,
            sandbox_policy=self.sandbox_policy,
            approval=self.approval,
            output_schema=output_schema,
            plan=self.plan,
        )

    def changed_event(self) -> SettingsChanged:
        """The news that these are the settings now."""
        return SettingsChanged(
            model=self.model.model,
            effort=self.model.effort,
            summary=self.model.summary,
            cwd=self.cwd,
            approval=self.approval,
            sandbox=self.sandbox_policy,
            plan=self.plan,
        )


class TurnContext(Value):
    """The settings of one turn, frozen when it starts. With `plan` nothing may be written in it.

    `parent` is there in an agent's turn: the turn that gave it its task.
    """

    turn_id: str
    thread_id: str
    cwd: Path
    settings: ModelSettings
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    output_schema: bytes | None = None
    plan: bool = False
    parent: ParentTurn | None = None

    def as_parent(self) -> ParentTurn:
        """This turn as the parent of the agents it starts."""
        top = self.parent
        return ParentTurn(
            self.thread_id,
            self.turn_id,
            session_id=top.session_id if top else self.thread_id,
            root_turn_id=top.root_turn_id if top else self.turn_id,
        )


class CurrentSettings:
    """`override` gives the settings an op asks for, and other tools where they need them; `offer` takes those."""

    def __init__(
        self,
        first: TurnSettings,
        override: Callable[[OverrideTurnContext, TurnSettings], tuple[TurnSettings, ToolRegistry | None]],
        offer: Callable[[ToolRegistry], None],
    ) -> None:
        self.next = first
        # Those of the running turn, or of the one before.
        self.now = first
        self._override = override
        self._offer = offer
        self._tools: ToolRegistry | None = None

    def change(self, op: OverrideTurnContext) -> SettingsChanged | None:
        """Change the settings from the next turn on; None if nothing changes. Raises `UserError`."""
        before = self.next
        self.next, tools = self._override(op, before)
        self._tools = tools or self._tools
        return None if self.next == before else self.next.changed_event()

    def take(self) -> TurnSettings:
        """Let what the user has chosen hold now."""
        self.now = self.next.in_force()
        if self._tools is not None:
            self._offer(self._tools)
            self._tools = None
        return self.now


def texts_of(inputs: Sequence[UserInput]) -> tuple[str, ...]:
    """The texts among what the user hands in."""
    return tuple(item.text for item in inputs if isinstance(item, TextInput))


async def build_user_message(inputs: Sequence[UserInput], *, cwd: Path) -> ResponseItem | None:
    """One message: the pictures in their order, then the texts; None when only skills were picked.

    Raises `UserError` for a picture it cannot read.
    """
    images = [
        item.url if isinstance(item, ImageUrlInput) else item.path
        for item in inputs
        if isinstance(item, ImageInput | ImageUrlInput)
    ]
    pictures = await asyncio.to_thread(image_content, images, cwd=cwd, fit=fitted_url) if images else []
    texts = [{"type": "input_text", "text": text} for text in texts_of(inputs)]
    return message_of_content("user", [*pictures, *texts]) if pictures or texts else None


class PendingMessage(Value):
    """A message of the user; `message` is None when only skills were picked. `context` is appended after it."""

    input: tuple[UserInput, ...]
    message: ResponseItem | None
    context: tuple[ResponseItem, ...] = ()


class PendingInput:
    """Queues input for the next request, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[PendingMessage | ResponseItem] = []

    def add(self, item: PendingMessage | ResponseItem) -> None:
        self._waiting.append(item)

    def withdraw(self, item: ResponseItem) -> None:
        """Remove an item, unless it was taken already."""
        self._waiting = [waiting for waiting in self._waiting if waiting is not item]

    @property
    def wants_answer(self) -> bool:
        """Whether there is a message of the user that the model has not read."""
        return any(isinstance(item, PendingMessage) for item in self._waiting)

    def take(self) -> Sequence[PendingMessage | ResponseItem]:
        """Remove and return all of it."""
        taken, self._waiting = self._waiting, []
        return taken

    def take_items(self) -> list[ResponseItem]:
        """Remove and return what needs no answer."""
        items = [item for item in self._waiting if isinstance(item, ResponseItem)]
        self._waiting = [item for item in self._waiting if isinstance(item, PendingMessage)]
        return items

    def take_messages(self) -> list[PendingMessage]:
        """Remove and return the messages of the user."""
        messages = [item for item in self._waiting if isinstance(item, PendingMessage)]
        self._waiting = [item for item in self._waiting if not isinstance(item, PendingMessage)]
        return messages
