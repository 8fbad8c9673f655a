"""Slash commands of a client: ours that need no terminal, the prompts of MCP servers, and skills by their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from codex_py.core.git_checkout import read_git_state
from codex_py.core.init_prompt import init_prompt
from codex_py.core.mcp_prompts import PromptCommand, fill_prompt, prompt_commands
from codex_py.core.review import read_target, review_prompt
from codex_py.core.session import Session
from codex_py.core.session_facts import mcp_sections, status_sections
from codex_py.core.skill_names import invocable, skill_called
from codex_py.errors import UserError
from codex_py.protocol.facts import Section
from codex_py.protocol.input import SkillInput, TextInput, UserInput
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.server.acp.content import Json
from codex_py.server.acp.prompts import Prompt
from codex_py.text.excerpt import first_words
from codex_py.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from codex_py.server.acp.conversation import Conversation

_LONGEST_ABOUT: Final = 300


class Asked(NamedTuple):
    """A command and what stands behind it: words, and pictures."""

    run: Callable[[Conversation, Asked], Awaitable[Json | None]]
    words: str
    pictures: tuple[UserInput, ...] = ()


class _Command(NamedTuple):
    """`hint` shows what may follow it. What it runs gives back how the turn ended, None where there was none."""

    name: str
    purpose: str
    run: Callable[[Conversation, Asked], Awaitable[Json | None]]
    hint: str = ""


def find_command(prompt: Prompt, session: Session) -> Asked | None:
    """The command that a prompt is; None for a message."""
    text = prompt.text.strip()
    name, _, rest = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or not name or name.split() != [name]:
        return None
    words = rest.strip()
    if (own := next((one for one in _COMMANDS if one.name == name), None)) is not None:
        return Asked(own.run, words, prompt.pictures)
    if (of_server := next((one for one in prompt_commands(session.mcp) if one.name == name), None)) is not None:
        return Asked(_fill(of_server), words, prompt.pictures)
    if (called := skill_called(session.skills.catalog, name, words)) is not None:
        skill, mentioning = called
        return Asked(_use(SkillInput(skill.name, skill.path)), mentioning, prompt.pictures)
    return None


def available_commands(session: Session) -> list[Json]:
    """All commands there are now, as clients are told."""
    return [*_own_commands(), *_server_commands(session), *_skill_commands(session)]


def _own_commands() -> Iterator[Json]:
    for one in _COMMANDS:
        yield _shown(one.name, one.purpose, one.hint)


def _server_commands(session: Session) -> Iterator[Json]:
    for one in prompt_commands(session.mcp):
        hint = " ".join(given.name if given.required else f"[{given.name}]" for given in one.arguments)
        yield _shown(one.name, one.description or f"a prompt of the MCP server {one.server}", hint)


def _skill_commands(session: Session) -> Iterator[Json]:
    taken = {one.name for one in _COMMANDS}
    for skill in invocable(session.skills.catalog):
        if skill.name not in taken:
            yield _shown(skill.name, skill.short_description or skill.description, "what to do with the skill")


def _shown(name: str, purpose: str, hint: str) -> Json:
    about = first_words(sanitize_line(purpose), _LONGEST_ABOUT)
    return {"name": name, "description": about, **({"input": {"hint": sanitize_line(hint)}} if hint else {})}


def _use(skill: SkillInput) -> Callable[[Conversation, Asked], Awaitable[Json | None]]:
    async def use(to: Conversation, asked: Asked) -> Json | None:
        return await _say(to, asked, asked.words, skill)

    return use


def _fill(prompt: PromptCommand) -> Callable[[Conversation, Asked], Awaitable[Json | None]]:
    async def fill(to: Conversation, asked: Asked) -> Json | None:
        servers = to.thread.session.mcp
        assert servers is not None  # it has offered the prompt
        return await _say(to, asked, await fill_prompt(servers, prompt, asked.words))

    return fill


async def _say(to: Conversation, asked: Asked, text: str, *more: UserInput) -> Json | None:
    return await to.turn(lambda: to.thread.start_turn((*asked.pictures, TextInput(text), *more)))


async def _compact(to: Conversation, asked: Asked) -> Json | None:
    return await to.turn(lambda: to.thread.compact(asked.words))


async def _init(to: Conversation, asked: Asked) -> Json | None:
    wish = f"\n\n{asked.words}" if asked.words else ""
    return await _say(to, asked, init_prompt(to.thread.session.settings.cwd) + wish)


async def _review(to: Conversation, asked: Asked) -> Json | None:
    target, wishes = read_target(asked.words)
    return await _say(to, asked, await asyncio.to_thread(review_prompt, target, to.thread.git(), wishes=wishes))


async def _plan(to: Conversation, asked: Asked) -> Json | None:
    is_on = to.thread.session.settings.plan
    if asked.words or not is_on:
        await to.thread.override(OverrideTurnContext(plan=True))
        if asked.words:
            return await _say(to, asked, asked.words)
        to.say("Plan mode: nothing is written until you accept a plan.")
        return None
    await to.thread.override(OverrideTurnContext(plan=False))
    to.say("Plan mode is off.")
    return None


async def _model(to: Conversation, asked: Asked) -> Json | None:
    if asked.words:
        name, _, effort = asked.words.partition(" ")
        await to.thread.override(OverrideTurnContext(model=name, effort=effort.strip() or None))
    model = to.thread.session.settings.model
    to.say(f"Model: {model.model}" + (f", effort {model.effort}" if model.effort else ""))
    return None


async def _status(to: Conversation, asked: Asked) -> Json | None:
    session, loaded = to.thread.session, to.thread.loaded
    git = await asyncio.to_thread(read_git_state, session.settings.cwd)
    branch = (git.branch if git else None) or ""
    to.say(_page(status_sections(session, loaded, usage=to.usage, branch=branch, user_home="")))
    return None


async def _context(to: Conversation, asked: Asked) -> Json | None:
    use = to.thread.session.context_use()
    rows = [(part.name.replace("_", " "), f"{part.tokens:,}") for part in use.parts]
    of = f" of {use.window:,}" if use.window else ""
    to.say(_page((Section(f"Context: {'' if use.measured else '≈ '}{use.total:,}{of} tokens", tuple(rows)),)))
    return None


async def _mcp(to: Conversation, asked: Asked) -> Json | None:
    to.say(_page(mcp_sections(to.thread.loaded, to.thread.session.mcp)))
    return None


async def _skills(to: Conversation, asked: Asked) -> Json | None:
    skills = invocable(to.thread.session.skills.catalog)
    rows = tuple((f"${one.name}", one.short_description or one.description) for one in skills)
    to.say(_page((Section("Skills", rows or (("", "none"),)),)))
    return None


async def _ps(to: Conversation, asked: Asked) -> Json | None:
    running = to.thread.session.processes()
    rows = tuple(
        (str(one.id), f"{f'{one.agent}: ' if one.agent else ''}{one.command} ({one.seconds:.0f} s)") for one in running
    )
    to.say(_page((Section("Commands that still run", rows or (("", "none"),)),)))
    return None


async def _stop(to: Conversation, asked: Asked) -> Json | None:
    session = to.thread.session
    running = [one for one in session.processes() if asked.words in ("", str(one.id))]
    if asked.words and not running:
        raise UserError(f"no command runs by the number `{asked.words[:80]}`", hint="`/ps` lists them")
    for one in running:
        await session.stop_process(one.id)
    to.say(f"Stopped {len(running)} command{'' if len(running) == 1 else 's'}.")
    return None


def _page(sections: tuple[Section, ...]) -> str:
    """Sections as Markdown."""
    return "\n\n".join(f"**{one.heading}**\n\n{_rows(one)}" for one in sections if one.rows)


def _rows(section: Section) -> str:
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
    _Command("review", "review uncommitted changes, a branch or a commit", _review, "branch NAME | commit SHA | WISH"),
    _Command("skills", "list the skills", _skills),
    _Command("status", "the session, its settings and what it has used", _status),
    _Command("stop", "stop the commands that still run", _stop, "NUMBER"),
)
