"""Where skills are found and how they are read: what the model is then told, in whole request bodies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.bodies import injected, skill_list, user, whole_body
from tests.support.home import Place
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, own_root, repo_root, skill_text, talk

PLUGIN = '[plugins."tools@market"]\nenabled = true\n'


def line(name: str, file: Path | str, description: str = "does things") -> str:
    return f"- {name}: {description} (file: {file})"


async def test_every_root_is_searched_and_each_scope_has_its_place_in_the_list(place: Place) -> None:
    part, team, more = place.repo / "part", place.home / "team", place.home / "more"
    roots = {
        "admin": place.system / "skills",
        "config-near": part / ".codex/skills",
        "config-top": place.repo / ".codex/skills",
        "here": part / ".agents/skills",
        "top": repo_root(place),
        "extra": team,
        "home": place.codex_home / "skills",
        "more": more,
        "own": own_root(place),
    }
    paths = {name: add_skill(root, name) for name, root in roots.items()}
    add_skill(place.home / "elsewhere", "unseen")
    plugin = add_skill(place.codex_home / "plugins/cache/market/tools/local/skills", "lint")
    top = f'{PLUGIN}[skills]\nroots = ["{team}"]\nextra_user_roots = ["{more}"]\n'
    talked = await talk(place, "hi", top=top, cwd=part)
    listed = skill_list(*(line(name, path) for name, path in paths.items()), line("tools:lint", plugin))
    [request] = talked.requests
    assert request.body == whole_body(place, request, user("hi"), skills=listed, cwd=part)
    assert talked.warnings == []


async def test_aliases_stand_for_the_roots_in_the_order_in_which_they_are_searched(place: Place) -> None:
    part = place.repo / "part"
    roots = (
        *(part / ".codex/skills", place.repo / ".codex/skills"),
        *(place.codex_home / "skills", own_root(place), place.system / "skills"),
        *(repo_root(place), part / ".agents/skills"),
    )
    for number, root in enumerate(roots):
        for letter in "abc":
            add_skill(root, f"{letter}{number}")
    in_order = [("r4", 4), *((f"r{n}", n) for n in (0, 1, 5, 6)), ("r2", 2), ("r3", 3)]
    scopes = [in_order[:1], in_order[1:5], in_order[5:]]
    lines = [
        line(f"{letter}{number}", f"{alias}/{letter}{number}/SKILL.md")
        for scope in scopes
        for letter in "abc"
        for alias, number in scope
    ]
    talked = await talk(place, "hi", cwd=part)
    [request] = talked.requests
    listed = skill_list(*lines, roots=roots)
    assert request.body == whole_body(place, request, user("hi"), skills=listed, cwd=part)


async def test_a_linked_skill_is_listed_as_reached_by_the_first_root_and_given_by_its_real_path(place: Place) -> None:
    real = add_skill(repo_root(place), "lint")
    own_root(place).mkdir(parents=True)
    (own_root(place) / "b-link").symlink_to(real.parent)
    (own_root(place) / "a-link").symlink_to(real.parent)
    reached = own_root(place) / "a-link/SKILL.md"
    prompts = ["$lint", f"[$x]({reached})", f"[$x]({real})"]
    for prompt in prompts:
        talked = await talk(place, prompt)
        [request] = talked.requests
        assert request.body == whole_body(
            place, request, injected(real), user(prompt), skills=skill_list(line("lint", reached))
        )
        assert [(use.scope, use.path) for use in talked.uses] == [("user", real)]


async def test_a_hostile_directory_gives_the_skills_in_it_that_are_some(place: Place) -> None:
    root = repo_root(place)
    good = add_skill(root, "good")
    add_skill(root / "1/2/3/4/5", "deep")
    add_skill(root / "1/2/3/4/5/6", "too-deep")
    for name in (".hidden", "node_modules", "a/.git"):
        add_skill(root / name, "unseen")
    add_skill(root, "other-letters").rename(root / "other-letters/skill.md")
    (good.parent / "loop").symlink_to(root)
    linked = root / "linked/SKILL.md"
    linked.parent.mkdir()
    linked.symlink_to(place.write("docs/linked.md", skill_text("linked")))
    outside = add_skill(place.home, "outside")
    for name, target in {"dev": "/dev", "gone": "nowhere", "out": outside.parent, "vcs": place.repo / ".git"}.items():
        (root / name).symlink_to(target)
    for name in ("fifo", "file"):
        (root / name).mkdir()
    os.mkfifo(root / "fifo/SKILL.md")
    (root / "file/SKILL.md").symlink_to(outside)
    talked = await talk(place, "hi")
    [request] = talked.requests
    names = ("1/2/3/4/5/deep", "good", "linked")
    lines = [line(name.rpartition("/")[2], f"r0/{name}/SKILL.md") for name in names]
    listed = skill_list(*lines, roots=(root,))
    assert request.body == whole_body(place, request, user("hi"), skills=listed)
    refused = {
        "dev": "a link that leads out of the project",
        "fifo/SKILL.md": "not a regular file",
        "file/SKILL.md": "a link that leads out of the project",
        "out": "a link that leads out of the project",
        "vcs": "a link into a version control directory",
    }
    assert sorted(talked.warnings) == [
        f"`{root}` has skills more than 6 directories deep: some of its skills were not looked for",
        *(f"failed to load skill {root / name}: {reason}" for name, reason in refused.items()),
    ]


async def test_a_skill_behind_thousands_of_directories_is_found(place: Place) -> None:
    root = repo_root(place)
    last = add_skill(root, "z-last")
    for number in range(2500):
        (root / f"directory-{number:04}").mkdir()
    talked = await talk(place, "hi")
    [request] = talked.requests
    assert request.body == whole_body(place, request, user("hi"), skills=skill_list(line("z-last", last)))
    assert talked.warnings == []


WRITTEN = {
    "crlf": (b"---\r\nname: crlf\r\ndescription: with\ttabs\r\n---\r\nDo it.\r\n", "with tabs"),
    "fences": (b" --- \t\nname: fences\ndescription: has spaces\n\t---\nDo it.\n", "has spaces"),
    "tabs": (b"---\nname:\ttabs\ndescription:\tafter a tab\t\n---\n", "after a tab"),
    "folded": (b"---\nname: folded\ndescription: >-\n  two\n  lines: and\n\n  more\n---\n", "two lines: and more"),
    "literal": (b"---\nname: literal\ndescription: |\n  two\n  lines\n---\n", "two lines"),
    "quoted": (b"---\nname: 'quoted'\ndescription: \"it's: \\u00fc\"\n---\n", "it's: ü"),
    "colon": (b"---\nname: colon\ndescription: Use when: always\n---\n", "Use when: always"),
    "bracket": (b"---\nname: bracket\ndescription: [WIP] do # not\n---\n", "[WIP] do"),
    "flow": (b"---\nname: flow\ndescription: a: b\nmetadata: {c: d}\nallowed-tools: [\n Bash\n]\n---\n", "a: b"),
    "long": (b"---\nname: long\ndescription: " + b"d" * 1025 + b"\n---\n", "d" * 1021 + "..."),
    "at the end": (b"---\nname: at the end\ndescription: no newline\n---", "no newline"),
    "Capital": ("---\nname: Capital\ndescription: 代码：审查\n---\n".encode(), "代码：审查"),
    "überprüfung": ("---\nname: überprüfung\ndescription: a\u00a0\u3000b\n---\n".encode(), "a b"),
    "42": (b"---\nname: 42\ndescription: 1.50\n---\n", "1.50"),
}  # fmt: skip


async def test_frontmatter_is_read_the_ways_people_write_it(place: Place) -> None:
    paths = {name: add_skill(own_root(place), name, text) for name, (text, _) in WRITTEN.items()}
    named = ["$crlf", "$flow", "$Capital", "$42", f"[$x]({paths['at the end']})", f"[$x]({paths['überprüfung']})"]
    talked = await talk(place, " ".join(named))
    [request] = talked.requests
    listed = skill_list(
        *(line(name, f"r0/{name}/SKILL.md", WRITTEN[name][1]) for name in sorted(paths)), roots=(own_root(place),)
    )
    value = [injected(paths[name]) for name in ("at the end", "überprüfung", "42", "Capital", "crlf", "flow")]
    assert request.body == whole_body(place, request, *value, user(" ".join(named)), skills=listed)
    assert talked.warnings == []


async def test_bad_skills_are_a_line_each_and_hurt_no_other(place: Place) -> None:
    root = repo_root(place)
    good = add_skill(root, "good")
    reasons = {
        "empty": ("---\n---\n", "missing YAML frontmatter delimited by ---: nothing between the two lines"),
        "no-description": ("---\nname: x\n---\n", "missing field `description`"),
        "no-text": (b"---\nname: x\ndescription: y\n---\n\xff", "failed to read file: not UTF-8 at byte 31"),
        "no-yaml": (
            "---\nname: x\ndescription: [a\n b: *c\n---\n",
            "invalid YAML: did not find expected ',' or ']' at line 4 column 3",
        ),
        "windows": (
            "\ufeff" + skill_text("windows"),
            "missing YAML frontmatter delimited by ---: the file begins with a byte order mark",
        ),
    }
    paths = {name: add_skill(root, name, text) for name, (text, _) in reasons.items()}
    talked = await talk(place, "use $empty and $good")
    [request] = talked.requests
    assert request.body == whole_body(
        place, request, injected(good), user("use $empty and $good"), skills=skill_list(line("good", good))
    )
    assert talked.warnings == [
        *(f"failed to load skill {paths[name]}: {reason}" for name, (_, reason) in reasons.items()),
        f"`$empty` selects nothing: `{paths['empty']}` could not be loaded: {reasons['empty'][1]}",
    ]


async def test_more_bad_skills_than_five_are_one_line(place: Place) -> None:
    paths = [add_skill(repo_root(place), f"bad-{number}", "no frontmatter") for number in range(6)]
    talked = await talk(place, "hi")
    [request] = talked.requests
    assert request.body == whole_body(place, request, user("hi"))
    assert talked.warnings == [
        f"failed to load 6 skills, such as {paths[0]}: missing YAML frontmatter delimited by --- "
        "(`codex-py skills doctor` tells all)"
    ]


async def test_what_hides_a_skill_from_the_list_leaves_it_to_be_named(place: Place) -> None:
    """In `SKILL.md` and in `agents/openai.yaml`; where both speak, the second counts."""
    root = repo_root(place)
    by_key = add_skill(root, "by-key", skill_text("by-key", more="disable-model-invocation: true\n"))
    by_policy = add_skill(
        root, "by-policy", skill_text("by-policy", more="policy:\n  allow_implicit_invocation: false\n")
    )
    by_file, shown, broken, foreign, _ = (
        add_skill(root, name) for name in ("by-file", "shown", "broken", "foreign", "plain")
    )
    add_metadata(by_file, "policy: {allow_implicit_invocation: false}\ninterface: {display_name: Filed}\n")
    add_metadata(broken, "policy: {allow_implicit_invocation: 'false'}\n")
    add_metadata(foreign, "policy: {products: [chatgpt, ATLAS]}\n")
    shown.write_text(skill_text("shown", more="policy: {allow_implicit_invocation: false}\n"))
    add_metadata(shown, "policy: {allow_implicit_invocation: true}\n")
    prompt = "$by-key $by-policy $by-file $foreign"
    talked = await talk(place, prompt)
    [request] = talked.requests
    value = [injected(path) for path in (by_file, by_key, by_policy)]
    listed = skill_list(*(line(name, f"{root}/{name}/SKILL.md") for name in ("plain", "shown")))
    assert request.body == whole_body(place, request, *value, user(prompt), skills=listed)
    assert talked.warnings == [
        f"skill file {broken.parent}/agents/openai.yaml: "
        "`policy.allow_implicit_invocation` is neither `true` nor `false`; "
        "until it is corrected, the model cannot choose this skill"
    ]


@pytest.mark.parametrize(
    "written",
    [
        b"interface: [\n",
        b"interface: {display_name: 'Lint\n",
        b"\xff\xfe\n",
        b"- a list\n",
        b"just a text\n",
        b"policy: []\n",
        b"policy: {products: everything}\n",
        b"policy: {}\ndependencies: {tools: [Read]}\n",
        b"a: &x [*x]\n",
        b"interface:\n\tdisplay_name: Lint\n",
        b"# " + b"x" * 70_000 + b"\n",
        None,
    ],
)
async def test_broken_metadata_without_a_policy_hides_no_skill(place: Place, written: bytes | None) -> None:
    root = repo_root(place)
    path = add_skill(root, "lint")
    add_metadata(path, "")
    metadata = path.parent / "agents/openai.yaml"
    if written is None:
        metadata.unlink()
        metadata.mkdir()
    else:
        metadata.write_bytes(written)
    talked = await talk(place, "hi")
    [request] = talked.requests
    listed = skill_list(line("lint", f"{root}/lint/SKILL.md"))
    assert request.body == whole_body(place, request, user("hi"), skills=listed)


async def test_a_skill_whose_restriction_cannot_be_read_is_not_offered_to_the_model(place: Place) -> None:
    root = repo_root(place)
    said, garbled, undecodable, quoted, _ = (
        add_skill(root, name) for name in ("said", "garbled", "undecodable", "quoted", "plain")
    )
    add_metadata(said, "interface: [x]\npolicy: {allow_implicit_invocation: false}\n")
    add_metadata(garbled, "policy: {allow_implicit_invocation: true\ninterface: [\n")
    add_metadata(undecodable, "interface: {}\n")
    (undecodable.parent / "agents/openai.yaml").write_bytes(b"policy: {allow_implicit_invocation: \xff}\n")
    quoted.write_text(skill_text("quoted", more="disable-model-invocation: maybe\n"))
    talked = await talk(place, "$garbled")
    [request] = talked.requests
    listed = skill_list(line("plain", f"{root}/plain/SKILL.md"))
    assert request.body == whole_body(place, request, injected(garbled), user("$garbled"), skills=listed)
    assert len(talked.warnings) == 1
    assert "and that of 3 more (`codex-py skills doctor` tells all)" in talked.warnings[0]


async def test_what_may_not_be_read_reaches_the_model_through_no_document_and_no_skill(place: Place) -> None:
    secret = "---\nname: linked\ndescription: TOKEN=hunter2-hunter2\n---\nTOKEN=hunter2-hunter2\n"
    denied = place.write("secrets/.env", secret)
    place.write(".env", secret)
    (place.repo / "AGENTS.md").symlink_to(denied)
    linked = repo_root(place) / "linked/SKILL.md"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(denied)
    private = repo_root(place) / "private/SKILL.md"
    place.write(str(private), skill_text("private", "TOKEN=hunter2-hunter2"))
    add_skill(repo_root(place), "plain")
    settings = 'project_doc_fallback_filenames = [".env"]\nsandbox.deny_read = ["**/.env", ".agents/skills/private"]\n'
    talked = await talk(place, "$linked $plain", top=settings)
    assert "hunter2" not in "".join(request.raw.decode() for request in talked.requests)
    assert talked.warnings == [
        f"failed to load skill {linked}: `sandbox.deny_read` denies reading it",
        f"failed to load skill {private}: `sandbox.deny_read` denies reading it",
        f"ignored `{place.repo}/AGENTS.md`: `sandbox.deny_read` denies reading it",
        f"ignored `{place.repo}/.env`: `sandbox.deny_read` denies reading it",
        f"`$linked` selects nothing: `{linked}` could not be loaded: `sandbox.deny_read` denies reading it",
    ]


async def test_skills_of_claude_code_come_too_and_the_same_skill_counts_once(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    add_skill(place.repo / ".claude/skills", "lint")
    add_skill(place.repo / ".claude/skills", "other")
    add_skill(Path(place.env["HOME"]) / ".claude/skills", "at-home")
    talked = await talk(place, "hi")
    shown = talked.requests[0].input_bytes.decode()
    assert [shown.count(f"- {name}: ") for name in ("lint", "other", "at-home")] == [1, 1, 1]
    left_out = await talk(place, "hi", bundled=f"{NO_BUNDLED}\n[skills]\nclaude = false\n")
    assert "- other: " not in left_out.requests[0].input_bytes.decode()


async def test_a_relative_directory_of_the_settings_is_that_of_each_project(place: Place) -> None:
    """Of the user's own file too, which lies elsewhere; and without one there is no warning."""
    top = '[skills]\nroots = ["skills", "tools/skills"]\n'
    add_skill(place.repo / "skills", "own")
    add_skill(place.repo / "sub/skills", "deeper")
    outside = add_skill(place.home / "elsewhere", "outside")
    (place.repo / "skills/linked").symlink_to(outside.parent)
    talked = await talk(place, "$own $deeper", top=top)
    assert [(use.name, use.scope) for use in talked.uses] == [("own", "repo")]
    assert "- outside: " not in talked.requests[0].input_bytes.decode()
    below = await talk(place, "$own $deeper", top=top, cwd=place.repo / "sub")
    assert [(use.name, use.scope) for use in below.uses] == [("deeper", "repo"), ("own", "repo")]
    assert not [warning for warning in (*talked.warnings, *below.warnings) if "roots" in warning]


