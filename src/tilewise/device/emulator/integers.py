"""
Compute PTX integer and bit arithmetic over arrays.

Source: PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer
Arithmetic Instructions" and "Logic and Shift Instructions". What the ISA leaves open
(division by zero) follows the hardware: all ones, and the dividend as remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from tilewise.device.emulator.types import DTYPES, is_signed, size_of, widened

__all__ = [
    "add_carry",
    "bfe",
    "bfi",
    "bfind",
    "brev",
    "clz",
    "divide",
    "dp4a",
    "funnel",
    "lop3",
    "mul_hi",
    "popc",
    "prmt",
    "remainder",
    "sub_borrow",
]

Array: TypeAlias = Any
U32: Final = np.uint32
U64: Final = np.uint64


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def divide(a: Array, b: Array) -> Array:
    """Return the quotient cut toward zero; all ones for division by zero."""
    quotient = (a - np.fmod(a, b)) // b
    return np.where(b == 0, a.dtype.type(0) ^ ~a.dtype.type(0), quotient)


def remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the dividend's sign; the dividend for b = 0."""
    return np.where(b == 0, a, np.fmod(a, b))


def mul_hi(type_: str) -> Callable[[Array, Array], Array]:
    """Return the upper half of the double-width product."""
    dtype = DTYPES[type_]
    if size_of(type_) == 8:
        return _mul_hi_s64 if is_signed(type_) else _mul_hi_u64
    wide, bits = DTYPES[widened(type_)].type, 8 * size_of(type_)

    def product(a: Array, b: Array) -> Array:
        return ((wide(a) * wide(b)) >> wide(bits)).astype(dtype)

    return product


def _mul_hi_u64(a: Array, b: Array) -> Array:
    low, half = U64(0xFFFFFFFF), U64(32)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    second = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (second >> half)


def _mul_hi_s64(a: Array, b: Array) -> Array:
    high = _mul_hi_u64(a.view(U64), b.view(U64)).view(np.int64)
    zero = np.int64(0)
    return high - np.where(a < 0, b, zero) - np.where(b < 0, a, zero)


def add_carry(a: Array, b: Array, carry: Array) -> tuple[Array, Array]:
    """Return a + b + carry and the carry out (CC.CF)."""
    x, y = _unsigned(a), _unsigned(b)
    total = x + y
    out = total + carry.astype(x.dtype)
    return out.view(a.dtype), (total < x) | (out < total)


def sub_borrow(a: Array, b: Array, borrow: Array) -> tuple[Array, Array]:
    """Return a - b - borrow and the borrow out (CC.CF)."""
    x, y = _unsigned(a), _unsigned(b)
    less = x - y
    out = less - borrow.astype(x.dtype)
    return out.view(a.dtype), (x < y) | (less < out)


def clz(x: Array) -> Array:
    """Count the leading zero bits."""
    bits = 8 * x.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32)[: bits.bit_length() - 1]:
        x = x | (x >> x.dtype.type(shift))
    return U32(bits) - np.bitwise_count(x).astype(U32)


def popc(x: Array) -> Array:
    """Count the bits that are set."""
    return np.bitwise_count(x).astype(U32)


def brev(x: Array) -> Array:
    """Reverse the order of the bits."""
    size = x.dtype.itemsize
    kind = x.dtype.type
    for shift, mask in ((1, 0x55), (2, 0x33), (4, 0x0F)):
        wide = kind(int.from_bytes(bytes([mask]) * size, "little"))
        x = ((x >> kind(shift)) & wide) | ((x & wide) << kind(shift))
    return x.byteswap()


def bfind(type_: str, *, shiftamt: bool) -> Callable[[Array], Array]:
    """Find the highest bit that is no sign bit; all ones where there is none."""
    bits = 8 * size_of(type_)

    def find(x: Array) -> Array:
        if is_signed(type_):
            x = x ^ (x >> x.dtype.type(bits - 1))
        zeros = clz(_unsigned(x))
        found = zeros if shiftamt else U32(bits - 1) - zeros
        return np.where(x == 0, U32(0xFFFFFFFF), found)

    return find


