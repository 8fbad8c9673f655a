"""Reading the text of a `SKILL.md`."""

from __future__ import annotations

import pytest

from codex_py.skills.metadata import Metadata
from codex_py.skills.parse import SkillRefused, SkillText, check_name, parse_skill, qualified_name
from codex_py.text.frontmatter import Frontmatter, YamlRefused, parse_yaml, repair_yaml, split_frontmatter
from tests.support.work import within


def skill(frontmatter: str) -> SkillText:
    return parse_skill(f"---\n{frontmatter}\n---\n\n# Body\n")


def refusal(text: str) -> str:
    with pytest.raises(SkillRefused) as caught:
        parse_skill(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("---\nname: a\n---\nbody", Frontmatter("name: a\n", 16)),
        ("---\r\nname: a\r\n---\r\nbody", Frontmatter("name: a\r\n", 19)),
        (" --- \nname: a\n\t---  \nbody", Frontmatter("name: a\n", 21)),
        ("---\nname: a\n---", Frontmatter("name: a\n", 15)),
        ("---\nd: |\n  x\n  ---\nbody", Frontmatter("d: |\n  x\n", 19)),
        ("---\n---\n", None),
        ("---\nname: a\n", None),
        ("\n---\nname: a\n---\n", None),
        ("\ufeff---\nname: a\n---\n", None),
        ("----\nname: a\n----\n", None),
        ("---\rname: a\r---\r", None),
        ("", None),
        ("---\n" + "a: b\n" * 14000 + "---\n", None),
    ],
)
def test_the_frontmatter_lies_between_two_fences(text: str, found: Frontmatter | None) -> None:
    assert split_frontmatter(text) == found


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("42", "42"),
        ("true", "true"),
        ("1.50", "1.50"),
        ("yes", "yes"),
        ("2024-01-02", "2024-01-02"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("'a: b'", "a: b"),
        ('"a\\nb"', "a b"),
        (">\n  folded\n  text", "folded text"),
        ("|\n  one\n  two", "one two"),
        ("a\u00a0 \u3000b", "a b"),
        ("&anchor x", "x"),
        ("!!str 5", "5"),
        ("a \x07\x1b[31m b", "a ␇␛[31m b"),
        ('"a\\e[2J\\u202eb"', "a␛[2J\\u{202e}b"),
        ("caf\u00e9 \u4e2d\u6587 \U0001f680", "caf\u00e9 \u4e2d\u6587 \U0001f680"),
    ],
)
def test_a_scalar_is_the_text_as_written_on_one_visible_line(written: str, read: str) -> None:
    assert skill(f"name: a\ndescription: {written}") == SkillText("a", read)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("description: Use when: always", "Use when: always"),
        ("description: [WIP] do", "[WIP] do"),
        ("description: @x does", "@x does"),
        ("description: `x` does", "`x` does"),
        ("description: {x} y", "{x} y"),
        ("description: {a: b}", "{a: b}"),
        ("description: it's: fine", "it's: fine"),
        ("description: a: b # comment", "a: b"),
        ("description: a: b\nwhenever:\n  - when: c: d", "a: b"),
        ("description: a: b\nnotes: |\n  c: d: [e", "a: b"),
    ],
)
def test_frontmatter_that_is_almost_yaml_is_repaired(line: str, read: str) -> None:
    assert skill(f"name: a\n{line}") == SkillText("a", read)


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("metadata: {short-description: 'b: c'}\ndescription: a: b", SkillText("a", "a: b", "b: c")),
        ("metadata: {\n  short-description: b,\n  other: [1]\n}\ndescription: a: b", SkillText("a", "a: b", "b")),
        ("allowed-tools: [\n  A,\n  B\n]\ndescription: a: b", SkillText("a", "a: b", allowed_tools=("A", "B"))),
        ("allowed-tools: [A] # tools\ndescription: a: b", SkillText("a", "a: b", allowed_tools=("A",))),
        ("description: [WIP] a: b\nuser-invocable: no\nx: {a: b}", SkillText("a", "[WIP] a: b", user_invocable=False)),
        ("description: {a: b}\nmetadata: {short-description: c}", SkillText("a", "{a: b}", "c")),
        ("x: [open\ndescription: a: b", SkillText("a", "a: b")),
        ("x: {y\nz: [1]\ndescription: a: b", SkillText("a", "a: b")),
    ],
)
def test_a_repair_leaves_lists_and_mappings_in_brackets_what_they_are(lines: str, read: SkillText) -> None:
    assert skill(f"name: a\n{lines}") == read


