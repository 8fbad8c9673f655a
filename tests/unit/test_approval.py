"""The decision on a command and on a patch, as tables."""

from __future__ import annotations

from itertools import product

import pytest

from codex_py.protocol.policy import (
    ApprovalPolicy,
    ApprovalWord,
    DangerFullAccess,
    GranularApproval,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
)
from codex_py.shell.dangerous import Danger
from codex_py.tools.approval import (
    NO_SANDBOX,
    AskVerdict,
    CommandFacts,
    RefuseVerdict,
    RunVerdict,
    asks_after_denial,
    decide_command,
    decide_patch,
    suggest_pattern,
)
from codex_py.tools.rules import PrefixRule, RuleBook

LS = ("ls", "-l")
TEST = ("npm", "test")
POLICIES: tuple[ApprovalWord, ...] = ("untrusted", "on-request", "on-failure", "never")
SANDBOXES: tuple[SandboxPolicy, ...] = (ReadOnly(), WorkspaceWrite(), DangerFullAccess())

READS = CommandFacts((LS,), safe=(LS,))
UNKNOWN = CommandFacts((TEST,))
SHAPED = CommandFacts(None, hidden=(TEST,))
DANGEROUS = CommandFacts((("rm", "-f", "x"),), danger=Danger("it deletes"))
STOPPED = DANGEROUS.replace(danger=Danger("it deletes", is_stopped=True))
LEAVING = CommandFacts((TEST,), escalated=True, justification="may I?")
LEAVING_UNTOLD = CommandFacts((TEST,), escalated=True)

RUN, CLEAN, OUT = "run", "run with a clean environment", "run outside"
ASK, ASK_OUT, REFUSE = "ask", "ask to leave", "refuse"


def rule(*pattern: str, decision: str = "allow", off: bool = False) -> PrefixRule:
    assert decision == "allow" or decision == "prompt" or decision == "forbidden"
    return PrefixRule(tuple((word,) for word in pattern), decision, "", off)


def verdict(
    facts: CommandFacts,
    policy: ApprovalPolicy,
    sandbox: SandboxPolicy,
    *rules: PrefixRule,
    can_ask: bool = True,
) -> str:
    match decide_command(facts, RuleBook(rules), policy=policy, sandbox=sandbox, can_ask=can_ask):
        case RunVerdict(outside, clear_env):
            return OUT if outside else CLEAN if clear_env else RUN
        case AskVerdict(outside=outside):
            return ASK_OUT if outside else ASK
        case RefuseVerdict():
            return REFUSE


@pytest.mark.parametrize("sandbox", SANDBOXES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (READS, {"untrusted": CLEAN, "on-request": RUN, "on-failure": RUN, "never": RUN}),
        (UNKNOWN, {"untrusted": ASK, "on-request": RUN, "on-failure": RUN, "never": RUN}),
        (SHAPED, {"untrusted": ASK, "on-request": RUN, "on-failure": RUN, "never": RUN}),
        (DANGEROUS, {"untrusted": ASK, "on-request": ASK, "on-failure": ASK, "never": REFUSE}),
        (STOPPED, {"untrusted": ASK, "on-request": ASK, "on-failure": ASK, "never": RUN}),
    ],
    ids=["reads", "unknown", "not plain", "dangerous", "stopped"],
)
@pytest.mark.parametrize("policy", POLICIES)
def test_without_rules_the_policy_decides(
    policy: ApprovalWord, facts: CommandFacts, expected: dict[str, str], sandbox: SandboxPolicy
) -> None:
    assert verdict(facts, policy, sandbox) == expected[policy]
    is_stopped = facts == STOPPED and policy != "untrusted"
    alone = RUN if is_stopped else REFUSE if expected[policy] == ASK else expected[policy]
    assert verdict(facts, policy, sandbox, can_ask=False) == alone


@pytest.mark.parametrize("policy", POLICIES)
def test_leaving_the_sandbox_is_always_a_question_with_a_reason(policy: ApprovalPolicy) -> None:
    expected = REFUSE if policy == "never" else ASK_OUT
    assert verdict(LEAVING, policy, WorkspaceWrite()) == expected
    assert verdict(LEAVING, policy, ReadOnly(), can_ask=False) == REFUSE
    assert verdict(LEAVING_UNTOLD, policy, ReadOnly()) == REFUSE
    assert verdict(LEAVING.replace(danger=Danger("it deletes")), policy, ReadOnly()) == expected


