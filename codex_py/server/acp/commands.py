"""Slash commands for clients: built-in ones that need no terminal, prompts of MCP servers, and skills by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple, Protocol

from codex_py.core.mentions import invocable, skill_called
from codex_py.core.session import Session
from codex_py.core.session_file import read_git_state
from codex_py.errors import UserError
from codex_py.paths import is_file
from codex_py.protocol.ops import OverrideTurnContext, SkillInput, TextInput, UserInput
from codex_py.protocol.status import FactSection, PromptCommand
from codex_py.rollout.files import home_of
from codex_py.rollout.listing import save_name
from codex_py.rollout.transcript import RewindChoice
from codex_py.server.acp.content import Json
from codex_py.server.acp.params import AcpPrompt
from codex_py.server.messages import Params
from codex_py.server.threads import LiveThread, RollbackOutcome
from codex_py.services.review import init_prompt, read_target, review_prompt
from codex_py.services.session_status import mcp_sections, status_sections
from codex_py.text.display import counted, first_words
from codex_py.text.sanitize import sanitize_line

_MAX_DESCRIPTION_LENGTH: Final = 300


class CommandTarget(Protocol):
    """The session a command acts on."""

    @property
    def thread(self) -> LiveThread: ...

    def show_message(self, text: str) -> None:
        """Show the user a message of the program itself."""
        ...

    def send_title(self, title: str) -> None:
        """Send the client a new title of the session, which stays."""
        ...

    async def turn(self, start: Callable[[], Awaitable[object]]) -> Json:
        """Start a turn and wait for its end."""
        ...


class CommandRequest(NamedTuple):
    """The words and pictures that follow a command."""

    words: str
    pictures: tuple[UserInput, ...]


class _Command(NamedTuple):
    """A built-in command. `hint` shows its arguments. `run` gives back how the turn ended, or None."""

    name: str
    purpose: str
    run: Callable[[CommandTarget, CommandRequest], Awaitable[Json | None]]
    hint: str = ""


def find_command(prompt: AcpPrompt, session: Session) -> Callable[[CommandTarget], Awaitable[Json | None]] | None:
    """The command in a prompt, to be called with its session; None for an ordinary message.

    It gives back how its turn ended, or None if it has started none.
    """
    text = prompt.text.strip()
    name, _, rest = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or not name or name.split() != [name]:
        return None
    request = CommandRequest(rest.strip(), prompt.pictures)
    if (own := next((command for command in _COMMANDS if command.name == name), None)) is not None:
        return lambda to: own.run(to, request)
    if (of_server := next((command for command in session.mcp.prompts() if command.name == name), None)) is not None:
        return lambda to: _fill(to, request, of_server)
    if (called := skill_called(session.skills.catalog, name, request.words)) is not None:
        skill, mentioning = called
        return lambda to: _start_turn(to, request, mentioning, SkillInput(skill.name, skill.path))
    return None


def available_commands(session: Session) -> list[Json]:
    """All commands available now, as sent to clients."""
    own = [_command_payload(command.name, command.purpose, command.hint) for command in _COMMANDS]
    return [*own, *_REWIND_COMMANDS, *_server_commands(session), *_skill_commands(session)]


def _server_commands(session: Session) -> Iterator[Json]:
    for command in session.mcp.prompts():
        hint = " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in command.arguments)
        yield _command_payload(
            command.name, command.description or f"a prompt of the MCP server {command.server}", hint
        )


def _skill_commands(session: Session) -> Iterator[Json]:
    taken = {command.name for command in _COMMANDS} | {str(command["name"]) for command in _REWIND_COMMANDS}
    for skill in invocable(session.skills.catalog):
        if skill.name not in taken:
            hint = skill.options.argument_hint or "what to do with the skill"
            yield _command_payload(skill.name, skill.short or skill.description, hint)


def _command_payload(name: str, purpose: str, hint: str) -> Json:
    about = first_words(sanitize_line(purpose), _MAX_DESCRIPTION_LENGTH)
    return {"name": name, "description": about, **({"input": {"hint": sanitize_line(hint)}} if hint else {})}


async def _fill(to: CommandTarget, request: CommandRequest, prompt: PromptCommand) -> Json:
    return await _start_turn(to, request, await to.thread.session.mcp.fill_prompt(prompt, request.words))


async def _start_turn(to: CommandTarget, request: CommandRequest, text: str, *more: UserInput) -> Json:
    return await to.turn(lambda: to.thread.start_turn((*request.pictures, TextInput(text), *more)))


async def _compact(to: CommandTarget, request: CommandRequest) -> Json | None:
    return await to.turn(lambda: to.thread.compact(request.words))


async def _init(to: CommandTarget, request: CommandRequest) -> Json | None:
    focus = f"\n\n{request.words}" if request.words else ""
    return await _start_turn(to, request, init_prompt(to.thread.session.settings.cwd) + focus)


async def _review(to: CommandTarget, request: CommandRequest) -> Json | None:
    target, focus = read_target(request.words)
    return await _start_turn(to, request, await asyncio.to_thread(review_prompt, target, to.thread.git(), focus=focus))


async def _plan(to: CommandTarget, request: CommandRequest) -> Json | None:
    session = to.thread.session
    turns_on = bool(request.words) or not session.settings.plan
    await session.submit(OverrideTurnContext(plan=turns_on))
    if request.words:
        return await _start_turn(to, request, request.words)
    to.show_message("Plan mode: nothing is written until you accept a plan." if turns_on else "Plan mode is off.")
    return None


async def _model(to: CommandTarget, request: CommandRequest) -> None:
    if request.words:
        name, _, effort = request.words.partition(" ")
        await to.thread.session.submit(OverrideTurnContext(model=name, effort=effort.strip() or None))
    model = to.thread.session.settings.model
    to.show_message(f"Model: {model.model}" + (f", effort {model.effort}" if model.effort else ""))


async def _rename(to: CommandTarget, request: CommandRequest) -> None:
    rollout = to.thread.session.rollout
    if rollout is None or not is_file(rollout):
        raise UserError("this session is not stored yet, so there is nothing to name", hint="send a message first")
    words = await to.thread.session.side.title_now() if request.words == "auto" else request.words
    name = await asyncio.to_thread(save_name, home_of(rollout), to.thread.id, words)
    to.send_title(name)
    to.show_message(f"This session is named `{name}`.")


async def _status(to: CommandTarget, request: CommandRequest) -> None:
    session, loaded = to.thread.session, to.thread.loaded
    git = await asyncio.to_thread(read_git_state, session.settings.cwd)
    branch = (git.branch if git else None) or ""
    _show(to, *status_sections(session, loaded, branch=branch, user_home=""))


async def _context(to: CommandTarget, request: CommandRequest) -> None:
    use = await to.thread.session.count_context()
    rows = [(section.name.replace("_", " "), f"{section.tokens:,}") for section in use.sections]
    of = f" of {use.window:,}" if use.window else ""
    _show(to, FactSection(f"Context: {'' if use.measured else '≈ '}{use.total:,}{of} tokens", tuple(rows)))


async def _mcp(to: CommandTarget, request: CommandRequest) -> None:
    _show(to, *mcp_sections(to.thread.loaded, to.thread.session.mcp))


async def _skills(to: CommandTarget, request: CommandRequest) -> None:
    skills = invocable(to.thread.session.skills.catalog)
    rows = tuple((f"${skill.name}", skill.short or skill.description) for skill in skills)
    _show(to, FactSection("Skills", rows or (("", "none"),)))


async def _ps(to: CommandTarget, request: CommandRequest) -> None:
    running = to.thread.session.processes()
    rows = tuple(
        (str(process.id), f"{f'{process.agent}: ' if process.agent else ''}{process.command} ({process.seconds:.0f} s)")
        for process in running
    )
    _show(to, FactSection("Commands that still run", rows or (("", "none"),)))


async def _stop(to: CommandTarget, request: CommandRequest) -> None:
    session = to.thread.session
    running = [process for process in session.processes() if request.words in ("", str(process.id))]
    if request.words and not running:
        raise UserError(f"no command with the number `{request.words[:80]}` is running", hint="`/ps` lists them")
    for process in running:
        await session.stop_process(process.id)
    to.show_message(f"Stopped {counted(len(running), 'command')}.")


def _show(to: CommandTarget, *sections: FactSection) -> None:
    """Show sections as Markdown."""
    to.show_message("\n\n".join(f"**{section.heading}**\n\n{_rows(section)}" for section in sections if section.rows))


def _rows(section: FactSection) -> str:
    lines = [": ".join(filter(None, map(sanitize_line, row))) for row in section.rows]
    return "\n".join(f"- {line}" for line in lines)


_COMMANDS: Final = (
    _Command("compact", "replace the history by a summary", _compact, "what the summary should dwell on"),
    _Command("context", "what fills the model's window", _context),
    _Command("init", "have an AGENTS.md written for this repository", _init, "what to mind"),
    _Command("mcp", "list the MCP servers", _mcp),
    _Command("model", "tell or choose the model and how long it thinks", _model, "NAME [EFFORT]"),
    _Command("plan", "plan mode on and off: nothing is written until you accept a plan", _plan, "what to plan"),
    _Command("ps", "list the commands that still run", _ps),
    _Command("rename", "name this session, with auto by the model", _rename, "NAME | auto"),
    _Command("review", "review uncommitted changes, a branch or a commit", _review, "branch NAME | commit SHA | WISH"),
    _Command("skills", "list the skills", _skills),
    _Command("status", "the session, its settings and what it has used", _status),
    _Command("stop", "stop the commands that still run", _stop, "NUMBER"),
)

# The method of our own, which says what would happen with `dryRun`.
REWIND_METHOD: Final = "_codex-py/rewind"
_LAST: Final = "last"
_MAX_SHOWN_LINES: Final = 40
_REWIND_COMMANDS: Final[tuple[Json, ...]] = (
    {"name": "undo", "description": "bring back files and conversation before the last turn"},
    {
        "name": "rewind",
        "description": "go back before a turn, or undo the last rewind",
        "input": {"hint": "TURN | latest [files | conversation | both]"},
    },
)


def read_rewind(params: Params) -> RewindChoice:
    """The request of a client."""
    return RewindChoice(
        params.text_or_none("to") or _LAST,
        files=params.flag("files", default=True),
        conversation=params.flag("conversation", default=True),
        copies_conflicts=params.flag("copyConflicts"),
        dry_run=params.flag("dryRun"),
    )


def called_rewind(prompt: str) -> RewindChoice | None:
    """The request of a prompt that is `/undo` or `/rewind …`; None for any other prompt. Raises `UserError`."""
    name, *words = prompt.split() or [""]
    if name == "/undo" and not words:
        return RewindChoice(_LAST, files=True)
    if name != "/rewind":
        return None
    part = words[1] if len(words) == 2 else "both"
    if not 1 <= len(words) <= 2 or part not in ("files", "conversation", "both"):
        raise UserError("`/rewind` needs the number of a turn or `latest`, and then `files`, `conversation` or `both`")
    return RewindChoice(words[0], files=part != "conversation", conversation=part != "files")


def rewind_payload(done: RollbackOutcome) -> Json:
    """The answer to the method."""
    return {"files": dict(done.files), "message": done.message, "notices": list(done.notices)}


def describe_rewind(done: RollbackOutcome) -> str:
    """The answer to the command, as Markdown."""
    more = len(done.lines) - _MAX_SHOWN_LINES
    lines = done.lines if more <= 0 else (*done.lines[: _MAX_SHOWN_LINES - 1], f"and {more} more", done.lines[-1])
    message = (f"the message was: {done.message}",) if done.message else ()
    return "\n".join(f"- {sanitize_line(line)}" for line in (*lines, *done.notices, *message))
