"""Reading what test runners print."""

from __future__ import annotations

import pytest

from codex_py.offline.failures import looks_like_test_run, read_verdict
from codex_py.offline.verdict import Failure, Verdict, counts_text
from tests.support.work import within

PYTEST = """\
============================= test session starts ==============================
collected 5 items / 1 error

==================================== ERRORS ====================================
__________________________ ERROR collecting test_b.py __________________________
ImportError while importing test module '/repo/test_b.py'.
Traceback:
/usr/lib/python3.11/importlib/__init__.py:126: in import_module
    return _bootstrap._gcd_import(name[level:], package, level)
test_b.py:1: in <module>
    import nothere
E   ModuleNotFoundError: No module named 'nothere'
__________________________ ERROR at setup of test_err __________________________
test_a.py:11: in bad
    def bad(): raise RuntimeError("fixture")
E   RuntimeError: fixture
=================================== FAILURES ===================================
_______________________________ TestK.test_p[2] ________________________________
test_a.py:6: in test_p
    assert n == 1, "odd one"
E   AssertionError: odd one
E   assert 2 == 1
__________________________________ test_deep ___________________________________
test_a.py:9: in test_deep
    f(0)
mod.py:2: in f
    return 1 / x
E   ZeroDivisionError: division by zero
=========================== short test summary info ============================
FAILED test_a.py::TestK::test_p[2] - AssertionError: odd one
FAILED test_a.py::test_deep - ZeroDivisionError: division by zero
ERROR test_b.py
ERROR test_a.py::test_err - RuntimeError: fixture
=============== 2 failed, 3 passed, 1 skipped, 2 errors in 0.02s ===============
"""
LONG_PYTEST = """\
=================================== FAILURES ===================================
__________________________________ test_deep ___________________________________

    def test_deep():
>       assert f(0) == 1
E       assert 2 == 1
E        +  where 2 = f(0)

tests/test_a.py:9: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_deep - assert 2 == 1
1 failed in 0.02s
"""
LONG_NAME = """\
=================================== FAILURES ===================================
_ TestReleases.test_that_has_a_name_which_leaves_no_room_for_more_underscores[x] _
test_a.py:9: in test_that_has_a_name_which_leaves_no_room_for_more_underscores
    f(0)
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
mod.py:2: in f
E   ZeroDivisionError: division by zero
=========================== short test summary info ============================
FAILED test_a.py::TestReleases::test_that_has_a_name_which_leaves_no_room_for_more_underscores[x]
1 failed in 0.02s
"""
SYNTAX_ERROR = """\
==================================== ERRORS ====================================
____________________________ ERROR collecting a/test_s.py _____________________________
E     File "/repo/a/test_s.py", line 3
E       def (:
E           ^
E   SyntaxError: invalid syntax
=========================== short test summary info ============================
ERROR a/test_s.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.13s ===============================
"""
SUBTESTS = """\
=================================== FAILURES ===================================
________________________________ T.test_s (i=0) ________________________________
tests/test_u.py:7: in test_s
    with self.subTest(i=i): self.assertEqual(i, 1)
E   AssertionError: 0 != 1
=========================== short test summary info ============================
SUBFAILED(i=0) tests/test_u.py::T::test_s - AssertionError: 0 != 1
========================= 1 failed, 1 passed in 0.05s ==========================
"""
UNITTEST = """\
FE.s
======================================================================
ERROR: test_b (test_u.T.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/repo/tests/test_u.py", line 4, in test_b
    helper()
  File "/repo/lib.py", line 9, in helper
    {}["x"]
    ~~^^^^^
KeyError: 'x'

======================================================================
ERROR: test_v (unittest.loader._FailedTest.test_v)
----------------------------------------------------------------------
ImportError: Failed to import test module: test_v
Traceback (most recent call last):
  File "/usr/lib/python3.11/unittest/loader.py", line 419, in _find_test_path
    module = self._get_module_from_name(name)
  File "/repo/tests/test_v.py", line 1, in <module>
    import gone
ModuleNotFoundError: No module named 'gone'


======================================================================
FAIL: test_s (test_u.T.test_s) (i=2)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/repo/tests/test_u.py", line 7, in test_s
    with self.subTest(i=i): self.assertEqual(i, 1)
AssertionError: 2 != 1

----------------------------------------------------------------------
Ran 5 tests in 0.001s

FAILED (failures=1, errors=2, skipped=1)
"""
OLD_UNITTEST = """\
======================================================================
FAIL: test_a (test_u.T)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/repo/test_u.py", line 3, in test_a
    self.assertEqual(1, 2)
AssertionError: 1 != 2

----------------------------------------------------------------------
Ran 1 test in 0.001s

FAILED (failures=1)
"""
TAP = """\
TAP version 13
# Subtest: adds
not ok 1 - adds
  ---
  duration_ms: 1.79
  location: '/repo/a.test.mjs:2:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:

    1 !== 2

  code: 'ERR_ASSERTION'
  stack: |-
    TestContext.<anonymous> (file:///repo/a.test.mjs:2:29)
    Test.runInAsyncScope (node:async_hooks:206:9)
  ...
ok 2 - ok
  ---
  duration_ms: 0.12
  ...
# Subtest: group
    not ok 1 - inner
      ---
      duration_ms: 0.18
      location: '/repo/a.test.mjs:4:37'
      failureType: 'testCodeFailure'
      error: 'boom'
      code: 'ERR_TEST_FAILURE'
      ...
    1..1
not ok 3 - group
  ---
  duration_ms: 0.43
  location: '/repo/a.test.mjs:4:6'
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  ...
1..3
# tests 3
# pass 1
# fail 2
# cancelled 0
# skipped 1
"""
SPEC = """\
✖ adds (0.9ms)
ℹ tests 2
ℹ pass 1
ℹ fail 1
ℹ cancelled 0
ℹ skipped 0

✖ failing tests:

test at a.test.mjs:2:1
✖ adds (0.9ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

  1 !== 2

      at TestContext.<anonymous> (file:///repo/a.test.mjs:2:29)
"""
JEST = """\
FAIL j/a.test.js
  ● g › bad

    boom

    \x1b[31m>\x1b[39m 1 | throw new Error('boom')

      at fail (node_modules/x/index.js:1:1)
      at Object.<anonymous> (j/a.test.js:5:111)

Test Suites: 1 failed, 1 total
Tests:       1 failed, 2 passed, 3 total
"""
VITEST = """\
 ❯ v/b.test.ts (2 tests | 1 failed) 9ms
   × adds 7ms

⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯

 FAIL  v/b.test.ts > group > adds
AssertionError: expected 1 to be 2 // Object.is equality

 ❯ v/b.test.ts:2:32
      1| import {test} from 'vitest';

 Test Files  1 failed (1)
      Tests  1 failed | 1 passed (2)
"""
MOCHA = """\
  g
    ✔ ok
    1) bad

  1 passing (4ms)
  1 failing

  1) g
       bad:

      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

      at Context.<anonymous> (m/c.js:2:68)
      at process.processImmediate (node:internal/timers:483:21)
"""
CARGO = """\
running 2 tests
test tests::works ... ok
test tests::breaks ... FAILED

failures:

---- tests::breaks stdout ----

thread 'tests::breaks' (29632) panicked at src/lib.rs:9:9:
assertion `left == right` failed: sum
  left: 4
 right: 5

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.16s

running 1 test
test doc ... ok

test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.16s
"""
OLD_CARGO = """\
test tests::old ... FAILED
thread 'tests::old' panicked at 'no, it is', src/lib.rs:3:5
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
"""
RUST_ERROR = """\
error[E0425]: cannot find value `x` in this scope
 --> src/lib.rs:5:9
  |
error: could not compile `demo` (lib) due to 1 previous error
"""
GO = """\
=== RUN   TestAdd
    add_test.go:8: got 3, want 4
--- FAIL: TestAdd (0.00s)
=== RUN   TestTable
=== RUN   TestTable/one
=== RUN   TestTable/two
    add_test.go:20: two is wrong
--- FAIL: TestTable (0.00s)
    --- PASS: TestTable/one (0.00s)
    --- FAIL: TestTable/two (0.00s)
=== RUN   TestSkip
--- SKIP: TestSkip (0.00s)
FAIL
FAIL\texample.com/x/add\t0.002s
ok  \texample.com/x/other\t0.001s
"""
OLD_GO = """\
--- FAIL: TestAdd (0.00s)
    add_test.go:8: got 3, want 4
FAIL
FAIL\texample.com/x/add\t0.002s
"""
GO_BUILD = """\
# example.com/x/add [example.com/x/add.test]
./add_test.go:5:2: undefined: Add
FAIL\texample.com/x/add [build failed]
"""
GO_PANIC = """\
=== RUN   TestP
--- FAIL: TestP (0.00s)
panic: index out of range [recovered]

goroutine 7 [running]:
example.com/x.TestP(0xc000)
\t/repo/p_test.go:12 +0x1d
FAIL\texample.com/x\t0.002s
"""

