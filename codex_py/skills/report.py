"""The warnings about skills that were not loaded, in few lines however many there are."""

from __future__ import annotations

from typing import Final

from codex_py.skills.model import SkillCatalog
from codex_py.text.sanitize import sanitize_line

_MAX_LINES: Final = 5
_MORE: Final = "`codex-py skills doctor` tells all"


def load_warnings(catalog: SkillCatalog) -> tuple[str, ...]:
    """One line a skill that could not be loaded, or one for all when they are more than five; then the limits hit.

    Nothing about the system's own skills, which the user cannot mend.
    """
    problems = [problem for problem in catalog.problems if problem.scope != "system"]
    lines = [f"failed to load skill {problem.path}: {problem.message}" for problem in problems]
    if len(lines) > _MAX_LINES:
        lines = [f"failed to load {len(lines)} skills, such as {problems[0].path}: {problems[0].message} ({_MORE})"]
    lines += [f"ignored metadata {remark.path}: {remark.message}" for remark in catalog.remarks[:1]]
    if (others := len(catalog.remarks) - 1) > 0:
        lines[-1] += f", and that of {others} more ({_MORE})"
    notes = catalog.notes
    if notes:
        others = len(notes) - 1
        lines.append(notes[0] + (f", and {others} more of this kind ({_MORE})" if others else ""))
    if catalog.replaced:
        names = ", ".join(f"`{name}`" for name in catalog.replaced)
        lines.append(f"your own or the project's {names} is used instead of the bundled skill of that name")
    return tuple(sanitize_line(line) for line in lines)