async def test_a_directory_of_the_project_that_the_settings_name_has_skills_of_the_repository(place: Place) -> None:
    """What lies in it is not the user's own, and no link in it leads out of the project."""
    top = place.repo / "skills"
    add_skill(top, "own")
    outside = add_skill(place.home / "elsewhere", "outside")
    (top / "linked").symlink_to(outside.parent)
    talked = await talk(
        place, "[$x](./skills/own/SKILL.md) and [$y](skill://outside)", top=f'[skills]\nroots = ["{top}"]\n'
    )
    assert [(use.name, use.scope) for use in talked.uses] == [("own", "repo")]
    assert "- outside: " not in talked.requests[0].input_bytes.decode()


@pytest.mark.parametrize("root", [".agents/skills", ".claude/skills", ".codex/skills"])
@pytest.mark.parametrize(
    "link", ["", "tools", "tools/lint", "tools/lint/SKILL.md"], ids=["root", "parent", "directory", "file"]
)
async def test_a_link_in_the_users_own_root_is_followed_wherever_it_leads(place: Place, root: str, link: str) -> None:
    """As to a repository of dotfiles."""
    real = add_skill(place.home / "dotfiles/tools", "lint")
    (place.home / root).parent.mkdir(parents=True, exist_ok=True)
    start = place.home / root / link
    start.parent.mkdir(parents=True, exist_ok=True)
    start.symlink_to(real if link.endswith(".md") else place.home / "dotfiles" / link)
    talked = await talk(place, "$lint")
    assert "- lint: " in talked.requests[0].input_bytes.decode()
    assert [(use.name, use.scope) for use in talked.uses] == [("lint", "user")]
    assert talked.warnings == []


