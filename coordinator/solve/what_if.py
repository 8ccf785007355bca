"""`--what-if NAME.FIELD=VALUE`: a query and a cluster with something changed, without editing their files.

The change is made in what was parsed, before it is validated, so a value means what it means in the file and is
refused for the same reasons. NAME is a source, operator, output, node or link (`a-b`); `*` all of a kind; where a name
is that of two things the kind stands before it (`nodes.b.speed`). Of several queries NAME is what the plan calls it,
and what they share is changed in all of them; `fleet/O3` is what query fleet calls O3. FIELD is a key of the file,
`with.keep` one below it; the fields of a source's arrival need no `arrival.`. VALUE is YAML; `null` removes the key.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coordinator.error_codes import Code
from coordinator.errors import BadInputError, Mistake
from coordinator.solve.option_checks import BadOptionError
from coordinator.spec import input_files
from coordinator.spec.cluster import Cluster
from coordinator.spec.costs import Costs
from coordinator.spec.files import validation, yaml_source
from coordinator.spec.files.cluster_file import LinkFile, NodeFile
from coordinator.spec.files.costs_file import DEGRADED
from coordinator.spec.files.quantities import NAME
from coordinator.spec.files.query_file import (
    CHAIN_NAME,
    ArrivalFile,
    JcpFile,
    MemberFile,
    OperatorFile,
    OutputFile,
    SourceFile,
)
from coordinator.spec.files.yaml_source import nearest
from coordinator.spec.query import Query
from coordinator.spec.sharing.compose import SEPARATOR
from protos.plan.operators import ADD
from protos.plan.queries import QueryPart

WHAT_IF = "--what-if"
QUERY_KINDS: Mapping[str, type[BaseModel]] = {"sources": SourceFile, "operators": OperatorFile, "outputs": OutputFile}
CLUSTER_KINDS: Mapping[str, type[BaseModel]] = {"nodes": NodeFile, "links": LinkFile}
KINDS = {**QUERY_KINDS, **CLUSTER_KINDS}
OPTION = re.compile(
    rf"(?:({'|'.join(KINDS)})\.)?(\*|(?:{NAME}/)?{NAME}(?:/\d+)?(?:\.\.{NAME})?)\.({NAME}(?:\.{NAME})*)"
)
EXAMPLE = "write it like 'v2v.burst=20', 'b.speed=2' or 'a-b.latency=5 ms'"


@dataclass(frozen=True)
class Change:
    """One option, parsed. `kind` empty: to be found by the name."""

    written: str
    kind: str
    name: str
    field: tuple[str, ...]
    value: Any

    def wrong(self, code: Code, text: str, mend: str = "") -> BadOptionError:
        """What is wrong with it."""
        return BadOptionError(Mistake(code, text, mend, WHAT_IF).within(f"--what-if '{self.written}'"))


def parse(written: str) -> Change:
    """One option. Raises BadOptionError."""
    path, _, text = written.partition("=")
    match = OPTION.fullmatch(path.strip())
    if match is None or not text.strip():
        raise BadOptionError(Mistake("no_change", f"--what-if '{written}' is not NAME.FIELD=VALUE", EXAMPLE, WHAT_IF))
    kind, name, field = match[1] or "", match[2], tuple(match[3].split("."))
    return Change(written, kind, name, field, _value(written, text))


def _value(written: str, text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe").load(text)
    except (YAMLError, ValueError) as error:
        text = f"--what-if '{written}': the value is not YAML: {str(error).splitlines()[0]}"
        raise BadOptionError(Mistake("not_yaml", text, "quote it", WHAT_IF)) from error


def load(
    query_paths: Path | Sequence[Path],
    cluster_path: Path,
    options: Sequence[str],
    share: bool = True,
    measured: Costs | None = None,
    edit: yaml_source.Edit | None = None,
) -> tuple[Query, Cluster, dict[str, str]]:
    """As `input_files.read_files`, with the changes made, in their order; a cost that is changed is not the measured
    one. edit: of the cluster file, before the changes. Raises BadOptionError naming the option."""
    changes = [parse(option) for option in options]
    paths = [query_paths] if isinstance(query_paths, Path) else list(query_paths)
    try:
        return _load(paths, cluster_path, changes, share, measured, edit)
    except BadInputError as error:
        for count in range(1, len(changes) + 1):
            try:
                _load(paths, cluster_path, changes[:count], share, measured, edit)
            except BadInputError as first:
                option = f"--what-if '{changes[count - 1].written}'"
                raise BadOptionError(
                    *(replace(each, subject=WHAT_IF).within(option) for each in first.mistakes)
                ) from error
        raise


def _load(
    query_paths: Sequence[Path],
    cluster_path: Path,
    changes: Sequence[Change],
    share: bool,
    measured: Costs | None,
    edit: yaml_source.Edit | None,
) -> tuple[Query, Cluster, dict[str, str]]:
    together = [_File(yaml_source.load(path).data) for path in query_paths]
    if len(together) > 1:
        before, _, _ = input_files.read_files(query_paths, cluster_path, (None, edit), share, measured)
        together = [_File(file.data, before.parts[str(file.data["query"])]) for file in together]
    cluster = _File(yaml_source.load(cluster_path).data)
    targets = [(change, *_target(change, together, cluster)) for change in changes]

    def edited(file: yaml_source.Source, kinds: Mapping[str, type[BaseModel]], one: _File) -> None:
        for change, kind, names in targets:
            own = [given for name in names for given in one.own(kind, name)] if kind in kinds else []
            for name in own:
                _set(change, kind, name, file.data)
            if own:
                file.raw += f"\n# {change.written}".encode()  # so that the hash is not the file's

    def edited_cluster(file: yaml_source.Source) -> None:
        if edit is not None:
            edit(file)
        edited(file, CLUSTER_KINDS, cluster)

    if measured is not None:
        measured = measured.without(_costed(targets, together))
    by_path = dict(zip(query_paths, together, strict=True))
    query, after, types = input_files.read_files(
        query_paths,
        cluster_path,
        (lambda file: edited(file, QUERY_KINDS, by_path[file.path]), edited_cluster),
        share,
        measured,
    )
    assert after is not None  # a path was given
    return query, after, types


@dataclass(frozen=True)
class _File:
    """A file's data, and of one of several queries what of the whole belongs to it."""

    data: Any
    member: QueryPart | None = None

    def known(self, kind: str) -> list[str]:
        """What can be named: of one of several queries by the names of the whole, and by `QUERY/NAME`."""
        names = _names(kind, self.data)
        if self.member is None or kind != "operators":
            return names
        prefixed = [f"{self.data['query']}{SEPARATOR}{name}" for name in names]
        return [*self.member.operators, *(name for name in names if CHAIN_NAME.fullmatch(name)), *prefixed]

    def own(self, kind: str, name: str) -> list[str]:
        """What a known name means in this file; nothing: it is another's."""
        names = _names(kind, self.data)
        if self.member is not None and kind == "operators":
            if name in self.member.operators:
                return [self.member.called.get(name, name)]
            before, _, name = name.rpartition(SEPARATOR)
            meant = before == self.data["query"] or (not before and CHAIN_NAME.fullmatch(name) is not None)
            return [name] if meant and name in names else []
        return [name] if name in names else []


