"""What is read of a command line: its commands wherever they stand, with their words, input and directory."""

from __future__ import annotations

import pytest

from codex_py.shell.command_line import CommandLine, ShellCommand
from codex_py.shell.reader import CommandLineReader
from codex_py.shell.reading import read_command_line

ENV = {"HOME": "/home/me", "TOOLS": "/opt/tools"}
FILES = {"/work/deploy.sh": "set -e\ngit push origin main\n"}


def read(script: str) -> CommandLine:
    return read_command_line(script, "/work", ENV, FILES.get)


def find(script: str, program: str) -> ShellCommand:
    return next(command for command in read(script).commands if command.program == program)


@pytest.mark.parametrize(
    "script",
    [
        "git push origin",
        "git push origin > log",
        "x=$(git push origin)",
        'echo "`git push origin`"',
        "bash -c 'ls; git push origin' 2>&1",
        "bash -lc \"sh -c 'git push origin'\"",
        "A=1 git push origin",
        "env A=1 nice -n 5 git push origin",
        "env -S 'git push origin'",
        "sudo timeout 5 git push origin | tee log",
        "echo origin | xargs -n 1 git push origin",
        "find . -exec git push origin {} ';'",
        "find . -exec sh -c 'git push origin' ';'",
        "ls | xargs sudo git push origin",
        "setsid git push origin &",
        "while true; do git push origin; done",
        "for r in origin; do git push $r; done",
        "if true; then git push origin; fi",
        "f() { git push origin; }; f",
        "(cd x && git push origin)",
        "$'git' p\\ush origin",
        "G=git; $G push origin",
        "git -C x push origin",
        "git --no-pager -c a=b push origin",
        "sh <<E\ngit push origin\nE",
        "cat <<E | bash\ngit push origin\nE",
        "cat <<E | bash; ls\ngit push origin\nE",
        "bash 2>&1 <<<'git push origin'",
        "bash -s <<<'bash <<<\"git push origin\"'",
        "bash <(echo git push origin)",
        "printf 'ls\\ngit push origin' | cat | bash",
        "printf '%s\\n' 'git push origin' > x.sh; sh x.sh",
        "cat > x.sh <<'E'\ngit push origin\nE\nchmod +x x.sh && ./x.sh",
        "eval git push origin",
        "trap 'git push origin' EXIT",
        "ssh host 'git push origin'",
        "su -c 'git push origin' me",
        "git rebase -x 'git push origin' main",
        "strace -f git push origin",
        "docker exec x git push origin",
        "bash deploy.sh",
        "./deploy.sh",
        ". deploy.sh",
        "cd .. && sudo bash work/deploy.sh",
        "cd x/.. ; bash < deploy.sh",
    ],
)
def test_a_command_is_found_wherever_it_stands(script: str) -> None:
    assert ("git", "push", "origin") in [words[:3] for words in read(script).every_reading()]


@pytest.mark.parametrize(
    "script",
    [
        "cat > f <<E\ngit push origin\nE",
        "echo 'git push origin' | cat",
        "grep 'git push origin' x",
        "git commit -m 'git push origin'",
        "bash -n deploy.sh",
        "cat deploy.sh",
    ],
)
def test_what_nothing_runs_is_no_command(script: str) -> None:
    assert not [words for words in read(script).every_reading() if words[:2] == ("git", "push")]


def test_a_command_counts_with_what_runs_it_and_without() -> None:
    assert [command.texts for command in read("sudo -u me nice make > log").commands] == [
        ("sudo", "-u", "me", "nice", "make"),
        ("nice", "make"),
        ("make",),
    ]


def test_words_behind_a_wrapper_are_guesses() -> None:
    commands = read("docker exec -it x make test").commands
    assert [command.texts for command in commands if not command.is_guess] == [
        ("docker", "exec", "-it", "x", "make", "test")
    ]
    assert ("make", "test") in [command.texts for command in commands if command.is_guess]


def test_directories_are_followed() -> None:
    assert find("cd src && (cd lib; ls); make", "ls").directory == "/work/src/lib"
    assert find("cd src && (cd lib; ls); make", "make").directory == "/work/src"
    assert find("cd $(mktemp -d); make", "make").directory is None


def test_variables_are_expanded_and_unknown_words_are_empty() -> None:
    assert find("$TOOLS/run ~/x $UNKNOWN", "run").texts == ("/opt/tools/run", "/home/me/x", "")
    assert find('D=src; ls "$D/a" ${D}b', "ls").texts == ("ls", "src/a", "srcb")


def test_inputs_and_redirections() -> None:
    assert find("sort <<< 'b a' > out 2>> log", "sort").input.text == "b a"
    redirects = find("sort a > out 2>> log", "sort").redirects
    assert [(redirect.operator, redirect.target.text) for redirect in redirects] == [(">", "out"), (">>", "log")]
    assert find("echo pwd | tee y | sh", "sh").input.text == "pwd"


def test_only_a_plain_line_has_segments() -> None:
    assert read("cd src && ls | wc -l").segments == (("cd", "src"), ("ls",), ("wc", "-l"))
    assert read("bash -lc 'ls; pwd'").segments == (("ls",), ("pwd",))
    assert read("ls > out").segments is None


def test_scripts_for_further_shells_are_named() -> None:
    assert read("bash -c 'sh -c \"ls\"'; eval pwd").scripts == ('sh -c "ls"', "ls", "pwd")


@pytest.mark.parametrize(
    "script",
    [
        "eval " * 40 + "ls",
        "for a in 1 2 3 4 5 6 7 8 9; do " * 12 + "ls; " + "done; " * 12,
        "$(" * 2000,
        "ls;" * 6000,
        "a=$a$a;" * 500 + "ls $a",
        "ls " + "x " * 5000,
    ],
)
def test_what_is_over_the_limits_is_left_out(script: str) -> None:
    line = read(script)
    assert len(line.commands) <= 2000
    assert all(len(command.words) <= 1000 for command in line.commands)


def test_a_line_is_read_once_unless_a_file_may_change() -> None:
    files = {"/work/x": "ls"}
    reader = CommandLineReader(files.get)
    assert reader.read("ls | wc", "/work", ENV) is reader.read("ls | wc", "/work", dict(ENV))
    assert ("ls",) in reader.read("sh x", "/work", ENV).every_reading()
    files["/work/x"] = "pwd"
    assert ("pwd",) in reader.read("sh x", "/work", ENV).every_reading()