async def test_a_link_in_the_users_own_root_may_lead_into_version_control(place: Place) -> None:
    real = add_skill(place.home / "dotfiles/.git/modules", "lint")
    own_root(place).mkdir(parents=True)
    (own_root(place) / "lint").symlink_to(real.parent)
    talked = await talk(place, "$lint")
    assert ([use.path for use in talked.uses], talked.warnings) == ([real], [])


async def test_a_link_to_a_file_of_another_name_does_not_bring_what_lies_beside_that(place: Place) -> None:
    real = place.home / "notes/lint.md"
    real.parent.mkdir()
    real.write_text(skill_text("lint", body="See [the rules](rules.md)."))
    (real.parent / "diary.md").write_text("# My diary")
    link = own_root(place) / "lint/SKILL.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    (link.parent / "rules.md").write_text("# Rules of linting")
    [request] = (await talk(place, "$lint")).requests
    [references] = [text for text in request.texts("user") if text.startswith("<skill_references>")]
    assert f"in `{link.parent}`" in references and "- rules.md (18 bytes) Rules of linting" in references
    assert "diary" not in str(request.body)
    assert request.body["tools"][-1]["name"] == "skill_search"


async def test_links_in_a_circle_and_to_nothing_cost_nothing_but_a_line(place: Place) -> None:
    root = place.home / ".agents/skills"
    add_skill(place.home / "dotfiles", "lint")
    root.mkdir(parents=True)
    (root / "all").symlink_to(place.home / "dotfiles")
    (place.home / "dotfiles/back").symlink_to(root)
    (root / "self").symlink_to(root)
    (root / "broken").symlink_to(place.home / "nowhere")
    talked = await talk(place, "$lint")
    assert [use.name for use in talked.uses] == ["lint"]


