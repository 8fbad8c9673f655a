"""`codex-py skills lint` and `skills doctor --fix`: findings about skills, and what repairs them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from codex_py.cli.console import is_agreed, print_note, print_warnings
from codex_py.cli.skill_choice import Cwd, expanded, look_here
from codex_py.cli.skills_view import print_findings
from codex_py.cli.typer_command import Json, Yes
from codex_py.config.entries import remove_servers, servers_for_skills
from codex_py.errors import CodexError, UsageError
from codex_py.mcp.table import known_servers
from codex_py.paths import codex_home, is_file, user_home
from codex_py.services.skill_admin import SkillAdmin
from codex_py.services.skill_trust import consent_check
from codex_py.skills.dependencies import declared_servers, mcp_keys
from codex_py.skills.lint import field_lines, lint_file, skill_files
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.model import Skill, SkillRoot
from codex_py.skills.overlaps import find_overlaps
from codex_py.skills.parse import SkillRefused, parse_skill, read_record, read_skill_text
from codex_py.skills.record import FoundFile, skill_of
from codex_py.skills.repair import apply_edit, plan_edits
from codex_py.skills.roots import skill_roots
from codex_py.skills.scan import SKILL_FILE
from codex_py.skills.spec import check_spec, odd_metadata
from codex_py.text.display import counted
from codex_py.text.files import os_reason
from codex_py.text.frontmatter import split_frontmatter
from codex_py.text.sanitize import sanitize_line

# Skills of the user's own. Those of the system and of plugins are replaced by their next version.
_EDITABLE: Final = ("repo", "user")
_MAX_NEIGHBOURS = 500


class Orphan(NamedTuple):
    """A server of the user's configuration that was written for skills which do not need it any more."""

    name: str
    reason: str


def lint(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="A SKILL.md, its directory, or a directory of skills.")
    ],
    spec: Annotated[
        bool, typer.Option("--spec", help="Check one skill by the rules of the Agent Skills reference alone.")
    ] = False,
    as_json: Json = False,
    fix: Annotated[bool, typer.Option("--fix", hidden=True)] = False,
    no_run: Annotated[bool, typer.Option("--no-run", hidden=True)] = False,
) -> int:
    """Check skills before they are used. Exit status 1 when something keeps one from loading.

    Each finding names file, line and remedy. Scripts are parsed and not run.
    """
    chosen = [expanded(path) for path in paths]
    if no_run:
        print_note("`--no-run` is not needed any more: no script is run")
    if fix:
        print_note("`skills lint --fix` is now `codex-py skills doctor --fix`")
    if spec:
        if len(chosen) != 1 or fix:
            raise UsageError("`--spec` checks one skill and changes nothing", hint="name one directory with a SKILL.md")
        findings = _check_spec(chosen[0])
    else:
        home = codex_home(os.environ)
        findings = _lint_skills(chosen, home, os.environ)
        if fix and (edits := plan_edits(findings)):
            for edit in edits:
                apply_edit(edit)
            print_note(f"repaired {counted(sum(len(edit.changes) for edit in edits), 'finding')}")
            findings = _lint_skills(chosen, home, os.environ)
    print_findings(findings, as_json=as_json)
    if not findings:
        print_note("nothing to complain about")
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _check_spec(path: Path) -> Sequence[LintFinding]:
    """Check one skill as the reference validator does. A note names values that only the words of the format refuse."""
    if not os.path.lexists(path):
        raise UsageError(f"no such file: `{path}`", hint="name one directory with a SKILL.md")
    is_skill = path.is_file() and path.name.lower() == SKILL_FILE.lower()
    directory = path.absolute().parent if is_skill else path.absolute()
    for key in odd_metadata(_front_matter(directory / SKILL_FILE)):
        print_note(f"`metadata.{key}` is not a text: put it in quotes")
    return [LintFinding("error", directory / SKILL_FILE, message, "spec") for message in check_spec(directory)]


def _front_matter(path: Path) -> str:
    try:
        block = split_frontmatter(path.read_text("utf-8", "replace"))
    except OSError:
        return ""
    return block.yaml if block else ""


def fix_skills(found: SkillAdmin, paths: Sequence[Path], *, yes: bool) -> int:
    """Repair skills, and remove servers that no skill needs; each is listed and asked about. Gives the exit status.

    With `paths` only the skills there are repaired. Raises `UserError`.
    """
    chosen = [expanded(path) for path in paths] or _own_skills(found)
    edits = plan_edits(_lint_skills(chosen, found.request.home, os.environ))
    orphans = [] if paths else find_orphans(found)
    if not edits and not orphans:
        print_note("nothing to fix")
    status = 0
    for edit in edits:
        print_note(*(f"{edit.path}: {change}" for change in edit.changes))
    if edits and is_agreed("edit these skills?", yes=yes, needs="editing skills", otherwise="no skill was edited"):
        for edit in edits:
            try:
                apply_edit(edit)
            except OSError as error:
                print_warnings(f"`{edit.path}` was not edited: {os_reason(error)}")
                status = 1
    elif edits:
        status = 1
    return _remove_orphans(found, orphans, yes=yes) or status


def prune_servers(yes: Yes = False, cwd: Cwd = None) -> int:
    """Another name of `codex-py skills doctor --fix`, for servers alone."""
    print_note("`skills prune` is now `codex-py skills doctor --fix`")
    found = look_here(cwd)
    orphans = find_orphans(found)
    if not orphans:
        print_note("nothing to prune: every server that was written for a skill is still needed")
    return _remove_orphans(found, orphans, yes=yes)


