"""The sessions of one run, one after the other: the questions before the first one, and which one is opened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py import __version__
from codex_py.config.edit import set_value, trust_project
from codex_py.config.load import LoadedConfig
from codex_py.config.project import project_files
from codex_py.core.build import ResumeTarget, open_session
from codex_py.core.session import Session
from codex_py.errors import LoginNeeded, UserError
from codex_py.paths import short_path
from codex_py.programs import is_over_ssh
from codex_py.protocol.events import SessionStarted
from codex_py.render.status import Banner
from codex_py.render.transcript import recent_turns
from codex_py.text.display import counted
from codex_py.ui.repl.first_run import reach_a_model
from codex_py.ui.repl.launch import LaunchContext, LaunchHost, LaunchOptions
from codex_py.ui.repl.panels.forms import FormAsker, Option, Sheet, TextLine
from codex_py.ui.repl.panels.sessions import SessionWatcher, choose_session
from codex_py.ui.repl.slash_command import CommandContext, Destination, OpenSession, OutputSink, Quit

_MAX_FILES: Final = 4


class SessionLoop:
    """Opens one session after the other. Each front end says how it runs one, and what else is its own."""

    def __init__(self, host: LaunchHost, launch: LaunchContext, asker: FormAsker, output: OutputSink) -> None:
        self.host = host
        self.launch = launch
        self.asker = asker
        self.output = output
        self._options = LaunchOptions()

    async def run(self, options: LaunchOptions) -> None:
        """Until the user quits. Raise `UserError` when the first session cannot be opened."""
        self._options = options
        settled = await settle_start(self.asker, self.host, self.launch)
        if settled is None:
            return
        self.use(settled)
        destination = await first_destination(self.asker, self.launch, options)
        before: OpenSession | None = None
        while isinstance(destination, OpenSession):
            try:
                destination = await self._rewound(destination)
                async with open_session(self.host.prepare(self.launch, destination.target)) as session:
                    destination = await self.run_session(session)
                    before = way_back(session, is_ephemeral=self.host.is_ephemeral)
            except LoginNeeded as error:
                if not await self.set_up(error):
                    return
            except UserError as error:
                if before is None:
                    raise
                self.output.fail(str(error), hint=error.hint)
                destination, before = before, None

    async def run_session(self, session: Session) -> Destination:
        """Run one session until it is left."""
        raise NotImplementedError

    async def run_program(self, argv: Sequence[str]) -> int:
        """Run a program on the terminal; its status, 127 when it cannot be started."""
        raise NotImplementedError

    def put_back(self, text: str) -> None:
        """Put a text into the input, where there is one that keeps it."""

    def use(self, launch: LaunchContext) -> None:
        """Open sessions with these settings from now on."""
        self.launch = launch

    async def set_up(self, error: LoginNeeded) -> bool:
        """Let the user choose how to reach a model; False to leave."""
        over_ssh = is_over_ssh(self.launch.env)
        if not await reach_a_model(self.asker, self.host, self.launch, self.run_program, over_ssh=over_ssh):
            return False
        self.use(self.host.read_context())
        return True

    def take_options(self) -> LaunchOptions:
        """Give back the options of the first session once; later sessions have none."""
        options, self._options = self._options, LaunchOptions()
        return options

    async def _rewound(self, destination: OpenSession) -> OpenSession:
        """Rewind the session that is opened next, where that is wanted; its message returns into the input."""
        if destination.draft:
            self.put_back(destination.draft)
        target, request = destination.target, destination.rewind
        if target is None or request is None or target.thread_id is None:
            return destination
        rewound = await asyncio.to_thread(self.host.rewinds().rewind, target.thread_id, request)
        self.output.note("\n".join(rewound.lines))
        if rewound.message:
            self.put_back(rewound.message)
        return OpenSession(target)


async def ask_for_trust(
    asker: FormAsker, loaded: LoadedConfig, *, cwd: Path, home: Path, user_home: str
) -> bool | None:
    """Whether the user trusts the directory; None when they want to leave. `home` is CODEX_HOME."""
    return await asker.choose(trust_sheet(loaded, cwd=cwd, home=home, user_home=user_home))


def trust_sheet(loaded: LoadedConfig, *, cwd: Path, home: Path, user_home: str) -> Sheet[bool | None]:
    """The question, with what an approval allows here; Enter answers no by default."""
    root = loaded.project_root or cwd
    return Sheet(
        title="Do you trust this directory?",
        subject=(TextLine(short_path(root, user_home), "strong"), *_what_it_allows(loaded, cwd, home)),
        facts=(TextLine("Say yes only if you know who wrote what is in it. Your answer is kept.", "menu.note"),),
        options=(
            Option("y", "Yes, trust it", True),
            Option("n", "No, read-only", False, "commands write nothing, its settings are ignored"),
            Option("q", "Quit", None),
        ),
        refusal=None,
        escape="quit",
        default=1,
    )


def _what_it_allows(loaded: LoadedConfig, cwd: Path, home: Path) -> tuple[TextLine, ...]:
    root = loaded.project_root
    top = root or cwd
    lines = ["A yes allows here:"]
    if loaded.config.sandbox_mode is None:
        lines.append("• commands write in this directory without asking, inside the sandbox and without network")
    files = [path.relative_to(top) for path in project_files(cwd, root, home) if path.is_relative_to(top)]
    if files:
        shown = ", ".join(map(str, files[:_MAX_FILES])) + (" and more" if len(files) > _MAX_FILES else "")
        lines.append(f"• its own settings count ({shown}): they choose models and make rules stricter, never looser")
    else:
        lines.append("• its own settings (.codex/config.toml) would count; it has none now")
    lines.append("• MCP servers and hooks that it brings are offered; each is asked about before it runs")
    return tuple(TextLine(line) for line in lines)


async def settle_trust(asker: FormAsker, host: LaunchHost, launch: LaunchContext) -> LaunchContext | None:
    """The settings that count once it is known whether the directory is trusted; None when the user wants to leave.

    The answer is stored, so that this is asked once; if it cannot be stored it counts for now.
    """
    if launch.loaded.trust != "unknown":
        return launch
    answer = await ask_for_trust(
        asker, launch.loaded, cwd=launch.cwd, home=launch.home, user_home=launch.env.get("HOME", "")
    )
    if answer is None:
        return None
    if answer:
        await asyncio.to_thread(trust_project, launch.home, launch.cwd)
    else:
        root = launch.loaded.project_root or launch.cwd
        set_value(launch.home / "config.toml", ("projects", str(root), "trust_level"), "untrusted")
        host.use_sandbox("read-only")
    return host.read_context()


async def settle_start(asker: FormAsker, host: LaunchHost, launch: LaunchContext) -> LaunchContext | None:
    """Ask before the first session about trust in the directory and about full access; None to leave."""
    settled = await settle_trust(asker, host, launch)
    return settled and await _settle_full_access(asker, host, settled)


async def _settle_full_access(asker: FormAsker, host: LaunchHost, launch: LaunchContext) -> LaunchContext | None:
    is_known = host.waives_sandbox or launch.accepts_full_access
    if is_known or launch.loaded.config.sandbox_mode != "danger-full-access":
        return launch
    match await asker.choose(_FULL_ACCESS):
        case "yes":
            return launch
        case "always":
            set_value(launch.home / "config.toml", ("notice", "hide_full_access_warning"), value=True)
            return launch
        case "no":
            host.use_sandbox("workspace-write")
            return host.read_context()
        case "quit":
            return None


_FullAccess: TypeAlias = Literal["yes", "always", "no", "quit"]

_FULL_ACCESS: Final[Sheet[_FullAccess]] = Sheet(
    title="Run without a sandbox?",
    subject=(
        TextLine("The settings of this session have none (`danger-full-access`).", "warn"),
        TextLine("Commands can then change or delete anything that you can, and send anything anywhere.", "warn"),
    ),
    options=(
        Option("y", "Yes, for this session", "yes"),
        Option("a", "Yes, and do not ask again", "always", "kept in config.toml"),
        Option("n", "No, use workspace-write", "no"),
        Option("q", "Quit", "quit"),
    ),
    refusal="quit",
    escape="quit",
    default=2,
)


async def first_destination(asker: FormAsker, launch: LaunchContext, options: LaunchOptions) -> Destination:
    """A new session, the one that is named, the last one, or one the user chooses."""
    if options.verb is None:
        return OpenSession()
    if options.session is None and not options.last:
        verb: Literal["resume", "fork"] = "fork" if options.verb == "fork" else "resume"
        home = launch.env.get("HOME", "")
        chosen = await choose_session(asker, verb, SessionWatcher(launch.home, launch.cwd, home, time.time()))
        if chosen is None:
            return Quit()
        turn = options.turn if chosen.turn is None else chosen.turn
        return OpenSession(ResumeTarget(chosen.id, any_directory=True, fork=chosen.verb == "fork", turn=turn))
    anywhere = options.anywhere or not options.last
    return OpenSession(ResumeTarget(options.session, anywhere, fork=options.verb == "fork", turn=options.turn))


def way_back(session: Session, *, is_ephemeral: bool) -> OpenSession:
    """Where to go on when the next session cannot be opened: a session without messages is not stored."""
    if is_ephemeral or not len(session.history):
        return OpenSession()
    return OpenSession(ResumeTarget(session.thread_id, any_directory=True))


def session_banner(context: CommandContext, started: SessionStarted) -> Banner:
    """The banner of a session that has begun; of a resumed one with its turns and how much context is left."""
    return Banner(
        version=__version__,
        model=started.model,
        provider=started.provider,
        cwd=started.cwd,
        sandbox=started.sandbox,
        approval=started.approval,
        effort=started.effort,
        skills=len(context.session.skills.catalog.enabled()),
        resumed=_describe_resumed(context, started),
        warnings=(started.notice,) if started.notice else (),
        home=Path(context.user_home) if context.user_home else None,
    )


def _describe_resumed(context: CommandContext, started: SessionStarted) -> str:
    if not started.resumed:
        return ""
    turns = recent_turns(context.session.history.items, cwd=context.cwd, max_turns=1).turns
    use = context.session.context_use()
    left = f"{max(0.0, 1 - use.total / use.window):.0%} context left" if use.window else ""
    return " · ".join(filter(None, [counted(turns, "turn"), left]))
