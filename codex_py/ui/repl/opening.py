"""The first session of a run, opened before all that draws its events is loaded: its settings are shown at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType

from codex_py import __version__
from codex_py.core.build import open_session
from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.protocol.events import Event, SessionStarted
from codex_py.protocol.ops import Begin
from codex_py.render.status import Banner, banner_lines
from codex_py.ui.repl.app import FrontEnd
from codex_py.ui.repl.launch import LaunchContext, LaunchHost, LaunchOptions


class EarlySession:
    """A session that has begun; its events are kept for those who are loaded meanwhile.

    To be entered by who goes on with it, which raises what went wrong in opening it. Leaving it twice does no harm.
    """

    def __init__(self, opened: AbstractAsyncContextManager[Session]) -> None:
        self._opened = opened
        self._session: Session | None = None
        self._error: UserError | None = None
        self._events: list[Event] | None = []

    async def begin(self, front: FrontEnd) -> None:
        """Open the session, and show its settings."""
        try:
            session = self._session = await self._opened.__aenter__()
        except UserError as error:
            self._error = error
            return
        session.skills.refresh(session.settings.cwd, session.settings.model.context_window)
        session.subscribe(lambda event: self._note(event, front))
        await session.submit(Begin())

    @property
    def has_begun(self) -> bool:
        return self._session is not None

    def take_events(self) -> Sequence[Event]:
        """The events so far; none is kept from now on."""
        events, self._events = self._events or [], None
        return events

    async def __aenter__(self) -> Session:
        if self._error is not None:
            raise self._error
        assert self._session is not None
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._session is None:
            return None
        self._session = None
        return await self._opened.__aexit__(kind, error, trace)

    def _note(self, event: Event, front: FrontEnd) -> None:
        if self._events is None or self._session is None:
            return
        self._events.append(event)
        if isinstance(event, SessionStarted):
            banner = banner_of(event, self._session, front.launch.env.get("HOME", ""))
            front.screen.print_above(banner_lines(banner, width=front.screen.width, theme=front.theme))
            # Now, and not a pause after the first drawing.
            front.screen.draw()


async def open_early(front: FrontEnd, host: LaunchHost, options: LaunchOptions) -> EarlySession | None:
    """Open the new session of this run, and show its settings; None where something has to be asked first."""
    launch = front.launch
    if options.verb is not None or launch.loaded.trust == "unknown" or asks_about_full_access(host, launch):
        return None
    early = EarlySession(open_session(host.prepare(launch, None)))
    await early.begin(front)
    return early


def asks_about_full_access(host: LaunchHost, launch: LaunchContext) -> bool:
    """Whether the user is asked before a session without a sandbox."""
    is_known = host.waives_sandbox or launch.accepts_full_access
    return launch.loaded.config.sandbox_mode == "danger-full-access" and not is_known


def banner_of(started: SessionStarted, session: Session, user_home: str, *, resumed: str = "") -> Banner:
    """The banner of a session that has begun; `resumed` says how much there is of an earlier one."""
    return Banner(
        version=__version__,
        model=started.model,
        provider=started.provider,
        cwd=started.cwd,
        sandbox=started.sandbox,
        approval=started.approval,
        effort=started.effort,
        skills=len(session.skills.catalog.enabled()),
        resumed=resumed,
        warnings=(started.notice,) if started.notice else (),
        home=Path(user_home) if user_home else None,
    )
