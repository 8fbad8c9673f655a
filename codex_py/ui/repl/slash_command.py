"""Slash commands: how they are declared and found, and what they act on."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

from codex_py.core.build import ResumeTarget
from codex_py.core.session import Session
from codex_py.core.session_settings import read_check
from codex_py.paths import short_path
from codex_py.programs import ProgramFinder, program_finder
from codex_py.protocol.events import Event, TurnCompleted, TurnFailed, TurnInterrupted, TurnStarted
from codex_py.protocol.ops import Op
from codex_py.protocol.policy import extra_roots, mode_of
from codex_py.protocol.value import Value
from codex_py.render.entry import ScrollbackEntry
from codex_py.rollout.transcript import RewindChoice
from codex_py.services.git import GitReader
from codex_py.services.prompt_files import PromptFile, find_prompts
from codex_py.skills.model import SkillCatalog
from codex_py.ui.repl.launch import LaunchContext, RewindHost
from codex_py.ui.repl.panels.forms import FormAsker

_SHOWN: Final = 80
_NAME: Final = re.compile(r"[\w:-]+")


class SlashCommand(NamedTuple):
    """One command. `hint` shows what may follow it; with `needs_words` something has to.

    `while_running` says that it makes sense in the middle of a turn. `also` is what other agents call it.
    """

    name: str
    purpose: str
    run: Callable[[CommandContext, str], Awaitable[None]]
    hint: str = ""
    needs_words: bool = False
    while_running: bool = True
    also: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it can be called by, its own name first."""
        return (self.name, self.also) if self.also else (self.name,)


class SlashRequest(NamedTuple):
    """A command, the words behind it, and the name it was called by."""

    command: SlashCommand
    words: str
    name: str


def split_command(line: str) -> tuple[str, str]:
    """The word behind the slash that a line begins with, empty where there is none, and what comes after it."""
    if not line.startswith("/") or line[1:2].isspace():
        return "", ""
    name, *words = line[1:].split(maxsplit=1) or [""]
    return name, words[0].strip() if words else ""


def find_command(line: str, commands: Sequence[SlashCommand]) -> SlashRequest | None:
    """The command that a line is, None when it is a message."""
    name, words = split_command(line)
    found = next((command for command in commands if name and name.lower() in map(str.lower, command.names)), None)
    return SlashRequest(found, words, name) if found else None


def words_unwanted(request: SlashRequest) -> str:
    """The error for arguments of a command that takes none; empty when there is none."""
    if not request.words or request.command.hint:
        return ""
    return f"`/{request.name}` takes no arguments: `{request.words[:_SHOWN]}`"


def looks_like_command(line: str) -> bool:
    """Whether a line is meant as a command, known or not: `/word`, and no path."""
    name, _ = split_command(line)
    return _NAME.fullmatch(name) is not None and not os.path.lexists(f"/{name}")


class Quit(Value):
    """Leave the program."""


class OpenSession(Value):
    """Go on with another session: a stored one, or a new one for None; one that is rewound first with `rewind`.

    `draft` is put into the input.
    """

    target: ResumeTarget | None = None
    rewind: RewindChoice | None = None
    draft: str = ""


Destination: TypeAlias = Quit | OpenSession


class OutputSink(Protocol):
    """Writes to the scrollback, where it stays."""

    def note(self, text: str) -> None:
        """Something that was done, in a line or a few."""
        ...

    def fail(self, message: str, *, hint: str | None = None) -> None:
        """Something that could not be done."""
        ...

    def show(self, entry: ScrollbackEntry) -> None: ...

    def event(self, event: Event, *, expanded: bool = False) -> None: ...


class Front(Protocol):
    """The services of the front end for a command."""

    def leave(self, destination: Destination) -> None: ...

    def send_message(self, text: str, *, typed: str = "") -> None:
        """Send a message as if it had been typed; `typed` is shown instead, such as the command it comes from."""
        ...

    def begin(self, op: Op) -> None:
        """Begin a turn of another kind."""
        ...

    def interrupt(self) -> object:
        """Stop the turn; what was queued comes back into the input."""
        ...

    def insert_skill(self, name: str, path: Path, prompt: str) -> None: ...

    def set_theme(self, name: str) -> None:
        """Draw in another theme from now on; raise `UserError` for none that there is."""
        ...

    def set_vim(self, *, on: bool) -> None: ...

    async def run_program(self, argv: Sequence[str]) -> int:
        """Run a program on the terminal and wait for its end; its status, 127 when it cannot be started."""
        ...

    def emit(self, sequence: str) -> None:
        """Send an escape sequence that shows nothing."""
        ...


class CommandContext:
    """Everything a command may use."""

    def __init__(
        self,
        launch: LaunchContext,
        session: Session,
        *,
        asker: FormAsker,
        output: OutputSink,
        front: Front,
        rewinds: Callable[[], RewindHost],
    ) -> None:
        self.launch = launch
        self.rewinds = rewinds
        self.session = session
        self.asker = asker
        self.output = output
        self.front = front
        self.theme = launch.tui.theme
        self.is_vim = launch.tui.vim
        began_without = mode_of(session.settings.sandbox_policy) == "danger-full-access"
        self.accepts_full_access = began_without or launch.accepts_full_access
        self.prompts: Sequence[PromptFile] = ()
        self._in_turn = False
        self.reload()

    @property
    def cwd(self) -> Path:
        """The directory the session works in."""
        return self.session.settings.cwd

    @property
    def user_home(self) -> str:
        """The user's own directory, shown as `~`; empty where there is none."""
        return self.launch.env.get("HOME", "")

    def show_path(self, path: Path) -> str:
        """A path for the user: below the working directory from there, below the home directory from `~`."""
        return str(path.relative_to(self.cwd)) if path.is_relative_to(self.cwd) else short_path(path, self.user_home)

    def programs(self) -> ProgramFinder:
        """The finder of programs that are started outside the sandbox."""
        return program_finder(self.launch.env, self.cwd, extra_roots(self.session.settings.sandbox_policy))

    def git(self) -> GitReader:
        """A reader of git in the session's directory."""
        return GitReader(self.cwd, self.launch.env, self.session.settings.sandbox_policy)

    def may_read(self) -> Callable[[Path], bool]:
        """Which files may be shown: the content of those that `sandbox.deny_read` denies is not."""
        return read_check(self.launch.loaded, home=self.launch.home, cwd=self.cwd, env=self.launch.env)

    def catalog(self) -> SkillCatalog:
        """The skills there are."""
        return self.session.skills.catalog

    def reload(self) -> None:
        """Look at the skills again. Not in the middle of a turn, which goes on with those it began with."""
        settings = self.session.settings
        self.session.skills.refresh(settings.cwd, settings.model.known_window)
        self.find_prompts()

    def look_again(self) -> None:
        """Look at the commands again, and between turns at the skills."""
        self.find_prompts() if self._in_turn else self.reload()

    def find_prompts(self) -> None:
        """Look for the user's own commands again."""
        launch = self.launch
        self.prompts = find_prompts(launch.loaded, home=launch.home, cwd=self.cwd, may_read=self.may_read())

    def note_event(self, event: Event) -> None:
        """A listener of the session."""
        match event:
            case TurnStarted():
                self._in_turn = True
            case TurnCompleted() | TurnFailed() | TurnInterrupted():
                self._in_turn = False
                self.reload()
            case _:
                pass