def _own_skills(found: SkillAdmin) -> list[Path]:
    """The files of the user's and the project's skills, loaded or not."""
    catalog = found.catalog
    files = [skill.path for skill in catalog.skills if skill.scope in _EDITABLE and not skill.plugin_id]
    files += [problem.path for problem in catalog.problems if problem.scope in _EDITABLE]
    for root in skill_roots(found.sources):
        if root.scope in _EDITABLE and root.root_type != "plugin":
            files += [file for file in root.path.glob("*/*") if file.name.lower() == SKILL_FILE.lower()]
    return [file for file in dict.fromkeys(files) if file.is_file()]


def _remove_orphans(found: SkillAdmin, orphans: Sequence[Orphan], *, yes: bool) -> int:
    if not orphans:
        return 0
    file = found.request.home / "config.toml"
    for orphan in orphans:
        print_note(f"remove the MCP server `{orphan.name}` from `{file}`: {orphan.reason}")
    question = f"remove {'it' if len(orphans) == 1 else 'them'}?"
    if not is_agreed(question, yes=yes, needs="removing MCP servers", otherwise="no server was removed"):
        return 1
    remove_servers(file, [orphan.name for orphan in orphans])
    print_note(f"removed {', '.join(f'`{orphan.name}`' for orphan in orphans)} from `{file}`")
    return 0


def find_orphans(found: SkillAdmin) -> list[Orphan]:
    """The servers whose skills are all gone, switched off, or do not declare them any more. Raises `UserError`."""
    file = found.request.home / "config.toml"
    entries = {
        server.name: server.entry
        for server in known_servers(found.loaded, found.request.home, found.request.cwd).servers
    }
    orphans: list[Orphan] = []
    for name, files in servers_for_skills(file).items():
        keys = set(mcp_keys(name, entries.get(name, {})))
        reasons = [_why_unneeded(found, Path(path), keys) for path in files]
        if all(reasons):
            orphans.append(Orphan(name, "; ".join(dict.fromkeys(reasons)) or "no skill is named as its origin"))
    return orphans


def _why_unneeded(found: SkillAdmin, path: Path, keys: set[str]) -> str:
    """Why a skill does not need one of the servers with these keys; "" when it does."""
    shown = sanitize_line(str(path))
    if not is_file(path):
        return f"the skill `{shown}` is gone"
    known = next((skill for skill in found.catalog.skills if skill.canonical_path == path), None)
    if known is not None and not found.catalog.is_enabled(known):
        return f"the skill `{known.name}` is switched off"
    skill = known or _read_elsewhere(path)
    if skill is None or not keys.intersection(declared_servers(skill)):
        return f"the skill `{shown}` does not need it any more"
    return ""


def _read_elsewhere(path: Path) -> Skill | None:
    """A skill of another project."""
    record = read_record(FoundFile(str(path), str(path), None, True), None)
    return None if record.error else skill_of(record, SkillRoot(path.parent.parent, "user", "extra"))


def _lint_skills(paths: Sequence[Path], home: Path, env: Mapping[str, str]) -> tuple[LintFinding, ...]:
    """The findings about the skills of some paths, errors first; `home` is CODEX_HOME. Raises `UsageError`."""
    files = list(dict.fromkeys(file for path in paths for file in skill_files(path)))
    found = [finding for file in files for finding in lint_file(file)]
    found += [*_held_back(files, home, env), *_overlaps(files)]
    return tuple(sorted(found, key=lambda finding: (finding.level != "error", str(finding.path.parent))))


def _held_back(files: Sequence[Path], home: Path, env: Mapping[str, str]) -> Iterator[LintFinding]:
    """A finding for each installed skill that is kept from loading until it is agreed to."""
    real = {Path(os.path.realpath(file.parent)): file for file in files}
    check = consent_check(home, env)
    own = Path(os.path.realpath(user_home(env) / ".agents" / "skills"))
    for root in dict.fromkeys(directory.parent for directory in real):
        is_own = root.is_relative_to(os.path.realpath(home)) or root == own
        for state in check.states(SkillRoot(root, "user" if is_own else "repo", "agents")):
            held = [directory for directory in real if directory.is_relative_to(state.directory)]
            for directory in held if state.is_held else ():
                remedy = "restore the files with `codex-py skills sync`, or agree to them with `skills update --accept`"
                yield LintFinding("error", real[directory], state.message, "held", 1, remedy)


def _overlaps(files: Sequence[Path]) -> Iterator[LintFinding]:
    """Skills whose descriptions say nearly the same, among those that are checked and their neighbours."""
    shown = {file.absolute(): file for file in files}
    described: dict[str, str] = {}
    names: dict[str, str] = {}
    for path in sorted({*shown, *(path for file in shown for path in _neighbours(file))}):
        try:
            skill = parse_skill(read_skill_text(path, None))
        except SkillRefused:
            continue
        described[str(path)], names[str(path)] = skill.description, skill.name
    overlaps = find_overlaps(described)
    for path, file in shown.items():
        for other in overlaps.get(str(path), ())[:1]:
            message = f"the description is nearly that of `{names[other]}`: the model cannot tell them apart"
            line = field_lines(read_skill_text(file, None)).get("description", 1)
            remedy = "say in both what the other is not for, or make one skill of them"
            yield LintFinding("advice", file, message, "overlap", line, remedy)


def _neighbours(file: Path) -> Sequence[Path]:
    try:
        return skill_files(file.parent.parent)[:_MAX_NEIGHBOURS]
    except (CodexError, OSError):
        return ()
