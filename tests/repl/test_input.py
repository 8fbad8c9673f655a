"""What a person can do with the input: lines, history, pastes, menus, chips, the editor."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import zlib

import pytest

from tests.repl.conftest import ready_model
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.terminal import Terminal

SKILL = "---\nname: lint\ndescription: Find what is wrong with code.\n---\n\nLook closely.\n"


def picture() -> bytes:
    """A PNG of one pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")
    )


def test_a_message_of_several_lines(place: Place) -> None:
    with ready_model(place, [say("ok")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("one")
        terminal.press("alt-enter")
        terminal.type("two\\")
        terminal.press("enter")
        terminal.type("three")
        terminal.wait_for("  three").press("enter")
        terminal.wait_for("● ok")

    assert model.requests[0].texts("user")[-1] == "one\ntwo\nthree"


def test_typed_text_wraps_at_words(place: Place) -> None:
    with ready_model(place), Terminal(place, width=30, height=20) as terminal:
        terminal.wait_for_prompt().type("these words are too many for one row and some more")
        terminal.wait_for("› these words are too many for\n  one row and some more")
        rows = terminal.rows
        # The space behind `for` has no cell of its own.
        terminal.press("ctrl-a", *["right"] * len("these words are too many for "))
        terminal.wait_for(lambda now: now.cursor == (rows.index("  one row and some more"), 2))
        terminal.type("just ")
        terminal.wait_for("› these words are too many for\n  just one row and some more")
        terminal.press("ctrl-u")


def test_what_was_typed_comes_back_in_the_next_session(place: Place) -> None:
    with ready_model(place, [say("ok")], [say("again")], excuse={"threads"}):
        with Terminal(place, "--ephemeral") as terminal:
            terminal.wait_for_prompt().type("remember me")
            terminal.press("enter")
            terminal.wait_for("● ok").wait_for_prompt().press("ctrl-d")
            terminal.wait_for_end()
        with Terminal(place) as terminal:
            terminal.wait_for_prompt().press("ctrl-r")
            terminal.type("rem")
            terminal.wait_for("⌕ rem").wait_for("❯ remember me").press("enter")
            terminal.wait_for(lambda shown: any(row == "› remember me" for row in shown.rows)).press("enter")
            terminal.wait_for("● again")

    [line] = (place.codex_home / "history.jsonl").read_text().splitlines()
    assert json.loads(line)["text"] == "remember me"


def test_the_draft_comes_back_from_the_history_and_a_hasty_escape_costs_no_letter(place: Place) -> None:
    (place.codex_home / "history.jsonl").write_text('{"session_id":"x","ts":1,"text":"older"}\nnot json\n')
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("draft")
        terminal.press("up")
        terminal.wait_for("› older").press("down")
        terminal.wait_for("› draft").press("ctrl-u")
        # Escape and a letter, come in one piece: Alt with that letter only where there are words to go over.
        terminal.wait_for("Ask anything").type("\x1bb")
        terminal.wait_for("› b").type(" d")
        terminal.wait_for("› b d").type("\x1bb")
        terminal.wait_for(lambda shown: shown.cursor[1] == len("› b ")).type("c")
        terminal.wait_for("› b cd")


def test_a_large_paste_is_folded_and_sent_whole(place: Place) -> None:
    pasted = "\n".join(f"line {number}" for number in range(30))
    with ready_model(place, [say("read it")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().paste(pasted)
        terminal.wait_for("[Pasted text #1 · 30 lines]").type(" what is this?")
        terminal.press("enter")
        terminal.wait_for("● read it")

        assert "line 17" not in terminal.whole

    assert model.requests[0].texts("user")[-1] == f"{pasted} what is this?"


def test_a_chip_is_deleted_as_a_whole(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().paste("x" * 2000)
        terminal.wait_for("[Pasted text #1 · 2,000 characters]").press("backspace")
        terminal.wait_for("Ask anything")


def test_a_picture_that_is_dragged_in_is_attached(place: Place) -> None:
    place.repo.joinpath("my shot.png").write_bytes(picture())
    with ready_model(place, [say("a dot")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().paste(str(place.repo / "my\\ shot.png"))
        terminal.wait_for("[Image #1 my shot.png]").press("enter")
        terminal.wait_for("● a dot")

    content = [part["type"] for item in model.requests[0].input for part in item.get("content", [])]
    assert "input_image" in content


def test_a_skill_is_picked_from_the_menu_and_sent_as_itself(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", SKILL)
    with ready_model(place, [say("linted")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("use $li")
        terminal.wait_for("$lint").wait_for("Find what is wrong with code.").press("tab")
        terminal.wait_for("› use $lint").type("on it")
        terminal.press("enter")
        terminal.wait_for("● linted")

    assert any("<name>lint</name>" in text for text in model.requests[0].texts("user"))
    assert model.requests[0].texts("user")[-1] == "use $lint on it"


def test_a_slash_before_a_skill_is_its_alias(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", SKILL)
    with ready_model(place, [say("linted")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("/lint app.py")
        terminal.press("enter")
        terminal.wait_for("● linted")

    assert any("<name>lint</name>" in text for text in model.requests[0].texts("user"))


def test_files_are_found_by_a_few_letters(place: Place) -> None:
    place.write("src/deep/parser_rules.py", "")
    place.write("ignored/secret_rules.py", "")
    place.write(".gitignore", "ignored/\n")
    with ready_model(place, [say("ok")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("look at @")
        terminal.wait_for("❯ README.md").type("prules")
        terminal.wait_for("src/deep/parser_rules.py")
        assert "secret_rules" not in terminal.text
        terminal.press("enter")
        terminal.wait_for("› look at src/deep/parser_rules.py").press("enter")
        terminal.wait_for("● ok")

    assert model.requests[0].texts("user")[-1] == "look at src/deep/parser_rules.py"


def test_a_shell_command_is_run_and_reported_to_the_model(place: Place) -> None:
    with ready_model(place, [say("saw it")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("!echo from-the-shell")
        terminal.wait_for("› !echo").wait_for("runs here as you, outside the sandbox").press("enter")
        terminal.wait_for("✓ ! echo from-the-shell").wait_for_prompt().type("what was it?")
        terminal.press("enter")
        terminal.wait_for("● saw it")

    assert any("from-the-shell" in text for text in model.requests[0].texts("user")[:-1])


def test_the_message_is_written_in_the_editor(place: Place) -> None:
    editor = place.write("editor.sh", "#!/bin/sh\nprintf 'from the editor' > \"$1\"\n")
    editor.chmod(0o755)
    with ready_model(place), Terminal(place, EDITOR=str(editor)) as terminal:
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for("› from the editor")


def test_vi_keys(place: Place) -> None:
    with ready_model(place, [say("ok")], tables="[tui]\nvim_mode_default = true\n"), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("hello wirld")
        terminal.press("escape")
        terminal.wait_for("hello wirld").type("bfirolaaa")
        terminal.wait_for("hello woraald").press("enter")
        terminal.wait_for("● ok")


def test_a_search_with_vi_keys_takes_letters_as_letters(place: Place) -> None:
    with ready_model(place, [say("ok")], tables="[tui]\nvim_mode_default = true\n"), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("xylophone")
        terminal.press("enter")
        terminal.wait_for("● ok").wait_for_prompt().type("d")
        terminal.press("escape")
        terminal.wait_for(lambda shown: bytes(shown.raw).endswith(b"\x1b[2 q") or b"\x1b[2 q" in shown.raw)
        terminal.press("ctrl-r")
        terminal.wait_for("⌕ d").press("backspace")
        terminal.type("xylo")
        terminal.wait_for("⌕ xylo").wait_for("❯ xylophone")


def test_a_key_of_the_user_s_own(place: Place) -> None:
    with (
        ready_model(place, tables='[tui.keymap]\nhelp = "ctrl-x"\nnonsense = "f1"\nedit = "ctrl-nothing"\n'),
        Terminal(place, width=120) as terminal,
    ):
        terminal.wait_for_prompt()
        terminal.wait_for("`tui.keymap.nonsense` in")
        terminal.wait_for("`ctrl-nothing`, for `tui.keymap.edit` in")
        terminal.press("ctrl-x")
        terminal.wait_for("── Help")


def test_a_sign_of_the_shell_alone_is_not_sent(place: Place) -> None:
    with ready_model(place):
        with Terminal(place) as terminal:
            terminal.wait_for_prompt().type("!")
            terminal.wait_for("› !").press("enter")
            terminal.wait_for("✗ there is no command behind the `!`")
        with Terminal(place, TERM="dumb") as terminal:
            terminal.wait_for(lambda shown: shown.text.endswith("\n>")).type("! \r")
            terminal.wait_for("error: there is no command behind the `!`")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("/nosuch thing", "no command or skill `/nosuch`"),
        ("/mcp now", "`/mcp` takes no arguments: `now`"),
        ("/clear now", "`/clear` takes no arguments: `now`"),
        ("!", "there is no command behind the `!`"),
    ],
)
def test_a_refused_line_is_not_sent_and_the_history_has_it(place: Place, line: str, complaint: str) -> None:
    with ready_model(place, [say("ok")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type(line)
        terminal.wait_for(f"› {line}").press("enter")
        terminal.wait_for(complaint).wait_for_prompt().press("up")
        terminal.wait_for(f"› {line}").press("ctrl-c")
        terminal.wait_for_prompt().type("hello\r")
        terminal.wait_for("● ok")

    assert model.requests[0].texts("user")[-1] == "hello"


def test_a_hundred_thousand_files_are_searched_in_one_call(place: Place) -> None:
    environment = dict(os.environ)
    code = (
        "from codex_py.ui.repl.files import FileIndex\n"
        "index = FileIndex([f'dir{n % 97}/sub{n % 13}/file_{n}.py' for n in range(100_000)] + ['x/İ.py'])\n"
        "print(index.find('file_99999', 3)[0], index.find('d96f777py', 3)[0], index.find('nothing-here', 3))\n"
    )
    done = subprocess.run(
        [str(place.env["PATH"].split(":")[0]) + "/python", "-c", code], env=environment, capture_output=True, text=True
    )
    first, second, rest = done.stdout.split(" ", 2)
    assert (first, rest.strip()) == ("dir89/sub3/file_99999.py", "[]")
    assert second.startswith("dir96/")
