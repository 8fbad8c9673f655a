from __future__ import annotations

import pytest

from codex_py.skills.mentions import LinkMention, Mentions, find_mentions, is_mentionable, lengths_of, longest_known
from tests.support.work import within

KNOWN = {"lint", "fix-tests", "a_b", "ops", "ops:deploy", "path", "2to3", "代码审查", "검사", "größe", "ตรวจ"}


@pytest.mark.parametrize(
    ("text", "plain", "unknown"),
    [
        ("", (), ()),
        ("lint it", (), ()),
        ("use $lint on app.py", ("lint",), ()),
        ("$fix-tests, then $lint. And $lint again", ("fix-tests", "lint"), ()),
        ("$a_b/x '$2to3'", ("a_b", "2to3"), ()),
        ("$lint: go", ("lint",), ()),
        ("$lint:", ("lint",), ()),
        ("$lint::now", ("lint",), ()),
        ("$lint:strict", ("lint",), ()),
        ("$ops:deploy: go", ("ops:deploy",), ()),
        ("$ops:deploy", ("ops:deploy",), ()),
        ("$ops:deployer", ("ops",), ()),
        ("$lint-", (), ("lint-",)),
        ("$linter $lint_x $li", (), ("linter", "lint_x", "li")),
        ("$Lint $LINT:x", (), ("Lint", "LINT:x")),
        ("foo$lint", ("lint",), ()),
        ("\\$lint", ("lint",), ()),
        ("$$lint", ("lint",), ()),
        ("用$lint写", ("lint",), ()),
        ("$lint\u200b $lint\u00a0", ("lint",), ()),
        ("```\n$lint\n```", ("lint",), ()),
        ("<b>$lint</b>", ("lint",), ()),
        ("${lint} $(lint) $ lint ＄lint @lint /lint $", (), ()),
        ("$größe $größer", ("größe",), ("größer",)),
        ("$gro\u0308ße", ("größe",), ()),
        ("用$代码审查检查这个文件", ("代码审查",), ()),
        ("$代码审查：app.py，$lint检查", ("代码审查", "lint"), ()),
        ("$代码审查app.py", ("代码审查",), ()),
        ("$검사를 해줘", ("검사",), ()),
        ("$ตรวจโค้ด", ("ตรวจ",), ()),
        ("$代码-x $名字", (), ("代码-x", "名字")),
        ("$HOME路径 花费$5美元", (), ("5",)),
        ("$lint🎉", ("lint",), ()),
        ("$PATH $path $Home $xdg_config_home", (), ()),
        ("$PATH:/usr/bin", (), ()),
        ("$EDITOR $LOGNAME", (), ("EDITOR", "LOGNAME")),
        ("$:lint", (), (":lint",)),
    ],
)
def test_names_behind_a_dollar(text: str, plain: tuple[str, ...], unknown: tuple[str, ...]) -> None:
    assert find_mentions(text, KNOWN) == Mentions(plain, unknown)


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[$lint](/s/lint/SKILL.md)", [LinkMention("skill", "lint", "/s/lint/SKILL.md")]),
        ("[$x]( /s/lint/skill.MD\n)", [LinkMention("skill", "x", "/s/lint/skill.MD")]),
        ("[$x] \n\t(/s/SKILL.md)", [LinkMention("skill", "x", "/s/SKILL.md")]),
        ("[$x](SKILL.md)", [LinkMention("skill", "x", "SKILL.md")]),
        ("[$x](C:\\s\\SKILL.md)", [LinkMention("skill", "x", "C:\\s\\SKILL.md")]),
        ("[$x](skill:///s/lint)", [LinkMention("skill", "x", "/s/lint")]),
        ("[$x](/s/NOTSKILL.md)", [LinkMention("other", "x", "/s/NOTSKILL.md")]),
        ("[$x](https://a/b)", [LinkMention("other", "x", "https://a/b")]),
        ("[$slack](app://slack)", [LinkMention("app", "slack", "app://slack")]),
        ("[$docs](mcp://docs/SKILL.md)", [LinkMention("mcp", "docs", "mcp://docs/SKILL.md")]),
        ("[$p](plugin://p@m)", [LinkMention("plugin", "p", "plugin://p@m")]),
        (
            "[$ns:x](/a/SKILL.md)[$y](/b)",
            [LinkMention("skill", "ns:x", "/a/SKILL.md"), LinkMention("other", "y", "/b")],
        ),
        ("[$x](/a/SKILL.md) [$x](/a/SKILL.md)", [LinkMention("skill", "x", "/a/SKILL.md")]),
        ("[$x]([$y](/a/SKILL.md)", [LinkMention("skill", "x", "[$y](/a/SKILL.md")]),
        ("[$path](/a/SKILL.md)", []),
    ],
)
def test_links_hide_the_name_in_front_of_them(text: str, links: list[LinkMention]) -> None:
    assert find_mentions(text, KNOWN) == Mentions(links=tuple(links))


