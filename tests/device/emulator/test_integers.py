"""Integer and bit operations agree with Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from tilewise.device.emulator import integers
from tilewise.device.emulator.types import DTYPES

INT = ("u16", "s16", "u32", "s32", "u64", "s64")


def _pairs(type_):
    info = np.iinfo(DTYPES[type_])
    random = np.random.default_rng(7)
    edges = [
        info.min,
        info.max,
        0,
        1,
        2,
        3,
        7,
        info.max // 2,
        info.max - 1,
        info.min + 1,
    ]
    wide = random.integers(info.min, info.max, 300, DTYPES[type_], endpoint=True)
    rows = [(x, y) for x in edges for y in edges]
    rows += zip(wide.tolist(), wide[::-1].tolist(), strict=True)
    a, b = zip(*rows, strict=True)
    return np.array(a, DTYPES[type_]), np.array(b, DTYPES[type_])


def _wrap(value, type_):
    bits = 8 * DTYPES[type_].itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def _quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("type_", INT)
def test_division_cuts_toward_zero(type_):
    """Quotient and remainder are C's; division by zero gives all ones."""
    a, b = _pairs(type_)
    rows = list(zip(a.tolist(), b.tolist(), strict=True))
    quotients = [_wrap(_quotient(x, y) if y else -1, type_) for x, y in rows]
    remainders = [_wrap(x - _quotient(x, y) * y if y else x, type_) for x, y in rows]

    with np.errstate(all="ignore"):
        assert quotients == integers.divide(a, b).tolist()
        assert remainders == integers.remainder(a, b).tolist()


@pytest.mark.parametrize("type_", INT)
def test_upper_half_of_a_product(type_):
    """mul.hi is the product shifted by the width."""
    a, b = _pairs(type_)
    bits = 8 * DTYPES[type_].itemsize
    rows = zip(a.tolist(), b.tolist(), strict=True)
    expected = [_wrap((x * y) >> bits, type_) for x, y in rows]

    with np.errstate(all="ignore"):
        assert expected == integers.mul_hi(type_)(a, b).tolist()


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_carry_and_borrow(type_):
    """The carry out of a sum, and the borrow out of a difference."""
    a, b = _pairs(type_)
    bits = 8 * DTYPES[type_].itemsize
    mask = (1 << bits) - 1
    for carry in (False, True):
        flag = np.full(a.shape, carry)
        rows = [
            (x & mask, y & mask) for x, y in zip(a.tolist(), b.tolist(), strict=True)
        ]
        with np.errstate(all="ignore"):
            total, out = integers.add_carry(a, b, flag)
            less, borrow = integers.sub_borrow(a, b, flag)

        assert [(x + y + carry) >> bits for x, y in rows] == out.astype(int).tolist()
        assert [x < y + carry for x, y in rows] == borrow.tolist()
        assert [_wrap(x + y + carry, type_) for x, y in rows] == total.tolist()
        assert [_wrap(x - y - carry, type_) for x, y in rows] == less.tolist()


@pytest.mark.parametrize("bits", [32, 64])
def test_counting_and_reversing_bits(bits):
    """clz, popc and brev against the binary text."""
    x = _pairs(f"u{bits}")[0]
    texts = [f"{v:0{bits}b}" for v in x.tolist()]

    assert [len(t) - len(t.lstrip("0")) for t in texts] == integers.clz(x).tolist()
    assert [t.count("1") for t in texts] == integers.popc(x).tolist()
    assert [int(t[::-1], 2) for t in texts] == integers.brev(x).tolist()


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("shiftamt", [False, True])
def test_the_highest_bit_that_is_no_sign(type_, shiftamt):
    """Bfind gives its position, or the shift that normalises; -1 for none."""
    x = _pairs(type_)[0]
    bits = 8 * DTYPES[type_].itemsize
    expected = []
    for value in x.tolist():
        plain = ~value if value < 0 else value
        place = plain.bit_length() - 1
        none = 0xFFFFFFFF
        found = bits - 1 - place if shiftamt else place
        expected.append(found if plain else none)

    assert expected == integers.bfind(type_, shiftamt=shiftamt)(x).tolist()