@pytest.mark.parametrize(
    "line",
    [
        "description: %x",
        'description: "x" y',
        "description: a:",
        "description: *x",
        "description: a\n\tb: c",
        "description: a\n  b: c: d\n  e",
        "description: x\ndescription: y",
        "description: a\x00b",
        "description: [a, b]",
        "description:\n  a: b",
        "description: x\nmetadata: text",
        "description: x\nmetadata:\n  short-description: [a]",
        "description: x\n? [a]\n: b",
        "description: x\n...\n---x: y",
        "- a",
    ],
)
def test_what_stays_broken_is_invalid_yaml(line: str) -> None:
    assert refusal(f"---\nname: a\n{line}\n---\n").startswith("invalid YAML: ")


def test_the_error_is_that_of_the_text_as_it_was_written() -> None:
    text = "---\nname: a\ndescription: x: y\nbad: %\n---\n"
    assert refusal(text) == "invalid YAML: mapping values are not allowed in this context at line 3 column 15"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# Hello\n", "missing YAML frontmatter delimited by ---"),
        ("", "missing YAML frontmatter delimited by ---: the file is empty"),
        ("---\n---\n", "missing YAML frontmatter delimited by ---: nothing between the two lines"),
        ("---\nname: a\n", "missing YAML frontmatter delimited by ---: no second such line within 64 KiB"),
        (
            "\ufeff---\nname: a\n---\n",
            "missing YAML frontmatter delimited by ---: the file begins with a byte order mark",
        ),
        ("---\n# nothing\n---\n", "missing field `name`"),
        ("---\ndescription: x\n---\n", "missing field `name`"),
        ("---\nname: ~\ndescription: x\n---\n", "missing field `name`"),
        ("---\nname: a\n---\n", "missing field `description`"),
        ("---\nname: a\ndescription: '  '\n---\n", "missing field `description`"),
        (
            f"---\nname: {'a' * 1025}\ndescription: x\n---\n",
            "invalid name: exceeds maximum length of 1024 characters",
        ),
        (
            '---\nname: "a\\eb"\ndescription: x\n---\n',
            "invalid name: `a␛b` has characters that cannot be shown",
        ),
        (
            "---\nname: a\u200bb\ndescription: x\n---\n",
            "invalid name: `a\\u{200b}b` has characters that cannot be shown",
        ),
    ],
)
def test_a_skill_that_cannot_be_loaded_says_why(text: str, reason: str) -> None:
    assert refusal(text) == reason


def test_a_name_of_more_than_64_characters_is_loaded_with_a_remark() -> None:
    assert skill(f"name: {'中' * 64}\ndescription: x").remark == ""
    long = skill(f"name: {'中' * 65}\ndescription: x")
    assert (long.name, long.remark) == ("中" * 65, "`name` has 65 characters: the format allows 64")


def test_a_name_may_have_spaces_and_slashes() -> None:
    check_name("a b/c.d <e>")
    assert skill("name: |\n  two\n  lines\ndescription: x").name == "two lines"


def test_a_qualified_name_has_a_limit_too() -> None:
    assert qualified_name(None, "a") == "a"
    assert qualified_name("n" * 64, "a" * 64) == "n" * 64 + ":" + "a" * 64
    with pytest.raises(SkillRefused, match="invalid name: exceeds maximum length of 1024 characters"):
        qualified_name("n" * 1024, "a")
    with pytest.raises(SkillRefused, match="cannot be shown"):
        qualified_name("n\n", "a")


