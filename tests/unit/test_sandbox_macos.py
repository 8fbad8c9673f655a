"""The Seatbelt profile and its command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.macos import seatbelt_argv, seatbelt_profile
from codex_py.sandbox.policy import WritableRoot

REPO = WritableRoot(Path("/r/repo"), (Path("/r/repo/.git"), Path("/r/repo/.codex")))
TMP = WritableRoot(Path("/private/tmp"), (Path("/private/tmp/.git"),))

BASE = """\
(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow file-read*)
(allow file-write-data (require-all (path "/dev/null") (vnode-type CHARACTER-DEVICE)))
"""

WRITES = """\
(allow file-write*
  (require-all
    (subpath (param "WRITABLE_ROOT_0"))
    (require-not (subpath (param "WRITABLE_ROOT_0_RO_0")))
    (require-not (subpath (param "WRITABLE_ROOT_0_RO_1")))))
(allow file-write*
  (require-all
    (subpath (param "WRITABLE_ROOT_1"))
    (require-not (subpath (param "WRITABLE_ROOT_1_RO_0")))))
"""
OTHER_CASE = (
    r'(deny file-write* (regex #"/\.(G[iI][tT]|[gG]I[tT]|[gG][iI]T|'
    r"C[oO][dD][eE][xX]|[cC]O[dD][eE][xX]|[cC][oO]D[eE][xX]|[cC][oO][dD]E[xX]|[cC][oO][dD][eE]X|"
    r"A[gG][eE][nN][tT][sS]|[aA]G[eE][nN][tT][sS]|[aA][gG]E[nN][tT][sS]|"
    r"[aA][gG][eE]N[tT][sS]|[aA][gG][eE][nN]T[sS]|[aA][gG][eE][nN][tT]S"
    r')(/|$)"))'
    "\n"
)


@pytest.mark.parametrize("network", [False, "loopback", True], ids=["off", "loopback", "on"])
def test_the_whole_profile(network: NetworkAccess) -> None:
    """As it was read and found right; after a change on purpose it is written again by hand."""
    unreadable = (Path("/Users/u/.ssh"), Path("/r"))
    profile = seatbelt_profile((REPO, TMP), network, unreadable)
    name = {False: "off", "loopback": "loopback", True: "on"}[network]
    assert profile == (Path(__file__).parent / "seatbelt" / f"{name}.sb").read_text()


def test_a_directory_to_work_in_stays_open_inside_one_that_must_not_be_read() -> None:
    assert seatbelt_profile((REPO, TMP), False, (Path("/r"),)).endswith(
        "(deny file-read* file-write*\n"
        '  (require-all\n    (subpath (param "UNREADABLE_0"))\n'
        '    (require-not (subpath (param "WRITABLE_ROOT_0")))))\n'
    )


def test_everything_is_denied_but_what_is_listed() -> None:
    profile = seatbelt_profile((), False)
    assert profile.startswith(BASE)
    assert "file-write*\n" not in profile
    assert "network" not in profile
    assert profile.count("(") == profile.count(")")


def test_writes_go_below_the_roots_and_off_what_is_protected() -> None:
    assert seatbelt_profile((REPO, TMP), False).endswith(WRITES + OTHER_CASE)


@pytest.mark.parametrize(
    ("path", "is_denied"),
    [
        ("/r/.Git", True),
        ("/r/.GIT/hooks", True),
        ("/r/.codeX", True),
        ("/r/.AgentS/skills", True),
        ("/r/.git/hooks", False),  # for the rule about the name itself
        ("/r/.Gitignore", False),
        ("/r/x.GIT", False),
        ("/r/Git", False),
    ],
)
def test_no_other_case_of_a_protected_name_is_made(path: str, is_denied: bool) -> None:
    pattern = OTHER_CASE.partition('#"')[2].rpartition('"')[0]
    assert (re.search(pattern, path) is not None) == is_denied


def test_the_paths_are_parameters() -> None:
    root = WritableRoot(Path('/r/")(allow default)'))
    argv = seatbelt_argv((root, TMP), False)
    assert argv[:2] == ["/usr/bin/sandbox-exec", "-p"]
    assert argv[3:] == [
        '-DWRITABLE_ROOT_0=/r/")(allow default)',
        "-DWRITABLE_ROOT_1=/private/tmp",
        "-DWRITABLE_ROOT_1_RO_0=/private/tmp/.git",
        "--",
    ]
    assert "allow default" not in argv[2]


def test_an_outer_root_does_not_undo_what_an_inner_one_protects() -> None:
    outer = WritableRoot(Path("/r"))
    argv = seatbelt_argv((REPO, outer), False)
    assert argv[-4:-1] == [
        "-DWRITABLE_ROOT_1=/r",
        "-DWRITABLE_ROOT_1_RO_0=/r/repo/.git",
        "-DWRITABLE_ROOT_1_RO_1=/r/repo/.codex",
    ]


def test_the_network_is_opened_only_when_allowed() -> None:
    assert "(allow network-outbound)\n" in seatbelt_profile((), True)
    loopback = seatbelt_profile((), "loopback")
    assert '(allow network-outbound (remote ip "localhost:*"))' in loopback
    assert "(allow network-outbound)\n" not in loopback


def test_what_must_not_be_read_comes_last_and_so_wins() -> None:
    unreadable = (Path("/Users/u/.ssh"), Path("/r/repo/.env"))
    profile = seatbelt_profile((REPO,), True, unreadable)
    assert profile.endswith(
        '(deny file-read* file-write* (subpath (param "UNREADABLE_0")))\n'
        '(deny file-read* file-write* (subpath (param "UNREADABLE_1")))\n'
    )
    argv = seatbelt_argv((REPO,), True, unreadable)
    assert argv[-3:] == ["-DUNREADABLE_0=/Users/u/.ssh", "-DUNREADABLE_1=/r/repo/.env", "--"]


def test_our_home_and_the_directories_that_lead_to_it_stay_where_they_are() -> None:
    root = WritableRoot(Path("/r"), (Path("/r/a/home"),), (Path("/r/a"),))
    assert seatbelt_profile((root,), False).endswith(
        "(allow file-write*\n"
        "  (require-all\n"
        '    (subpath (param "WRITABLE_ROOT_0"))\n'
        '    (require-not (subpath (param "WRITABLE_ROOT_0_RO_0")))\n'
        '    (require-not (literal (param "WRITABLE_ROOT_0_WAY_0")))))\n' + OTHER_CASE
    )
    assert seatbelt_argv((root,), False)[3:] == [
        "-DWRITABLE_ROOT_0=/r",
        "-DWRITABLE_ROOT_0_RO_0=/r/a/home",
        "-DWRITABLE_ROOT_0_WAY_0=/r/a",
        "--",
    ]


def test_a_root_inside_another_one_stays_where_it_is() -> None:
    inner, outer = WritableRoot(Path("/r/.git"), (Path("/r/.git/config"),)), WritableRoot(Path("/r"))
    argv = seatbelt_argv((outer, inner), False)
    assert argv[3:] == [
        "-DWRITABLE_ROOT_0=/r",
        "-DWRITABLE_ROOT_0_RO_0=/r/.git/config",
        "-DWRITABLE_ROOT_1=/r/.git",
        "-DWRITABLE_ROOT_1_RO_0=/r/.git/config",
        "-DWRITABLE_ROOT_1_WAY_0=/r/.git",
        "--",
    ]


def test_only_listed_unix_sockets_can_be_connected_to() -> None:
    listed = seatbelt_profile((REPO,), False, (), (Path("/r/agent.sock"),))
    assert listed.endswith(
        '(allow system-socket (socket-domain AF_UNIX))\n(allow network-outbound (literal (param "UNIX_SOCKET_0")))\n'
    )
    assert "-DUNIX_SOCKET_0=/r/agent.sock" in seatbelt_argv((REPO,), False, (), (Path("/r/agent.sock"),))
    assert "(deny network-outbound (remote unix-socket))" not in seatbelt_profile((REPO,), True, (), True)
