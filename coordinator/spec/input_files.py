"""The files of one query or several, and of a cluster, as one query that is checked against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coordinator.errors import BadInputError
from coordinator.spec import cluster as clusters
from coordinator.spec import core_assignment, costs, graph, query_reader
from coordinator.spec.checks import declarations, query_checks
from coordinator.spec.cluster import Cluster
from coordinator.spec.costs import Costs
from coordinator.spec.files.yaml_source import Edit
from coordinator.spec.query import Query


def read_files(
    query_paths: Path | Sequence[Path],
    cluster_path: Path | None,
    edits: tuple[Edit | None, Edit | None] = (None, None),
    share: bool = True,
    measured: Costs | None = None,
) -> tuple[Query, Cluster | None, dict[str, str]]:
    """The files, checked against each other, and the streams' types; `edits`: what changes queries and the cluster
    before they are checked. Several queries, which need a cluster, become one; `share`: with the operators that they
    have in common; `measured`: costs in place of those that the queries declare. Raises BadInputError with the problems
    of all files."""
    paths = [query_paths] if isinstance(query_paths, Path) else list(query_paths)
    problems = []
    found: list[Query] = []
    cluster: Cluster | None = None
    for path in paths:
        try:
            found.append(query_reader.load(path, edits[0]))
        except BadInputError as error:
            problems += error.problems
    try:
        cluster = clusters.load(cluster_path, edits[1]) if cluster_path else None
    except BadInputError as error:
        problems += error.problems
    known = None if problems else cluster
    types: dict[str, str] = {}
    if not problems:
        costs.check(measured, [query.name for query in found])
    for number, given in enumerate(found):
        try:
            found[number] = query = costs.applied(given, measured, known.catalog if known else None)
            types = dict(query_checks.check(query, known))
            if not problems:
                declarations.check(query)
        except BadInputError as error:
            problems += error.problems
    if problems:
        raise BadInputError(problems)
    if cluster is None:
        assert len(found) == 1  # where several may be shared depends on the cluster
        return found[0], None, types
    resolved = [core_assignment.resolve(query, cluster) for query in found]
    if len(resolved) == 1:
        return resolved[0], cluster, types
    from coordinator.spec.sharing.compose import compose  # most commands are given one query

    composed = compose(resolved, cluster, share).query
    return composed, cluster, dict(graph.types(composed, cluster.catalog))