CASES: list[tuple[str, Verdict]] = [
    (
        PYTEST,
        Verdict(
            3,
            2,
            2,
            1,
            (
                Failure("TestK::test_p[2]", "test_a.py", 6, "AssertionError: odd one"),
                Failure("test_deep", "test_a.py", 9, "ZeroDivisionError: division by zero", "mod.py:2"),
                Failure("test_b.py", "test_b.py", 1, "ModuleNotFoundError: No module named 'nothere'"),
                Failure("test_err", "test_a.py", 11, "RuntimeError: fixture"),
            ),
        ),
    ),
    (
        LONG_NAME,
        Verdict(
            0,
            1,
            0,
            0,
            (
                Failure(
                    "TestReleases::test_that_has_a_name_which_leaves_no_room_for_more_underscores[x]",
                    "test_a.py",
                    9,
                    "ZeroDivisionError: division by zero",
                    "mod.py:2",
                ),
            ),
        ),
    ),
    (SUBTESTS, Verdict(1, 1, 0, 0, (Failure("T::test_s (i=0)", "tests/test_u.py", 7, "AssertionError: 0 != 1"),))),
    (LONG_PYTEST, Verdict(0, 1, 0, 0, (Failure("test_deep", "tests/test_a.py", 9, "assert 2 == 1"),))),
    (SYNTAX_ERROR, Verdict(0, 0, 1, 0, (Failure("a/test_s.py", "a/test_s.py", 3, "SyntaxError: invalid syntax"),))),
    (
        UNITTEST,
        Verdict(
            1,
            1,
            2,
            1,
            (
                Failure("test_u.T.test_b", "tests/test_u.py", 4, "KeyError: 'x'", "lib.py:9"),
                Failure("test_v", "tests/test_v.py", 1, "ModuleNotFoundError: No module named 'gone'"),
                Failure("test_u.T.test_s (i=2)", "tests/test_u.py", 7, "AssertionError: 2 != 1"),
            ),
        ),
    ),
    (OLD_UNITTEST, Verdict(0, 1, 0, 0, (Failure("test_u.T.test_a", "test_u.py", 3, "AssertionError: 1 != 2"),))),
    ("....\n" + "-" * 70 + "\nRan 4 tests in 0.001s\n\nOK\n", Verdict(4, 0, 0, 0)),
    ("..  [100%]\n2 passed, 1 warning in 0.01s\n", Verdict(2, 0, 0, 0)),
    ("============== no tests ran in 0.01s ===============\n", Verdict(0, 0, 0, 0)),
    (
        TAP,
        Verdict(
            1,
            2,
            0,
            1,
            (
                Failure("adds", "a.test.mjs", 2, "Expected values to be strictly equal:"),
                Failure("inner", "a.test.mjs", 4, "boom"),
            ),
        ),
    ),
    (
        SPEC,
        Verdict(
            1,
            1,
            0,
            0,
            (
                Failure(
                    "adds", "a.test.mjs", 2, "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
                ),
            ),
        ),
    ),
    (JEST, Verdict(2, 1, 0, 0, (Failure("g › bad", "j/a.test.js", 5, "boom"),))),
    (
        VITEST,
        Verdict(
            1,
            1,
            0,
            0,
            (Failure("group > adds", "v/b.test.ts", 2, "AssertionError: expected 1 to be 2 // Object.is equality"),),
        ),
    ),
    (
        MOCHA,
        Verdict(
            1,
            1,
            0,
            0,
            (Failure("g bad", "m/c.js", 2, "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"),),
        ),
    ),
    (CARGO, Verdict(2, 1, 0, 2, (Failure("tests::breaks", "src/lib.rs", 9, "assertion `left == right` failed: sum"),))),
    (OLD_CARGO, Verdict(0, 1, 0, 0, (Failure("tests::old", "src/lib.rs", 3, "no, it is"),))),
    (
        RUST_ERROR,
        Verdict(None, None, 1, None, (Failure("error[E0425]: cannot find value `x` in this scope", "src/lib.rs", 5),)),
    ),
    (
        GO,
        Verdict(
            1,
            2,
            0,
            1,
            (
                Failure("TestAdd", "add_test.go", 8, "got 3, want 4"),
                Failure("TestTable/two", "add_test.go", 20, "two is wrong"),
            ),
        ),
    ),
    (OLD_GO, Verdict(0, 1, 0, 0, (Failure("TestAdd", "add_test.go", 8, "got 3, want 4"),))),
    (GO_BUILD, Verdict(0, 0, 1, 0, (Failure("undefined: Add", "add_test.go", 5),))),
    (GO_PANIC, Verdict(0, 1, 0, 0, (Failure("TestP", "p_test.go", 12, "panic: index out of range [recovered]"),))),
    ("nothing of the kind\n", Verdict()),
    ("", Verdict()),
]


