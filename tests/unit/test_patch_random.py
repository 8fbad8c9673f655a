"""Random edits, written down as patches from their diffs, give the edited files back."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path
from random import Random

import pytest

from tests.unit.patch_cases import harvest, patch, plant, run

WORDS = ["", "a", "b", "  a", "}", "def f():", "    return 1", "x — y", "日本", "+", "-x", "@@ z", "*** End of File"]


def edited(lines: list[str], chance: Random) -> list[str]:
    result = lines.copy()
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(result))
        if chance.random() < 0.4:
            del result[at : at + chance.randint(1, 3)]
        else:
            result[at:at] = [chance.choice(WORDS) for _ in range(chance.randint(1, 3))]
    return result


def numbered(chance: Random, size: int) -> list[str]:
    """Lines of which every third is unlike all others, so that a place is certain once there is context."""
    return [f"line {number}" if number % 3 == 0 else chance.choice(WORDS) for number in range(size)]


def chunks(old: list[str], new: list[str], context: int) -> list[str]:
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines.append("@@")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
    return lines


@pytest.mark.parametrize("seed", range(60))
def test_an_edit_written_as_a_patch_gives_the_edited_file(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    for number in range(5):
        root = tmp_path / str(number)
        old = numbered(chance, chance.randint(0, 40))
        new = edited(old, chance)
        body = chunks(old, new, context=4)
        ending = chance.choice(["\n", "\r\n"]) if old else "\n"
        plant(root, {"f": "".join(line + ending for line in old)})
        if not body:
            continue

        run(root, patch("*** Update File: f", *body))

        assert harvest(root)["f"].decode() == "".join(line + ending for line in new)


@pytest.mark.parametrize("seed", range(30))
def test_a_mangled_patch_changes_nothing_or_reports_success(seed: int, tmp_path: Path) -> None:
    chance = Random(1000 + seed)
    for number in range(20):
        root = tmp_path / str(number)
        old = numbered(chance, 20)
        tree: dict[str, bytes | str] = {"f": "".join(f"{line}\n" for line in old), "g": "x\n"}
        plant(root, tree)
        text = patch(
            "*** Update File: f", *chunks(old, edited(old, chance), 3), "*** Delete File: g", "*** Add File: h"
        )
        position = chance.randrange(len(text))
        text = chance.choice(
            [
                text[:position] + text[position + 1 :],
                text[:position] + chance.choice(" +-@*\n\r\0é") + text[position:],
                text[:position] + text[position:].upper(),
            ]
        )
        before = harvest(root)
        try:
            said = run(root, text)
        except Exception as error:
            assert type(error).__name__ == "PatchError"
            assert harvest(root) == before
        else:
            assert said.startswith("Success. Updated the following files:\n")
            assert not [name for name in harvest(root) if ".codex-patch-" in name]