def _target(change: Change, queries: Sequence[_File], cluster: _File) -> tuple[str, list[str]]:
    """Kind and names of what is changed. Raises BadOptionError."""
    known: dict[str, list[str]] = {}
    for kind in KINDS:
        files = queries if kind in QUERY_KINDS else [cluster]
        known[kind] = list(dict.fromkeys(name for file in files for name in file.known(kind)))
    if change.name == "*":
        kinds = [change.kind] if change.kind else [kind for kind in KINDS if _has(kind, change.field[0])][:1]
        if not kinds:
            fields = {field for kind in KINDS for field in _fields(kind)}
            raise change.wrong("unknown_field", f"nothing has a '{change.field[0]}'", nearest(change.field[0], fields))
        if not known[kinds[0]]:
            raise change.wrong("nothing_to_change", f"there are no {kinds[0]}")
        return kinds[0], list(known[kinds[0]])
    found = [kind for kind in KINDS if change.name in known[kind] and change.kind in ("", kind)]
    if len(found) > 1:
        fitting = [kind for kind in found if _has(kind, change.field[0])]
        found = fitting or found[:1]
    if not found:
        names = known[change.kind] if change.kind else [name for kind in KINDS for name in known[kind]]
        raise change.wrong("unknown_name", f"'{change.name}' is unknown", nearest(change.name, names))
    if len(found) > 1:
        told = " or ".join(f"'{kind}.{change.name}.{'.'.join(change.field)}'" for kind in found)
        text = f"'{change.name}' is {' and '.join(f'in {kind}' for kind in found)}"
        raise change.wrong("ambiguous_name", text, f"write {told}")
    if not _has(found[0], change.field[0]):
        text = f"{found[0][:-1]} '{change.name}' has no field '{change.field[0]}'"
        if below := _below(found[0], change.field[0]):
            written = ".".join([change.name, below, *change.field])
            raise change.wrong("unknown_field", text, f"did you mean '{written}'?")
        raise change.wrong("unknown_field", text, nearest(change.field[0], _fields(found[0])))
    return found[0], [change.name]


def _costed(targets: Sequence[tuple[Change, str, list[str]]], files: Sequence[_File]) -> set[tuple[str, str]]:
    """(query, operator) of all whose cost is changed, as costs.yaml calls them."""
    found = set()
    for change, kind, names in targets:
        parts = _costs_of(change) if kind == "operators" else ()
        for file in files if parts else ():
            own = [each for name in names for each in file.own(kind, name)]
            for name in (each for entry in own for each in (entry, *_members(entry))):
                found |= {(str(file.data["query"]), name + part) for part in parts}
    return found


