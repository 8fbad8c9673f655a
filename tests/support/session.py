"""A session in this process, pointed at the fake model: for what the model sees and what the events say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.build import ResumeTarget, SessionRequest, open_session
from codex_py.core.session import Session
from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion, TextInput, UserTurn
from codex_py.protocol.policy import ApprovalPolicy
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses, Play
from tests.support.home import Place
from tests.support.script import Answer, Repeat

E = TypeVar("E")


@dataclass
class Watched:
    """A session and every event it has emitted so far."""

    session: Session
    seen: list[events.Event] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def say(self, text: str) -> events.Event:
        """One turn; gives back the event that ended it."""
        await self.session.submit(UserTurn((TextInput(text),)))
        return self.seen[-1]

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.of(events.Warned)]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.seen if isinstance(event, kind)]

    def on(self, kind: type[events.Event], act: Callable[[], Any]) -> None:
        """Do something whenever such an event is emitted."""
        self.session.subscribe(lambda event: act() if isinstance(event, kind) else None)

    def agree(self, event: events.Event) -> None:
        """Say yes to every question about a command or a patch; for a listener."""
        if isinstance(event, events.QuestionRaised) and isinstance(event.question, ApprovalQuestion):
            self.tasks.append(asyncio.create_task(self.session.submit(AnswerQuestion(event.question.id, "once"))))


@asynccontextmanager
async def watched_session(
    place: Place,
    model: FakeResponses,
    top: str = "",
    *,
    resume: str | None = None,
    sandbox: str = "danger-full-access",
    ephemeral: bool = False,
    can_ask: bool = False,
    approval: ApprovalPolicy = "never",
    overrides: tuple[str, ...] = (),
    cwd: Path | None = None,
    **provider: Any,
) -> AsyncGenerator[Watched, None]:
    """Open a session in the place's repository, or in `cwd`; `top` is TOML for the head of config.toml."""
    place.use_model(model.base_url, f'sandbox_mode = "{sandbox}"\n{top}', **provider)
    here = cwd or place.repo
    request = ConfigRequest(home=place.codex_home, cwd=here, env=place.env, overrides=overrides, system=place.system)
    loaded = load_config(request)
    wanted = SessionRequest(
        loaded=loaded,
        home=place.codex_home,
        cwd=here,
        env=place.env,
        originator="test",
        approval=approval,
        ephemeral=ephemeral,
        can_ask=can_ask,
        resume=None if resume is None else ResumeTarget(thread_id=resume),
    )
    async with open_session(wanted) as session:
        watched = Watched(session)
        session.subscribe(watched.seen.append)
        yield watched


@asynccontextmanager
async def scripted_session(
    place: Place,
    *script: Play | Repeat,
    excuse: set[str] | None = None,
    get: Mapping[str, Answer] | None = None,
    top: str = "",
    **settings: Any,
) -> AsyncGenerator[tuple[FakeResponses, Watched], None]:
    """A fake model that plays the script, and a session that asks it. `settings` are those of `watched_session`."""
    with FakeResponses(*script, excuse=excuse, get=get) as model:
        async with watched_session(place, model, top, **settings) as watched:
            yield model, watched
