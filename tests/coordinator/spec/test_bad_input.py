"""Every way in which the two files can be wrong: exit code 2, the file and line, what is wrong, and the mend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.solve import planner

Files = Callable[[str, str], tuple[Path, Path]]

QUERY = """\
shimekiri: 1
query: sorting
sources:
  belt: {at: a, type: json, arrival: {burst: 2, period: 500 ms}}
  scale: {at: b, type: json, arrival: {burst: 1, period: 500 ms}}
operators:
  weigh: {run: pass, in: belt, cost: 1 ms, nodes: [a]}
  light: {run: filter, in: weigh, cost: 1 ms, with: {keep: 1, of: 2}}
  check: {run: pass, in: scale, cost: 1 ms}
outputs:
  arm: {from: light, at: b, deadline: 100 ms}
  log: {from: check, at: a, deadline: 1 s}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 0.9}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """{"shimekiri": 1, "codecs": ["json", "my.Box"], "operators": {
 "my.sort": {"version": "1", "kind": "map", "inputs": {"box": "json"}, "side": {"arm": "json"}, "output": "json",
             "with": {"limit": {"type": "number", "default": 0.5, "required": false}, "name": {"type": "string",
             "required": true}}},
 "my.pack": {"version": "1", "kind": "map", "inputs": {"box": "my.Box"}, "side": {}, "output": "my.Box", "with": {}},
 "my.both": {"version": "1", "kind": "join", "inputs": {"left": "json", "right": "json"}, "side": {}, "output": "json",
             "with": {}}}}
""".replace('"kind"', '"code": "' + "0" * 64 + '", "kind"')


def _problems(files: Files, query: str = QUERY, cluster: str = CLUSTER, operators: str = OPERATORS) -> list[str]:
    paths = files(query, cluster)
    (paths[0].parent / "operators.json").write_text(operators)
    try:
        planner.load(*paths)
    except BadInputError as error:
        assert error.exit_code == 2
        return [line.replace(str(paths[0].parent) + "/", "") for line in error.lines()]
    return []


