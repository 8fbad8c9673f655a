from __future__ import annotations

from typing import Any, ClassVar

import pytest

from codex_py.protocol.value import Value


class Point(Value):
    shared: ClassVar[int] = 7
    x: int
    y: int = 2


class Other(Value):
    x: int
    y: int = 2


class Named(Point):
    name: str = ""


def test_fields_are_given_by_position_and_by_name() -> None:
    assert (Point(1).y, Point(1, 3).y, Point(x=1, y=4).y, Named(1, 2, "n").name) == (2, 3, 4, "n")
    assert repr(Point(1)) == "Point(x=1, y=2)"


@pytest.mark.parametrize(
    ("args", "values", "result"),
    [
        ((), {}, "Point needs `x`"),
        ((1, 2, 3), {}, "Point takes at most 2 values, got 3"),
        ((1,), {"z": 1}, "Point does not take z"),
        ((1,), {"x": 1}, "Point does not take x"),
    ],
)
def test_wrong_fields_are_refused(args: tuple[Any, ...], values: dict[str, Any], result: str) -> None:
    with pytest.raises(TypeError, match=result):
        Point(*args, **values)


def test_type_and_fields_make_two_values_equal() -> None:
    assert Point(1) == Point(1, 2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)


def test_a_value_does_not_change() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="immutable"):
        point.x = 5  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="immutable"):
        delattr(point, "x")
    assert (point.replace(x=5), point) == (Point(5), Point(1))


def test_a_value_matches_by_position() -> None:
    match Point(1, 3):
        case Point(x, y):
            assert (x, y) == (1, 3)
