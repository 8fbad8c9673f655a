"""What the help of `exec` says of its verbs."""

from __future__ import annotations

from typing import Final

# Of each verb its description and its examples.
VERBS: Final = {
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