def test_the_files_as_they_stand_are_right(files: Files) -> None:
    assert _problems(files) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "mend"),
    [
        ("run: filter", "run: filtre", 8, "no node has installed", "did you mean 'filter'?"),
        ("in: belt", "in: light", 7, "in a cycle", "cut it"),
        ("in: belt", "in: belts", 7, "stream 'belts', which is unknown", "did you mean 'belt'?"),
        ("nodes: [a]", "nodes: [zz]", 7, "node 'zz', which is unknown", "there are a, b"),
        ("nodes: [a]", "nodes: [a.1]", 7, "'a.1', which is unknown", "node 'a' has 1 core, write 'a'"),
        ("nodes: [a]", "nodes: [a], forbid_nodes: [a, b]", 7, "may run nowhere", "leave one of a"),
        ("nodes: [a]", "forbid_nodes: [c]", 7, "node 'c', which is unknown", "there are a, b"),
        ("nodes: [a]", "memory: 1 kg", 7, "unit 'kg' is unknown", "MiB"),
        ("{at: a, type: json,", "{at: c, type: json,", 4, "node 'c'", "there are"),
        ("from: light, at: b", "from: light, at: c", 11, "node 'c', which is unknown", "there are a, b"),
        ("deadline: 100 ms", "deadline: 0 ms", 11, "outputs.arm.deadline is '0 ms'", "longer than 0"),
        ("deadline: 100 ms", "deadline: -5 ms", 11, "outputs.arm.deadline is '-5 ms'", "longer than 0"),
        ("deadline: 100 ms", "deadline: 100", 11, "without a unit", "like '30 ms'"),
        ("deadline: 100 ms", "deadline: '100'", 11, "has no unit", "like '30 ms'"),
        ("deadline: 100 ms", "deadline: 100 parsecs", 11, "unit 'parsecs' is unknown", "use one of ns, us"),
        ("deadline: 100 ms", "deadline: soon", 11, "'soon' is not a duration", "write it like"),
        ("deadline: 100 ms", "deadline: [100 ms]", 11, "not a duration", "write it like"),
        ("deadline: 100 ms", "deadline: 0.5 ns", 11, "finer than 1 ns", "round it"),
        ("deadline: 100 ms", "deadline: 99999999999 h", 11, "too large", "duration"),
        ("belt, cost: 1 ms", "belt, cost: .nan", 7, "cost is nan", "finite"),
        ("belt, cost: 1 ms", "belt, cost: .inf", 7, "cost is inf", "finite"),
        ("belt, cost: 1 ms", "belt, cost: inf ms", 7, "not a duration", "like '30 ms'"),
        ("belt, cost: 1 ms", "belt, cost: 0 ms", 7, "longer than 0", "30 ms"),
        ("belt, cost: 1 ms", "belt, hang: 500 us", 7, "its cost, guessed as 1 ms", "longer than 'cost:'"),
        ("scale: {at: b", "belt: {at: b", 5, "'belt' stands here a second time", "rename or remove"),
        ("in: belt,", "in: belt, in: belt,", 7, "'in' stands here a second time", "rename or remove"),
        ("  check:", "  scale:", 9, "'scale' is also the name of what stands on line 5", "rename"),
        (", arrival: {burst: 1, period: 500 ms}", "", 5, "sources.scale.arrival is missing", "add 'arrival:'"),
        ("{burst: 1, period: 500 ms}", "{burst: 1}", 5, "has the keys burst", "write one of"),
        ("{burst: 1, period: 500 ms}", "{burst: 0, period: 500 ms}", 5, "greater than or equal to 1", "correct it"),
        ("{burst: 1, period: 500 ms}", "{rate: .nan}", 5, "finite", "write one"),
        ("{burst: 1, period: 500 ms}", "{rate: -3}", 5, "greater than or equal to 0.000001", "correct it"),
        ("{burst: 1, period: 500 ms}", "{trace: none.txt}", 5, "cannot be read", "one instant in ns per line"),
        ("{burst: 1, period: 500 ms}", "{jcp: {period: 1 ms, min_gap: 1 ms}}", 5, "'min_gap'", "shorter"),
        ("type: json, arrival: {burst: 2", "type: jsn, arrival: {burst: 2", 4, "no node has a codec", "'json'?"),
        ("{keep: 1, of: 2}", "{kep: 1, of: 2}", 8, "parameter 'kep' of filter is unknown", "did you mean 'keep'?"),
        ("{keep: 1, of: 2}", "{keep: one, of: 2}", 8, "is 'one'", "type integer"),
        ("{keep: 1, of: 2}", "{keep: true, of: 2}", 8, "is True", "type integer"),
        ("{keep: 1, of: 2}", "{keep: 3, of: 2}", 8, "cannot keep 3 of 2", "keep <= of"),
        ("run: pass, in: belt", "run: my.sort, in: belt, with: {limit: .nan, name: x}", 7, "is nan", "type number"),
        ("run: pass, in: belt", "run: my.sort, in: belt", 7, "parameter 'name' of my.sort is missing", "under 'with:'"),
        ("run: pass, in: belt", "run: my.sort, with: {name: x}, in: belt, side: {arn: scale}", 7, "no side input 'arn'",
         "did you mean 'arm'?"),
        ("run: pass, in: belt", "run: my.sort, with: {name: x}, in: belt, side: {arm: skale}", 7, "'skale'",
         "'scale'?"),
        ("run: pass, in: belt", "run: my.pack, in: belt", 7, "of type json, but takes my.Box", "convert it before"),
        ("run: pass, in: belt", "run: pass, in: [belt, scale]", 7, "has 2 inputs, but pass takes 1", "correct 'in:'"),
        ("run: pass, in: belt", "run: union, in: belt", 7, "has 1 input", "in: [a, b]"),
        ("run: pass, in: belt", "run: union, in: [belt, belt]", 7, "reads a stream twice", "name it once"),
        ("run: pass, in: belt", "run: join, in: [belt, scale]", 7, "without a source in common", "through 'side:'"),
        ("run: pass, in: belt", "run: my.both, in: {left: belt, rigth: scale}", 7, "no input 'rigth'", "'right'?"),
        ("  log: {from: check", "  log: {from: light", 9, "stream 'check' has no consumer", "remove it"),
        ("from: light", "from: belt", 11, "straight from source 'belt'", "put an operator between"),
        ("from: light", "from: ligth", 11, "comes from 'ligth', which is unknown", "did you mean 'light'?"),
        ("outputs:", "output:", 10, "output is not known here", "did you mean 'outputs'?"),
        ("run: filter", "chain: filter", 8, "is a chain", "to a member"),
        ("  check: {run", "  O1..O3: {chain: [pass, pass], in: belt, cost: 1 ms}\n  check: {run", 9,
         "names 3 operators but lists 2", "make them equal"),
        ("run: pass, in: belt", "in: belt", 7, "needs one of 'run:'", "'chain:'"),
        ("nodes: [a]", "nodes: []", 7, "is empty", "name a node"),
        ("nodes: [a]", "hang: 1 ms", 7, "killed within its cost", "longer than 'cost:'"),
        ("nodes: [a]", "state: migrate", 7, "'migrate' is not available yet", "write 'fresh'"),
        ("nodes: [a]", "within: 50 ms", 7, "within is not available yet", "write 'window: {time: 50 ms}'"),
        ("deadline: 100 ms", "deadline: 100 ms, wait: 1", 11, "wait is a duration without a unit", "like '30 ms'"),
        ("deadline: 100 ms", "deadline: 100 ms, throughput: 3", 11, "without a 'latency'", "like 'latency: 0 s'"),
        ("deadline: 100 ms", "deadline: 100 ms, throughput: 0, latency: 0 s", 11, "greater than", "correct it"),
        ("deadline: 100 ms", "deadline: 100 ms, latency: 3 ms", 11, "without a 'throughput'", "write 'deadline:'"),
        ("deadline: 100 ms", "deadline: 100 ms, queue: 3 B", 11, "holds no tuple: each counts 1500", "make it larger"),
        ("deadline: 100 ms", "wait: 100 ms", 11, "deadline is missing", "add 'deadline:'"),
        ("shimekiri: 1", "shimekiri: 2", 1, "is written for version 2", "write 'shimekiri: 1'"),
        ("query: sorting", "query: ''", 2, "query: '' is not a name", "begin it with a letter"),
        ("nodes: [a]", "selectivity: {at_most: 0.5}", 7, "at_most is 0.5", "write a list, like [[20, 10]]"),
        ("nodes: [a]", "selectivity: {at_most: [[5]]}", 7, "at_most.0.1 is missing", "write a list of two"),
        ("nodes: [a]", "selectivity: {at_most: [[5, 2, 1]]}", 7, "at_most.0 is a list", "write a list of two, like"),
        ("nodes: [a]", "nodes: a", 7, "nodes is 'a'", "write a list, like"),
        ("  log: {from", "  log {from", 12, "is not YAML", "mend the syntax"),
    ],
)  # fmt: skip
def test_query(files: Files, old: str, new: str, line: int, said: str, mend: str) -> None:
    assert QUERY.count(old) == 1, old
    found = _problems(files, query=QUERY.replace(old, new))
    hits = [text for text in found if text.startswith(f"query.yaml:{line}: ") and said in text]
    assert hits, found
    assert mend in hits[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "query.yaml:1: is empty; begin it with 'shimekiri: 1'"),
        ("# nothing\n", "query.yaml:1: is empty; begin it with 'shimekiri: 1'"),
        ("just words", "query.yaml:1: is not YAML with keys"),
        ("- 1\n- 2\n", "query.yaml:1: is not YAML with keys"),
        ("a: [1, 2\nb: 3\n", "is not YAML"),
        ("a: \x00", "is not YAML"),
    ],
)
def test_not_a_query(files: Files, text: str, said: str) -> None:
    assert any(said in line for line in _problems(files, query=text))


