"""One node, or one output, in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from coordinator.monitoring import explained
from coordinator.monitoring.metrics import Frame

if TYPE_CHECKING:
    from coordinator.monitoring.monitor import Monitor


class Details(Screen[None]):
    """Text that is written anew with every look. name: of what is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
    ]

    def __init__(self, name: str) -> None:
        super().__init__()
        self.shown = name

    def compose(self) -> ComposeResult:
        """One page."""
        with VerticalScroll():
            yield Static("", id="text", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """What is known already."""
        app: Any = self.app
        if app.frame is not None:
            self.show(app.frame, app.watcher)
        app.look()

    def show(self, frame: Frame, watcher: Monitor) -> None:
        """New figures."""
        self.query_one("#text", Static).update("\n".join(self.lines(frame, watcher)))

    def lines(self, frame: Frame, watcher: Monitor) -> Iterator[str]:
        """What there is to say."""
        raise NotImplementedError


class NodeDetails(Details):
    """A node's units, windows and counters."""

    def lines(self, frame: Frame, watcher: Monitor) -> Iterator[str]:
        """Of that node."""
        node = next((each for each in frame.nodes if each.name == self.shown), None)
        if node is None:
            yield f"node {self.shown} is not in {watcher.addresses} any more"
        else:
            costs = watcher.costs.get(node.name, ())
            yield from explained.node(node, frame.plans, costs, watcher.log_of(node.name))


class OutputDetails(Details):
    """An output's path, and where the time goes."""

    def lines(self, frame: Frame, watcher: Monitor) -> Iterator[str]:
        """Of that output."""
        output = next((each for each in frame.outputs if each.name == self.shown), None)
        if output is None:
            yield f"output {self.shown}: no node that answers has it now"
        else:
            yield from explained.output(output, frame.nodes)
