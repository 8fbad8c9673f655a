"""The plan in what a model says: found, told, and its tags taken out, however the text is cut into pieces."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from codex_py.core.turn import PlanReader, plan_accepted, proposed_plan
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.protocol import events
from codex_py.protocol.policy import ApprovalPolicy, DangerFullAccess, GranularApproval, ReadOnly
from codex_py.protocol.readable import without_plan_tags

TEXT = "Look:\n<b>bold</b> <proposed_plan> inline\n  <proposed_plan>\n# Do\n<p\n</proposed_plan>  \nEnd"
SHOWN = "Look:\n<b>bold</b> <proposed_plan> inline\n# Do\n<p\nEnd"


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        (TEXT, "# Do\n<p"),
        ("no plan", None),
        ("", None),
        ("<proposed_plan>\n</proposed_plan>", None),
        ("<proposed_plan>\none\n</proposed_plan>\n<proposed_plan>\ntwo\n</proposed_plan>", "two"),
        ("<proposed_plan>\ncut sho", "cut sho"),
        ("</proposed_plan>\n<proposed_plan>\nlate", "late"),
        ("say <proposed_plan> here", None),
    ],
)
def test_the_last_plan_counts(text: str, plan: str | None) -> None:
    assert proposed_plan(text) == plan


def test_tags_are_not_shown() -> None:
    assert without_plan_tags(TEXT) == SHOWN


def test_pieces_of_any_size_show_the_same() -> None:
    random = Random(7)
    for _ in range(300):
        heard: list[events.Event] = []
        reader = PlanReader("t", heard.append)
        rest = TEXT
        while rest:
            size = random.randint(1, 9)
            reader(events.TextDelta(rest[:size]))
            rest = rest[size:]
        reader(events.MessageDone(TEXT))
        assert "".join(one.text for one in heard if isinstance(one, events.TextDelta)) == SHOWN
        assert heard[-2:] == [events.MessageDone(SHOWN), events.PlanProposed("t", "# Do\n<p")]


def test_a_message_that_ends_like_a_tag_is_shown_whole() -> None:
    heard: list[events.Event] = []
    reader = PlanReader("t", heard.append)
    reader(events.TextDelta("a\n<prop"))
    reader(events.MessageDone("a\n<prop"))
    assert heard == [events.TextDelta("a\n"), events.TextDelta("<prop"), events.MessageDone("a\n<prop")]


def test_wishes_follow_the_acceptance() -> None:
    assert plan_accepted("  ") == "The plan is accepted. Carry it out."
    assert plan_accepted(" in C\n") == "The plan is accepted. Carry it out.\n\nin C"


@pytest.mark.parametrize(
    ("approval", "in_force"),
    [
        ("never", "never"),
        ("on-request", "never"),
        ("on-failure", "never"),
        ("untrusted", "untrusted"),
        (GranularApproval(sandbox_approval=True, rules=True, mcp_elicitations=True), "never"),
    ],
)
def test_in_plan_mode_the_policies_are_the_strictest(approval: ApprovalPolicy, in_force: str) -> None:
    model = ModelSettings("m", "be good", None, None, None, None, True, 1000, 100)
    chosen = TurnSettings(Path("/work"), model, DangerFullAccess(), approval)
    assert chosen.in_force() is chosen
    planning = chosen.replace(plan=True)
    assert planning.in_force() == planning.replace(sandbox_policy=ReadOnly(), approval=in_force)