@pytest.mark.parametrize(("policy", "sandbox"), list(product(POLICIES, SANDBOXES)))
def test_rules_come_before_the_policy(policy: ApprovalPolicy, sandbox: SandboxPolicy) -> None:
    expected = REFUSE if policy == "never" else ASK
    npm, forbidden = rule("npm"), rule("npm", "test", decision="forbidden")
    prompt = rule("npm", decision="prompt")
    assert verdict(UNKNOWN, policy, sandbox, npm) == RUN
    assert verdict(UNKNOWN, policy, sandbox, rule("npm", off=True)) == OUT
    assert verdict(UNKNOWN, policy, sandbox, npm, prompt) == expected
    assert verdict(UNKNOWN, policy, sandbox, npm, prompt, forbidden) == REFUSE
    assert verdict(SHAPED, policy, sandbox, forbidden) == REFUSE
    assert verdict(SHAPED, policy, sandbox, prompt) == expected
    # What is not plain is allowed by no rule.
    assert verdict(SHAPED, policy, sandbox, npm) == verdict(SHAPED, policy, sandbox)
    # Nor does a rule for another command say anything.
    assert verdict(UNKNOWN, policy, sandbox, rule("npm", "install")) == verdict(UNKNOWN, policy, sandbox)
    # The user's own rule knows better than the guard against accidents.
    assert verdict(DANGEROUS, policy, sandbox, rule("rm")) == RUN


def test_every_part_of_a_script_needs_its_rule() -> None:
    both = CommandFacts((TEST, ("make",)))
    assert verdict(both, "untrusted", WorkspaceWrite(), rule("npm")) == ASK
    assert verdict(both, "untrusted", WorkspaceWrite(), rule("npm"), rule("make")) == RUN
    assert verdict(both, "never", WorkspaceWrite(), rule("npm", off=True), rule("make")) == RUN
    assert verdict(both, "never", WorkspaceWrite(), rule("npm", off=True), rule("make", off=True)) == OUT


def test_what_reads_rides_along_but_leads_nobody_out() -> None:
    read = CommandFacts((LS, TEST), safe=(LS,))
    entered = CommandFacts((("cd", "x"), TEST), safe=(("cd", "x"),))
    assert verdict(read, "untrusted", ReadOnly(), rule("npm")) == RUN
    assert verdict(read, "untrusted", ReadOnly(), rule("npm", off=True)) == RUN
    assert verdict(entered, "untrusted", ReadOnly(), rule("npm", off=True)) == OUT


def test_an_allowed_command_that_wants_out_still_asks() -> None:
    assert verdict(LEAVING, "on-request", WorkspaceWrite(), rule("npm")) == ASK_OUT
    assert verdict(LEAVING, "never", WorkspaceWrite(), rule("npm")) == REFUSE
    assert verdict(LEAVING, "never", WorkspaceWrite(), rule("npm", off=True)) == OUT


def test_a_refusal_says_why_and_that_nobody_can_be_asked() -> None:
    refused = decide_command(DANGEROUS, RuleBook(), policy="never", sandbox=ReadOnly(), can_ask=True)
    assert isinstance(refused, RefuseVerdict)
    assert "dangerous: it deletes; the user can allow it with `-s danger-full-access`" in refused.reason
    forbidding = PrefixRule((("rm",),), "forbidden", "use trash instead")
    refused = decide_command(DANGEROUS, RuleBook((forbidding,)), policy="on-request", sandbox=ReadOnly(), can_ask=True)
    assert refused == RefuseVerdict("command refused: forbidden by a rule of the user: use trash instead")


@pytest.mark.parametrize("policy", POLICIES)
def test_patches(policy: ApprovalPolicy) -> None:
    inside = decide_patch(None, policy=policy, can_ask=True)
    outside = decide_patch("rejected", policy=policy, can_ask=True)
    assert isinstance(inside, AskVerdict) == (policy == "untrusted")
    unasked = AskVerdict("it writes outside of the workspace", outside=True, patternable=False)
    refused = RefuseVerdict("rejected", unasked)
    if policy == "never":
        # The sandbox that the user has chosen says no, and not the lack of an answer.
        refused = RefuseVerdict("rejected")
    assert outside == (refused if policy == "never" else unasked)
    assert decide_patch("rejected", policy=policy, can_ask=False) == refused
    assert isinstance(
        decide_patch(None, policy=policy, can_ask=False), RefuseVerdict if policy == "untrusted" else RunVerdict
    )


