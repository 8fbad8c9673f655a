"""What counts as a change of skills for a front end that lists them."""

from __future__ import annotations

from codex_py.services.skill_admin import SkillWatch
from tests.unit.config_builders import Machine, write

SKILL = "---\nname: lint\ndescription: checks style\n---\nbody\n"


def test_a_file_written_again_with_the_same_words_is_no_change(machine: Machine) -> None:
    file = machine.repo / ".agents/skills/lint/SKILL.md"
    loaded = machine.load()
    watch = SkillWatch(machine.home, {})

    looks: list[bool] = []
    for text in (SKILL, SKILL, SKILL.replace("style", "spelling")):
        write(file, text)
        looks.append(watch.has_changed(machine.repo, loaded))

    assert looks == [False, False, True]
