"""The subcommand of a command line is found behind flags, whatever these take."""

from __future__ import annotations

import pytest

from codex_py.cli.commands import TAKE_VALUE
from codex_py.cli.exec_parser import exec_parser
from codex_py.cli.options import Parser
from codex_py.cli.repl import terminal_parser


@pytest.mark.parametrize("parser", [exec_parser(), terminal_parser()], ids=["exec", "terminal"])
def test_flags_that_take_a_value_are_known_before_the_subcommand_is(parser: Parser) -> None:
    options = parser.long_options()
    assert {f"--{name}" for name, use in options.items() if use != "flag"} <= {*TAKE_VALUE}
