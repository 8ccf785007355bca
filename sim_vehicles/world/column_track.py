"""Tracks whose states are numbers in columns until they are asked for: a million rows are a few arrays then."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sim_vehicles.world.motion import State, Track


@dataclass(frozen=True)
class StateColumns:
    """Recorded states as an array of type "d" per column, in the units of `State`; all of one length."""

    t_s: array[float]
    x_m: array[float]
    y_m: array[float]
    heading_rad: array[float]
    speed_mps: array[float]

    @classmethod
    def of(cls, states: Sequence[State]) -> Self:
        """The columns of at least one state."""
        return cls(*(array("d", column) for column in zip(*(state[:5] for state in states), strict=True)))

    def __len__(self) -> int:
        return len(self.t_s)

    def states(self) -> list[State]:
        """An object for each."""
        return list(map(State, self.t_s, self.x_m, self.y_m, self.heading_rad, self.speed_mps))


class ColumnTrack(Track):
    """A track that makes its states where they are first asked for, also by `at`. `columns`: None from then on."""

    def __init__(self, id: str, type: str, length_m: float, width_m: float, states: StateColumns | list[State]) -> None:
        """states: a list where `dataclasses.replace` makes the same track with other values."""
        self.id = id
        self.type = type
        self.length_m = length_m
        self.width_m = width_m
        self.columns: StateColumns | None = None
        if isinstance(states, StateColumns):
            self.columns = states
        else:
            self.states = states

    def __getattr__(self, name: str) -> list[State]:
        """Called for what is not there, as `states` is not at first."""
        if name != "states":
            raise AttributeError(name)
        columns = self.columns
        if columns is not None:  # else another thread has just made them
            self.states = columns.states()
            self.columns = None
        found: list[State] = vars(self)["states"]
        return found


def with_states(track: Track, states: list[State]) -> Track:
    """The same vehicle with other states."""
    return Track(track.id, track.type, track.length_m, track.width_m, states)


def columns_of(track: Track) -> StateColumns:
    """The states of any track in columns; makes no object per state where there is none yet."""
    columns = track.columns if isinstance(track, ColumnTrack) else None
    return StateColumns.of(track.states) if columns is None else columns
