"""Names are looked up innermost first, ranges without listing them."""

from __future__ import annotations

from tilewise.device.emulator.scope import Scope
from tilewise.device.emulator.syntax import Label, Register, Special, Symbol


def test_inner_names_hide_outer_ones():
    """A register, a variable and a label of an inner scope have their own names."""
    outer = Scope(None)
    outer.declare_register("%r", "b32")
    outer.declare_symbol("v")
    inner = Scope(outer, "@1")
    inner.declare_register("%r", "f32")
    inner.declare_label("L")

    found = [inner.find(n) for n in ("%r", "v", "L", "%tid.x", "x")]

    expected = [
        Register("%r@1", "f32"),
        Symbol("v"),
        Label("L@1"),
        Special("tid.x"),
        None,
    ]
    assert expected == found


def test_a_range_holds_its_numbers_only():
    """%r<11> is %r0 to %r10, however large the range."""
    scope = Scope(None)
    scope.declare_range("%r", 11, "b32")
    scope.declare_range("%x", 10**9, "b32")

    found = [scope.find(n) for n in ("%r0", "%r10", "%r11", "%r01", "%r", "%x7")]

    assert [True, True, False, False, False, True] == [f is not None for f in found]


def test_a_label_is_declared_once():
    """The second declaration in one scope is refused."""
    scope = Scope(None)

    assert ["L", None] == [scope.declare_label("L"), scope.declare_label("L")]
