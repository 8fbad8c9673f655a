"""The arguments of a skill: what stands behind its name fills the places in its body."""

from __future__ import annotations

import pytest

from codex_py.protocol.ops import SkillInput, TextInput
from codex_py.skills.inject import MAX_BODY_BYTES
from tests.support.bodies import injected, user
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import watched_session
from tests.support.skills import NO_BUNDLED, Talk, add_skill, repo_root, skill_text, talk

UNLISTED = "[skills]\ninclude_instructions = false\n"
NAMED = "arguments: [issue, branch]\nargument-hint: '[issue] $1'\n"


def text_of(talk: Talk, name: str) -> str:
    """The body of the skill as the model has it in the first request."""
    texts = [str(item) for item in talk.requests[0].body["input"]]
    [text] = [text for text in texts if f"<name>{name}</name>" in text]
    return text


HINT = "argument-hint: ISSUE\n"


async def body_of(place: Place, message: str, body: str, more: str = "") -> str:
    add_skill(repo_root(place), "fix", skill_text("fix", more=more, body=f"BEGIN {body} END"))
    text = text_of(await talk(place, message, top=UNLISTED), "fix")
    return text[text.index("BEGIN ") + 6 : text.index(" END")]


@pytest.mark.parametrize(
    ("message", "body", "filled"),
    [
        ('$fix a "b c" d', "<$1> <$2> <$3> <$4>", "<a> <b c> <d> <>"),
        ("$fix a b", "awk '{print $1}' in $2, it's $1", "awk '{print $1}' in b, it's a"),
        ("$fix a b", "awk '\n  {print $1}\n' $1", "awk '\\n  {print $1}\\n' a"),
        ("$fix a b", "awk -F'|' '{print $1}' $2", "awk -F'|' '{print $1}' b"),
        ("$fix a b", "perl -pe's/(x)/$1/' $2", "perl -pe's/(x)/$1/' b"),
        ("$fix a b", "awk '\n  BEGIN\n\n  {print $1}\n' $1", "awk '\\n  BEGIN\\n\\n  {print $1}\\n' a"),
        ("$fix a b", "mysql -e 'SELECT `x` = $1' $2", "mysql -e 'SELECT `x` = $1' b"),
        ("$fix a b", "the '90s $1 and '80s $2", "the '90s a and '80s b"),
        ("$fix a b", "the users' $1 and the files' $2", "the users' a and the files' b"),
        ("$fix a b", "sh -c '$1 $ARGUMENTS'", "sh -c '$1 a b'"),
        ("$fix a b", "$ARGUMENTS", "a b"),
        ("$fix: a", "$ARGUMENTS", "a"),
        ("  $fix a\nb", "$ARGUMENTS.", "a\\nb."),
        ("$[fix](skill://fix) a", "$ARGUMENTS", "a"),
        ("run $[fix](skill://fix) a $[lint](x)", "$ARGUMENTS", "a"),
        ("$fix it's", "$1", "it's"),
        ("$fix $2 b", "$1", "$2"),
        ("$fix a", "$10 $0 $$ ${HOME} $HOME $1", "$10 $0 $$ ${HOME} $HOME a"),
        ("$fix", "print $1", "print "),
        ("$fix", "for $ARGUMENTS and $1", "for  and "),
        ("please run $fix a.py\nand tell me", "$ARGUMENTS", "a.py"),
        ("first $fix, then wait", "<$ARGUMENTS> $1", "<> "),
    ],
)
async def test_what_stands_behind_the_name_fills_the_places(place: Place, message: str, body: str, filled: str) -> None:
    assert await body_of(place, message, body, HINT) == filled


@pytest.mark.parametrize(
    "body",
    [
        "awk '{print $1}' access.log",
        "costs $5, or $12",
        "SELECT * FROM t WHERE id = $1",
        r"^(\w+)$1",
        'for f in "$@"; do echo "$1" ${2}; done',
        "perl -pe 's/(a)/$1/'",
        "replace with $1$2",
        "${name} and $NAME and $$ and $0",
        "echo $1 | cut -d' ' -f2",
        "git log --format='%h $9'",
        "$ARGUMENTS_FILE",
    ],
)
@pytest.mark.parametrize("message", ["$fix check the nginx file", "$fix", "please use $fix on it"])
async def test_the_text_of_a_skill_without_arguments_is_sent_byte_for_byte(
    place: Place, message: str, body: str
) -> None:
    path = add_skill(repo_root(place), "fix", skill_text("fix", body=body))
    talked = await talk(place, message, top=UNLISTED)
    assert talked.requests[0].body["input"][-2:] == [injected(path), user(message)]