@pytest.mark.parametrize("section", ["sources", "operators", "outputs"])
def test_an_empty_section(files: Files, section: str) -> None:
    lines = QUERY.splitlines()
    start = lines.index(f"{section}:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    found = _problems(files, query="\n".join([*lines[:start], f"{section}: {{}}", *lines[end:]]))
    assert any(text.startswith(f"query.yaml:{start + 1}: {section}") for text in found), found


@pytest.mark.parametrize(
    ("old", "new", "line", "said", "mend"),
    [
        ("cap: 0.9", "cap: .nan", 3, "nodes.a.cap is not a finite number", "write one"),
        ("cap: 0.9", "cap: 1.5", 3, "less than or equal to 1", "correct it"),
        ("cap: 0.9", "speed: .inf", 3, "finite", "write one"),
        ("cap: 0.9", "speed: 0", 3, "greater than 0", "correct it"),
        ("cap: 0.9", "cores: 0", 3, "greater than or equal to 1", "correct it"),
        ("cap: 0.9", "cores: 65", 3, "less than or equal to 64", "correct it"),
        ("cap: 0.9", "core_link: 1 us", 3, "the node has one", "give 'cores:'"),
        ("cap: 0.9", "cores: 2, core_link: -1 us", 3, "cannot be negative", ""),
        ("cap: 0.9", "memory: 256", 3, "without a unit", "like '256 MiB'"),
        ("cap: 0.9", "memory: 256 MeB", 3, "unit 'MeB' is unknown", "MiB"),
        ("cap: 0.9", "policy: edff", 3, "policy 'edff' is unknown", "did you mean 'edf'? there are edf, edf-e2e,"),
        ("cap: 0.9", "policy: {name: bts, fi: 3 ms}", 3, "has no parameter 'fi'", "it has phi, hop_phi, k"),
        ("cap: 0.9", "policy: {name: ats, share: 2 %}", 3, "'ats' has no parameter 'share'", "it has phi, hop_phi, k"),
        ("cap: 0.9", "policy: {name: edf, phi: 3 ms}", 3, "'edf' has no parameter 'phi'", "it has batch"),
        ("cap: 0.9", "policy: {name: bts, phi: 3}", 3, "'phi' is 3, without a unit", "like 'phi: 100 ms'"),
        ("cap: 0.9", "policy: {name: bts, phi: 0 ms}", 3, "'phi' is 0 ms", "longer than 0"),
        ("cap: 0.9", "policy: {name: bts, k: 0}", 3, "'k' is 0", "a whole number from 1 to 1000000"),
        ("cap: 0.9", "policy: {name: bts, k: 1.5}", 3, "'k' is 1.5", "a whole number from 1"),
        ("cap: 0.9", "policy: {name: adaptive, share: 0.02}", 3, "'share' is 0.02", "like '2 %'"),
        ("cap: 0.9", "policy: {name: adaptive, share: 100 %}", 3, "'share' is 100 %", "below 100 %"),
        ("cap: 0.9", "policy: {name: edf, batch: all}", 3, "'batch' is all", "like 5, or 'burst'"),
        ("cap: 0.9", "policy: {k: 5}", 3, "there is no 'name'", "{name: bts, phi: 100 ms, k: 5}"),
        ("cap: 0.9", "policy: [edf]", 3, "is no name", "write 'policy: edf'"),
        ("cap: 0.9", "policy: 'bts:k=5,k=6'", 3, "gives 'k' twice", "leave one of the two"),
        ("cap: 0.9", "policy: 'bts:5'", 3, "'5' is not PARAMETER=VALUE", "like bts:phi=100ms,k=5"),
        ("cap: 0.9", "kap: 0.9", 3, "kap is not known here", "did you mean 'cap'?"),
        ("cap: 0.9", "emulate: {cost_per_tuple: 1}", 3, "without a unit", "like '30 ms'"),
        ("cap: 0.9", "cpu: -1", 3, "greater than or equal to 0", "correct it"),
        ("between: [a, b]", "between: [a, c]", 5, "node 'c', which is unknown", "there are a, b"),
        ("between: [a, b]", "between: [a, a]", 5, "to itself", "remove it"),
        ("latency: 1 ms", "latency: 1", 5, "without a unit", "like '30 ms'"),
        ("latency: 1 ms", "latency: -1 ms", 5, "cannot be negative", ""),
        ("100 Mbit/s", "100", 5, "without a unit", "like '100 Mbit/s'"),
        ("100 Mbit/s", "0 Mbit/s", 5, "above 0", ""),
        ("127.0.0.1:7700", "192.168.1.7:7700", 3, "off loopback, where insecure is refused", "127.0.0.1"),
        ("127.0.0.1:7700", "pi1.local:7700", 3, "off loopback", "run 'coordinator certs"),
        ("127.0.0.1:7700", "127.0.0.1", 3, "is not HOST:PORT", "like '127.0.0.1:7700'"),
        ("127.0.0.1:7700", "127.0.0.1:77000", 3, "is not HOST:PORT", "like"),
        ("127.0.0.1:7700", "127.0.0.1:7710", 4, "also that of node 'a'", "its own port"),
        ("insecure-loopback", "tls", 7, "'tls': is unknown", "security: mutual-tls"),
        ("insecure-loopback", "insecure-loopback\ncertificates: certs", 8, "are not used with", "mutual-tls"),
        ("insecure-loopback", "mutual-tls\ncertificates: ''", 8, "at least 1 character", ""),
        ("insecure-loopback", "none", 7, "'none': is unknown", "insecure-loopback"),
        ("operators.json", "nothing.json", 6, "cannot be read", "node-agent operators --operators"),
        ("  b:", "  a:", 4, "'a' stands here a second time", "rename"),
    ],
)  # fmt: skip
def test_cluster(files: Files, old: str, new: str, line: int, said: str, mend: str) -> None:
    assert CLUSTER.count(old) == 1, old
    found = _problems(files, cluster=CLUSTER.replace(old, new))
    hits = [text for text in found if text.startswith(f"cluster.yaml:{line}: ") and said in text]
    assert hits, found
    assert mend in hits[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "has a wrong"),
        ('{"shimekiri": 9}', "is of version 9"),
        ('{"shimekiri": 1, "operators": {"x": {"kind": "magic", "inputs": {}, "output": "json"}}}', "operators.x.kind"),
        ('{"shimekiri": 1, "operators": {"x": {"kind": "map", "inputs": {}, "output": "json"}}}', "which code x has"),
    ],
)
def test_operators(files: Files, text: str, said: str) -> None:
    (found,) = _problems(files, operators=text)
    assert found.startswith("cluster.yaml:6: operators: ")
    assert said in found
    assert "node-agent operators --operators FILE.py --json" in found


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        planner.load(tmp_path / "none.yaml", None)
    assert "cannot be read" in str(raised.value)


