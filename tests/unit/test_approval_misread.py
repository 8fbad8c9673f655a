"""Scripts that a shell reads and the grammar does not: the commands in them are found all the same."""

from __future__ import annotations

import pytest

from codex_py.tools.danger import find_danger
from codex_py.tools.hidden_commands import hidden_commands
from tests.support.work import within

MISREAD = [
    "cat <<E > f; rm -f x\nhi\nE",
    "cat > f <<E; rm -f x\nhi\nE",
    "cat <<E & rm -f x\nhi\nE",
    "cat <<'E' > f;rm -f x\nit's\nE",
    "cat <<-E; rm -f x\n\thi\n\tE",
    "cat <<\\E; rm -f x\nhi\nE",
    "cat <<'A B'; rm -f x\nhi\nA B",
    "ls; cat <<E; rm -f x; ls\nhi\nE",
    "cat <<E > f; cat <<F > g; rm -f x\nhi\nE\nhi\nF",
    "if cat <<E; then rm -f x\nhi\nE\nfi",
    "{ cat <<E; rm -f x\nhi\nE\n}",
    "(cat <<E)\nhi\nE\nrm -f x",
    "x=$(cat <<E)\nhi\nE\nrm -f x",
    'echo "$(cat <<E; rm -f x\nhi "\nE\n)"',
    "cat <<E>f\nhi\nE\nrm -f x",
    "cat <<E|cat\nhi\nE\nrm -f x",
    "cat <<E&&ls\nhi\nE\nrm -f x",
    "cat <<E || ls; rm -f x\nhi\nE",
    "cat 0<<E\nhi\nE\nrm -f x",
    "cat <<E | cat <<F\nhi\nE\nhi\nF\nrm -f x",
    "cat <<E; # as it is\nhi\nE\nrm -f x",
    "cat <<E > f; sh f\nrm -f x\nE",
    "cat <<E | sh; ls\nrm -f x\nE",
    "let x=1<<2; rm -f x",
    "case a in a) ls ;& b) ls ;;& esac; rm -f x",
    "echo $((echo a) ) && rm -f x",
]


@pytest.mark.parametrize("script", MISREAD)
def test_what_the_grammar_stumbles_over_hides_no_command(script: str) -> None:
    assert find_danger(script, "/work", {}) == "it deletes without asking (`rm -f`)"
    found = hidden_commands(script.replace("rm -f", "git push"), "/work", {})
    assert ("git", "push", "x") in [words[:3] for words in found]


@pytest.mark.parametrize(
    "script",
    [
        "cat <<E > f; ls\nrm -f x\nE",
        "cat <<E>f\nrm -f x\nE\nls",
        "cat <<'E' > f & # rm -f x\n$(rm -f x)\nE",
        "python3 - <<E; ls\nos.system('rm -f x')\nE",
        "echo '<<E; rm -f x'; let y=1<<2",
    ],
)
def test_what_stands_in_a_document_is_no_command(script: str) -> None:
    assert find_danger(script, "/work", {}) is None


@pytest.mark.parametrize(
    "script",
    [
        "cat <<E;" * 8_000,
        "<<E " * 200 + "\n" + "a\n" * 40_000,
        "cat <<E | " * 800 + "\nE\n",
        "cat <<E>f;" * 1_000 + "\nE" * 1_000,
        "$((" * 20_000,
        "<<'" * 20_000,
        "1" * 300_000 + "$((",
    ],
    ids=lambda script: script[:12],
)
def test_what_is_misread_to_stall_does_not(script: str) -> None:
    within(40_000_000, lambda: (find_danger(script, "/work", {}), hidden_commands(script, "/work", {})))
