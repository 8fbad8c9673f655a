"""Skills that the list leaves out: suggested for a message, found by a tool, their references shown. Whole bodies."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from tests.support.agents import cast, spawn, wait
from tests.support.fake_responses import FakeResponses, Request, call, custom_call, say
from tests.support.home import Place
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, own_root, skill_text

TIGHT = f"{NO_BUNDLED}\n[skills]\nmax_context_tokens = 300\n"
INVOICE = "Draw up a bill for a customer. Use when somebody has to be charged for work that was done."


def add_many(place: Place, count: int = 60) -> None:
    words = ("garden", "kitchen", "weather", "museum", "violin", "harbour", "tunnel", "planet", "forest", "market")
    for number in range(count):
        word = words[number % len(words)]
        add_skill(
            own_root(place),
            f"{word}-{number:02}",
            skill_text(f"{word}-{number:02}", f"Look after a {word} in {number} steps."),
        )


def texts(request: Request, role: str) -> list[str]:
    found: list[str] = []
    for item in request.body["input"]:
        if item.get("type") == "message" and item["role"] == role:
            found += [part["text"] for part in item["content"] if "text" in part]
    return found


def suggestions(request: Request) -> list[str]:
    return [text for text in texts(request, "developer") if text.startswith("<skill_suggestions>")]


def tool_names(request: Request) -> list[str]:
    return [tool.get("name", tool["type"]) for tool in request.body["tools"]]


async def talked(place: Place, settings: str, *messages: str) -> tuple[list[Request], Watched]:
    with FakeResponses(*[[say(f"answer {number}")] for number in range(len(messages))]) as model:
        async with watched_session(place, model, settings) as watched:
            for text in messages:
                await watched.say(text)
    return model.requests, watched


async def test_a_skill_that_is_left_out_is_suggested_before_the_message_that_calls_for_it(place: Place) -> None:
    add_many(place)
    path = add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    requests, watched = await talked(place, TIGHT, "hello", "charge the customer, make a bill for the work")
    first, second = requests
    assert suggestions(first) == []
    (text,) = suggestions(second)
    assert f"- zz-invoice: {INVOICE} (file: {path})" in text.splitlines()
    items = second.body["input"]
    assert items[-2]["content"][0]["text"] == text
    assert items[-1]["content"][0]["text"].startswith("charge the customer")
    assert next(use.name for use in watched.of(events.SkillSuggested)) == "zz-invoice"
    assert second.input_bytes.startswith(first.input_bytes[:-1])


@pytest.mark.parametrize(
    "message",
    [
        "bill pls",
        "the customer column is missing when we print the bill, see `BillWriter.print` in src/bills/writer.py",
        "rename charge_customer to bill_customer in src/work.py",
    ],
)
async def test_a_short_message_and_talk_about_code_bring_what_shares_a_word_with_them(
    place: Place, message: str
) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    requests, _ = await talked(place, TIGHT, message)
    assert suggestions(requests[0])[0].splitlines()[2].startswith("- zz-invoice: ")


@pytest.mark.parametrize(
    "message", ["hello", "what can you do for me?", "kannst du mir bitte helfen? was soll das", "帮我一下", "!?", "👍"]
)
async def test_a_message_that_shares_only_words_without_meaning_brings_no_suggestion(
    place: Place, message: str
) -> None:
    add_many(place)
    text = "What can you do for me? Was soll das, kannst du mir bitte. 帮我一下"
    add_skill(own_root(place), "zz-words", skill_text("zz-words", text))
    requests, _ = await talked(place, TIGHT, message)
    assert suggestions(requests[0]) == []


async def test_a_word_of_two_chinese_characters_finds_its_skill(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-pictures", skill_text("zz-pictures", "生成图片、图像和插画。"))
    add_skill(own_root(place), "zz-bills", skill_text("zz-bills", "为客户开具发票。"))
    requests, _ = await talked(place, TIGHT, "请帮我画一张图片", "给这位客户开发票")
    first, second = [suggestions(request)[-1].splitlines() for request in requests]
    assert [line.partition(":")[0] for line in first[2:-1]] == ["- zz-pictures"]
    assert second[2].startswith("- zz-bills: ")


async def test_a_message_brings_at_most_eight_skills_in_sixteen_hundred_bytes(place: Place) -> None:
    for number in range(40):
        about = f"Look after the harbour number {number}: " + "ships and cranes and cargo " * 12
        add_skill(own_root(place), f"harbour-{number:02}", skill_text(f"harbour-{number:02}", about))
    requests, _ = await talked(place, TIGHT, "look after the harbour")
    [text] = suggestions(requests[0])
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert 5 <= len(lines) <= 8
    assert len(text.encode()) <= 1600
    assert all(60 <= len(re.findall(r": (.*) \(file", line)[0]) <= 160 for line in lines)


async def test_a_suggestion_comes_with_each_message_that_it_fits_until_its_text_is_there(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    requests, _ = await talked(
        place, TIGHT, "charge the customer", "bill the customer", "$zz-invoice now", "a bill for the next customer"
    )
    assert [len(suggestions(request)) for request in requests] == [1, 2, 2, 2]
    for before, after in pairwise(requests):
        assert after.input_bytes.startswith(before.input_bytes[:-1])


async def test_a_skill_whose_whole_description_is_in_the_list_is_not_suggested(place: Place) -> None:
    root = own_root(place)
    for number in range(4):
        add_skill(
            root, f"zz-long-{number}", skill_text(f"zz-long-{number}", f"Charge a customer, part {number}. " * 20)
        )
    add_skill(root, "aa-short", skill_text("aa-short", "Charge it."))
    settings = f"{NO_BUNDLED}\n[skills]\nmax_context_tokens = 100\n"
    requests, _ = await talked(place, settings, "charge the customer")
    assert "- aa-short: Charge it. (file: " in texts(requests[0], "developer")[0]
    names = re.findall(r"^- (\S+): ", suggestions(requests[0])[0], re.MULTILINE)
    assert sorted(names) == [f"zz-long-{number}" for number in range(4)]


async def test_suggestions_can_be_switched_off(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    requests, _ = await talked(place, f'{TIGHT}suggestions = "off"\n', "charge the customer, make a bill")
    assert suggestions(requests[0]) == []


async def test_a_skill_that_only_people_may_call_and_one_that_is_off_are_never_suggested(place: Place) -> None:
    add_many(place)
    path = add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    add_metadata(path, "policy:\n  allow_implicit_invocation: false\n")
    add_skill(own_root(place), "zz-billing", skill_text("zz-billing", INVOICE))
    settings = f'{TIGHT}[[skills.config]]\nname = "zz-billing"\nenabled = false\n'
    requests, _ = await talked(place, settings, "charge the customer, make a bill for the work that was done")
    assert "zz-" not in "".join(suggestions(requests[0]))


async def test_a_list_that_fits_brings_neither_suggestions_nor_the_search(place: Place) -> None:
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    requests, _ = await talked(place, NO_BUNDLED, "charge the customer, make a bill")
    assert suggestions(requests[0]) == []
    assert "skill_search" not in tool_names(requests[0])
    assert not (place.codex_home / "cache/skills/skills.sqlite").exists()


@pytest.mark.parametrize(
    "link",
    [
        *("", "[the rates](./rates 1.md)", "[the rates](<rates 1.md>)", "[the rates]( rates 1.md 'of VAT' )"),
        *("[the rates](rates 1.md#books)", "[rates]: rates 1.md", "[rates]: <./rates 1.md>"),
    ],
)
async def test_the_search_is_offered_where_a_skill_has_more_to_read_than_its_text(place: Place, link: str) -> None:
    path = add_skill(own_root(place), "tax", skill_text("tax", body=f"See [it](gone.md), or\n\n{link}"))
    requests, _ = await talked(place, NO_BUNDLED, "hello")
    assert "skill_search" not in tool_names(requests[0])
    if link:
        (path.parent / "rates 1.md").write_text("# Rates")
        path.write_text(path.read_text() + "\n")
    else:
        (path.parent / "references").mkdir()
    requests, _ = await talked(place, NO_BUNDLED, "hello", "thanks")
    assert [tool_names(request)[-1] for request in requests] == ["skill_search", "skill_search"]


async def test_the_search_is_offered_for_the_whole_session_or_never(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hello")
            path = add_skill(own_root(place), "tax")
            (path.parent / "references").mkdir()
            await watched.say("$tax")
    without = [tool_names(request) for request in model.requests]
    assert without[0] == without[1]
    with FakeResponses([say("one")], [say("the summary")], [say("two")], excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hello")
            shutil.rmtree(path.parent)
            await watched.session.submit(Compact())
            await watched.say("thanks")
    assert [tool_names(request) for request in model.requests] == [[*without[0], "skill_search"]] * 3


async def test_what_is_used_here_keeps_its_place_and_description_in_a_list_that_is_short(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    before, _ = await talked(place, TIGHT, "$zz-invoice", "thanks")
    after, _ = await talked(place, TIGHT, "hello")
    listed = [text for text in texts(after[0], "developer") if text.startswith("<skills_instructions>")]
    assert f"- zz-invoice: {INVOICE} (file: " in listed[0]
    again, _ = await talked(place, TIGHT, "hello")
    assert texts(again[0], "developer")[0] == texts(after[0], "developer")[0]
    assert f"- zz-invoice: {INVOICE}" not in texts(before[1], "developer")[0]


async def test_the_search_is_the_last_tool_and_finds_what_the_list_leaves_out(place: Place) -> None:
    add_many(place)
    path = add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE, body="# Tax\n\nRound to cents."))
    search = [call("s1", "skill_search", {"query": "bill for a customer"})]
    inside = [call("s2", "skill_search", {"query": "cents", "skill": "zz-invoice", "limit": 2})]
    unknown = [call("s3", "skill_search", {"query": "cents", "skill": "nothing-like-it"})]
    async with scripted_session(place, search, inside, unknown, [say("done")], top=TIGHT) as (model, watched):
        await watched.say("hello")
    assert tool_names(model.requests[0])[-1] == "skill_search"
    outputs = {
        item["call_id"]: item["output"]
        for item in model.requests[-1].body["input"]
        if item["type"] == "function_call_output"
    }
    assert outputs["s1"].splitlines()[0] == f"- zz-invoice: {INVOICE} (file: {path})"
    assert outputs["s2"].startswith(f"{path}:") and "Round to cents." in outputs["s2"]
    assert outputs["s3"].startswith("there is no skill `nothing-like-it`")


async def test_the_references_of_a_skill_follow_it_as_a_table_of_contents(place: Place) -> None:
    path = add_skill(own_root(place), "tax", skill_text("tax", body="See references/."))
    references = path.parent / "references"
    references.mkdir()
    (references / "rates.md").write_text("# Rates of VAT\n\ntext\n\n## Books\n\n7 %\n\n## Food\n")
    requests, _ = await talked(place, NO_BUNDLED, "$tax what is it for books?", "thanks")
    items = requests[0].body["input"]
    contents = items[-2]["content"][0]["text"]
    assert contents == (
        "<skill_references>\n"
        f"References of the skill `tax` in `{path.parent}`; read what you need:\n"
        "- references/rates.md (45 bytes) Rates of VAT: Books, Food\n"
        "</skill_references>"
    )
    assert items[-3]["content"][0]["text"].startswith("<skill>\n<name>tax</name>")
    assert tool_names(requests[0])[-1] == "skill_search"


async def test_the_table_of_contents_says_which_file_is_no_text(place: Place) -> None:
    path = add_skill(own_root(place), "tax")
    (path.parent / "scan.md").write_bytes(b"# Title\0\xff" * 400)
    (path.parent / "empty.md").write_text("")
    (path.parent / "long.md").write_text("# Long\n" + "word " * 40_000)
    requests, _ = await talked(place, NO_BUNDLED, "$tax")
    lines = requests[0].body["input"][-2]["content"][0]["text"].splitlines()
    assert lines[2:-1] == [
        "- empty.md (0 bytes)",
        "- long.md (200,007 bytes) Long",
        "- scan.md (3,600 bytes, not text)",
    ]


NOTES = "Write down what changed since the last version."


async def test_the_table_of_contents_has_at_most_forty_lines_and_counts_the_rest(place: Place) -> None:
    path = add_skill(own_root(place), "tax")
    for number in range(60):
        (path.parent / f"part-{number:02}.md").write_text(f"# Part {number}\n")
    requests, _ = await talked(place, NO_BUNDLED, "$tax")
    lines = requests[0].body["input"][-2]["content"][0]["text"].splitlines()
    assert (len(lines), lines[-3], lines[-2]) == (40, "- part-35.md (10 bytes) Part 35", "and 24 more files")


async def test_a_skill_that_a_message_names_in_words_is_suggested_and_marked(place: Place) -> None:
    path = add_skill(own_root(place), "release-notes", skill_text("release-notes", NOTES))
    requests, watched = await talked(
        place, NO_BUNDLED, "where are the release notes?", "don't use the release notes skill", "run release notes"
    )
    assert [len(suggestions(request)) for request in requests] == [0, 0, 1]
    assert f"- release-notes [named by the user]: {NOTES} (file: {path})" in suggestions(requests[2])[0].splitlines()
    # The list has it in full, and the text must not say otherwise.
    assert f"- release-notes: {NOTES} (file: " in texts(requests[2], "developer")[0]
    assert suggestions(requests[2])[0].splitlines()[1] == (
        "Skills that the user's next message names in words. Read the file of each before you begin."
    )
    assert [(event.name, event.named) for event in watched.of(events.SkillSuggested)] == [("release-notes", True)]
    assert requests[2].input_bytes.startswith(requests[1].input_bytes[:-1])


async def test_with_natural_names_on_a_skill_named_in_words_is_used_as_if_it_had_been_mentioned(place: Place) -> None:
    add_skill(own_root(place), "release-notes", skill_text("release-notes", NOTES))
    settings = f'{NO_BUNDLED}\n[skills]\nnatural_names = "on"\n'
    requests, watched = await talked(place, settings, "use the release notes skill")
    items = requests[0].body["input"]
    assert items[-2]["content"][0]["text"].startswith("<skill>\n<name>release-notes</name>")
    assert items[-1]["content"][0]["text"] == "use the release notes skill"
    assert suggestions(requests[0]) == []
    assert [use.kind for use in watched.of(events.SkillUsed)] == ["explicit"]


async def test_with_natural_names_off_words_name_nothing(place: Place) -> None:
    add_skill(own_root(place), "release-notes", skill_text("release-notes", NOTES))
    settings = f'{NO_BUNDLED}\n[skills]\nnatural_names = "off"\n'
    requests, _ = await talked(place, settings, "use the release notes skill")
    assert suggestions(requests[0]) == []


async def test_of_two_skills_in_the_same_words_neither_is_used_and_both_are_shown(place: Place) -> None:
    add_skill(own_root(place), "release-notes", skill_text("release-notes", NOTES))
    add_skill(place.repo / ".agents/skills", "release-notes", skill_text("release-notes", "Those of the project."))
    settings = f'{NO_BUNDLED}\n[skills]\nnatural_names = "on"\n'
    requests, watched = await talked(place, settings, "use the release notes skill")
    (text,) = suggestions(requests[0])
    assert text.count("- release-notes [named by the user]: ") == 2
    assert watched.of(events.SkillUsed) == []
    assert any("names 2 skills in the same words" in event.message for event in watched.of(events.Warned))


async def test_a_skill_that_is_off_or_only_for_people_is_not_suggested_by_its_name_in_words(place: Place) -> None:
    path = add_skill(own_root(place), "release-notes", skill_text("release-notes", NOTES))
    add_metadata(path, "policy:\n  allow_implicit_invocation: false\n")
    add_skill(own_root(place), "fix-tests", skill_text("fix-tests", "Mend tests."))
    settings = f'{NO_BUNDLED}\n[[skills.config]]\nname = "fix-tests"\nenabled = false\n'
    requests, _ = await talked(place, settings, "use the release notes skill, then run fix tests")
    assert suggestions(requests[0]) == []


async def test_a_skill_with_paths_is_suggested_only_for_these_files(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE, more='paths: ["bills/**/*.md"]\n'))
    message = "charge the customer, make a bill for the work"
    patch = "*** Begin Patch\n*** Add File: bills/2/may.md\n+one\n*** End Patch\n"
    answers = [[say("one")], [say("two")]]
    async with scripted_session(place, *answers, top=TIGHT) as (model, watched):
        await watched.say(message)
        await watched.say(f"{message}, as in bills/1/april.md")
    assert [bool(suggestions(request)) for request in model.requests[:2]] == [False, True]
    with FakeResponses([custom_call("c1", "apply_patch", patch)], [say("noted")], [say("done")]) as model:
        async with watched_session(place, model, TIGHT) as watched:
            await watched.say("note it")
            await watched.say(message)
    # A file that the session has changed counts, whatever the message says.
    assert [bool(suggestions(request)) for request in model.requests] == [False, False, True]


async def test_the_task_of_an_agent_brings_suggestions_too(place: Place) -> None:
    add_many(place)
    add_skill(own_root(place), "zz-invoice", skill_text("zz-invoice", INVOICE))
    task = "charge the customer, make a bill for the work"
    parts = {
        "go": [[spawn("s1", task)], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        task: [[say("billed")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, TIGHT) as watched:
            await watched.say("go")
    [item] = suggestions(model.of(task)[0])
    assert "- zz-invoice: " in item
    assert all(suggestions(request) == [] for request in model.of("go"))
