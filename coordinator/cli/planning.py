"""Parts of all commands that make a plan: progress of the search, and a way out where it fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.cli.lines import is_quiet, tell

if TYPE_CHECKING:
    from coordinator.model.choices import Choices
    from coordinator.model.progress import Watch
    from coordinator.spec.query import Query


EVERY_S = 10.0


class NowAndThen:
    """Tells a step where the last word is long ago: a search that is over soon says nothing."""

    def __init__(self) -> None:
        self._told_s = time.monotonic()

    def __call__(self, text: str) -> None:
        if time.monotonic() - self._told_s >= EVERY_S:
            self._told_s = time.monotonic()
            tell(text)


@contextmanager
def searching(what: str, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Progress on stderr: one line that changes where that is a terminal, else a line every ten seconds. `quiet`: none,
    for machines."""
    if quiet or is_quiet():
        yield lambda _: None
    elif not sys.stderr.isatty():
        yield NowAndThen()
    else:
        from rich.console import Console

        with Console(stderr=True).status(what) as line:
            yield line.update


@contextmanager
def search_progress(quiet: bool = False) -> Iterator[Watch]:
    """Tells how the search for a plan goes, as `searching`. Ctrl-C ends the search, not the command."""
    try:
        with searching("planning (Ctrl-C: stop)", quiet) as said:
            yield lambda now: said(f"planning {now.seconds:.0f} s: {now.sentence()} (Ctrl-C: take it)")
    except KeyboardInterrupt:
        tell("interrupted before there was any plan")
        raise


def options(choices: Choices) -> list[str]:
    """The options of a plan that were given, but for its model, for a command line that is to do the same."""
    from coordinator.spec.runtime_charges import NOTHING

    return [
        *([f"--units {choices.units}"] if choices.units != "path" else []),
        *([f"--policy {choices.policy}"] if choices.policy else []),
        *(f"--place {name}={node}" for name, node in choices.place.items()),
        *(["--overhead none"] if choices.charges == NOTHING else []),
    ]


@contextmanager
def hinting(files: Sequence[Path | str], choices: Choices, query: Query | None = None) -> Iterator[None]:
    """Where there is no plan: what tells the way out; `files`, as they were given. `query`: whose costs may be
    guesses."""
    from coordinator.errors import InfeasibleError, Mistake
    from coordinator.explain import cost_lines

    given = [f"--model {choices.model}", *options(choices)]
    try:
        yield
    except InfeasibleError as error:
        command = " ".join(["coordinator explain", *map(str, files), *given])
        error.hint = f"the smallest changes that mend it: {command}"
        if query is not None and query.ranges:
            command = " ".join(["coordinator adapt", *map(str, files), *options(choices)])
            error.hint += f"; the least within the declared ranges: {command}"
        if choices.model == "sound" and choices.allocator == "deadline" and not choices.best_effort:
            error.hint += "; a plan that guarantees less: --best-effort"
        if query is not None and (guesses := cost_lines.guesses(query)):
            error.mistakes.append(Mistake("guessed_costs", f"{guesses}: where they need less, write that"))
        raise
