"""The skills that come with the program, and what changes on disk, is kept, and is read again: whole request bodies."""

from __future__ import annotations

import shutil
from pathlib import Path

from codex_py.protocol.ops import ReloadSkills
from tests.support.bodies import GOLDEN, developer, injected, references, said, skill_list, user, whole_body
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.session import scripted_session
from tests.support.skills import NO_BUNDLED, add_skill, line, own_root, repo_root, skill_text, talk

BUNDLED = (GOLDEN / "bundled_skills.md").read_text("utf-8").splitlines()


def everything_in(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


async def test_the_bundled_skills_are_installed_listed_first_and_can_be_named(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    talked = await talk(place, "$repo-tour", bundled="")
    system = place.codex_home / "skills/.system"
    tour = system / "repo-tour/SKILL.md"
    assert tour.read_bytes() == (Path(__file__).parents[2] / "skills/repo-tour/SKILL.md").read_bytes()
    listed = skill_list(*BUNDLED, "- lint: does things (file: r1/lint/SKILL.md)", roots=(system, lint.parents[1]))
    contents = references(tour, "- references/hard-cases.md (1,551 bytes) When the map is not enough")
    value = [injected(tour), contents, user("$repo-tour")]
    assert talked.last.body == whole_body(place, talked.last, *value, skills=listed)
    assert (talked.warnings, [use.scope for use in talked.uses]) == ([], ["system"])


async def test_another_programs_system_skills_stay_and_ours_stand_beside_them(place: Place) -> None:
    foreign = place.codex_home / "skills/.system"
    add_skill(foreign, "skill-creator", skill_text("skill-creator", body="Somebody else's."))
    add_skill(foreign, "a-painter")
    (foreign / ".codex-system-skills.marker").write_text("e2e416a9532c044f\n")
    before = everything_in(foreign)
    talked = await talk(place, "use $skill-creator", bundled="")
    ours = place.codex_home / "skills/.system-codex-py"
    listed = skill_list(
        "- a-painter: does things (file: r0/a-painter/SKILL.md)",
        *(one.replace("(file: r0/", "(file: r1/") for one in BUNDLED),
        roots=(foreign, ours),
    )
    creator = ours / "skill-creator/SKILL.md"
    contents = talked.last.body["input"][-2]
    assert contents["content"][0]["text"].startswith("<skill_references>\nReferences of the skill `skill-creator` in ")
    value = [injected(creator), contents, user("use $skill-creator")]
    assert talked.last.body == whole_body(place, talked.last, *value, skills=listed)
    assert everything_in(foreign) == before
    assert talked.warnings == []


async def test_switched_off_they_are_taken_away_again_and_their_names_are_free(place: Place) -> None:
    await talk(place, "hi", bundled="")
    path = add_skill(own_root(place), "repo-tour")
    talked = await talk(place, "$repo-tour $fix-tests")
    value = [injected(path), user("$repo-tour $fix-tests")]
    assert talked.last.body == whole_body(place, talked.last, *value, skills=skill_list(line(path)))
    assert not (place.codex_home / "skills/.system").exists()
    assert talked.warnings == []


async def test_an_edited_skill_counts_on_the_next_turn(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    before = injected(path)
    talked = await talk(
        place, "$lint", lambda: path.write_text(skill_text("lint", body="Do it better.")), "$lint again"
    )
    assert "Do it better." in path.read_text()
    expected = [before, user("$lint"), said("answer 1"), injected(path), user("$lint again")]
    assert talked.last.body == whole_body(place, talked.last, *expected, skills=skill_list(line(path)))


async def test_a_skill_that_breaks_is_reported_and_mended_counts_again(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    other = add_skill(own_root(place), "other")
    whole = path.read_text()
    talked = await talk(
        place,
        "hi",
        lambda: path.write_text("---\nname: lint\n---\n"),
        "$lint",
        lambda: path.write_text(whole),
        "$lint once more",
    )
    both, one = skill_list(line(path), line(other)), skill_list(line(other))
    expected = [
        *(user("hi"), said("answer 1")),
        *(developer(one), user("$lint"), said("answer 2")),
        *(developer(both), injected(path), user("$lint once more")),
    ]
    assert talked.last.body == whole_body(place, talked.last, *expected, skills=both)
    assert talked.warnings == [
        f"failed to load skill {path}: missing field `description`",
        f"`$lint` selects nothing: `{path}` could not be loaded: missing field `description`",
    ]


async def test_what_is_kept_gives_the_same_as_what_is_read(place: Place) -> None:
    path = add_skill(repo_root(place), "lint", skill_text("lint", "Use when: always"))
    bad = add_skill(repo_root(place), "bad", "---\nname: bad\n---\n")
    kept = place.codex_home / "cache/skills"
    listed = skill_list(line(path, "Use when: always"))
    for spoil in (None, None, b"", b"\xff" * 1000, b"codex-py skills 0 00000000\n{}"):
        if spoil is not None:
            for file in kept.iterdir():
                file.write_bytes(spoil)
        talked = await talk(place, "$lint")
        assert talked.last.body == whole_body(place, talked.last, injected(path), user("$lint"), skills=listed)
        assert talked.warnings == [f"failed to load skill {bad}: missing field `description`"]


async def test_reloading_reads_and_keeps_everything_again(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    kept = place.codex_home / "cache/skills"
    async with scripted_session(place, [say("one")], [say("two")], top=NO_BUNDLED) as (model, watched):
        await watched.say("hi")
        shutil.rmtree(kept)
        await watched.session.submit(ReloadSkills())
        await watched.say("again")
        assert list(kept.iterdir())
    last = model.requests[-1]
    # The list is the same, so it is not told again.
    expected = [user("hi"), said("one"), user("again")]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(path)))