@pytest.mark.parametrize("type_", ["u32", "s32", "u64", "s64"])
def test_bit_fields(type_):
    """Bfe follows the ISA's own pseudo code."""
    bits = 8 * DTYPES[type_].itemsize
    random = np.random.default_rng(9)
    x = _pairs(type_)[0]
    position = random.integers(0, bits + 9, len(x)).astype(np.uint32)
    length = random.integers(0, bits + 9, len(x)).astype(np.uint32)
    expected = []
    for value, start, count in zip(
        x.tolist(), position.tolist(), length.tolist(), strict=True
    ):
        raw, most = value & ((1 << bits) - 1), bits - 1
        signed = type_[0] == "s" and count > 0
        sign = raw >> min(start + count - 1, most) & 1 if signed else 0
        digits = [
            raw >> (start + at) & 1 if at < count and start + at <= most else sign
            for at in range(bits)
        ]
        word = sum(bit << at for at, bit in enumerate(digits))
        expected.append(_wrap(word, type_))

    with np.errstate(all="ignore"):
        assert expected == integers.bfe(type_)(x, position, length).tolist()


@pytest.mark.parametrize("bits", [32, 64])
def test_inserting_bit_fields(bits):
    """Bfi puts the low bits of a into b, cut at the top."""
    random = np.random.default_rng(11)
    a, b = _pairs(f"u{bits}")
    position = random.integers(0, bits + 9, len(a)).astype(np.uint32)
    length = random.integers(0, bits + 9, len(a)).astype(np.uint32)
    expected = []
    rows = zip(a.tolist(), b.tolist(), position.tolist(), length.tolist(), strict=True)
    for x, y, start, count in rows:
        field = (((1 << count) - 1) << start) & ((1 << bits) - 1)
        expected.append((y & ~field) | ((x << start) & field))

    with np.errstate(all="ignore"):
        assert expected == integers.bfi(bits)(a, b, position, length).tolist()


def test_three_way_logic_follows_its_table():
    """lop3 looks each bit triple up."""
    a, b = _pairs("u32")
    c = a[::-1].copy()
    for table in (0x80, 0x96, 0xE8, 0x00, 0xFF, 0xCA):
        expected = []
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
            rows = [
                (x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1) for i in range(32)
            ]
            expected.append(sum((table >> row & 1) << i for i, row in enumerate(rows)))

        found = integers.lop3(a, b, c, np.uint32(table))

        assert expected == np.broadcast_to(found, a.shape).tolist()


def test_funnel_shift():
    """Shf keeps a half of the shifted 64 bits; clamp stops at 32."""
    a, b = _pairs("u32")
    count = np.arange(len(a), dtype=np.uint32) % 70
    rows = list(zip(a.tolist(), b.tolist(), count.tolist(), strict=True))
    for mode in ("wrap", "clamp"):
        by = [n & 31 if mode == "wrap" else min(n, 32) for _, _, n in rows]
        both = [y << 32 | x for x, y, _ in rows]
        left = [(v << n) >> 32 & 0xFFFFFFFF for v, n in zip(both, by, strict=True)]
        right = [v >> n & 0xFFFFFFFF for v, n in zip(both, by, strict=True)]

        assert left == integers.funnel("l", mode)(a, b, count).tolist()
        assert right == integers.funnel("r", mode)(a, b, count).tolist()


def test_byte_permutation():
    """Prmt picks bytes by nibbles; bit 3 spreads the sign."""
    a, b = np.array([0x80112233], np.uint32), np.array([0x44556677], np.uint32)

    def pick(mode, selector):
        return int(integers.prmt(mode)(a, b, np.array([selector], np.uint32))[0])

    assert 0x44332211 == pick("", 0x7012)  # no two modes share a layout
    assert 0xFF00FF80 == pick("", 0xB8B3) & 0xFF00FFFF
    assert 0x77801122 == pick("f4e", 1)
    assert 0x22222222 == pick("rc8", 1)
    assert 0x22332233 == pick("rc16", 0)


def test_dot_product_of_bytes():
    """dp4a multiplies four signed or unsigned bytes."""
    a = np.array([0x01FF7F80], np.uint32)
    b = np.array([0x02030405], np.uint32)
    c = np.array([10], np.int32)

    signed = integers.dp4a("s32", "s32")(a.view(np.int32), b.view(np.int32), c)
    mixed = integers.dp4a("u32", "s32")(a, b.view(np.int32), c)

    assert 1 * 2 - 1 * 3 + 127 * 4 - 128 * 5 + 10 == int(signed[0])
    assert 1 * 2 + 255 * 3 + 127 * 4 + 128 * 5 + 10 == int(mixed[0])