async def test_single_quotes_that_a_shell_joins_are_one_text(place: Place) -> None:
    path = add_skill(repo_root(place), "fix", skill_text("fix", more=HINT, body="""'it'\\''s $1' 'a'"'"'b $1' $1"""))
    talked = await talk(place, "$fix x", top=UNLISTED)
    sent = talked.requests[0].body["input"][-2]["content"][0]["text"]
    assert sent.endswith("""---\n'it'\\''s $1' 'a'"'"'b $1' x\n\n</skill>"""), path


async def test_declared_names_take_positions_in_order_and_an_absent_one_is_empty(place: Place) -> None:
    assert await body_of(place, "$fix 12", "<${issue}> <${branch}> ${other}", NAMED) == "<12> <> ${other}"


async def test_the_names_of_arguments_may_be_in_any_script(place: Place) -> None:
    assert (
        await body_of(place, "$fix 12", "<${文件}> <${größe}> ${其他}", "arguments: [文件, größe]\n")
        == "<12> <> ${其他}"
    )


async def test_front_matter_stays_as_it_is(place: Place) -> None:
    add_skill(repo_root(place), "fix", skill_text("fix", "for $1", more=NAMED, body="do $1"))
    text = text_of(await talk(place, "$fix X", top=UNLISTED), "fix")
    assert "description: for $1" in text
    assert "[issue] $1" in text
    assert "do X" in text


async def test_without_a_place_what_follows_stays_part_of_the_message(place: Place) -> None:
    path = add_skill(repo_root(place), "fix")
    talked = await talk(place, "$fix a b", top=UNLISTED)
    assert talked.requests[0].body["input"][-2:] == [injected(path), user("$fix a b")]


@pytest.mark.parametrize("message", ["$fix $lint", "$fix '$lint'", "run $fix '$lint'", "$fix [$lint](skill://lint)"])
async def test_a_value_brings_no_further_mention(place: Place, message: str) -> None:
    add_skill(repo_root(place), "fix", skill_text("fix", body="do <$ARGUMENTS>"))
    add_skill(repo_root(place), "lint")
    talked = await talk(place, message, top=UNLISTED)
    assert [use.name for use in talked.uses] == ["fix"]
    assert "$lint" in text_of(talked, "fix")


async def test_without_a_place_the_next_mention_counts(place: Place) -> None:
    for name in ("fix", "lint"):
        add_skill(repo_root(place), name)
    assert [use.name for use in (await talk(place, "$fix $lint", top=UNLISTED)).uses] == ["fix", "lint"]


async def test_a_value_cannot_end_the_skill_or_make_it_endless(place: Place) -> None:
    add_skill(repo_root(place), "fix", skill_text("fix", body="$ARGUMENTS " * 2000))
    text = text_of(await talk(place, f"$fix </skill>{'x' * 2000}", top=UNLISTED), "fix")
    assert "</skill>x" not in text
    assert "[cut here: with its arguments the skill is too long]" in text
    assert len(text) < MAX_BODY_BYTES * 1.2


async def test_a_skill_that_was_picked_takes_the_whole_message(place: Place) -> None:
    path = add_skill(repo_root(place), "fix", skill_text("fix", body="do <$ARGUMENTS>"))
    talked = await talk(place, [SkillInput("fix", path), TextInput("this and that")], top=UNLISTED)
    assert "do <this and that>" in text_of(talked, "fix")


async def test_the_model_gives_arguments_too(place: Place) -> None:
    add_skill(repo_root(place), "fix", skill_text("fix", body="do <$1> for ${who}", more="arguments: what who\n"))
    calls = [call("k1", "skill", {"name": "fix", "args": "'a b' $lint"})]
    with FakeResponses(calls, [say("done")]) as model:
        async with watched_session(place, model, f"[skills]\ntool = true\n{NO_BUNDLED}") as watched:
            await watched.say("go")
    output = model.requests[-1].output_of("k1")
    assert "do <a b> for $lint" in output
    assert output.endswith("Follow these instructions now.")


async def test_a_skill_with_a_broken_field_is_only_for_mentions_when_its_policy_says_so(place: Place) -> None:
    more = "dependencies:\n  tools: [Read, Write]\npolicy:\n  allow_implicit_invocation: false\ninterface: 1\n"
    path = add_skill(repo_root(place), "fix", skill_text("fix", more=more))
    talked = await talk(place, "hi", "$fix", top="")
    assert not any(str(path) in str(item) for item in talked.requests[0].body["input"])
    assert [use.name for use in talked.uses] == ["fix"]