def test_the_other_keys_are_understood() -> None:
    read = skill(
        "name: a\ndescription: x\nmetadata:\n  short-description: ' s  t '\n  other: 1\n"
        "allowed-tools: Bash(git add:*), Read Grep\ndisable-model-invocation: true\nuser-invocable: 'no'\nlicense: MIT"
    )
    assert read == SkillText(
        "a", "x", "s t", Metadata(allow_implicit=False), False, ("Bash(git add:*)", "Read", "Grep")
    )


@pytest.mark.parametrize(
    ("written", "tools"),
    [("[Read, 'Bash(git:*)']", ("Read", "Bash(git:*)")), ("Read", ("Read",)), ("", ()), ("\n  - A\n  - B", ("A", "B"))],
)
def test_tools_come_as_a_list_or_as_one_text(written: str, tools: tuple[str, ...]) -> None:
    assert skill(f"name: a\ndescription: x\nallowed-tools: {written}").allowed_tools == tools


NO_TOOL = "ignored `allowed-tools`"


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("interface: 1", "ignored: `interface` is not a mapping"),
        ("user-invocable: maybe", "ignored `user-invocable`: neither `true` nor `false`"),
        (
            "allowed-tools: {a: b}",
            f"{NO_TOOL}: it is neither a text nor a list",
        ),
        ("allowed-tools: [[a], b]", "ignored items of `allowed-tools` that are not texts"),
        ("allowed-tools: 5", f"{NO_TOOL}: it is neither a text nor a list"),
        (
            f"allowed-tools: {'x ' * 4200}",
            f"{NO_TOOL}: it is longer than 4096 characters",
        ),
    ],
)
def test_an_optional_key_that_makes_no_sense_does_not_cost_the_skill(line: str, remark: str) -> None:
    read = skill(f"name: a\ndescription: x\n{line}")
    assert (read.name, read.user_invocable, read.remark) == ("a", True, remark)


def test_repairing_leaves_alone_what_is_quoted() -> None:
    text = "a: 'b: c'\nb: \"c: d\"\nc: http://x\nd: 12:30\ne: x: y # z\nf: >\n  g: h: i\nj"
    assert repair_yaml(text) == text.replace("e: x: y # z", "e: 'x: y' # z")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: " + "[" * 40, "nested deeper than 32 levels at line 1 column 35"),
        ("a: " + "x" * 70000, "longer than 64 KiB"),
        ("a: " + "é" * 40000, "longer than 64 KiB"),
        ("a: &x 1\nb: *x", "aliases are not read: `*x` at line 2 column 4"),
        ("[" + "a," * 5000 + "]", "more than 4096 values"),
        ("a: 1\nb: {c: 1, c: 2}", "duplicate key `c` at line 2 column 11"),
    ],
)
def test_yaml_is_bounded(text: str, reason: str) -> None:
    with pytest.raises(YamlRefused) as caught:
        parse_yaml(text)
    assert str(caught.value) == reason


HOSTILE = [
    "---\nname: a\ndescription: " + "[" * 1_000_000,
    "---\n" + "a:\n" * 300_000,
    "---\n" + "- [{\n" * 13_000 + "---\n",
    "---\n" + "a: b: c # '\n" * 5400 + "---\n",
    "---\n" + "x: [`{@\n" * 8000 + "---\n",
    "---\n" + "x: [a, {b: c}]\ny: z: z\n" * 2500 + "---\n",
    "---\n" + "x: [a\n" * 10_000 + "y: z: z\n---\n",
    "---\n" + "a: " + "{a: " * 15_000 + "\n---\n",
    "\n" * 1_000_000,
    "---\nname: a\ndescription: b\nallowed-tools: " + "a(" * 30_000 + "\n---\n",
    "---\n" + "? " * 30_000 + "\n---\n",
    "---\n" + "&a " * 20_000 + "\n---\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_costs_little(text: str) -> None:
    with pytest.raises(SkillRefused):
        if not within(30 * len(text) + 200_000, lambda: parse_skill(text)).allowed_tools:
            raise SkillRefused("no tools")