@pytest.mark.parametrize(
    "text",
    [
        "[$lint]()",
        "[$lint]( \n )",
        "[$lint](/a/SKILL.md",
        "[$lint] x (/a)",
        "[$lint more](/a/SKILL.md)",
        "[$lint]\v(/a)",
    ],
)
def test_a_broken_link_is_a_plain_mention(text: str) -> None:
    assert find_mentions(text, KNOWN) == Mentions(("lint",))


@pytest.mark.parametrize("text", ["[lint](/a/SKILL.md)", "[$ lint](/a/SKILL.md)", "[$](/a/SKILL.md)"])
def test_brackets_without_a_name_mention_nothing(text: str) -> None:
    assert find_mentions(text, KNOWN) == Mentions()


def test_plain_mentions_around_links_are_found() -> None:
    assert find_mentions("$lint [$x](/a/SKILL.md) $ops", ["lint", "ops"]) == Mentions(
        ("lint", "ops"), (), (LinkMention("skill", "x", "/a/SKILL.md"),)
    )


_DEEP = "a:" * 60


MANY_COLONS = {"a", "lint", f"{_DEEP}x", *(("a:" * count) + "a" for count in range(60))}
HOSTILE = [
    "$a " * 350_000,
    " ".join(f"$n{number}" for number in range(125_000)),
    "[$a](" * 200_000,
    "[$a](" * 200_000 + ")",
    "[$a]()" * 160_000,
    " ".join(f"[$a](/x/{number}/SKILL.md)" for number in range(40_000)),
    "$" + "a:" * 500_000,
    "".join(f"${_DEEP}{number} " for number in range(7_500)),
    "$" * 1_000_000,
    "[$" * 500_000,
    "[$a]" + " " * 1_000_000,
    ("[$a]" + " " * 1000) * 1000 + ")",
    "[$aaaaaaaa" * 100_000 + ")",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_megabyte_is_read_in_linear_time(text: str) -> None:
    within(5 * len(text), lambda: find_mentions(text, MANY_COLONS))


def test_which_names_can_be_mentioned() -> None:
    names = ["lint", "ns:lint", "2_to-3", "my skill", "größe", "", "a/b", "path", "HOME", "lint\n"]
    assert [name for name in names if is_mentionable(name)] == ["lint", "ns:lint", "2_to-3", "größe"]


@pytest.mark.parametrize(
    ("run", "meant"),
    [("a:b", "a:b"), ("a:b:c", "a:b"), ("a:bc", "a"), ("a:", "a"), ("ab", ""), (":a", ""), ("b:a", ""), ("", "")],
)
def test_a_run_means_the_longest_known_name_before_a_colon(run: str, meant: str) -> None:
    known = {"a", "a:b", "c:d:e"}
    assert longest_known(run, known, lengths_of(known)) == meant
