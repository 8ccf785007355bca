"""Mistakes with agents, their addresses, ports, directories and rights, and with what is put in and taken out."""

# ruff: noqa: E501 - a table: a line per mistake
# fmt: off

from __future__ import annotations

from tests.contract.commands.newcomer_operators import DEPLOY
from tests.contract.commands.newcomer_stage import Case, at, change, does, write

FEED = "node-agent feed belt feed.jsonl --to"
OTHER = (change("query.yaml", "query: sorting", "query: other"), does("coordinator plan query.yaml cluster.yaml"))
RIGHT = at(a="a", b="b")
NO_RT = "import resource; resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))"
NO_ROOM = "import resource, sys; sys.dont_write_bytecode = True; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
PORT = "check that it runs (`coordinator status`), that this is its data port (not the control port)"

DEPLOYING = (
    Case("agents that have ended", DEPLOY, 1, "node a: the agent at 127.0.0.1:2 cannot be reached", "'coordinator up' starts local agents", (at(a="gone", b="b"),)),
    Case("addresses of another cluster", DEPLOY, 2, "addresses.json: has no node 'a', which the plan needs", "there are left, right", (at(left="a", right="b"),), fault="addresses.json unknown_node"),
    Case("addresses the wrong way round", DEPLOY, 1, "is node b", "correct the addresses", (at(a="b", b="a"),)),
    Case("two agents with one name", DEPLOY, 1, "node b: the agent at", "is node a; correct the addresses", (at(a="a", b="bare"),)),
    Case("agents without the operators", DEPLOY, 1, "node a cannot run this plan: no operator 'my.weigh' is installed here", "--operators FILE.py", (at(a="bare", b="b"),)),
    Case("an agent of another release", DEPLOY, 1, "node a cannot run this plan: local plan of version 1, this agent knows 0", "install the same release", (at(a="old", b="b"),)),
    Case("collected into a file", "coordinator collect --plan plan.json -o query.yaml", 2, "query.yaml: cannot be written", "name another place", (RIGHT,), fault="query.yaml unwritable"),
    Case("added before anything runs", "coordinator add query.yaml", 2, "no node runs plan", "deploy it first, with 'coordinator deploy plan.json'", (RIGHT,)),
    Case("collected before anything runs", "coordinator collect --plan plan.json", 0, "no node has it", "nothing to stop", (RIGHT,)),
    Case("fed before anything runs", f"{FEED} {{a_data}}", 1, "no committed plan on a has a source 'belt'", "'coordinator deploy plan.json'"),
    Case("listened to before anything runs", "node-agent listen arm --from {b_data}", 1, "no plan on b delivers an output 'arm'", "'coordinator deploy plan.json'"),
)
RUNNING = (
    Case("a source that is none", "node-agent feed bolt feed.jsonl --to {a_data}", 1, "no committed plan on a has a source 'bolt'", "there are: belt, scale"),
    Case("a source of another node", f"{FEED} {{b_data}}", 1, "no committed plan on b has a source 'belt'", "where the query says 'at:'"),
    Case("an output that is none", "node-agent listen alarm --from {b_data}", 1, "no plan on b delivers an output 'alarm'", "there are: arm, counted"),
    Case("an output of another node", "node-agent listen arm --from {a_data}", 1, "no plan on a delivers an output 'arm'", "where the query says 'at:'"),
    Case("the control port", f"{FEED} {{a_control}} --patience 0.2", 1, "no agent answers at {a_control}", PORT),
    Case("no node of that name", f"{FEED} c --addresses addresses.json", 2, "addresses.json: has no node 'c'", "there are: a, b", (RIGHT,)),
    Case("a name without addresses", f"{FEED} a", 2, "node 'a': give host:port", "or a name with --addresses FILE"),
    Case("no node", "node-agent feed belt feed.jsonl", 2, "required: --to", "'node-agent feed --help'"),
    Case("a rate of nothing", f"{FEED} {{a_data}} --rate 0", 2, "--rate: 0: between", "'node-agent feed --help'"),
    Case("a file that is not there", "node-agent feed belt fed.jsonl --to {a_data}", 2, "fed.jsonl: cannot be opened", "give a file, a device, or -"),
    Case("a file of what", "node-agent feed belt operators.py --to {a_data}", 2, "operators.py: say what it is", "--format jsonl, csv or mcap"),
    Case("a line that is no JSON", f"{FEED} {{a_data}}", 2, "feed.jsonl:2: not JSON", "write one JSON value per line", (write("feed.jsonl", '{"g": 3}\n{g: 3}\n'),)),
    Case("CSV without a header", "node-agent feed belt feed.csv --to {a_data}", 2, "feed.csv:1: a row of numbers (3, 4), not a header", "put one above it", (write("feed.csv", "3,4\n3,4\n"),)),
    Case("a row that is too short", "node-agent feed belt feed.csv --to {a_data}", 2, "feed.csv:3: 1 cells under a header of 2", "leave a cell empty", (write("feed.csv", "g,h\n3,4\n5\n"),)),
    Case("a time that is not there", f"{FEED} {{a_data}} --by t", 2, "feed.jsonl:1: no number in 't'", "name a field that has the time"),
    Case("tuples that are too old", f"{FEED} {{a_data}} --age-ms 900", 0, "2 refused (2 x at least", "at most 50 ms are allowed"),
    Case("a program with the wrong source", "python send.py {a_data} bolt 60", 1, "no committed plan on a has a source 'bolt'", "there are: belt, scale"),
    Case("a program with the control port", "python send.py {a_control} belt", 1, "no agent answers at {a_control}", PORT),
    Case("a program without a port", "python send.py 127.0.0.1 belt", 1, "address '127.0.0.1'", "write host:port with the agent's data port, such as pi1:7701"),
    Case("added what runs", "coordinator add query.yaml", 2, "query.yaml:2: query 'sorting' runs already", "'coordinator remove sorting' ends it", (RIGHT,), fault="query.yaml:2 runs_already query"),
    Case("removed what does not run", "coordinator remove sortin", 2, "'sortin'", "did you mean 'sorting'?", (RIGHT,), fault="plan.json unknown_query"),
    Case("deployed over another query", "coordinator deploy plan.json", 2, "plan.json has other and lacks sorting", "coordinator add QUERY.yaml", (RIGHT, *OTHER)),
    Case("nothing said to stop", "coordinator stop", 2, "Invalid value", "give a plan.json or --all", (RIGHT,)),
)
STARTING = (
    Case("a port that is taken", "node-agent run --name a --data {a_data} --state other", 1, "cannot listen on {a_data} for data: Address already in use", "give another with --data"),
    Case("a control port that is taken", "coordinator up cluster.yaml", 1, "node a: the agent did not start: control port", "give another with --control", (change("cluster.yaml", "127.0.0.1:7700", "{taken}"),)),
    Case("a state directory that is taken", "node-agent run --name b --state {a_state}", 1, "uses the state directory {a_state}", "stop it or give another with --state"),
    Case("a state directory that is a file", "node-agent run --name a --state feed.jsonl", 1, "feed.jsonl: it is a file", "give another with --state"),
    Case("a state directory without room", "node-agent run --name a --state small", 1, "cannot start: File too large", "make room in {folder}/small", alone=NO_ROOM),
    Case("a port of root's", "node-agent run --name a --data 127.0.0.1:80 --state other", 1, "127.0.0.1:80 for data: Permission denied", "give another with --data", alone="pass", lowly=True),
    Case("no address", "node-agent run --name a --data 7701", 2, "--data '7701'", "write HOST:PORT, such as 127.0.0.1:7700"),
    Case("an address off this machine", "node-agent run --name a --data 192.0.2.1:7701", 2, "this address can be reached from other machines", "give --tls certs/NAME"),
    Case("no name", "node-agent run", 2, "required: --name", "'node-agent run --help'"),
    Case("operators that do not load", "coordinator up cluster.yaml --any-port --operators operators.py", 1, "the agent did not start: operators.py:5: not Python", "correct this line", (change("operators.py", "class Weigh:", "class Weigh"),)),
    Case("no real-time priorities", "coordinator up cluster.yaml --any-port --detach", 0, "a, b: no real-time class, so latencies will be worse", "'node-agent grant-rt' says how", alone=NO_RT, lowly=True),
    Case("ended before they were started", "coordinator down", 2, "addresses.json: cannot be read", "start the agents with 'coordinator up'", fault="addresses.json unreadable"),
)
CASES = {"Deploying": DEPLOYING, "Putting in and taking out": RUNNING, "Starting agents": STARTING}
