"""Threads know what others did before they met, and nothing after."""

from __future__ import annotations

import numpy as np

from tilewise.device.emulator.order import Order


def one(value):
    """Return a value as an array of one."""
    return np.array([value])


def before(order, first, time, second):
    """Tell whether what one thread did at a time is known to another."""
    return bool(order.before(one(first), one(time), one(second))[0])


def test_a_meeting_orders_its_members_only():
    """Threads 0 and 1 meet, thread 2 hears nothing; block 1 is apart."""
    order = Order(2, 4, partial=True)
    time = int(order.now(one(0))[0])

    order.meet(np.array([0, 1]))

    assert before(order, 0, time, 1)
    assert not before(order, 0, time, 2)
    assert not before(order, 4, time, 5)
    assert not before(order, 0, int(order.now(one(0))[0]), 1)


def test_news_travels_through_others():
    """0 meets 1, then 1 meets 2: thread 2 knows of 0."""
    order = Order(1, 4, partial=True)
    time = int(order.now(one(0))[0])
    order.meet(np.array([0, 1]))

    order.meet(np.array([1, 2]))

    assert before(order, 0, time, 2)
    assert not before(order, 0, time, 3)


def test_who_only_speaks_hears_nothing():
    """An arrival tells the waiting thread, not the other way round."""
    order = Order(1, 4, partial=True)
    first, second = (int(order.now(one(t))[0]) for t in (0, 1))

    order.hear(one(1), order.speak(one(0)))

    assert before(order, 0, first, 1)
    assert not before(order, 1, second, 0)
