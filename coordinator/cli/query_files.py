"""QUERY... CLUSTER: the files of a command that takes one query or several, and then a cluster; and measured costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from coordinator.spec.cluster import Cluster
    from coordinator.spec.costs import Costs
    from coordinator.spec.files.yaml_source import Edit, Source
    from coordinator.spec.query import Query

HELP = "One query.yaml or several, then cluster.yaml."
SHARING = "Keep operators apart that several queries could share."
CostsOption = Annotated[
    Path | None,
    typer.Option("--costs", help="costs.yaml of 'coordinator profile': measured costs, where it has them."),
]
CostsOfOption = Annotated[
    Literal["worst", "p99", "mean"],
    typer.Option("--costs-of", help="Which of the measured figures; bounds are sound only for the worst."),
]
InstalledOption = Annotated[
    Path | None,
    typer.Option("--installed", help="operators.json that counts in place of the one that the cluster file names."),
]
MarginOption = Annotated[
    float,
    typer.Option("--margin", min=1.0, max=100.0, help="Times the measured figure, for what no measurement has seen."),
]
WORST: Literal["worst"] = "worst"
MARGIN = 1.2


def costs(path: Path | None, of: Literal["worst", "p99", "mean"], margin: float) -> Costs | None:
    """Measured costs as of the three options. Raises BadInputError."""
    from fractions import Fraction

    from coordinator.spec import costs as measured

    return measured.load(path, measured.Use(of, Fraction(str(margin)))) if path is not None else None


def refuse_costs(path: Path | None) -> None:
    """Raises BadParameter where costs are given with a plan, which has its own."""
    if path is not None:
        raise typer.BadParameter("is for queries; a plan has its costs: plan again with it", param_hint="--costs")


def refuse_installed(path: Path | None) -> None:
    """Raises BadParameter where operators are given with a plan, which has its own."""
    if path is not None:
        raise typer.BadParameter("is for queries; a plan has its operators: plan again", param_hint="--installed")


def costs_options(path: Path | None, of: str, margin: float) -> list[str]:
    """The three options as they were given, for a command line that is to do the same."""
    if path is None:
        return []
    figure = [f"--costs-of {of}"] if of != WORST else []
    return [f"--costs {path}", *figure, *([f"--margin {margin:g}"] if margin != MARGIN else [])]


def split(files: Sequence[Path]) -> tuple[list[Path], Path]:
    """Queries and the cluster, which is the last. A command line with fewer than two is refused."""
    if len(files) < 2:
        raise typer.BadParameter("give one query.yaml or several, and then cluster.yaml", param_hint="QUERY... CLUSTER")
    return list(files[:-1]), files[-1]


def load(
    queries: Sequence[Path],
    cluster: Path | None,
    share: bool = True,
    measured: Costs | None = None,
    installed: Path | None = None,
    contents: Mapping[Path, bytes] | None = None,
) -> tuple[Query, Cluster | None, dict[str, str]]:
    """As `input_files.read_files`; where a query and the cluster are mistaken for each other, that is told. installed:
    as of `--installed`; contents: that count in place of what is in the files. Raises BadInputError."""
    from coordinator.errors import BadInputError
    from coordinator.spec import input_files
    from coordinator.spec.files import yaml_source

    replaced, listed = yaml_source.with_contents(contents or {}), edited(installed)

    def both(file: Source) -> None:
        replaced(file)
        if listed is not None:
            listed(file)

    try:
        return input_files.read_files(queries, cluster, (replaced, both), share, measured)
    except BadInputError as error:
        check_order(queries, cluster)
        raise error


def edited(installed: Path | None) -> Edit | None:
    """The edit of the cluster file that `--installed` asks for."""
    from coordinator.spec.cluster import with_installed

    return with_installed(installed) if installed is not None else None


def installed_options(path: Path | None) -> list[str]:
    """The option as it was given, for a command line that is to do the same."""
    return [f"--installed {path}"] if path is not None else []


def check_order(queries: Sequence[Path], cluster: Path | None) -> None:
    """Raises BadInputError where the last file is a query, or another one a cluster."""
    from coordinator.errors import BadInputError, Mistake, Problem, bad_file

    problems, mend = [], "give the cluster as the last file"
    if cluster is not None and _is(queries[-1], "nodes", "query") and not _is(cluster, "sources", "nodes"):
        right = queries[-1]
        instead = f"{right} is one and has to be the last: leave {cluster} out, or write '-o {cluster}' to make it"
        raise bad_file(cluster, "file_of_another_kind", "is no cluster", instead)
    for path in queries:
        if _is(path, "nodes", "query"):
            problems.append(Problem(Mistake("file_of_another_kind", "is a cluster, not a query", mend), str(path)))
    if cluster is not None and _is(cluster, "query", "nodes"):
        problems.append(Problem(Mistake("file_of_another_kind", "is a query, not a cluster", mend), str(cluster)))
    if problems:
        raise BadInputError(problems)


def check_query(path: Path) -> None:
    """Raises BadInputError where the file of a query is a cluster or a plan."""
    from coordinator.errors import bad_file

    for has, lacks, what in (("hash", "sources", "plan"), ("nodes", "query", "cluster")):
        if _is(path, has, lacks):
            raise bad_file(path, "file_of_another_kind", f"is a {what}, not a query", "give a query.yaml")


def _is(path: Path, has: str, lacks: str) -> bool:
    """By its keys; a file that cannot be read is neither."""
    from coordinator.errors import BadInputError
    from coordinator.spec.files import yaml_source

    try:
        data = yaml_source.load(path).data
    except BadInputError:
        return False
    return isinstance(data, Mapping) and has in data and lacks not in data
