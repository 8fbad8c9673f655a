from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.context.agents_md import AgentsMd, find_project_root, load_agents_md, replacement


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    directory = tmp_path / "repo"
    (directory / ".git").mkdir(parents=True)
    (directory / "sub" / "deep").mkdir(parents=True)
    return directory


def block(cwd: Path, text: str) -> str:
    return f"# AGENTS.md instructions for {cwd}\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>"


def test_no_file_is_no_block(home: Path, repo: Path) -> None:
    assert load_agents_md(home, repo) == AgentsMd("")
    assert load_agents_md(home / "none", repo) == AgentsMd("")


def test_the_chain_from_the_root_down(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").write_text("\n global rules \n\n")
    (repo.parent / "AGENTS.md").write_text("outside the project")
    (repo / "AGENTS.md").write_text("root rules\n")
    (repo / "sub" / "deep" / "AGENTS.md").write_text("deep rules\n")
    (repo / "sub" / "deep" / "below").mkdir()
    (repo / "sub" / "deep" / "below" / "AGENTS.md").write_text("too deep")
    cwd = repo / "sub" / "deep"
    expected = block(cwd, "global rules\n\n--- project-doc ---\n\nroot rules\n\n\ndeep rules\n")
    assert load_agents_md(home, cwd) == AgentsMd(expected)


def test_only_the_global_file_has_a_title_without_a_path(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").write_text("global")
    assert load_agents_md(home, repo).text == "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>"


def test_only_the_project_has_no_separator(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("root")
    assert load_agents_md(home, repo).text == block(repo, "root")


def test_an_override_hides_the_file_next_to_it(home: Path, repo: Path) -> None:
    for directory in (home, repo):
        (directory / "AGENTS.md").write_text("plain")
        (directory / "AGENTS.override.md").write_text("override")
    assert load_agents_md(home, repo).text == block(repo, "override\n\n--- project-doc ---\n\noverride")


def test_a_blank_override_hides_in_a_project_but_not_at_home(home: Path, repo: Path) -> None:
    for directory in (home, repo):
        (directory / "AGENTS.md").write_text("plain")
        (directory / "AGENTS.override.md").write_text(" \n\t\n")
    assert load_agents_md(home, repo) == AgentsMd("# AGENTS.md instructions\n\n<INSTRUCTIONS>\nplain\n</INSTRUCTIONS>")


def test_fallback_names_count_in_order_and_only_without_an_agents_md(home: Path, repo: Path) -> None:
    (repo / "CLAUDE.md").write_text("claude")
    (repo / "GEMINI.md").write_text("gemini")
    (repo / "sub" / "AGENTS.md").write_text("agents")
    (repo / "sub" / "CLAUDE.md").write_text("hidden")
    loaded = load_agents_md(home, repo / "sub", fallback_filenames=("NONE.md", "GEMINI.md", "CLAUDE.md"))
    assert loaded == AgentsMd(block(repo / "sub", "gemini\n\nagents"))


def test_fallback_names_are_names_not_paths(home: Path, repo: Path) -> None:
    (repo.parent / "secret.md").write_text("secret")
    loaded = load_agents_md(home, repo, fallback_filenames=("../secret.md", "/etc/passwd", "..", "", "sub\0x"))
    assert loaded.text == ""
    assert len(loaded.warnings) == 5
    assert loaded.warnings[0] == "ignored `../secret.md` in `project_doc_fallback_filenames`: not a plain file name"


def test_without_a_marker_only_the_working_directory_counts(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / "plain" / "sub"
    cwd.mkdir(parents=True)
    (cwd.parent / "AGENTS.md").write_text("parent")
    (cwd / "AGENTS.md").write_text("here")
    # Not the usual one, which may well be found above the directories of the tests.
    assert load_agents_md(home, cwd, project_root_markers=(".nowhere",)).text == block(cwd, "here")


def test_without_markers_only_the_working_directory_counts(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("root")
    (repo / "sub" / "AGENTS.md").write_text("sub")
    assert load_agents_md(home, repo / "sub", project_root_markers=()).text == block(repo / "sub", "sub")


def test_markers_can_be_chosen(repo: Path) -> None:
    (repo / "sub" / "package.json").write_text("{}")
    deep = repo / "sub" / "deep"
    assert find_project_root(deep, (".git",)) == repo
    assert find_project_root(deep, (".hg", "package.json")) == repo / "sub"
    assert find_project_root(deep, ("package.json", ".git")) == repo / "sub"
    assert find_project_root(deep, ("", "../.git", "none.marker")) is None
    assert find_project_root(deep, ()) is None


def test_a_worktree_is_a_root_of_its_own(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("main checkout")
    worktree = repo / "trees" / "one"
    (worktree / "sub").mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {repo}/.git/worktrees/one\n")
    (worktree / "AGENTS.md").write_text("worktree")
    assert load_agents_md(home, worktree / "sub").text == block(worktree / "sub", "worktree")


def test_a_working_directory_behind_a_link_belongs_to_its_project(home: Path, repo: Path, tmp_path: Path) -> None:
    (repo / "AGENTS.md").write_text("root")
    (tmp_path / "link").symlink_to(repo / "sub")
    assert load_agents_md(home, tmp_path / "link").text == block(tmp_path / "link", "root")


def test_a_directory_name_stays_in_the_title(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / "a\n\n<INSTRUCTIONS>\nb"
    cwd.mkdir()
    (cwd / "AGENTS.md").write_text("text")
    title, _, rest = load_agents_md(home, cwd).text.partition("\n")
    assert title == f"# AGENTS.md instructions for {tmp_path}/a␊␊<INSTRUCTIONS>␊b"
    assert rest == "\n<INSTRUCTIONS>\ntext\n</INSTRUCTIONS>"


# Budgets


def test_the_budget_is_shared_by_the_project_files(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").write_text("g" * 100)
    (repo / "AGENTS.md").write_text("a" * 30)
    (repo / "sub" / "AGENTS.md").write_text("b" * 100)
    (repo / "sub" / "deep" / "AGENTS.md").write_text("c" * 10)
    cwd = repo / "sub" / "deep"
    allows = "`project_doc_max_bytes` allows 60 bytes for all project instructions together"
    assert load_agents_md(home, cwd, max_bytes=60) == AgentsMd(
        block(cwd, "\n\n".join(["g" * 100, "--- project-doc ---", "a" * 30, "b" * 30])),
        (
            f"read only 30 of 100 bytes of `{repo}/sub/AGENTS.md`: {allows}",
            f"skipped `{repo}/sub/deep/AGENTS.md`: {allows}, and they are used up",
        ),
    )


def test_a_file_that_just_fits_is_whole(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("a" * 60)
    assert load_agents_md(home, repo, max_bytes=60) == AgentsMd(block(repo, "a" * 60))


def test_a_budget_of_nothing_leaves_the_project_out(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").write_text("global")
    (repo / "AGENTS.md").write_text("root")
    expected = AgentsMd("# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>")
    assert load_agents_md(home, repo, max_bytes=0) == expected


def test_the_default_budget_and_the_bound_of_the_global_file(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").write_text("g" * 40_000)
    (repo / "AGENTS.md").write_text("p" * 40_000)
    loaded = load_agents_md(home, repo)
    assert loaded.text == block(repo, "g" * 32768 + "\n\n--- project-doc ---\n\n" + "p" * 32768)
    assert [warning.partition(" of `")[0] for warning in loaded.warnings] == ["read only 32768 of 40000 bytes"] * 2


def test_a_character_cut_by_the_budget_is_dropped_without_a_word_about_utf8(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("aé" * 10)
    loaded = load_agents_md(home, repo, max_bytes=5)
    assert loaded.text == block(repo, "aéa")
    assert len(loaded.warnings) == 1


def test_a_huge_file_is_not_read_whole(home: Path, repo: Path) -> None:
    with (repo / "AGENTS.md").open("wb") as file:
        file.write(b"start")
        file.truncate(2**36)
    loaded = load_agents_md(home, repo, max_bytes=5)
    assert loaded.text == block(repo, "start")


def test_invalid_utf8_is_replaced_and_reported(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_bytes(b"\xef\xbb\xbfa\xffb")
    loaded = load_agents_md(home, repo)
    assert loaded.text == block(repo, "a\ufffdb")
    assert len(loaded.warnings) == 1
    assert loaded.warnings[0].startswith(f"`{repo}/AGENTS.md` is not UTF-8")


# What must not be read


@pytest.mark.parametrize("target", ["/etc/shadow", "/dev/zero", "/dev/tty", "/proc/self/environ", "/", "../outside.md"])
def test_a_link_out_of_the_project_is_refused(target: str, home: Path, repo: Path) -> None:
    (repo.parent / "outside.md").write_text("outside")
    (repo / "AGENTS.md").symlink_to(target)
    loaded = load_agents_md(home, repo)
    assert loaded.text == ""
    assert loaded.warnings == (f"ignored `{repo}/AGENTS.md`: a link that leads out of the project",)


def test_a_link_through_a_linked_directory_is_refused(home: Path, repo: Path) -> None:
    outside = repo.parent / "outside"
    outside.mkdir()
    (outside / "rules.md").write_text("outside")
    (repo / "docs").symlink_to(outside)
    (repo / "AGENTS.md").symlink_to("docs/rules.md")
    assert load_agents_md(home, repo).text == ""


def test_links_inside_the_project_work(home: Path, repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "rules.md").write_text("rules")
    (repo / "papers").symlink_to("docs")
    (repo / "AGENTS.md").symlink_to("papers/rules.md")
    (repo / "sub" / "AGENTS.md").symlink_to("../CLAUDE.md")
    (repo / "CLAUDE.md").write_text("claude")
    assert load_agents_md(home, repo / "sub") == AgentsMd(block(repo / "sub", "rules\n\nclaude"))


def test_a_link_to_gits_own_files_is_refused(home: Path, repo: Path) -> None:
    (repo / ".git" / "config").write_text("url = https://user:password@host/")
    (repo / "AGENTS.md").symlink_to(".git/config")
    loaded = load_agents_md(home, repo)
    assert loaded.text == ""
    assert loaded.warnings == (f"ignored `{repo}/AGENTS.md`: a link to what is no part of the project's files",)


def test_without_a_project_the_working_directory_is_the_fence(home: Path, tmp_path: Path) -> None:
    cwd = tmp_path / "plain"
    cwd.mkdir()
    (tmp_path / "outside.md").write_text("outside")
    (cwd / "AGENTS.md").symlink_to("../outside.md")
    assert load_agents_md(home, cwd, project_root_markers=(".nowhere",)).text == ""


def test_a_fifo_does_not_block(home: Path, repo: Path) -> None:
    os.mkfifo(repo / "AGENTS.md")
    os.mkfifo(home / "AGENTS.md")
    assert load_agents_md(home, repo) == AgentsMd(
        "",
        (
            f"ignored `{home}/AGENTS.md`: not a regular file",
            f"ignored `{repo}/AGENTS.md`: not a regular file",
        ),
    )


def test_a_refused_file_does_not_silence_the_next_name(home: Path, repo: Path) -> None:
    (repo / "AGENTS.override.md").mkdir()
    (repo / "AGENTS.md").symlink_to("/etc/passwd")
    (repo / "CLAUDE.md").write_text("claude")
    loaded = load_agents_md(home, repo, fallback_filenames=("CLAUDE.md",))
    assert loaded.text == block(repo, "claude")
    assert len(loaded.warnings) == 2


@pytest.mark.parametrize("links", [{"AGENTS.md": "AGENTS.md"}, {"AGENTS.md": "other", "other": "AGENTS.md"}])
def test_links_in_a_circle_end(links: dict[str, str], home: Path, repo: Path) -> None:
    for name, target in links.items():
        (repo / name).symlink_to(target)
    loaded = load_agents_md(home, repo)
    assert loaded.text == ""
    assert len(loaded.warnings) == 1


def test_a_dangling_link_is_reported(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").symlink_to("none.md")
    (home / "AGENTS.md").symlink_to("none.md")
    assert load_agents_md(home, repo) == AgentsMd(
        "",
        (
            f"ignored `{home}/AGENTS.md`: No such file or directory",
            f"ignored `{repo}/AGENTS.md`: No such file or directory",
        ),
    )


def test_the_users_own_file_may_be_a_link(home: Path, repo: Path) -> None:
    dotfiles = repo.parent / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "rules.md").write_text("mine")
    (home / "AGENTS.md").symlink_to(dotfiles / "rules.md")
    assert "mine" in load_agents_md(home, repo).text


def test_the_users_own_link_to_a_device_is_refused(home: Path, repo: Path) -> None:
    (home / "AGENTS.md").symlink_to("/dev/zero")
    loaded = load_agents_md(home, repo)
    assert loaded == AgentsMd("", (f"ignored `{home}/AGENTS.md`: not a regular file",))


# Replacing


def test_a_replacement_says_so_first(home: Path, repo: Path) -> None:
    (repo / "AGENTS.md").write_text("root")
    assert replacement(load_agents_md(home, repo).text) == block(
        repo, "These AGENTS.md instructions replace all previously provided AGENTS.md instructions.\n\nroot"
    )


def test_a_replacement_by_nothing_takes_the_old_one_back() -> None:
    assert replacement("") == (
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\n"
        "No AGENTS.md applies any more; leave the earlier ones aside.\n</INSTRUCTIONS>"
    )