@pytest.mark.parametrize(
    ("output", "expected"), CASES, ids=lambda value: str(value)[:16] if isinstance(value, str) else ""
)
def test_counts_and_places_are_read(output: str, expected: Verdict) -> None:
    assert read_verdict(output, "/repo") == expected


def test_counts_are_told_with_the_failing_ones_first() -> None:
    assert counts_text(Verdict(3, 2, 1, 4)) == "2 failed, 1 error, 3 passed, 4 skipped"
    assert counts_text(Verdict()) == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q", True),
        ("python3 -m pytest", True),
        ("npm test", True),
        ("./run_tests.sh", True),
        ("make check", True),
        ("ls", False),
        ("cat latest.txt", False),
        ("echo contest", False),
    ],
)
def test_commands_that_run_tests_are_known(command: str, expected: bool) -> None:
    assert looks_like_test_run(command) is expected


@pytest.mark.parametrize(
    "output",
    [
        "_" * 100_000,
        "___ a " * 20_000,
        "FAILED a::b - c\n" * 3_000,
        " " * 100_000,
        "not ok 1 - a\n  ---\n" * 5_000,
        "thread '" * 10_000,
        "--- FAIL: T (0s)\n" * 3_000,
        "  ● x\n" * 3_000,
        "FAIL: a (b)\n" * 5_000,
        "1 passed, " * 20_000,
        "/a" * 50_000,
        "  1) x\n" * 10_000,
    ],
    ids=lambda output: output[:10],
)
def test_hostile_output_is_read_in_linear_time(output: str) -> None:
    text = f"test session starts\n{output}\nTests:       1 failed, 1 total\n"
    within(20 * len(text), lambda: read_verdict(text, "/repo"))
