"""Corridors that vehicles sweep, and where two of them cross. Metres and radians; pure functions on arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]

STRAIGHT = 1e-6  # sine of the angle by which two steps may differ and still be one straight piece
STANDS_M = 1e-6  # a shorter step has no direction of its own
TINY = 1e-12
ALONG = np.array([0.0, 1.0, 1.0, 0.0])  # corners of a rectangle, in shares of its length
ACROSS = np.array([-1.0, -1.0, 1.0, 1.0])  # and of its half width
ALONG_EDGE = np.array([1.0, 0.0, -1.0, 0.0])  # from each corner to the next
ACROSS_EDGE = np.array([0.0, 2.0, 0.0, -2.0])


class Corridor(NamedTuple):
    """What a box sweeps along a path: one rectangle per straight piece, shape (k,) each.

    x_m, y_m: middle of the near end; ux, uy: direction; long_m: length; way_m: way of the box's centre from now to the
    near end (below 0 under the box's rear half). half_m: half the width. reach_m: way that the centre has on the path.
    """

    x_m: Array
    y_m: Array
    ux: Array
    uy: Array
    long_m: Array
    way_m: Array
    half_m: float
    reach_m: float


class Crossing(NamedTuple):
    """Ways from now, along each one's own path, until its front enters and until its rear has left [m]."""

    one_in_m: float
    one_out_m: float
    other_in_m: float
    other_out_m: float


def corridor(x_m: Array, y_m: Array, heading_rad: float, length_m: float, width_m: float, beyond_m: float) -> Corridor:
    """The corridor of a box of length x width whose centre moves along the points (x, y), shape (n,).

    It begins at the rear of the box as it is now, and goes straight on past the last point by half the box and
    `beyond_m`. `heading_rad` is the direction where the path has none: of a vehicle that stands. Steps in the same
    direction are one piece, so a straight path is a single, exact rectangle. At a bend the pieces leave a wedge open on
    the outside: at most half the width times half the turn, 6 cm for a step of 1.4 m on a radius of 10 m.
    """
    dx, dy = x_m[1:] - x_m[:-1], y_m[1:] - y_m[:-1]
    step = np.hypot(dx, dy)
    moves = step > STANDS_M
    half = length_m / 2
    if not moves.any():
        ux, uy = np.array([np.cos(heading_rad)]), np.array([np.sin(heading_rad)])
        return Corridor(
            x_m[:1] - half * ux,
            y_m[:1] - half * uy,
            ux,
            uy,
            np.array([length_m + beyond_m]),
            np.array([-half]),
            width_m / 2,
            0.0,
        )
    step, x0, y0 = step[moves], x_m[:-1][moves], y_m[:-1][moves]
    ux, uy = dx[moves] / step, dy[moves] / step
    way = np.concatenate(([0.0], np.cumsum(step)))
    turns = np.abs(ux[:-1] * uy[1:] - uy[:-1] * ux[1:]) > STRAIGHT
    first = np.concatenate(([0], np.flatnonzero(turns) + 1))
    begin, end = way[first], np.append(way[first[1:]], way[-1] + half + beyond_m)
    x0, y0, ux, uy = x0[first], y0[first], ux[first], uy[first]
    x0[0] -= half * ux[0]
    y0[0] -= half * uy[0]
    begin[0] -= half
    return Corridor(x0, y0, ux, uy, end - begin, begin, width_m / 2, float(way[-1]))


def crossing(one: Corridor, other: Corridor, one_m: float, other_m: float, least_sine: float) -> Crossing | None:
    """Where two corridors of boxes `one_m` and `other_m` long cross; None where they do not.

    Only pieces that meet at an angle whose sine is at least `least_sine` count: following, merging and oncoming are
    other conflicts than crossing. Ways are least and greatest over all such common ground, so that corridors which
    cross twice give the way from the first entry to the last exit. Nothing outside either path's reach is entered.
    """
    sine = one.ux[:, None] * other.uy - one.uy[:, None] * other.ux
    near = _near(one, other) & (np.abs(sine) >= least_sine)
    if not near.any():
        return None
    i, j = np.nonzero(near)
    a, b = _common(one, other, i, j, sine[i, j])
    if not len(a):
        return None
    half, other_half = one_m / 2, other_m / 2
    found = Crossing(
        float(a.min()) - half, float(a.max()) + half, float(b.min()) - other_half, float(b.max()) + other_half
    )
    reached = found.one_in_m <= one.reach_m and found.other_in_m <= other.reach_m
    return found if reached else None


def _near(one: Corridor, other: Corridor) -> NDArray[np.bool_]:
    """Pairs of pieces whose surrounding circles meet, shape (k, m)."""
    far: list[tuple[Array, Array, Array]] = []
    for each in (one, other):
        half = each.long_m / 2
        far.append((each.x_m + half * each.ux, each.y_m + half * each.uy, np.hypot(half, each.half_m)))
    (x, y, r), (x2, y2, r2) = far
    dx, dy, reach = x[:, None] - x2, y[:, None] - y2, r[:, None] + r2
    near: NDArray[np.bool_] = dx * dx + dy * dy < reach * reach
    return near


def _common(one: Corridor, other: Corridor, i: Places, j: Places, sine: Array) -> tuple[Array, Array]:
    """Corners of the ground that the pieces i of one corridor and j of the other have in common, pair by pair: how far
    along each corridor they lie, shape (n,). sine: of the angle from piece i to piece j."""
    ax, ay, bx, by = one.ux[i], one.uy[i], other.ux[j], other.uy[j]
    dx, dy = one.x_m[i] - other.x_m[j], one.y_m[i] - other.y_m[j]
    cosine = ax * bx + ay * by
    own = np.concatenate((one.long_m[i], other.long_m[j]))
    k = len(i)
    # First every piece of one in the frame of its partner, then every partner in the frame of that piece.
    inside, along, theirs = _clipped(
        np.concatenate((dx * bx + dy * by, -dx * ax - dy * ay)),
        np.concatenate((dy * bx - dx * by, dx * ay - dy * ax)),
        np.concatenate((cosine, cosine)),
        np.concatenate((-sine, sine)),
        own,
        np.repeat((one.half_m, other.half_m), k),
        np.concatenate((own[k:], own[:k])),
        np.repeat((other.half_m, one.half_m), k),
    )
    up, low = inside[:k], inside[k:]
    a_way, b_way = one.way_m[i][:, None], other.way_m[j][:, None]
    a = np.concatenate(((along[:, :k] + a_way)[:, up], (theirs[:, k:] + a_way)[:, low]), axis=1)
    b = np.concatenate(((theirs[:, :k] + b_way)[:, up], (along[:, k:] + b_way)[:, low]), axis=1)
    return a.ravel(), b.ravel()


def _clipped(
    x: Array, y: Array, cosine: Array, sine: Array, own_m: Array, own_half_m: Array, other_m: Array, other_half_m: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """The edges of n rectangles, each clipped to another one: which are (partly) inside, shape (n, 4), and where both
    ends of what is inside lie along the own direction and along the other one's, shape (2, n, 4).

    A rectangle's near end is at (x, y) in the frame of the other one, its direction (cosine, sine); the other one
    covers [0, other_m] x [-other_half_m, other_half_m]. All corners of the common ground are among these ends, taken
    both ways round. (Slab method: Kay and Kajiya 1986.)
    """
    cosine, sine = cosine[:, None], sine[:, None]
    along, across = own_m[:, None] * ALONG, own_half_m[:, None] * ACROSS
    edge, side = own_m[:, None] * ALONG_EDGE, own_half_m[:, None] * ACROSS_EDGE
    px, py = x[:, None] + along * cosine - across * sine, y[:, None] + along * sine + across * cosine
    dx, dy = edge * cosine - side * sine, edge * sine + side * cosine
    # What runs along a border must not divide 0 by 0.
    dx_, dy_ = np.where(np.abs(dx) < TINY, TINY, dx), np.where(np.abs(dy) < TINY, TINY, dy)
    half = other_half_m[:, None]
    x_0, x_1 = -px / dx_, (other_m[:, None] - px) / dx_
    y_0, y_1 = (-half - py) / dy_, (half - py) / dy_
    first = np.maximum(np.maximum(np.minimum(x_0, x_1), np.minimum(y_0, y_1)), 0.0)
    last = np.minimum(np.minimum(np.maximum(x_0, x_1), np.maximum(y_0, y_1)), 1.0)
    share = np.array((first, last))
    return first < last, along + share * edge, px + share * dx