def _costs_of(change: Change) -> tuple[str, ...]:
    """Which costs of an operator a change is about, by what follows its name in costs.yaml."""
    match change.field:
        case ("cost",):
            return ("", ADD)
        case ("window", "close"):
            return ("",)
        case ("window",) if isinstance(change.value, Mapping) and "close" in change.value:
            return ("",)
        case ("on_late", *_):
            return (DEGRADED,)
    return ()


def _names(kind: str, data: Any) -> list[str]:
    """What can be named: a chain by its range and by each of its operators; a link in both directions."""
    section = data.get(kind) if isinstance(data, Mapping) else None
    if kind == "links" and isinstance(section, Sequence):
        pairs = [link.get("between") for link in section if isinstance(link, Mapping)]
        return [f"{one}-{other}" for pair in pairs if pair and len(pair) == 2 for one, other in (pair, pair[::-1])]
    if not isinstance(section, Mapping):
        return []
    names = []
    for name in map(str, section):
        names += [name, *(_members(name) if kind == "operators" else [])]
    return names


def _members(name: str) -> list[str]:
    match = CHAIN_NAME.fullmatch(name)
    if match is None:
        return []
    first, last = int(match[2]), int(match[3])
    return [f"{match[1]}{number}" for number in range(first, min(last, first + 10_000) + 1)]


def _fields(kind: str) -> list[str]:
    models = [KINDS[kind]]
    if kind == "sources":
        models += [ArrivalFile, JcpFile]
    return [info.alias or name for model in models for name, info in model.model_fields.items()]


def _below(kind: str, field: str) -> str:
    """The field of a kind below which there is one of that name, as `window` of `hop`; empty: none."""
    return next((one for one in _fields(kind) if field in validation.fields(KINDS[kind], [one])), "")


def _has(kind: str, field: str) -> bool:
    return field in _fields(kind)


def _set(change: Change, kind: str, name: str, data: Any) -> None:
    """Make the change in a file's data."""
    section = data[kind]
    if kind == "links":
        for link in section:
            if name in (f"{link['between'][0]}-{link['between'][1]}", f"{link['between'][1]}-{link['between'][0]}"):
                _put(change, link, change.field)
    elif kind == "sources":
        _arrival(change, section[name])
    elif name not in section:
        _member(change, section, name)
    else:
        _put(change, section[name], change.field)


def _put(change: Change, at: Any, field: Sequence[str]) -> None:
    """Set or remove one key, making mappings on the way to it."""
    for step in field[:-1]:
        if not isinstance(at, MutableMapping):
            raise change.wrong("nothing_below", f"'{step}' has nothing below it")
        if not isinstance(at.get(step), MutableMapping):
            at[step] = {}
        at = at[step]
    if not isinstance(at, MutableMapping):
        raise change.wrong("unknown_field", f"there is no '{field[-1]}' below '{'.'.join(field[:-1])}'")
    if change.value is None:
        at.pop(field[-1], None)
    else:
        at[field[-1]] = copy.deepcopy(change.value)


def _arrival(change: Change, source: Any) -> None:
    """A source's own field, or one of its arrival: a rate takes the place of a period and the other way round."""
    first = change.field[0]
    if not isinstance(source, MutableMapping) or first in {
        info.alias or name for name, info in SourceFile.model_fields.items()
    }:
        _put(change, source, change.field)
        return
    arrival = source.get("arrival")
    if not isinstance(arrival, MutableMapping):
        arrival = source["arrival"] = {}
    if first in JcpFile.model_fields and (first not in ArrivalFile.model_fields or "jcp" in arrival):
        _put(change, arrival, ("jcp", *change.field))
        return
    if change.value is not None:
        for other in {"rate": ("period", "jcp", "trace"), "period": ("rate", "trace")}.get(first, ()):
            arrival.pop(other, None)
        if first in ("trace", "jcp"):
            for other in [key for key in arrival if key != first]:
                del arrival[other]
    _put(change, arrival, change.field)


def _member(change: Change, operators: Any, name: str) -> None:
    """One operator of a chain: a chain that is written as one name becomes a list."""
    entry = next(entry for entry in operators if name in _members(str(entry)))
    members, given = _members(str(entry)), operators[entry]
    if change.field[0] not in {info.alias or key for key, info in MemberFile.model_fields.items()}:
        text = f"'{change.field[0]}' is the whole chain's"
        raise change.wrong("field_of_chain", text, f"write '{entry}.{'.'.join(change.field)}'")
    if isinstance(given.get("chain"), str):
        given["chain"] = [{"run": given["chain"]} for _ in members]
    chain, index = given.get("chain"), members.index(name)
    if not isinstance(chain, list) or index >= len(chain):
        raise change.wrong("chain_length", f"{entry} has no list of {len(members)} operators")
    if isinstance(chain[index], str):
        chain[index] = {"run": chain[index]}
    _put(change, chain[index], change.field)
