"""`codex-py skills`: lists, shows, checks, switches, ranks and searches skills."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from codex_py.cli import skills_view as view
from codex_py.cli.console import print_note, print_warnings
from codex_py.cli.skill_choice import Cwd, Refresh, Target, choose_skills, look_here
from codex_py.cli.skills_deps import needs_of, print_orphans, show_needs
from codex_py.cli.skills_install import install_skills, remove_skill, sync_skills, update_skills
from codex_py.cli.skills_install_view import print_installed
from codex_py.cli.skills_lint import find_orphans, fix_skills, lint, prune_servers
from codex_py.cli.skills_report import report_skills, show_usage
from codex_py.cli.skills_test import test_skill
from codex_py.cli.typer_command import Json, Overrides, Profile, Yes, command_first, run_commands
from codex_py.core.session_skills import skill_rules
from codex_py.errors import UsageError, UserError
from codex_py.services import skill_admin
from codex_py.services.skill_admin import list_tokens, model_for, named, switch_skills, window_for
from codex_py.services.skill_origins import installed_skills
from codex_py.skills.doctor import examine
from codex_py.skills.roots import skill_roots
from codex_py.skills.rules import idle_rules

_ABOUT: Final = "Look at the skills, switch them on and off, and find out why one does not work."


# Names of version 0.1, and the commands that do that now.
_RENAMED: Final = {
    "deps": ("show",),
    "outdated": ("update", "--check"),
    "diff": ("update", "--diff"),
    "accept": ("update", "--accept"),
}


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py skills` with these arguments; give back the exit status."""
    commands = {
        "list": list_skills,
        "show": show_skill,
        "enable": enable_skill,
        "disable": disable_skill,
        "doctor": diagnose,
        "lint": lint,
        "report": report_skills,
        "test": test_skill,
        "search": search_skills,
        "install": install_skills,
        "update": update_skills,
        "remove": remove_skill,
        "sync": sync_skills,
    }
    # Names of version 0.1 too: they print their new name, and no help lists them.
    old = {"usage": show_usage, "rank": rank_skills, "prune": prune_servers}
    arguments = command_first(arguments, {**commands, **old, **_RENAMED})
    name = arguments[0] if arguments else ""
    if name in _RENAMED:
        arguments = [*_RENAMED[name], *arguments[1:]]
        print_note(f"`skills {name}` is now `codex-py skills {' '.join(_RENAMED[name])}`")
    elif name in old:
        commands = {**commands, name: old[name]}
    return run_commands(commands, arguments, name="skills", about=_ABOUT)


def list_skills(
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
    refresh: Refresh = False,
    installed: Annotated[
        bool, typer.Option("--installed", help="Only those installed from a source, with that source.")
    ] = False,
) -> int:
    """List every skill: name, scope, whether it is enabled, by which layer, whether it is listed, and its file.

    What could not be loaded follows, with the reason.
    """
    found = look_here(cwd, overrides, profile, refresh=refresh)
    if installed:
        print_installed(installed_skills(found.sources, os.environ), as_json=as_json)
        return 0
    rules = skill_rules(found.loaded)
    view.print_list(found.catalog, rules, as_json=as_json)
    print_warnings(
        *idle_rules(found.catalog.skills, rules, certain=True),
        *found.catalog.notes,
        *(f"the skill `{edited.path.parent.name}` is used, but {edited.message}" for edited in found.catalog.edited),
    )
    if not (found.catalog.skills or found.catalog.problems):
        roots = (
            ", ".join(f"`{root.path}`" for root in skill_roots(found.sources)) or "none of the usual directories exists"
        )
        print_note(f"no skills found; looked in: {roots}")
    return 0