def test_several_problems_are_told_together(files: Files) -> None:
    query = QUERY.replace("run: filter", "run: filtre").replace("at: b, deadline", "at: d, deadline")
    query = query.replace("in: scale", "in: skale")
    assert [line.split(": ")[0] for line in _problems(files, query=query)] == [f"query.yaml:{n}" for n in (8, 9, 11)]
    cluster = CLUSTER.replace("cap: 0.9", "policy: lifo")
    both = _problems(files, query=QUERY.replace("100 ms", "100"), cluster=cluster)
    assert [line.split(":")[0] for line in both] == ["cluster.yaml", "query.yaml"]


def test_a_query_alone_is_checked_without_nodes_and_installed_operators(files: Files) -> None:
    query, _ = files(QUERY.replace("run: filter", "run: filtre"), CLUSTER)
    planner.load(query, None)


WEIRD = [
    "null",
    "[]",
    "{}",
    "-1",
    "1e400",
    ".nan",
    "true",
    "2020-01-01",
    "'☃'",
    "[[a]]",
    "{a: {b: c}}",
    "'x' * 3",
    "&x [*x]",
    "999999999999999999999",
]


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the values of a text stand: after `: `, up to a comma, brace, bracket or the end of the line."""
    import re

    return [match.span(1) for match in re.finditer(r":[ \n]+([^\s,{}\[\]]+)", text)]


@pytest.mark.parametrize("weird", WEIRD)
@pytest.mark.parametrize("which", ["query", "cluster"])
def test_weird_values_are_refused_in_sentences_or_are_right(files: Files, weird: str, which: str) -> None:
    text = QUERY if which == "query" else CLUSTER
    for start, end in _spans(text):
        changed = text[:start] + weird + text[end:]
        found = _problems(files, **{which: changed})
        assert all(line.split(":")[0] in ("query.yaml", "cluster.yaml") for line in found)
        assert all("\n" not in line and len(line) < 400 for line in found)
