"""Commands for looking around: status, context, skills, servers, hooks, processes, agents, changes, answers, help."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.config.tui import ACTIONS, format_key
from codex_py.core.session_file import read_git_state
from codex_py.errors import UserError
from codex_py.protocol.items import Message
from codex_py.protocol.ops import ReloadSkills
from codex_py.protocol.status import AgentState, ListedHook
from codex_py.render.agents import agent_standing
from codex_py.render.event import render_answer_aside
from codex_py.render.message import render_context
from codex_py.render.patch import render_difference
from codex_py.render.transcript import render_items
from codex_py.services.git import NotARepository
from codex_py.services.session_status import mcp_sections, status_sections
from codex_py.services.working_tree import working_changes
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.desktop import copy_text, draft_file, edit_file
from codex_py.ui.repl.panels.background import manage_agents, manage_processes
from codex_py.ui.repl.panels.forms import FactSection, FormAsker, ListEntry, ListForm, waited_for
from codex_py.ui.repl.panels.settings import manage_hooks
from codex_py.ui.repl.panels.skills import SkillsContext, manage_skills
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand

_SIGNS: Final = (
    ("$name", "a skill: its instructions go with your message"),
    ("@path", "a file of this directory"),
    ("/name", "a command at the start of a line, or a skill by its name"),
    ("!command", "run a shell command yourself; the model sees what it printed"),
    ("#text", "add a line to AGENTS.md, for this project or for all of yours"),
)
_DIALOGS: Final = (
    ("↑↓ Enter", "select and answer; a letter or a number answers at once"),
    ("Esc", "say no, or close it"),
    ("m", "show all of a long command or patch"),
)


async def show_help(asker: FormAsker, commands: Sequence[SlashCommand], keys: Mapping[str, Sequence[str]]) -> None:
    """Show it until it is closed. `keys` are those of each action, by its name."""
    await asker.read("Help", help_sections(commands, keys))


def help_sections(commands: Sequence[SlashCommand], keys: Mapping[str, Sequence[str]]) -> tuple[FactSection, ...]:
    """The help as a page; each action with the name that it has in the configuration."""
    return (
        FactSection("Write", _SIGNS),
        FactSection(
            "Commands", tuple((f"/{command.name} {command.hint}".strip(), command.purpose) for command in commands)
        ),
        FactSection(
            "Keys, and their names under [tui.keymap]",
            tuple(
                (", ".join(map(format_key, keys.get(action.name, ()))) or "–", f"{action.purpose} ({action.name})")
                for action in ACTIONS
            ),
        ),
        FactSection("In dialogs", _DIALOGS),
    )


_MAX_ENTRIES: Final = 40


async def _status(context: CommandContext, words: str) -> None:
    git = read_git_state(context.cwd)
    sections = status_sections(
        context.session,
        context.launch.loaded,
        branch=(git.branch if git else None) or "",
        user_home=context.user_home,
    )
    await context.asker.read("Status", sections)


async def _context(context: CommandContext, words: str) -> None:
    context.output.show(render_context(await context.session.count_context()))


async def _skills(context: CommandContext, words: str) -> None:
    async def edit(path: Path) -> None:
        if not await edit_file(path, context.front.run_program, context.programs(), context.launch.env):
            context.output.fail("no editor could be started", hint="set EDITOR")

    skills_context = SkillsContext(
        context.launch.request,
        context.session.settings.model.known_window,
        time.time,
        edit,
        context.session.skills.use_rules,
    )
    chosen = await manage_skills(context.asker, skills_context)
    await context.session.submit(ReloadSkills())
    context.reload()
    if chosen is not None:
        prompt = (chosen.interface and chosen.interface.default_prompt) or ""
        context.front.insert_skill(chosen.name, chosen.path, prompt)


async def _mcp(context: CommandContext, words: str) -> None:
    await context.asker.read("MCP", mcp_sections(context.launch.loaded, context.session.mcp))


async def _ps(context: CommandContext, words: str) -> None:
    if not context.session.processes():
        context.output.note("no command runs in the background")
        return
    await manage_processes(
        context.asker, context.session.processes, context.session.stop_process, user_home=context.user_home
    )


async def _agents(context: CommandContext, words: str) -> None:
    agents = context.session.load_agents()
    if not agents.states():
        context.output.note("no agent was started in this session")
        return

    def look_into(agent: AgentState) -> None:
        entries = list(render_items(agents.items_of(agent.id), cwd=context.cwd, at_work=agent.is_at_work))
        context.output.note(sanitize_line(f"{agent.title} ({agent_standing(agent)}):"))
        for entry in entries[-_MAX_ENTRIES:]:
            context.output.show(entry)

    await manage_agents(context.asker, agents.states, look_into, agents.stop)


async def _hooks(context: CommandContext, words: str) -> None:
    hooks, catalog = context.session.hooks, context.catalog()

    def listed() -> tuple[ListedHook, ...]:
        return hooks.listed(catalog)

    if not listed():
        context.output.note("no hooks are configured")
        return

    def trust(agrees: bool, chosen: ListedHook) -> None:
        skill = catalog.by_path(chosen.skill) if chosen.skill else None
        if chosen.skill and not skill:
            context.output.note(f"the skill of `{chosen.skill}` is gone")
            return
        hooks.runner.set_trust(agrees=agrees, skill=skill)
        owner = f"skill `{sanitize_line(skill.name)}`" if skill else "project"
        when = "in the turns that use it" if skill else "from now on"
        context.output.note(
            f"the hooks of the {owner} are run {when}" if agrees else f"no hook of the {owner} is run any more"
        )

    await manage_hooks(context.asker, listed, trust)


async def _stop(context: CommandContext, words: str) -> None:
    processes = context.session.processes()
    if not processes:
        context.output.note("no command runs in the background")
        return
    if words and not words.isdecimal():
        raise UserError(f"`{words}` is not the number of a command", hint="`/ps` lists them")
    stopped = [process for process in processes if not words or str(process.id) == words]
    if not stopped:
        raise UserError(f"no command with the number `{words[:80]}` is running", hint="`/ps` lists them")
    for process in stopped:
        await context.session.stop_process(process.id)
    context.output.note(f"stopped {counted(len(stopped), 'command')}")


async def _diff(context: CommandContext, words: str) -> None:
    """Show uncommitted changes; outside of a repository, the patches of this session."""
    if words not in ("", "all"):
        raise UserError(f"`{words[:80]}` is not `all`", hint="`/diff` folds long changes, `/diff all` shows them whole")
    title = "Uncommitted changes"
    try:
        changes = await asyncio.to_thread(working_changes, context.git(), context.may_read())
    except NotARepository:
        title, changes = "Changes of this session", context.session.files_changed()
    if not changes:
        context.output.note("nothing has changed")
        return
    context.output.show(render_difference(title, changes, cwd=context.cwd, expanded=words == "all"))


LOOK: Final = (
    SlashCommand("status", "the session, its settings and what it has used", _status),
    SlashCommand("context", "what fills the model's window", _context),
    SlashCommand("skills", "look at skills, switch them, edit them, use one", _skills),
    SlashCommand("mcp", "list the MCP servers", _mcp),
    SlashCommand("hooks", "list the hooks, and trust those of the project and of skills", _hooks),
    SlashCommand("ps", "list the commands that still run, and stop one", _ps),
    SlashCommand("agents", "list the agents, look into one, stop one", _agents),
    SlashCommand("stop", "stop the commands that still run", _stop, "[NUMBER]"),
    SlashCommand("diff", "show what has changed in the directory", _diff, "[all]"),
)


_MAX_ANSWERS: Final = 200
_TITLE_LENGTH: Final = 80
_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


async def _copy(context: CommandContext, words: str) -> None:
    """The last answer, the one before it (`2`), or a block of code of the last answer that has one."""
    answers = answers_of(context)
    if not answers:
        context.output.note("there is no answer to copy yet")
        return
    if words == "code":
        text, what = await _choose_code(context, answers), "code"
        if text is None:
            return
    else:
        number = _number(words, len(answers))
        text, what = answers[number - 1], "the last answer" if number == 1 else f"answer {number} from the end"
    how = await copy_text(text, context.launch.env, context.programs(), context.front.emit)
    context.output.note(f"copied {what}, {len(text):,} characters, {how}")


async def _raw(context: CommandContext, words: str) -> None:
    """Show an answer as it was written, without added margins and line breaks, so that it can be selected."""
    answers = answers_of(context)
    if not answers:
        context.output.note("there is no answer yet")
        return
    number = _number(words, len(answers))
    pager = context.programs().find("less")
    if pager is None:
        raise UserError("there is no `less` to show it in", hint="`/copy` copies it")
    with draft_file(context.launch.home, answers[number - 1] + "\n", ".md") as path:
        await context.front.run_program([pager, str(path)])


async def _side(context: CommandContext, words: str) -> None:
    if not words:
        raise UserError("`/side` needs a question", hint="`/side what does this error mean?`")
    about = f"{words[:_TITLE_LENGTH]}  (Esc goes back)"
    answer = await waited_for(context.asker, "Side question", context.session.side.ask(words), about=about)
    if answer is not None:
        context.output.show(render_answer_aside(words, answer))


def answers_of(context: CommandContext) -> list[str]:
    """The messages of the model, the latest first."""
    found: list[str] = []
    for item in reversed(context.session.history.items):
        view = item.view() if item.type == "message" else None
        if isinstance(view, Message) and view.role == "assistant" and (text := view.text.strip()):
            found.append(text)
        if len(found) == _MAX_ANSWERS:
            break
    return found


def code_blocks(text: str) -> list[str]:
    """The fenced blocks of code in an answer."""
    return [body.rstrip("\n") for _, body in _FENCED.findall(text) if body.strip()]


async def _choose_code(context: CommandContext, answers: list[str]) -> str | None:
    blocks = next((found for answer in answers if (found := code_blocks(answer))), None)
    if blocks is None:
        raise UserError("no answer has a block of code")
    if len(blocks) == 1:
        return blocks[0]
    entries = tuple(
        ListEntry(block, block.strip().splitlines()[0][:_TITLE_LENGTH], counted(len(block.splitlines()), "line"))
        for block in blocks
    )
    return await context.asker.pick(ListForm("Copy which block?", entries, enter="copy"))


def _number(words: str, count: int) -> int:
    """Which answer from the end. Raises `UserError`."""
    if words and not (words.isascii() and words.isdecimal() and 0 < int(words) <= count):
        raise UserError(f"`{words[:40]}` is not the number of an answer: there are {count}", hint="1 is the last one")
    return int(words or 1)


ANSWERS: Final = (
    SlashCommand("copy", "copy the last answer, an earlier one, or its code", _copy, "[N|code]"),
    SlashCommand("raw", "show the last answer as it was written, to select from", _raw, "[N]"),
    SlashCommand("side", "ask something beside the conversation", _side, "QUESTION", needs_words=True, also="btw"),
)
