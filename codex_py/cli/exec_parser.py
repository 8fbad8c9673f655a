"""The command line of `codex-py exec`: its flags and its help, without what carries them out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from codex_py.cli.options import (
    Parser,
    add_budget_flags,
    add_config_flags,
    add_model_flags,
    add_permission_flags,
    add_session_flags,
)

_USAGE: Final = """codex-py exec [OPTIONS] [PROMPT]
       codex-py exec resume [OPTIONS] (SESSION | --last) [PROMPT]
       codex-py exec fork [OPTIONS] (SESSION | --last) [PROMPT]
       codex-py exec review [OPTIONS] [--uncommitted | --base BRANCH | --commit SHA] [PROMPT]"""
_DESCRIPTION: Final = """Do one task without asking anything, and exit.

The answer goes to stdout, the work as it goes to stderr. Commands run in a sandbox and change nothing unless -s
says otherwise, or the project is one you trust.
"""
_EPILOG: Final = """examples:
  codex-py exec "why does the login test fail?"
  codex-py exec -s workspace-write "fix it"
  git diff | codex-py exec "write a commit message for this" -o message.txt
  codex-py exec resume --last "now the documentation"
  codex-py exec fork --last --turn 2 "try it without threads"
  codex-py exec review --base main
"""
# Of each verb its description and its examples.
_VERBS: Final = {
    "resume": (
        """Go on with an earlier session: the model knows all that was said and done in it.

SESSION is its id or its name; --last is the newest session of this directory. PROMPT comes after it; `-` or nothing
reads it from stdin. All other options are those of `codex-py exec`.
""",
        """examples:
  codex-py exec resume --last "now the documentation"
  codex-py exec resume --last --all - < prompt.txt
""",
    ),
    "fork": (
        """Begin a new session with all, or the first turns, of an earlier one. The earlier one stays as it is.

SESSION is its id or its name; --last is the newest session of this directory; --turn N leaves it at the end of its
turn N. All other options are those of `codex-py exec`.
""",
        """examples:
  codex-py exec fork --last --turn 2 "try it without threads"
""",
    ),
    "review": (
        """Review changes: of the working tree, of a branch or of one commit. Nothing is changed.

PROMPT tells the reviewer what to focus on. The model is `review_model` where that is set, the sandbox read-only unless
-s says otherwise. All other options are those of `codex-py exec`.
""",
        """examples:
  codex-py exec review
  codex-py exec review --base main "is the locking right?" -o review.md
""",
    ),
}


def exec_parser() -> Parser:
    """The flags of `exec`."""
    parser = Parser("codex-py exec", description=_DESCRIPTION, epilog=_EPILOG)
    parser.usage = _USAGE
    parser.add_argument("words", nargs="*", metavar="PROMPT", help="what to do; `-` or nothing reads it from stdin")
    parser.add_argument("-i", "--image", action="append", default=[], metavar="FILE", help="attach a picture")
    add_permission_flags(parser)
    add_model_flags(parser)
    add_budget_flags(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--json", "--experimental-json", action="store_true", help="print events as JSON lines on stdout"
    )
    output.add_argument("-o", "--output-last-message", metavar="FILE", help="write the last message to this file")
    output.add_argument("--output-schema", metavar="FILE", help="JSON schema the last message must satisfy")
    output.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="colours on stderr")
    add_session_flags(parser)
    runs = parser.add_argument_group("runs that others start, repeat and collect")
    runs.add_argument(
        "--session-id", metavar="ID", help="open or create this session; a task it has answered is not asked again"
    )
    runs.add_argument("--again", action="store_true", help="with --session-id: ask the model all the same")
    runs.add_argument("--session-dir", metavar="DIR", help="keep sessions, checkpoints, logs there, not in $CODEX_HOME")
    runs.add_argument(
        "--cwd-map",
        action="append",
        metavar="OLD=NEW",
        help="the session was made elsewhere: the directory OLD is NEW now; may be given again",
    )
    runs.add_argument(
        "--artifacts", metavar="DIR", help="write result.json, changes.patch, transcript.md and events.jsonl there"
    )
    review = parser.add_argument_group("review")
    review.add_argument("--uncommitted", action="store_true", help="staged, unstaged and untracked changes (default)")
    review.add_argument("--base", metavar="BRANCH", help="review this branch's changes since BRANCH")
    review.add_argument("--commit", metavar="SHA", help="review the changes of one commit")
    review.add_argument("--title", metavar="TEXT", help="with --commit: the commit's title")
    add_config_flags(parser)
    # For `batch`: fail where the answer is not stored.
    parser.add_argument("--stored", action="store_true", help=argparse.SUPPRESS)
    # Sent by SDK clients; they change nothing here.
    for flag in ("--thread-source", "--cyber-access-program"):
        parser.add_argument(flag, help=argparse.SUPPRESS)
    return parser


def exec_help(parser: Parser, flags: Sequence[str]) -> str:
    """The help of `exec`, or of one of its verbs."""
    verb = next((flag for flag in flags if flag in _VERBS), None)
    if verb is not None:
        parser.prog = f"codex-py exec {verb}"
        parser.usage = next(line.strip() for line in _USAGE.splitlines() if parser.prog in line)
        parser.description, parser.epilog = _VERBS[verb]
    return parser.format_help().rstrip()
