"""Scripts that a shell reads and the grammar does not, written anew so that it does. Pure; nothing is judged here.

What the grammar stumbles over hides the commands behind it: on the line of a here-document all but what stands behind
a blank and `&&`, `||` or `|`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Each is looked for to the end of the script.
_MOST_DOCUMENTS: Final = 64
_MISREAD: Final = ("<<", ";&", ";;&", "$((")
_TOKEN: Final = re.compile(
    r"\\.|\$?'[^']*'|\"|\$\(\(?|\(|\)|(?<![^\s;&|()])#[^\n]*|<<<"
    r"|\d{0,4}<<(?P<tabs>-?)[ \t]*(?P<word>(?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|()<>'\"\\`])+)"
    r"|;;&|;&|;;|;|&&|&>|[<>]&|&|\|\||\||\n",
    re.DOTALL,
)
_IN_QUOTES: Final = re.compile(r"\\.|\"|\$\(\(?", re.DOTALL)
_QUOTING: Final = re.compile(r"[\\'\"]")
_ENDS: Final = frozenset((";", "&", "&&", "||"))


class _Document(NamedTuple):
    """A here-document: the `word` that ends it, as written, and the place of its opening among the parts of a piece."""

    word: str
    tabs: bool
    place: int


class _Piece(NamedTuple):
    """A part of a line that can stand alone, cut up into `parts`, and the here-documents that are opened in it."""

    parts: list[str]
    documents: list[_Document]


def may_be_misread(script: str) -> bool:
    """Whether anything is in it that is written anew; cheap."""
    return any(mark in script for mark in _MISREAD)


def readable_script(script: str) -> str:
    """The script with each here-document right behind the one command that reads it, and some rare words as usual ones.

    What runs when, and what a pipe between two here-documents carries, gets lost: it is for finding commands.
    """
    return _Rewriting(script).run()


class _Rewriting:
    def __init__(self, script: str) -> None:
        self._script = script
        self._done: list[str] = []
        # Of this line: what is finished, and what is not.
        self._pieces: list[_Piece] = []
        self._piece = _Piece([], [])
        # The place of the last `|` behind a here-document.
        self._pipe: int | None = None
        self._seen = 0
        # What is open: `"`, or a parenthesis.
        self._inside: list[str] = []

    def run(self) -> str:
        at = 0
        while True:
            quoted = self._inside[-1:] == ['"']
            found = (_IN_QUOTES if quoted else _TOKEN).search(self._script, at)
            if found is None:
                break
            self._piece.parts.append(self._script[at : found.start()])
            at = self._token(found, quoted=quoted)
        self._piece.parts.append(self._script[at:])
        self._end_line(len(self._script))
        return "".join(self._done)

    def _token(self, found: re.Match[str], *, quoted: bool) -> int:
        """Take over a token; where to read on."""
        token, parts = found[0], self._piece.parts
        if token == '"' or token[-1:] in "()":
            self._nest(token, quoted=quoted)
        elif token == "\n":
            return self._end_line(found.end())
        elif not quoted and found["word"]:
            self._open(found)
        elif token in (";&", ";;&"):
            parts.append(";;")
        elif self._piece.documents and token in _ENDS:
            self._end_piece()
        else:
            if self._piece.documents and token == "|":
                self._pipe = len(parts)
            parts.append(f" {token} " if token == "|" else token)
        return found.end()

    def _nest(self, token: str, *, quoted: bool) -> None:
        if token == ")" or (token == '"' and quoted):
            if token == ")" and self._piece.documents:
                self._end_piece()
            if self._inside:
                self._inside.pop()
        elif token == "$((":
            self._inside += ["(", "("]
            token = "$( ("
        else:
            self._inside.append(token)
        self._piece.parts.append(token)

    def _open(self, found: re.Match[str]) -> None:
        self._seen += 1
        if self._seen > _MOST_DOCUMENTS:
            self._piece.parts.append(found[0])
            return
        if self._pipe is not None:
            after = self._piece.parts[self._pipe + 1 :]
            del self._piece.parts[self._pipe :]
            self._end_piece()
            self._piece.parts.extend(after)
        self._piece.documents.append(_Document(found["word"], bool(found["tabs"]), len(self._piece.parts)))
        self._piece.parts.append(f" <<{found['tabs']}{found['word']} ")

    def _end_piece(self) -> None:
        self._pieces.append(self._piece)
        self._piece, self._pipe = _Piece([], []), None

    def _end_line(self, at: int) -> int:
        """Write the line, each piece with the documents that stand in the script from `at` on; what follows them."""
        self._end_piece()
        for parts, documents in self._pieces:
            bodies: list[str] = []
            for document in documents:
                end = self._end_of(document, at)
                if end is not None:
                    bodies.append(self._script[at:end].removesuffix("\n") + "\n")
                    at = end
                else:
                    # No here-document, as in `let x=1<<2`.
                    parts[document.place] = " "
            self._done += [*parts, "\n", *bodies]
        self._pieces.clear()
        return at

    def _end_of(self, document: _Document, at: int) -> int | None:
        """Where the script goes on behind a document that begins at `at`; None for one without an end."""
        word = re.escape(_QUOTING.sub("", document.word))
        tabs = r"\t*" if document.tabs else ""
        found = re.compile(rf"^{tabs}{word}$\n?", re.MULTILINE).search(self._script, at)
        return found.end() if found else None
