"""`coordinator top` on a terminal: two tables, a screen per node and per output.

Agents are asked on a thread of its own, one look at a time, so that keys are answered while a node is silent.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, Generic

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Static

from coordinator.monitoring import text
from coordinator.monitoring.details import Details, NodeDetails, OutputDetails
from coordinator.monitoring.metrics import Frame
from coordinator.monitoring.monitor import Monitor
from coordinator.monitoring.tables import INDICATION, NODES, OUTPUTS, Column, Row, ordered

BAD = "bold red"
ENDED = 128  # and the number of the signal: the exit code


class Sorted(DataTable[Text], Generic[Row]):
    """Rows by name, sorted by a column. `s` takes the next column, `r` turns the order around."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "next_column", "Sort"),
        Binding("r", "turn", "Reverse"),
    ]

    def __init__(self, columns: Sequence[Column[Row]], id_: str) -> None:
        super().__init__(id=id_, cursor_type="row", cell_padding=0)
        self.told: Sequence[Column[Row]] = columns
        self.rows_: Sequence[Row] = ()
        self.by, self.most_first = 0, False

    def show(self, rows: Sequence[Row]) -> None:
        """Puts new figures into the table. The chosen row stays chosen."""
        self.rows_ = rows
        chosen = self.chosen
        sorted_ = ordered(rows, self.told[self.by], self.most_first)
        self.clear(columns=True)
        cells = [[(column.cell(row), column.bad(row)) for column in self.told] for row in sorted_]
        for index, column in enumerate(self.told):
            title = column.title + (("v" if self.most_first else "^") if index == self.by else "")
            width = 1 + max(len(title), *(len(row[index][0]) for row in cells)) if cells else 1 + len(title)
            self.add_column(_aligned(column, title), width=width, key=str(index))
        for row, told in zip(sorted_, cells, strict=True):
            styled = (_aligned(column, *cell) for column, cell in zip(self.told, told, strict=True))
            self.add_row(*styled, key=name_of(row))
        names = [name_of(row) for row in sorted_]
        if chosen in names:
            self.move_cursor(row=names.index(chosen), animate=False)

    @property
    def chosen(self) -> str | None:
        """Name of the row that the cursor is on."""
        if not self.row_count or not self.is_valid_row_index(self.cursor_row):
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def action_next_column(self) -> None:
        """Sort by the next column; figures with the most first."""
        self.sort_by((self.by + 1) % len(self.told))

    def action_turn(self) -> None:
        """The other way around."""
        self.most_first = not self.most_first
        self.show(self.rows_)

    def sort_by(self, index: int) -> None:
        """Numbers with the most first, names from a."""
        self.by, self.most_first = index, self.told[index].right
        self.show(self.rows_)

    def on_data_table_header_selected(self, event: DataTable.HeaderSelected) -> None:
        """A click on a heading."""
        self.sort_by(event.column_index)


def name_of(row: Any) -> str:
    """A row is known by its node's or output's name."""
    return str(row.name)


def _aligned(column: Column[Row], cell: str, bad: bool = False) -> Text:
    return Text(cell, style=BAD if bad else "", justify="right" if column.right else "left")


class Main(Screen[None]):
    """Nodes and outputs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "drill", "Open", priority=True),
        Binding("tab", "app.focus_next", "Other table", show=True),
    ]

    def compose(self) -> ComposeResult:
        """A headline, both tables, what is to be said."""
        yield Static("asking the agents ...", id="headline", markup=False)
        yield Sorted(NODES, "nodes")
        yield Sorted(OUTPUTS, "outputs")
        yield Static("", id="said", markup=False)
        yield Footer()

    def show(self, frame: Frame, headline: str) -> None:
        """New figures."""
        self.query_one("#headline", Static).update(headline)
        self.query_one("#nodes", Sorted).show(frame.nodes)
        outputs = self.query_one("#outputs", Sorted)
        outputs.show(frame.outputs)
        outputs.display = bool(frame.outputs)
        said = dict.fromkeys(node.why for node in frame.nodes if node.why)
        if not frame.outputs and any(node.reachable for node in frame.nodes):
            all_answer = all(node.reachable for node in frame.nodes)
            deploy = "no node has a plan with outputs: 'coordinator deploy' gives them one"
            said[deploy if all_answer else "no node that answers has a plan that is known: give it with --plan"] = None
        self.query_one("#said", Static).update("\n".join(said))

    def action_drill(self) -> None:
        """Into the row that is chosen."""
        table = self.focused
        if isinstance(table, Sorted) and table.chosen is not None:
            kind = NodeDetails if table.id == "nodes" else OutputDetails
            self.app.push_screen(kind(table.chosen))


class Help(ModalScreen[None]):
    """Keys, and what the columns mean."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "app.pop_screen", "Back"),
        Binding("q", "app.quit", "Leave"),  # keys of the application do not reach a modal screen
    ]

    def compose(self) -> ComposeResult:
        """One page that can be scrolled."""
        keys = (
            "s next column to sort by   r reverse   click on a heading: sort by it",
            "up/down choose   Enter open a node or an output   Tab other table   Escape back",
            "? this help   q leave",
        )
        nodes = [f"{column.title:<11}{column.meaning}" for column in NODES]
        outputs = [f"{column.title:<11}{column.meaning}" for column in OUTPUTS]
        meanings = ["nodes", *nodes, "", "outputs, since the last look", *outputs]
        legend = "A figure with ! is one to look at."
        with VerticalScroll():
            yield Static("\n".join([*keys, "", legend, INDICATION, "", *meanings]), markup=False)
        yield Footer()


class Top(App[None]):
    """watcher: whom to ask. interval_s: between two looks."""

    TITLE = "coordinator top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #headline { height: 1; text-style: bold; }
    #nodes { height: auto; max-height: 50%; }
    #outputs { height: auto; max-height: 50%; margin-top: 1; }
    #said { height: auto; margin-top: 1; }
    Help VerticalScroll { height: 1fr; }
    Help { background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Leave"),
        Binding("ctrl+c", "quit", "Leave", show=False, priority=True),
        Binding("question_mark", "help", "Help"),
    ]

    def __init__(self, watcher: Monitor, interval_s: float) -> None:
        super().__init__()
        self.watcher, self.interval_s = watcher, interval_s
        self.frame: Frame | None = None
        self.looks = 0
        self._looking = False

    def get_default_screen(self) -> Screen[Any]:
        """What is under everything else."""
        return Main()

    def on_mount(self) -> None:
        """Look at once, then again and again."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, partial(self.exit, return_code=ENDED + number))
        self.look()
        self.set_interval(self.interval_s, self.look)

    def look(self) -> None:
        """Unless one is under way."""
        if not self._looking:
            self._looking = True
            node = next((each.shown for each in self.screen_stack if isinstance(each, NodeDetails)), None)
            self._ask(node)

    @work(thread=True)
    def _ask(self, costs_of: str | None) -> None:
        """On a thread."""
        try:
            frame = self.watcher.look(self.interval_s, costs_of)
        finally:
            self._looking = False
        self.call_from_thread(self.show, frame)

    def show(self, frame: Frame) -> None:
        """Shows new figures on the current screen."""
        self.frame = frame
        self.looks += 1
        headline = f"{datetime.now():%H:%M:%S}  {text.headline(frame, self.interval_s if self.looks > 1 else None)}"
        for screen in self.screen_stack:
            if not screen.children:  # it is being built, or the application ends
                continue
            if isinstance(screen, Main):
                screen.show(frame, headline)
            elif isinstance(screen, Details):
                screen.show(frame, self.watcher)

    def action_help(self) -> None:
        """Once."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())
