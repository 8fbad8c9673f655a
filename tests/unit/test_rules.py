"""Rules files: what they may say, what is refused, and what a rule fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.tools.approval import Approvals, RuleStore
from codex_py.tools.rules import PrefixRule, RuleBook, RuleError, parse_rules, rule_line, strictest

EXAMPLE = '''
"""What my team agreed on."""
# Comments are fine.
READERS = ["status", "log"]
prefix_rule(
    pattern = ["git", READERS + ["diff"]],
    decision = "allow",
    justification = "reads" + " only",
    match = [["git", "status"], "git diff --stat 'a b'"],
    not_match = ["git push", ["git"]],
)
prefix_rule(["npm", "publish"], "forbidden", "releases are made by CI")
prefix_rule(pattern = ("make",), decision = "prompt")
for name in ["test", "check"]:
    prefix_rule(pattern = ["cargo", name], sandbox = "off")
host_executable(name = "git", paths = ["/opt/git/bin/git", "/usr/bin/git"])
network_rule(host = "example.com", decision = "allow")
'''


def test_a_file_is_read() -> None:
    book = parse_rules(EXAMPLE)
    assert book.rules == (
        PrefixRule((("git",), ("status", "log", "diff")), "allow", "reads only"),
        PrefixRule((("npm",), ("publish",)), "forbidden", "releases are made by CI"),
        PrefixRule((("make",),), "prompt"),
        PrefixRule((("cargo",), ("test",)), "allow", "", True),
        PrefixRule((("cargo",), ("check",)), "allow", "", True),
    )
    assert book.executables == {"git": ("/opt/git/bin/git", "/usr/bin/git")}


def test_an_escape_that_python_would_warn_about_is_read_in_silence() -> None:
    assert parse_rules('prefix_rule(pattern=["\\d"])').rules == (PrefixRule((("\\d",),)),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prefix_rule(", "line 1: '(' was never closed"),
        ("import os", "line 1: only calls of"),
        ("def f(): pass", "line 1: only calls of"),
        ("for x in 'ab': pass", "line 1: `for` goes over a list"),
        ("for x in []:\n  pass\nelse:\n  pass", "line 1: only calls of"),
        ("x = ['a']\n" + "x = x + x\n" * 8 + "for a in x:\n  for b in x:\n    pass", "more than 10000 statements"),
        ("host_executable(name='a', paths=['a'])", "line 1: `paths` are absolute and end with `/a`, found `a`"),
        ("host_executable(name='a', paths=['/x/b'])", "found `/x/b`"),
        ("open('x', 'w')", "line 1: unknown function `open`"),
        ("a.b()", "line 1: only calls of"),
        ("prefix_rule(pattern=[open('x')])", "line 1: `open('x')` is neither a string nor a list of strings"),
        ("prefix_rule(pattern=[f'{x}'])", "is neither a string nor a list of strings"),
        ("prefix_rule(pattern=[x for x in 'ab'])", "is neither a string nor a list of strings"),
        ("prefx_rule(pattern=['a'])", "line 1: unknown function `prefx_rule`; did you mean `prefix_rule`?"),
        ("prefix_rule(patern=['a'])", "line 1: `prefix_rule` does not take `patern` here; did you mean `pattern`?"),
        ("prefix_rule(pattern=['a'], decision='alow')", "`decision` is `alow`; did you mean `allow`? allowed are"),
        ("prefix_rule(pattern='git')", 'must be a list of words, for example `["git", "status"]`'),
        ("prefix_rule(pattern=[unknown])", "line 1: `unknown` is neither a string nor a list of strings"),
        ("prefix_rule(pattern=['a', 5])", "line 1: `5` is neither a string nor a list of strings"),
        ("\n\nprefix_rule()", "line 3: `pattern` must be a list"),
        ("prefix_rule(pattern=[])", "`pattern` must be a list"),
        ("prefix_rule(pattern='ls')", "`pattern` must be a list"),
        ("prefix_rule(pattern=[''])", "none of them empty"),
        ("prefix_rule(pattern=['a', []])", "none of them empty"),
        ("prefix_rule(pattern=['a', ['b', ['c']]])", "each part of `pattern`"),
        ("prefix_rule(pattern=['a'], decision='maybe')", "`decision` is `maybe`"),
        ("prefix_rule(pattern=['a'], decision=['allow'])", "`decision` is"),
        ("prefix_rule(pattern=['a'], sandbox='none')", "`sandbox` is"),
        ("prefix_rule(pattern=['a'], decision='prompt', sandbox='off')", "`sandbox` is"),
        ("prefix_rule(pattern=['a'], justification=['b'])", "`justification` must be a string"),
        ("prefix_rule(pattern=['a'], colour='red')", "does not take `colour`"),
        ("prefix_rule(['a'], pattern=['b'])", "does not take `pattern` here"),
        ("prefix_rule(**{})", "does not take `**`"),
        ("prefix_rule(['a'], 'allow', '', [], [], 'on', [], 'x')", "at most 7 arguments"),
        ("prefix_rule(pattern=['a'], files=['x', 5])", "`5` is neither a string nor a list of strings"),
        ("prefix_rule(pattern=['a'], files='x')", "`files` is a list of strings"),
        ("prefix_rule(pattern=['a'], decision='forbidden', files=[])", "`files` is a list of strings"),
        ("prefix_rule(pattern=['a'], match=['b'])", "line 1: the rule does not match `b`, as `match` says"),
        ("prefix_rule(pattern=['a'], not_match=['a b'])", "line 1: the rule matches `a b`, against `not_match`"),
        ("prefix_rule(pattern=['a'], match='a')", "`match` must be a list"),
        ("prefix_rule(pattern=['a'], match=[\"a 'b\"])", "no closing quotation"),
        ("prefix_rule(pattern=['a'], match=[''])", "each of `match`"),
        ("host_executable(name='a/b', paths=['/x'])", "`host_executable` needs"),
        ("host_executable(name='a')", "`host_executable` needs"),
        ("x = 'a' + ['b']", "`+` joins two strings or two lists"),
        ("a = ['x']\n" + "a = a + a\n" * 60, "too long"),
        ("x = " + "[" * 5000, "line 1: too many nested"),
        ("x = " + "-" * 100_000 + "1", "deep"),
        ("x = " + "'a'+" * 20_000 + "'b'", "recursion"),
        ("x = '\0'", "null"),
        ("#" * 300_000, "longer than 256 KiB"),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(RuleError) as raised:
        parse_rules(text)
    assert expected in str(raised.value)


GIT = parse_rules("prefix_rule(pattern=['git', 'push'])\nprefix_rule(pattern=['git'], decision='prompt')")


@pytest.mark.parametrize(
    ("words", "executables", "expected"),
    [
        (("git", "push"), {}, ["allow", "prompt"]),
        (("git", "push", "-f"), {}, ["allow", "prompt"]),
        (("git", "pull"), {}, ["prompt"]),
        (("git",), {}, ["prompt"]),
        (("gitk",), {}, []),
        ((), {}, []),
        (("/usr/bin/git", "push"), {}, ["allow", "prompt"]),
        (("/bin/git", "push"), {}, ["allow", "prompt"]),
        # Anybody may have put these there: they are not allowed for their name's sake.
        (("/tmp/git", "push"), {}, ["prompt"]),
        (("./git", "push"), {}, ["prompt"]),
        (("bin/git", "push"), {}, ["prompt"]),
        (("/opt/git", "push"), {"git": ("/opt/git",)}, ["allow", "prompt"]),
        (("/usr/bin/git", "push"), {"git": ("/opt/git",)}, ["prompt"]),
    ],
)
def test_what_a_rule_fits(words: tuple[str, ...], executables: dict[str, tuple[str, ...]], expected: list[str]) -> None:
    book = RuleBook(GIT.rules, executables)
    assert [rule.decision for rule in book.matching(words)] == expected


def test_the_strictest_rule_wins() -> None:
    allow, prompt, forbidden = (PrefixRule((("a",),), decision) for decision in ("allow", "prompt", "forbidden"))
    assert strictest([]) is None
    assert strictest([allow, prompt]) == prompt
    assert strictest([prompt, forbidden, allow]) == forbidden


@pytest.mark.parametrize("pattern", [("npm", "test"), ('a"b\\c', "d\ne"), ("ü", "\u202e"), ("x", "'")])
def test_a_written_rule_is_read_back(pattern: tuple[str, ...]) -> None:
    for off in (False, True):
        line = rule_line(pattern, sandbox_off=off)
        assert line.count("\n") == 1
        assert parse_rules(line).rules == (PrefixRule(tuple((word,) for word in pattern), "allow", "", off),)


def test_a_lasting_yes_is_kept_in_a_file_a_person_can_read(tmp_path: Path) -> None:
    store = RuleStore(tmp_path / "rules/own/default.rules", tmp_path / "rules/own/projects/x.rules", Path("/work/x"))
    approvals = Approvals(store=store)
    approvals.allow_pattern(("npm", "test"), "always", sandbox_off=False)
    approvals.allow_pattern(("npm", "ci"), "always", sandbox_off=True)
    approvals.allow_pattern(("make",), "project", sandbox_off=False)
    assert store.always.read_text() == (
        "# Commands you have allowed. Edit or delete lines as you like.\n"
        'prefix_rule(pattern = ["npm", "test"], decision = "allow")\n'
        'prefix_rule(pattern = ["npm", "ci"], decision = "allow", sandbox = "off")\n'
    )
    assert store.project_file.read_text() == (
        "# Commands you have allowed in `/work/x`. Edit or delete lines as you like.\n"
        'prefix_rule(pattern = ["make"], decision = "allow")\n'
    )
    # Edited by hand, and left without its last line end.
    store.project_file.write_text('prefix_rule(["ls"])')
    approvals.allow_pattern(("cat",), "project", sandbox_off=False)
    assert len(parse_rules(store.project_file.read_text()).rules) == 2
    assert store.always.stat().st_mode & 0o777 == 0o600
    assert [rule.decision for rule in approvals.rules.matching(("npm", "ci", "-q"))] == ["allow"]


def test_a_rule_that_cannot_be_kept_holds_for_the_session(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("")
    (tmp_path / "link").symlink_to(outside)
    approvals = Approvals(store=RuleStore(tmp_path / "link", tmp_path / "x", tmp_path))
    with pytest.raises(UserError, match="it holds for this session"):
        approvals.allow_pattern(("make",), "always", sandbox_off=False)
    assert outside.read_text() == ""
    assert approvals.rules.matching(("make",))
