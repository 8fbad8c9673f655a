"""A patch that is stopped between any two of its steps: killed, failing, or called off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codex_py.patch.apply import ApplyError, apply_plan
from codex_py.patch.grammar import parse_patch
from codex_py.patch.plan import PatchPlan, plan_patch
from tests.unit.patch_cases import harvest, patch, plant

BEFORE: dict[str, bytes | str] = {"a": "a1\n", "b": "b1\n", "c": "c1\n", "d/e": "e1\n", "g": "g1\n"}
TEXT = patch(
    "*** Add File: new/deep/n",
    "+n2",
    "*** Update File: a",
    "-a1",
    "+a2",
    "*** Delete File: b",
    "*** Update File: c",
    "*** Move to: d/moved",
    "-c1",
    "+c2",
    "*** Update File: d/e",
    "-e1",
    "+e2",
    "*** Delete File: g",
    "*** Add File: g/deep/h",
    "+h2",
)
OLD = {"a": b"a1\n", "b": b"b1\n", "c": b"c1\n", "d/e": b"e1\n", "g": b"g1\n"}
NEW = {"a": b"a2\n", "d/e": b"e2\n", "d/moved": b"c2\n", "g/deep/h": b"h2\n", "new/deep/n": b"n2\n"}


class Called(Exception):
    pass


def planned(root: Path, *, is_linked: bool = False) -> PatchPlan:
    """The plan for a new tree. Linked files are written in place; their other names are beside the tree."""
    plant(root, BEFORE)
    for number, name in enumerate(OLD) if is_linked else ():
        root.with_name(f"{root.name} link {number}").hardlink_to(root / name)
    return plan_patch(parse_patch(TEXT), root)


def counting(stop_at: int, action: Callable[[], None]) -> Callable[[], None]:
    steps = iter(range(1000))

    def checkpoint() -> None:
        if next(steps) == stop_at:
            action()

    return checkpoint


def count_steps(root: Path) -> int:
    seen: list[None] = []
    apply_plan(planned(root), checkpoint=lambda: seen.append(None))
    assert harvest(root) == NEW
    return len(seen)


def every_step(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    total = count_steps(tmp_path / "all")
    assert total >= 11
    for step in range(total):
        yield step, tmp_path / f"stopped {step}"


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_kill_at_any_step_leaves_every_file_old_or_new(tmp_path: Path, is_linked: bool) -> None:
    for step, root in every_step(tmp_path):
        plan = planned(root, is_linked=is_linked)
        child = os.fork()
        if child == 0:
            apply_plan(plan, checkpoint=counting(step, lambda: os._exit(9)))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        found = {name: content for name, content in harvest(root).items() if ".codex-patch-" not in name}
        for name in {*OLD, *NEW}:
            # A file with several names that moves is the same one under its old name until that is gone.
            moving = [b"c2\n"] if is_linked and name == "c" else []
            assert found.pop(name, None) in (OLD.get(name), NEW.get(name), *moving), (step, name)
        assert not [name for name in found if not name.endswith("/")]
        # What moved is never at neither place.
        assert "c" in harvest(root) or "d/moved" in harvest(root)


@pytest.mark.parametrize("is_linked", [False, True])
def test_calling_it_off_at_any_step_puts_everything_back(tmp_path: Path, is_linked: bool) -> None:
    def call_off() -> None:
        raise Called

    for step, root in every_step(tmp_path):
        plan = planned(root, is_linked=is_linked)
        inodes = {name: (root / name).stat().st_ino for name in OLD}
        with pytest.raises(Called):
            apply_plan(plan, checkpoint=counting(step, call_off))
        assert harvest(root) == OLD
        assert {name: (root / name).stat().st_ino for name in OLD} == inodes


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_failing_disk_at_any_step_puts_everything_back_and_says_so(tmp_path: Path, is_linked: bool) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    for step, root in every_step(tmp_path):
        with pytest.raises(ApplyError) as error:
            apply_plan(planned(root, is_linked=is_linked), checkpoint=counting(step, fail))
        assert str(error.value).startswith("Failed to ")
        assert str(error.value).endswith(": no space left on device\nnothing was changed")
        assert harvest(root) == OLD


def test_what_cannot_be_put_back_is_named(tmp_path: Path) -> None:
    plan = planned(tmp_path)

    def lose_a_directory() -> None:
        if (tmp_path / "new/deep/n").exists() and (tmp_path / "a").read_text() == "a2\n":
            (tmp_path / "new").rename(tmp_path / "away")
            raise OSError(5, "Input/output error")

    with pytest.raises(ApplyError) as error:
        apply_plan(plan, checkpoint=lose_a_directory)

    message = str(error.value)
    assert f"changed, and could not be put back:\n  {tmp_path}/new/deep/n\nnot changed:\n  {tmp_path}/a\n" in message
    assert {name: content for name, content in harvest(tmp_path).items() if "away" not in name} == OLD


def test_an_unwritable_directory_changes_nothing(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n"})
    text = patch("*** Update File: a", "-x", "+y", "*** Add File: /proc/nothing/here", "+x")
    with pytest.raises(ApplyError, match=r"^Failed to write file /proc/nothing/here: "):
        apply_plan(plan_patch(parse_patch(text), tmp_path))
    assert harvest(tmp_path) == {"a": b"x\n"}
