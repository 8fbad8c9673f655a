"""`codex-py skills install`, `update`, `remove` and `sync`: skills whose source is known."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, TypeAlias

import typer

from codex_py.cli import skills_install_view as view
from codex_py.cli.console import is_agreed, load_local_config, print_json, print_note
from codex_py.cli.skill_choice import Cwd, directory_at
from codex_py.cli.skills_old_lock import take_over
from codex_py.cli.typer_command import Json, Yes
from codex_py.core.session_skills import skill_sources
from codex_py.errors import UsageError, UserError
from codex_py.services.skill_install import (
    SkillDirectory,
    SourceSkill,
    StagedSkill,
    current_hash,
    find_skills,
    opened_target,
    put_in_place,
    record_skill,
    require_free,
    stage_skill,
    take_out,
)
from codex_py.services.skill_origins import (
    InstalledSkill,
    SourceCache,
    available_hash,
    capabilities_of,
    capability_lines,
    installed_skills,
    store_tree,
    stored_tree,
    target_of,
    targets,
    tree_diff,
)
from codex_py.services.skill_source import fetch_source, parse_source
from codex_py.services.work_directory import work_directory
from codex_py.skills.records import now
from codex_py.skills.roots import SkillRootsRequest
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize

Scope: TypeAlias = Literal["user", "project"]
OneScope: TypeAlias = Annotated[
    Scope | None, typer.Option("--scope", help="Only skills of the user, or of the project.")
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="An installed skill.")]
Names: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME...]", help="Installed skills; without a name all of them.")
]


def install_skills(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A git URL (`URL#REF:DIR`), `owner/repository` of GitHub, a directory, or an archive.",
        ),
    ],
    skill: Annotated[
        list[str] | None, typer.Option("--skill", metavar="NAME", help="Only this skill; repeat it for more.")
    ] = None,
    scope: Annotated[Scope, typer.Option("--scope", help="For this user, or for the project.")] = "user",
    pin: Annotated[bool, typer.Option("--pin", help="Stay at this version: `update` leaves it alone.")] = False,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what comes, and install nothing.")] = False,
    cwd: Cwd = None,
    as_json: Json = False,
) -> int:
    """Install skills after showing what they bring. Nothing of the source is run.

    Their source is written to the lock file that other agents read too, your consent to $CODEX_HOME. Outside of a
    terminal, `--yes` is needed.
    """
    request = _request(cwd)
    target = target_of(request, scope, os.environ)
    wanted = parse_source(source, cwd=request.cwd)
    with _work_directory(request) as stage:
        fetched = fetch_source(wanted, stage, os.environ)
        found = _chosen(find_skills(fetched.top), skill or (), source)
        if dry_run:
            for each in found:
                print_note(*view.staged_lines(stage_skill(each, fetched, stage / "shown", pinned=pin)))
            return 0
        take_over(request, yes=yes)
        with opened_target(target) as draft:
            staged = [stage_skill(each, fetched, draft, pinned=pin) for each in found]
            for each in staged:
                _require_one_place(request, target, each.name)
                require_free(target, each)
                print_note(*view.staged_lines(each))
            names = ", ".join(f"`{each.name}`" for each in staged)
            them = "it" if len(staged) == 1 else f"these {len(staged)} skills"
            needs = f"installing {names}"
            if not is_agreed(f"install {them}?", yes=yes, needs=needs, otherwise="nothing was installed"):
                return 1
            for each in staged:
                _place(request, target, each)
                print_note(
                    f"installed the skill `{each.name}` in `{target.root / each.name}`; it counts from the next turn on"
                )
    if not target.has_records:
        print_note("your consent is not recorded, because this command runs in the sandbox")
    if as_json:
        print_json([view.installed_record(InstalledSkill(each.name, target, each.record)) for each in staged])
    return 0


def update_skills(
    names: Names = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only list what is behind; the exit status is 1 when something is.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show how a skill differs from what you agreed to.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Agree to a skill as it is on disk now.")] = False,
    scope: OneScope = None,
    yes: Yes = False,
    cwd: Cwd = None,
    as_json: Json = False,
) -> int:
    """Fetch newer versions of installed skills, show what changes, and put them in place.

    Pinned skills are left as they are. With `--check` or `--diff` nothing is changed.
    """
    if check + diff + accept > 1:
        raise UsageError("`--check`, `--diff` and `--accept` do not go together", hint="use one at a time")
    request = _request(cwd)
    if diff or accept:
        if len(names or ()) != 1:
            raise UsageError(f"`{'--diff' if diff else '--accept'}` needs the name of one skill")
        if diff:
            return _show_difference(request, _one(request, (names or [""])[0], scope))
        take_over(request, yes=yes)
        return _accept(request, _one(request, (names or [""])[0], scope), yes=yes)
    if not check:
        take_over(request, yes=yes)
    chosen = _named(request, names or (), scope)
    with _work_directory(request) as stage:
        sources = SourceCache(stage, os.environ)
        behind, failures = _find_behind(chosen, sources)
        if check:
            view.print_behind(behind, as_json=as_json)
            return 1 if behind else 2 if failures else 0
        if not (behind or failures):
            print_note("everything is up to date" if chosen else "no skills are installed from a source")
        declined = [each for each, found in behind if not _update(request, each, found, sources, yes=yes)]
    return 1 if failures or declined else 0


def remove_skill(name: Name, scope: OneScope = None, yes: Yes = False, cwd: Cwd = None) -> int:
    """Remove an installed skill: its files, and its entry in the lock file. Edited files are kept aside."""
    request = _request(cwd)
    take_over(request, yes=yes)
    installed = _one(request, name, scope)
    if not is_agreed(f"remove `{installed.directory}`?", yes=yes, needs=f"removing `{name}`"):
        return 1
    with opened_target(installed.target) as stage:
        _keep_edited(request, installed)
        take_out(installed.target, name, stage)
    print_note(f"removed the skill `{name}` from `{installed.target.root}`")
    if installed.record.declared.servers:
        print_note("its MCP servers may still be configured: `codex-py skills doctor` lists them")
    return 0


def sync_skills(scope: Scope = "project", yes: Yes = False, cwd: Cwd = None) -> int:
    """Make the skills what the project's `skills-lock.json` says: fetch what is missing, put back what was changed.

    Files that are replaced are kept aside. Skills without an entry stay as they are.
    """
    request = _request(cwd)
    take_over(request, yes=yes)
    target = target_of(request, scope, os.environ)
    wrong = [
        each for each in installed_skills(request, os.environ, scope) if each.target == target and not each.is_as_locked
    ]
    if not wrong:
        print_note(f"everything in `{target.root}` is what the lock says")
        return 0
    status = 0
    with _work_directory(request) as work, opened_target(target) as stage:
        sources = SourceCache(work, os.environ)
        ready: list[StagedSkill] = []
        for each in wrong:
            try:
                found, fetched = sources.locked(each)
                staged = stage_skill(found, fetched, stage, pinned=each.record.pinned)
                is_same = staged.record.tree_hash == each.record.tree_hash
                ready.append(staged._replace(record=each.record) if is_same else staged)
                print_note(*view.staged_lines(staged))
            except UserError as error:
                status = 1
                print_note(f"error: {error}" + (f"; {error.hint}" if error.hint else ""))
        names = ", ".join(f"`{each.name}`" for each in ready)
        if ready and not is_agreed(f"put {names} in place?", yes=yes, needs=f"replacing {names}"):
            return 1
        for each in ready:
            _place(request, target, each)
            print_note(f"put the skill `{each.name}` in place, from {view.origin(each.record)}")
    return status


def _accept(request: SkillRootsRequest, installed: InstalledSkill, *, yes: bool) -> int:
    """Record an installed skill as it is on disk. Raises `UserError`."""
    name, record = installed.name, installed.record
    tree = current_hash(installed.directory)
    if tree is None:
        raise UserError(f"the skill `{name}` cannot be read in `{installed.directory}`")
    if tree == record.tree_hash:
        print_note(f"the skill `{name}` is what you agreed to already")
        return 0
    if not installed.target.has_records:
        raise UserError("consent cannot be recorded in the sandbox", hint="run this command outside of it")
    declared = capabilities_of(installed.directory)
    print_note(*(f"  {line}" for line in capability_lines(record.declared, declared)))
    question = f"agree to `{installed.directory}` as it is?"
    if not is_agreed(question, yes=yes, needs=f"agreeing to `{name}`"):
        return 1
    with opened_target(installed.target):
        record_skill(installed.target, name, record.replace(tree_hash=tree, declared=declared, date=now()))
    store_tree(request.home, installed.directory)
    print_note(f"accepted the skill `{name}` as it is")
    return 0


def _show_difference(request: SkillRootsRequest, installed: InstalledSkill) -> int:
    """Print the capabilities first, then the text."""
    if not installed.is_edited:
        state = "what you agreed to" if installed.directory.is_dir() else "not there: see `codex-py skills sync`"
        print_note(f"the skill `{installed.name}` is {state}")
        return 0
    for line in capability_lines(installed.record.declared, capabilities_of(installed.directory)):
        print(sanitize(line))
    before = stored_tree(request.home, installed.record.tree_hash)
    if before is None:
        print_note("the text that you agreed to is not kept any more, so it cannot be compared")
        return 0
    sys.stdout.write(sanitize(tree_diff(before, installed.directory)))
    return 0


def _request(cwd: Path | None) -> SkillRootsRequest:
    home, directory, loaded = load_local_config(cwd=directory_at(cwd))
    return skill_sources(loaded, home=home, cwd=directory, env=os.environ)


@contextmanager
def _work_directory(request: SkillRootsRequest) -> Generator[Path, None, None]:
    if os.environ.get("CODEX_SANDBOX"):
        # A command of the model: it can write to the temporary directories only.
        with TemporaryDirectory(prefix="codex-py-skills-") as directory:
            yield Path(os.path.realpath(directory))
    else:
        with work_directory(request.home / "cache" / "skill-sources") as path:
            yield path


def _chosen(found: Sequence[SourceSkill], names: Sequence[str], source: str) -> list[SourceSkill]:
    """The skills to install. Raises `UserError` for a name that is missing, or that several different skills have."""
    if not found:
        raise UserError(f"`{source}` has no skill: there is no `SKILL.md` in it")
    chosen: dict[str, SourceSkill] = {}
    for name in dict.fromkeys(names) if names else dict.fromkeys(each.name for each in found):
        same = [each for each in found if each.name == name]
        if not same:
            known = sorted({each.name for each in found})
            hint = did_you_mean(name, known) or f"there are: {', '.join(known[:20])}"
            raise UsageError(f"no skill `{name}` in `{source}`", hint=hint)
        if len(same) > 1 and len({available_hash(each) for each in same}) > 1:
            places = ", ".join(f"`{each.inner or '.'}`" for each in same)
            raise UserError(f"several skills are called `{name}`: {places}", hint="give the directory of one as source")
        chosen[name] = same[0]
    usable = {name: each for name, each in chosen.items() if not each.problem}
    if names or not usable:
        return list(chosen.values())
    for each in chosen.values():
        if each.problem:
            print_note(f"warning: not a skill: `{each.inner or each.name}`: {each.problem}")
    return list(usable.values())


def _place(request: SkillRootsRequest, target: SkillDirectory, staged: StagedSkill) -> None:
    """Exchange a skill, and keep what was there if somebody edited it. Raises `UserError`."""
    record = target.records().get(staged.name)
    if record is not None:
        _keep_edited(request, InstalledSkill(staged.name, target, record))
    put_in_place(target, staged)
    store_tree(request.home, target.root / staged.name)


def _keep_edited(request: SkillRootsRequest, installed: InstalledSkill) -> None:
    """Keep a copy of files that nobody agreed to, before they are replaced. Raises `UserError`."""
    if installed.is_edited:
        location = store_tree(request.home, installed.directory)
        if location is None:
            raise UserError(f"the changed files of `{installed.name}` cannot be kept", hint="copy them away yourself")
        print_note(f"the changed files of `{installed.name}` are kept in `{location}`")


def _require_one_place(request: SkillRootsRequest, target: SkillDirectory, name: str) -> None:
    """Raise `UserError` for a skill of the user that is installed where version 0.1 installed it."""
    for each in targets(request, os.environ, "user"):
        if not target.is_shared and each.root != target.root and name in each.records():
            hint = f"`codex-py skills update {name}`, or remove it first"
            raise UserError(f"the skill `{name}` is installed in `{each.root}` already", hint=hint)


def _named(request: SkillRootsRequest, names: Sequence[str], scope: str | None) -> list[InstalledSkill]:
    """The installed skills with these names, or all. Raises `UsageError` for a name that none has."""
    installed = installed_skills(request, os.environ, scope)
    known = [each.name for each in installed]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or "only skills that `codex-py skills install` installed have an origin"
            raise UsageError(f"no installed skill `{name}`", hint=hint)
    return [each for each in installed if not names or each.name in names]


def _one(request: SkillRootsRequest, name: str, scope: str | None) -> InstalledSkill:
    found = _named(request, [name], scope)
    if len(found) > 1:
        roots = ", ".join(f"`{each.target.root}`" for each in found)
        raise UsageError(f"the skill `{name}` is installed in {roots}", hint="choose with `--scope`")
    return found[0]


def _find_behind(
    chosen: Sequence[InstalledSkill], sources: SourceCache
) -> tuple[list[tuple[InstalledSkill, SourceSkill]], int]:
    """The skills whose source has another version, with its files; and how many sources could not be asked."""
    behind: list[tuple[InstalledSkill, SourceSkill]] = []
    failures = 0
    for each in chosen:
        if each.record.pinned:
            continue
        try:
            found, _ = sources.available(each)
            agreed = each.record.source_hash or each.record.tree_hash or current_hash(each.directory)
            if available_hash(found) != agreed:
                behind.append((each, found))
        except UserError as error:
            failures += 1
            print_note(f"error: `{each.name}`: {error}")
    return behind, failures


def _update(
    request: SkillRootsRequest, installed: InstalledSkill, found: SourceSkill, sources: SourceCache, *, yes: bool
) -> bool:
    """Show an update, ask, and put it in place; False when the user does not want it. Raises `UserError`."""
    _, fetched = sources.available(installed)
    with opened_target(installed.target) as stage:
        staged = stage_skill(found, fetched, stage, pinned=False)
        staged = staged._replace(name=installed.name)
        view.show_update(installed, staged)
        name = f"`{installed.name}`"
        if not is_agreed(f"update {name}?", yes=yes, needs=f"updating {name}", otherwise=f"{name} stays as it is"):
            return False
        _place(request, installed.target, staged)
    print_note(f"updated the skill `{installed.name}`; it counts from the next turn on")
    return True