def show_skill(
    target: Annotated[
        str | None, typer.Argument(metavar="[NAME|PATH]", help="A skill's whole name, or its file or directory.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Try what is needed: start servers, run programs with `--version`.")
    ] = False,
    orphans: Annotated[bool, typer.Option("--orphans", hidden=True)] = False,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show one skill: what it says of itself, its files, its SKILL.md. Without a name, what all skills need.

    Needs are MCP servers, environment variables and programs, each with whether it is there. With `--check` the exit
    status is 1 when one does not work.
    """
    found = look_here(cwd, overrides, profile)
    if orphans:
        print_note("`--orphans` is now part of `codex-py skills doctor`")
        print_orphans(found, as_json=as_json)
        return 0
    if target is None:
        skills = [skill for skill in found.catalog.skills if found.catalog.is_enabled(skill)]
        return show_needs(found, skills, check=check, as_json=as_json)
    chosen = choose_skills(found.catalog, target).skills
    if check:
        return show_needs(found, chosen, check=True, as_json=as_json)
    view.print_skills(chosen, found.catalog, needs_of(found, chosen), model=model_for(found), as_json=as_json)
    return 0


def enable_skill(target: Target, cwd: Cwd = None) -> int:
    """Let a skill be used again. Writes an entry to $CODEX_HOME/config.toml."""
    return _switch(target, cwd, enabled=True)


def disable_skill(target: Target, cwd: Cwd = None) -> int:
    """Switch a skill off: not listed, not mentionable. Writes an entry to $CODEX_HOME/config.toml."""
    return _switch(target, cwd, enabled=False)


def diagnose(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="With --fix: only the skills in these places.")
    ] = None,
    fix: Annotated[bool, typer.Option("--fix", help="List what can be repaired, and ask before changing it.")] = False,
    yes: Yes = False,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
    refresh: Refresh = False,
) -> int:
    """Judge every SKILL.md in reach: why it is loaded or not. Also name clashes, and what the list takes.

    With `--fix`: edit the user's and the project's skills where there is one way to repair them, and remove the MCP
    servers that were written for skills which need them no more. You are asked about each of the two.
    """
    if (paths or yes) and not fix:
        raise UsageError(
            "paths and `--yes` belong to `--fix`", hint="`codex-py skills lint PATH` checks the skills there"
        )
    if fix and as_json:
        raise UsageError("`--fix` prints no JSON", hint="leave one of the two out")
    found = look_here(cwd, overrides, profile, refresh=refresh)
    if fix:
        return fix_skills(found, paths or (), yes=yes)
    settings = found.loaded.config.skills
    window = window_for(found)
    examination = examine(
        found.catalog,
        found.sources,
        context_window=window,
        max_tokens=list_tokens(found, window),
        rules=skill_rules(found.loaded),
        never_install=settings.never_install_mcp,
    )
    view.print_examination(examination, find_orphans(found), as_json=as_json)
    return 0


def search_skills(
    question: Annotated[str, typer.Argument(metavar="QUERY", help="A message, or what to look for.")],
    skill: Annotated[str | None, typer.Option("--skill", metavar="NAME", help="Passages of this skill alone.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="K", min=1, max=100, help="At most this many results.")] = 10,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show which skills fit a message, the best first, each with its best passage; or the passages of one skill."""
    found = look_here(cwd, overrides, profile)
    if skill is None:
        results = skill_admin.search_skills(found, question)[:limit]
    else:
        enabled = [entry for entry in choose_skills(found.catalog, skill).skills if found.catalog.is_enabled(entry)]
        if len(enabled) != 1:
            reason = "is switched off" if not enabled else "is the name of several skills: use the path of one"
            raise UserError(f"the skill `{skill}` {reason}")
        results = skill_admin.search_skill(found, enabled[0], question, limit)
    view.print_found(results, as_json=as_json)
    if not results:
        print_note("nothing found")
    return 0


def rank_skills(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A message.")],
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """The old name of `skills search`, until the next release."""
    print_note("`skills rank` is now `codex-py skills search`")
    return search_skills(text, cwd=cwd, overrides=overrides, profile=profile, as_json=as_json)


def _switch(target: str, cwd: Path | None, *, enabled: bool) -> int:
    verb = "enabled" if enabled else "disabled"
    found = look_here(cwd)
    chosen = choose_skills(found.catalog, target)
    shown = named(chosen.skills)
    if all(found.catalog.is_enabled(skill) == enabled for skill in chosen.skills):
        print_note(f"{shown} {'is' if len(chosen.skills) == 1 else 'are'} {verb} already")
        return 0
    file = switch_skills(found, chosen.skills, enabled=enabled, by_path=chosen.by_path)
    print_note(f"{verb} {shown} in `{file}`; this counts from the next turn on")
    return 0