def bfe(type_: str) -> Callable[[Array, Array, Array], Array]:
    """Extract `length` bits from a position, with the field's sign."""
    bits, kind = 8 * size_of(type_), DTYPES[type_].type
    most = np.int64(bits - 1)

    def extract(x: Array, position: Array, length: Array) -> Array:
        start = np.asarray(position & U32(0xFF), np.int64)
        count = np.asarray(length & U32(0xFF), np.int64)
        shifted = x >> np.minimum(start, most).astype(kind)
        if not is_signed(type_):
            shifted = np.where(start > most, kind(0), shifted)
        top = np.minimum(start + count - 1, most)
        field = _mask(np.minimum(count, bits), bits)
        low = _unsigned(np.asarray(shifted)) & field
        if not is_signed(type_):
            return low.view(kind)
        sign = (x >> top.astype(kind)) & kind(1)
        filled = np.where((sign != 0) & (count > 0), low | ~field, low)
        return filled.view(kind)

    return extract


def _mask(count: Array, bits: int) -> Array:
    kind = np.dtype(f"u{bits // 8}").type
    whole = kind((1 << bits) - 1)
    part = (kind(1) << np.asarray(count % bits).astype(kind)) - kind(1)
    return np.where(count >= bits, whole, part)


def bfi(bits: int) -> Callable[[Array, Array, Array, Array], Array]:
    """Insert the low `length` bits of a into b at a position."""
    kind = np.dtype(f"u{bits // 8}").type

    def insert(a: Array, b: Array, position: Array, length: Array) -> Array:
        start = np.asarray(position & U32(0xFF), np.int64)
        count = np.minimum(np.asarray(length & U32(0xFF), np.int64), bits)
        field = _mask(count, bits) << np.minimum(start, bits).astype(kind)
        moved = a << np.minimum(start, bits).astype(kind)
        return (b & ~field) | (moved & field)

    return insert


def funnel(direction: str, mode: str) -> Callable[[Array, Array, Array], Array]:
    """Shift the 64 bits {b, a} and keep the upper (left) or lower (right) half."""

    def shift(a: Array, b: Array, count: Array) -> Array:
        both = (np.asarray(b, U64) << U64(32)) | a
        by = count & U32(31) if mode == "wrap" else np.minimum(count, U32(32))
        if direction == "l":
            return ((both << np.asarray(by, U64)) >> U64(32)).astype(U32)
        return (both >> np.asarray(by, U64)).astype(U32)

    return shift


def lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Combine three words by a table of eight bits (a = 0xF0, b = 0xCC, c = 0xAA)."""
    lut, out = int(np.max(table)), np.zeros((), U32)
    for row in range(8):
        if lut >> row & 1:
            term = (a if row & 4 else ~a) & (b if row & 2 else ~b)
            out = out | (term & (c if row & 1 else ~c))
    return out


def prmt(mode: str) -> Callable[[Array, Array, Array], Array]:
    """Pick four bytes of {b, a} by a selector (PTX ISA, "prmt")."""

    def permute(a: Array, b: Array, selector: Array) -> Array:
        both = (np.asarray(b, U64) << U64(32)) | a
        out = np.zeros((), U32)
        for byte in range(4):
            pick = _selected(mode, byte, selector)
            value = (both >> np.asarray((pick & U32(7)) * U32(8), U64)) & U64(0xFF)
            sign = (pick & U32(8) != 0) & (mode == "")
            filled = np.where(value & U64(0x80) != 0, U64(0xFF), U64(0))
            value = np.where(sign, filled, value).astype(U32)
            out = out | (value << U32(8 * byte))
        return out

    return permute


_MODES: Final = {
    "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
    "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
    "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
}


def _selected(mode: str, byte: int, selector: Array) -> Array:
    if mode == "":
        return (selector >> U32(4 * byte)) & U32(15)
    rows = np.array([row[3 - byte] for row in _MODES[mode]], U32)
    return rows[np.asarray(selector & U32(3), np.int64)]


def dp4a(a_type: str, b_type: str) -> Callable[[Array, Array, Array], Array]:
    """Add the products of four pairs of bytes to c."""

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = np.asarray(c, np.int64)
        for byte in range(4):
            left = (a.view(U32) >> U32(8 * byte)).astype(np.uint8)
            right = (b.view(U32) >> U32(8 * byte)).astype(np.uint8)
            left = left.view(np.int8) if is_signed(a_type) else left
            right = right.view(np.int8) if is_signed(b_type) else right
            total = total + left.astype(np.int64) * right
        return total.astype(U32).view(c.dtype)

    return dot
