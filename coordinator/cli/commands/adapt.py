"""`coordinator adapt`: the least change within the ranges of `may_change:` that makes every output guaranteed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coordinator.cli import completion, planning, query_files
from coordinator.cli.lines import say, tell
from coordinator.errors import CoordinatorError

if TYPE_CHECKING:
    from coordinator.solve.repair.what_if_runs import Case
    from coordinator.solve.repair.within_ranges.adaptation import Adaptation
    from coordinator.solve.repair.within_ranges.edited_files import EditedFile
    from coordinator.solve.repair.within_ranges.ranged import Adjustable

EPILOG = """Examples:

  coordinator adapt query.yaml cluster.yaml                     (shows the change; writes nothing)

  coordinator adapt query.yaml cluster.yaml --write             (over the files; then plan and deploy as usual)

  coordinator adapt query.yaml cluster.yaml -o adapted.yaml --json

The ranges stand in the files, by the keys that 'plan --what-if' takes:

  may_change:
    outputs.warning.deadline: 300..400 ms
    sources.v2v.arrival.burst: 10..20

Exit codes: 0 every output is guaranteed, as it is or with the change; 3 nothing within the ranges helps (the nearest
change beyond them is named); 4 out of time. In both of these nothing is written."""


class NothingWithinError(CoordinatorError):
    """No change within the declared ranges makes every output guaranteed."""

    exit_code = 3


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def adapt(
        files: Annotated[list[Path], typer.Argument(metavar="QUERY... CLUSTER", help=query_files.HELP)],
        write: Annotated[bool, typer.Option("--write", help="Write the change over the files.")] = False,
        output: Annotated[
            Path | None, typer.Option("--out", "-o", help="Write the query there instead, changed or not.")
        ] = None,
        output_cluster: Annotated[
            Path | None, typer.Option("--out-cluster", help="With -o: where a changed cluster is written.")
        ] = None,
        time_limit: Annotated[float, typer.Option(min=0.1, help="Seconds for the search.")] = 60.0,
        units: Annotated[Literal["path", "operator"], typer.Option(help="As of 'coordinator plan'.")] = "path",
        policy: Annotated[
            str | None, typer.Option(help="As of 'coordinator plan'.", autocompletion=completion.policies)
        ] = None,
        place: Annotated[
            list[str] | None,
            typer.Option(help="As of 'coordinator plan'.", autocompletion=completion.operators_with_equals),
        ] = None,
        overhead: Annotated[Literal["measured", "none"], typer.Option(help="As of 'coordinator plan'.")] = "measured",
        installed: query_files.InstalledOption = None,
        no_sharing: Annotated[bool, typer.Option("--no-sharing", help=query_files.SHARING)] = False,
        costs: query_files.CostsOption = None,
        costs_of: query_files.CostsOfOption = query_files.WORST,
        margin: query_files.MarginOption = query_files.MARGIN,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: the change, the plan it gives and the files.")
        ] = False,
    ) -> None:
        """Find the least change within the ranges that the files declare (may_change) under which every output is
        guaranteed, show it, and write it where that is asked.

        Fewest values first; of as many, the least product of factors. The files as they would be written are planned
        before they are. Comments and everything else in them stay.
        """
        from coordinator.cli.commands.plan import pair
        from coordinator.model.choices import Choices
        from coordinator.solve.repair.what_if_runs import Case
        from coordinator.spec import runtime_charges

        queries, cluster = query_files.split(files)
        choices = Choices(
            units=units,
            policy=policy,
            place=dict(pair(text) for text in place or []),
            charges=runtime_charges.MEASURED if overhead == "measured" else runtime_charges.NOTHING,
        )

        def loaded(contents: Mapping[Path, bytes] | None = None) -> Case:
            measured = query_files.costs(costs, costs_of, margin)
            query, known, types = query_files.load(queries, cluster, not no_sharing, measured, installed, contents)
            assert known is not None  # a path was given
            return Case(query, known, types, choices)

        case = loaded()
        target = Target(queries, cluster, write, output, output_cluster)
        target.check(case)
        values = _values(case, queries)
        with _unwritten():
            found, changed = _search(case, values, loaded, time_limit, as_json)
        written = target.write(changed) if found.is_guaranteed or changed else []
        _show(found, changed, written, values, case, as_json)
        _conclude(found, values, case)
        if not as_json:
            also = [
                *planning.options(choices),
                *query_files.installed_options(installed),
                *(["--no-sharing"] if no_sharing else []),
                *query_files.costs_options(costs, costs_of, margin),
            ]
            say(target.next_step(changed, written, also))


@dataclass(frozen=True)
class Target:
    """Where a change is written. `over`: over the files; `query`, `cluster`: elsewhere."""

    queries: Sequence[Path]
    cluster_file: Path
    over: bool
    query: Path | None
    cluster: Path | None

    def check(self, case: Case) -> None:
        """Raises BadParameter where the options contradict each other, or the files."""
        if self.over and (self.query or self.cluster):
            raise typer.BadParameter("writes over the files: leave it out, or -o", param_hint="--write")
        if self.query is not None and len(self.queries) > 1:
            raise typer.BadParameter("is of one query: change several with --write", param_hint="-o")
        if self.cluster is not None and self.query is None:
            raise typer.BadParameter("goes with -o", param_hint="--out-cluster")
        if self.query is not None and self.cluster is None and case.cluster.ranges:
            text = f"is missing: {self.cluster_file} declares ranges as well, so it may change"
            raise typer.BadParameter(text, param_hint="--out-cluster")

    def write(self, changed: Sequence[EditedFile]) -> list[Path]:
        """Writes what is asked for, all or nothing. Returns the files."""
        from coordinator import durable_files, signals
        from coordinator.errors import unwritable

        contents = self._contents(changed)
        signals.check()
        try:
            with signals.held():
                if self.over:
                    _check_unchanged(changed)
                durable_files.replace_together(contents)
        except OSError as error:
            path = Path(error.filename or next(iter(contents)))
            raise unwritable(path, error, "name another file with -o") from error
        return list(contents)

    def _contents(self, changed: Sequence[EditedFile]) -> dict[Path, bytes]:
        if self.over:
            return {one.path: one.data for one in changed}
        if self.query is None:
            return {}
        data = {one.kind: one.data for one in changed}
        contents = {self.query: data.get("query", self.queries[0].read_bytes())}
        if self.cluster is not None:
            contents[self.cluster] = data.get("cluster", self.cluster_file.read_bytes())
        return contents

    def next_step(self, changed: Sequence[EditedFile], written: Sequence[Path], also: Sequence[str]) -> str:
        """What to do then. also: options of the plan."""
        if not written:
            if not changed:
                return "nothing was written"
            return "nothing was written; '--write' writes it over the files, '-o FILE' elsewhere"
        names = [self.query or self.queries[0], *self.queries[1:], self.cluster or self.cluster_file]
        command = " ".join(["coordinator plan", *map(str, names), *also])
        return f"written: {', '.join(map(str, written))}; next: {command}"


def _check_unchanged(changed: Sequence[EditedFile]) -> None:
    """Raises BadInputError where a file is another one than the search began with: what was written to it meanwhile
    would be lost."""
    from coordinator.errors import bad_file

    for one in changed:
        if one.path.read_bytes() != one.before.encode():
            raise bad_file(one.path, "changed", "was changed while a change was looked for", "adapt it again")


def _values(case: Case, queries: Sequence[Path]) -> list[Adjustable]:
    """That may change. Raises BadInputError where no range is declared."""
    from coordinator.errors import bad_file
    from coordinator.solve.repair.within_ranges import ranged

    if not case.query.ranges and not case.cluster.ranges:
        mend = "say what may change, and how far: may_change: {outputs.NAME.deadline: 300..400 ms}"
        raise bad_file(queries[0], "nothing_may_change", "declares no ranges", mend, "may_change")
    for key in ranged.shared(case):
        tell(f"{key} stays as it is: a query that shares it declares no range for it")
    return ranged.adjustables(case)


def _search(
    case: Case,
    values: Sequence[Adjustable],
    loaded: Callable[[Mapping[Path, bytes]], Case],
    seconds: float,
    quiet: bool,
) -> tuple[Adaptation, list[EditedFile]]:
    """What to change, and the files with it, which were planned. Raises UnprovenError where their plan does not hold,
    and BadInputError where they cannot be changed in place."""
    from coordinator import signals
    from coordinator.errors import Mistake, UnprovenError
    from coordinator.solve.repair.what_if_runs import outcome
    from coordinator.solve.repair.within_ranges import adaptation, edited_files

    with planning.searching("looking for a change", quiet) as progress:

        def said(what: str) -> None:
            signals.check()
            progress(f"looking for a change: {what}")

        found = adaptation.adapt(case, values, seconds, said)
        if found.within is None:
            return found, []
        changed = edited_files.edited(case, found.within.edits)
        said("planning with the changed files")
        if not adaptation.guaranteed(outcome(loaded({one.path: one.data for one in changed}))):
            text = "a change was found, and no plan of the changed files that holds"
            raise UnprovenError(Mistake("unproven", text, "try again with a longer --time-limit"))
        signals.check()
    return found, changed


@contextmanager
def _unwritten() -> Iterator[None]:
    """What is done before a file changes; interrupted, that is said."""
    try:
        yield
    except KeyboardInterrupt:
        tell("interrupted: nothing was written")
        raise


def _show(
    found: Adaptation,
    changed: Sequence[EditedFile],
    written: Sequence[Path],
    values: Sequence[Adjustable],
    case: Case,
    as_json: bool,
) -> None:
    from coordinator.explain import adaptation_lines

    if as_json:
        files = [{"file": str(one.path), "kind": one.kind, "diff": one.diff()} for one in changed]
        typer.echo(json.dumps({**found.document(), "files": files, "written": list(map(str, written))}))
        return
    if found.is_guaranteed:
        say(adaptation_lines.HOLDS)
    for line in (*adaptation_lines.missed(found), *adaptation_lines.change(found)):
        say(line)
    for one in changed:
        typer.echo(one.diff())


def _conclude(found: Adaptation, values: Sequence[Adjustable], case: Case) -> None:
    """Raises NothingWithinError or OutOfTimeError where no change was found."""
    from coordinator.errors import Mistake, OutOfTimeError
    from coordinator.explain import adaptation_lines

    if found.is_guaranteed or found.within is not None:
        return
    lines = adaptation_lines.outside(found, values, case)
    if not found.decided:
        raise OutOfTimeError(Mistake.of("out_of_time", adaptation_lines.UNTRIED), details=lines)
    text = "nothing within the declared ranges makes every output guaranteed"
    raise NothingWithinError(Mistake("nothing_within", f"{text}: {adaptation_lines.tried(values)}"), details=lines)