@pytest.mark.parametrize("link", ["", "team", "team/lint"], ids=["root", "parent", "directory"])
@pytest.mark.parametrize("root", [".agents/skills", ".codex/skills", ".claude/skills"])
async def test_a_link_of_a_repository_may_lead_to_the_users_own_skills(place: Place, root: str, link: str) -> None:
    real = add_skill(place.home / ".agents/skills/team", "lint")
    start = place.repo / root / link
    start.parent.mkdir(parents=True)
    start.symlink_to(place.home / ".agents/skills" / link)
    talked = await talk(place, "$lint")
    assert [(use.name, use.scope, use.path) for use in talked.uses] == [("lint", "user", real)]
    assert talked.warnings == []


@pytest.mark.parametrize("link", ["lint", "all"])
async def test_a_link_of_a_repository_may_lead_to_a_link_of_the_users(place: Place, link: str) -> None:
    real = add_skill(place.home / "dotfiles", "lint")
    for root, target in (
        (own_root(place), real.parent if link == "lint" else place.home / "dotfiles"),
        (repo_root(place), own_root(place) / link),
    ):
        root.mkdir(parents=True)
        (root / link).symlink_to(target)
    talked = await talk(place, "$lint")
    assert ([(use.scope, use.path) for use in talked.uses], talked.warnings) == ([("user", real)], [])


@pytest.mark.parametrize("through", ["skills", "skills/lint"])
async def test_a_link_through_another_programs_directory_selects_the_same_skill(place: Place, through: str) -> None:
    real = add_skill(repo_root(place), "lint")
    start = place.repo / ".claude" / through
    start.parent.mkdir(parents=True)
    start.symlink_to(real.parent if through.endswith("lint") else repo_root(place))
    for target in ("./.claude/skills/lint/SKILL.md", f"{place.repo}/.claude/skills/lint/SKILL.md"):
        for mention in (f"[$lint]({target})", f"$[lint]({target})"):
            talked = await talk(place, mention)
            assert [use.path for use in talked.uses] == [real]
            assert talked.warnings == []


async def test_the_setting_that_followed_links_answers_with_the_new_way(place: Place) -> None:
    talked = await talk(place, "hi", top="[skills]\nfollow_links = true\n")
    [warning] = [warning for warning in talked.warnings if "follow_links" in warning]
    assert warning.endswith("is gone: links in your own skill directories are always followed")
