"""`codex-py completions`: scripts that the shell can read, and the names after a `$`."""

from __future__ import annotations

import subprocess

from tests.support.home import Place
from tests.support.process import run
from tests.support.warm import warm_path

SKILL = "---\nname: lint\ndescription: Find what is wrong.\n---\n\nLook.\n"
COMPLETE = """
source "$1"
COMP_WORDS=(codex-py "$2"); COMP_CWORD=1
_codex_py
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(place: Place, word: str) -> list[str]:
    """What bash offers for the first word behind the command."""
    script = place.repo / "completion.bash"
    if not script.exists():
        script.write_bytes(run(place, "completions", "bash").stdout)
    argv = ["bash", "-c", COMPLETE, "bash", str(script), word]
    return subprocess.check_output(argv, env=warm_path(place.env), cwd=place.repo, text=True).splitlines()


def test_bash_completes_commands_flags_and_skills(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", SKILL)

    assert completed(place, "ex") == ["exec"]
    assert completed(place, "--sand") == ["--sandbox"]
    for typed, whole in (("$li", "\\$lint"), ("\\$li", "\\$lint"), ("'use $li", "use $lint"), ('"$li', "\\$lint")):
        assert completed(place, typed) == [whole]


def test_every_shell_has_a_script(place: Place) -> None:
    for shell in ("bash", "zsh", "fish"):
        script = run(place, "completions", shell).out
        assert "codex-py completions --skills" in script and "@" not in script.replace("${(@f)", "")


def test_another_shell_is_an_error(place: Place) -> None:
    finished = run(place, "completions", "tcsh")

    assert (finished.status, finished.out) == (2, "")
    assert "`bash`, `zsh`, `fish`" in finished.err


VALUES = """
source "$1"
shift
COMP_WORDS=(codex-py "$@"); COMP_CWORD=$#
_codex_py
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_bash_completes_values_from_files_of_this_machine(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", SKILL)
    place.configure(
        '[model_providers.mine]\nname = "x"\nbase_url = "http://127.0.0.1:9"\n[mcp_servers.docs]\ncommand = "x"\n'
    )
    (place.codex_home / "quick.config.toml").touch()
    script = place.repo / "completion.bash"
    script.write_bytes(run(place, "completions", "bash").stdout)
    for words, whole in (
        (("-m", "gpt-5.1-cod"), "gpt-5.1-codex"),
        (("-p", "q"), "quick"),
        (("models", "--provider", "mi"), "mine"),
        (("mcp", "get", "d"), "docs"),
        (("skills", "show", "li"), "lint"),
    ):
        argv = ["bash", "-c", VALUES, "bash", str(script), *words]
        found = subprocess.check_output(argv, env=warm_path(place.env), cwd=place.repo, text=True).splitlines()
        assert whole in found, words


def test_a_broken_configuration_completes_nothing(place: Place) -> None:
    place.configure("model = \n")
    finished = run(place, "completions", "--values", "models")
    assert (finished.status, finished.out.strip(), finished.err) == (0, "", "")