def test_a_granular_policy_refuses_what_it_does_not_ask_about() -> None:
    prompt = rule("npm", decision="prompt")
    cases = {"dangerous": (DANGEROUS, ()), "leaving": (LEAVING, ()), "ruled": (UNKNOWN, (prompt,))}
    expected = {
        (True, True): {"dangerous": ASK, "leaving": ASK_OUT, "ruled": ASK},
        (True, False): {"dangerous": ASK, "leaving": ASK_OUT, "ruled": REFUSE},
        (False, True): {"dangerous": REFUSE, "leaving": REFUSE, "ruled": ASK},
        (False, False): {"dangerous": REFUSE, "leaving": REFUSE, "ruled": REFUSE},
    }
    for (sandbox, rules), verdicts in expected.items():
        policy = GranularApproval(sandbox, rules, mcp_elicitations=True)
        found = {name: verdict(facts, policy, WorkspaceWrite(), *ruled) for name, (facts, ruled) in cases.items()}
        assert found == verdicts
        assert {verdict(facts, policy, WorkspaceWrite()) for facts in (READS, UNKNOWN, SHAPED)} == {RUN}
        alone = [verdict(facts, policy, ReadOnly(), *ruled, can_ask=False) for facts, ruled in cases.values()]
        assert alone == [REFUSE, REFUSE, REFUSE]
        assert decide_patch(None, policy=policy, can_ask=True) == RunVerdict()
        assert isinstance(
            decide_patch("rejected", policy=policy, can_ask=True), AskVerdict if sandbox else RefuseVerdict
        )
        assert asks_after_denial(policy, can_ask=True) == sandbox
    refused = decide_command(
        DANGEROUS, RuleBook(), policy=GranularApproval(False, True, True), sandbox=ReadOnly(), can_ask=True
    )
    assert isinstance(refused, RefuseVerdict)
    assert "nobody can be asked under the approval policy `granular`" in refused.reason


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_passes_unasked_where_the_sandbox_does_not_hold_everything(policy: ApprovalPolicy) -> None:
    expected = REFUSE if policy == "never" else ASK
    for facts in (READS, UNKNOWN, SHAPED):
        partly = facts.replace(shortfall="only Landlock works here")
        assert verdict(partly, policy, WorkspaceWrite()) == expected
        assert verdict(partly, policy, WorkspaceWrite(), can_ask=False) == REFUSE
    ruled = UNKNOWN.replace(shortfall="only Landlock works here")
    assert verdict(ruled, policy, WorkspaceWrite(), rule("npm")) == RUN  # it is the user who allows that
    refused = decide_command(ruled, RuleBook(), policy="never", sandbox=WorkspaceWrite(), can_ask=False)
    assert isinstance(refused, RefuseVerdict)
    assert (refused.reason, refused.lacks_sandbox) == (NO_SANDBOX, True)


def test_only_some_policies_ask_after_a_denial() -> None:
    assert [policy for policy in POLICIES if asks_after_denial(policy, can_ask=True)] == ["untrusted", "on-failure"]
    assert not any(asks_after_denial(policy, can_ask=False) for policy in POLICIES)


CD = ("cd", "x")


@pytest.mark.parametrize(
    ("segments", "wanted", "safe", "expected"),
    [
        ((TEST,), (), (), TEST),
        ((TEST,), ("npm",), (), ("npm",)),
        ((TEST,), ("yarn",), (), TEST),
        ((CD, TEST), (), (CD,), TEST),
        ((TEST, ("npm", "build")), ("npm",), (), ("npm",)),
        ((TEST, ("npm", "build")), (), (), None),
        ((TEST, ("make",)), ("npm",), (), None),
        ((CD,), (), (CD,), None),
        (None, ("npm",), (), None),
        ((("python3", "-c", "x"),), ("python3",), (), ("python3", "-c", "x")),
        ((("python3", "-c", "x"),), ("python3", "-c"), (), ("python3", "-c", "x")),
        ((("python3", "-m", "pytest"),), ("python3", "-m", "pytest"), (), ("python3", "-m", "pytest")),
        ((("python3",),), (), (), None),
        ((("/usr/bin/python3.12",),), (), (), None),
        ((("git", "push"),), ("git",), (), ("git", "push")),
        ((("bash", "x.sh"),), ("bash",), (), ("bash", "x.sh")),
        ((("sudo", "ls"),), ("sudo",), (), ("sudo", "ls")),
        ((("uv", "run", "x.py"),), ("uv",), (), ("uv", "run", "x.py")),
        ((("busybox", "ls"),), ("busybox",), (), ("busybox", "ls")),
        ((("node", "-e"),), (), (), None),
    ],
)
def test_the_pattern_of_a_lasting_yes_covers_the_script_and_little_else(
    segments: tuple[tuple[str, ...], ...] | None,
    wanted: tuple[str, ...],
    safe: tuple[tuple[str, ...], ...],
    expected: tuple[str, ...] | None,
) -> None:
    assert suggest_pattern(segments, wanted, safe) == expected
