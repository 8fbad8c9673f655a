"""`/help`, `/status`, `/context`, `/skills`, `/mcp`, `/hooks`, `/ps`, `/agents`, `/stop`, `/diff`: looking around."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from codex_py.config.keymap import resolve_keys
from codex_py.core.git_checkout import read_git_state
from codex_py.core.git_program import NotARepository
from codex_py.core.session_facts import mcp_sections, status_sections
from codex_py.core.working_diff import working_changes
from codex_py.errors import UserError
from codex_py.protocol.agents import AgentState
from codex_py.protocol.ops import ReloadSkills
from codex_py.render.agents import agent_standing
from codex_py.render.context_bar import render_context
from codex_py.render.patch import render_changes
from codex_py.render.transcript import render_items
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.desk import Desk
from codex_py.ui.repl.editor import edit_file
from codex_py.ui.repl.panels.agents import manage_agents
from codex_py.ui.repl.panels.help import show_help
from codex_py.ui.repl.panels.hooks import manage_hooks
from codex_py.ui.repl.panels.processes import manage_processes
from codex_py.ui.repl.panels.skills import SkillsPlace, manage_skills
from codex_py.ui.repl.slash import Command

_MOST_ENTRIES: Final = 40


async def _help(desk: Desk, words: str) -> None:
    from codex_py.ui.repl.commands.prompts import commands_now  # the seam: the table of which this is a part

    keys, _ = resolve_keys(desk.place.tui.keymap)
    await show_help(desk.asker, commands_now(desk.session.mcp), keys)


async def _status(desk: Desk, words: str) -> None:
    git = read_git_state(desk.cwd)
    sections = status_sections(
        desk.session,
        desk.place.loaded,
        usage=desk.usage(),
        branch=(git.branch if git else None) or "",
        user_home=desk.user_home,
    )
    await desk.asker.read("Status", sections)


async def _context(desk: Desk, words: str) -> None:
    desk.voice.show(render_context(desk.session.context_use()))


async def _skills(desk: Desk, words: str) -> None:
    async def edit(path: Path) -> None:
        if not await edit_file(path, desk.front.run_program, desk.programs(), desk.place.env):
            desk.voice.fail("no editor could be started", hint="set EDITOR")

    place = SkillsPlace(
        desk.place.request,
        desk.session.settings.model.context_window,
        time.time,
        edit,
        desk.session.skills.use_rules,
    )
    chosen = await manage_skills(desk.asker, place)
    await desk.session.submit(ReloadSkills())
    desk.reload()
    if chosen is not None:
        desk.front.insert_skill(chosen.name, chosen.path)


async def _mcp(desk: Desk, words: str) -> None:
    await desk.asker.read("MCP servers", mcp_sections(desk.place.loaded, desk.session.mcp))


async def _ps(desk: Desk, words: str) -> None:
    if not desk.session.processes():
        desk.voice.note("no command runs in the background")
        return
    await manage_processes(desk.asker, desk.session.processes, desk.session.stop_process, user_home=desk.user_home)


async def _agents(desk: Desk, words: str) -> None:
    agents = desk.session.agents
    if not agents.states():
        desk.voice.note("no agent was started in this session")
        return

    def look_into(agent: AgentState) -> None:
        entries = list(render_items(agents.items_of(agent.id), cwd=desk.cwd, at_work=agent.is_at_work))
        desk.voice.note(sanitize_line(f"{agent.title} ({agent_standing(agent)}):"))
        for entry in entries[-_MOST_ENTRIES:]:
            desk.voice.show(entry)

    await manage_agents(desk.asker, agents.states, look_into, agents.stop)


async def _hooks(desk: Desk, words: str) -> None:
    hooks = desk.session.hooks
    if hooks is None:
        desk.voice.note("no hooks are configured")
        return

    def trust(agrees: bool) -> None:
        hooks.set_trust(agrees=agrees)
        said = "the project's hooks are run from now on" if agrees else "no hook of the project is run any more"
        desk.voice.note(said)

    await manage_hooks(desk.asker, hooks.listed, trust)


async def _stop(desk: Desk, words: str) -> None:
    running = desk.session.processes()
    if not running:
        desk.voice.note("no command runs in the background")
        return
    if words and not words.isdecimal():
        raise UserError(f"`{words}` is no number of a command", hint="`/ps` lists them")
    stopped = [one for one in running if not words or str(one.id) == words]
    if not stopped:
        raise UserError(f"no command runs by the number `{words[:80]}`", hint="`/ps` lists them")
    for one in stopped:
        await desk.session.stop_process(one.id)
    desk.voice.note(f"stopped {len(stopped)} command{'' if len(stopped) == 1 else 's'}")


async def _diff(desk: Desk, words: str) -> None:
    """What git sees; outside of a repository, what patches of this session did."""
    if words not in ("", "all"):
        raise UserError(f"`{words[:80]}` is not `all`", hint="`/diff` folds long changes, `/diff all` shows them whole")
    try:
        changes = await asyncio.to_thread(working_changes, desk.git(), desk.may_read())
    except NotARepository:
        changes = desk.session.files_changed()
    if not changes:
        desk.voice.note("nothing has changed")
        return
    desk.voice.show(render_changes(changes, cwd=desk.cwd, expanded=words == "all"))


LOOK: Final = (
    Command("help", "list commands and keys", _help),
    Command("status", "the session, its settings and what it has used", _status),
    Command("context", "what fills the model's window", _context),
    Command("skills", "look at skills, switch them, edit them, use one", _skills),
    Command("mcp", "list the MCP servers", _mcp),
    Command("hooks", "list the hooks, and trust those of the project", _hooks),
    Command("ps", "list the commands that still run, and stop one", _ps),
    Command("agents", "list the agents, look into one, stop one", _agents),
    Command("stop", "stop the commands that still run", _stop, "[NUMBER]"),
    Command("diff", "show what has changed in the folder", _diff, "[all]"),
)
