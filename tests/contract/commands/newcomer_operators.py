"""Mistakes with operators, with plans and with runs: no agent is needed for them."""

# ruff: noqa: E501 - a table: a line per mistake
# fmt: off

from __future__ import annotations

import shutil

from tests.contract.commands.newcomer_files import VALIDATE
from tests.contract.commands.newcomer_stage import Case, Stage, Step, change, cut, does, remove, write

LIST = "node-agent operators --operators operators.py --json"
DEPLOY = "coordinator deploy plan.json"
SIMULATE = "sim-vehicles simulate plan.json --operators operators.py --tuples belt=feed.jsonl --tuples scale=feed.jsonl"
NO_JAVA = "from pathlib import Path; from coordinator.report.spark import java; java.find.__defaults__ = (Path(\"/nowhere\"),); import os; os.environ.update(PATH=\"/nowhere\", JAVA_HOME=\"\")"
RUN = does(f"{SIMULATE} --out run")
AGAIN = "node-agent operators --operators FILE.py --json > operators.json"
NONE = '{"shimekiri": 1, "codecs": ["json"], "operators": {}}'
TWICE = """\
from node_agent.sdk import operator


@operator("my.weigh", inputs={"parcel": "json"}, output="json")
def one(parcel):
    return parcel


@operator("my.weigh", inputs={"parcel": "json"}, output="json")
def other(parcel):
    return parcel
"""
DECLARED = '@operator("my.weigh", inputs={"parcel": "json"}, side={"scale": "json"}, output="json")'


def _installed(did: str, what: str, mend: str, *steps: Step, fault: str) -> Case:
    return Case(did, VALIDATE, 2, what, mend, steps, fault=fault)


def _code(did: str, old: str, new: str, what: str, mend: str) -> Case:
    return Case(did, LIST, 2, what, mend, (change("operators.py", old, new),))


def _source(did: str, old: str, new: str, what: str, mend: str) -> Case:
    return Case(did, LIST.replace("operators.py", "sources.py"), 2, what, mend, (change("sources.py", old, new),))


def _plan(did: str, what: str, mend: str, *steps: Step, fault: str) -> Case:
    return Case(did, DEPLOY, 2, what, mend, steps, fault=fault)


def _raw_removed(stage: Stage) -> None:
    shutil.rmtree(stage.path("run/trace/raw"))


INSTALLED = (
    _installed("no operators.json", "cluster.yaml:6: operators: 'operators.json' cannot be read", AGAIN, remove("operators.json"), fault="cluster.yaml:6 unreadable operators"),
    _installed("half an operators.json", "cluster.yaml:6: operators: 'operators.json' is not JSON", AGAIN, cut("operators.json"), fault="cluster.yaml:6 not_json operators"),
    _installed("operators.json of another release", "is of version 2, this release reads version 1", AGAIN, change("operators.json", '"shimekiri": 1', '"shimekiri": 2'), fault="cluster.yaml:6 other_version operators"),
    _installed("operators.json is older than operators.py", "query.yaml:7: operator 'weigh' runs 'my.weigh', which no node has installed", AGAIN, write("operators.json", NONE), fault="query.yaml:7 unknown_operator operators.weigh.run"),
    _installed("operators.json is older than a parameter", "parameter 'grams' of my.weigh is unknown", "there are mass", change("operators.json", '"grams"', '"mass"'), fault="query.yaml:7 unknown_parameter operators.weigh.with"),
)
CODE = (
    _code("a syntax error", "class Weigh:", "class Weigh", "operators.py:5: not Python: expected ':'", "correct this line"),
    _code("an import that fails", "from node_agent", "import numpie\nfrom node_agent", "operators.py:1: ModuleNotFoundError: No module named 'numpie'", "install it for"),
    _code("no @operator", DECLARED, "", "operators.py: declares no operator", "write @operator(...) above"),
    _code("a class that cannot be called", "__call__", "call", "my.weigh: class Weigh has no __call__", "add 'def __call__(self, parcel)'"),
    _source("a source that cannot be called", "@source(\"my.scale\")\ndef read_scale():\n    return", "@source(\"my.scale\")\nclass Scale:\n    g =", "my.scale: class Scale has neither __call__ nor __iter__", "add 'def __call__(self)'"),
    _source("a source that waits", "def read_scale", "async def read_scale", "my.scale: must be an ordinary function", "leave out 'async'"),
    _code("a side input that is not taken", ", *, scale", "", "does not take its side input 'scale'", "add the argument scale"),
    Case("a file that ends the program", LIST, 2, "operators.py: ends the program as it is loaded", "below: if __name__ == '__main__':", (write("operators.py", "import sys\nsys.exit(0)\n"),)),
    Case("two operators with one name", LIST, 2, "two operators are called 'my.weigh': one of", "give one of them another name", (write("operators.py", TWICE),)),
    Case("the wrong file", LIST.replace("operators.py", "operators.json"), 2, "operators.json: not a Python file", "must end in .py"),
    Case("a file that is not there", "coordinator up cluster.yaml --operators operator.py", 2, "operator.py: is no file", "give a Python file", fault="operator.py no_file"),
)
PLANS = (
    _plan("no plan", "plan.json: cannot be read (No such file", "'coordinator plan query.yaml cluster.yaml' makes a plan", remove("plan.json"), fault="plan.json unreadable"),
    _plan("a plan edited by hand", "plan.json: was changed after it was made", "make it again with 'coordinator plan'", change("plan.json", '"query": "sorting",\n "', '"query": "sorted",\n "'), fault="plan.json changed hash"),
    _plan("half a plan", "plan.json: is not JSON", "make it again with 'coordinator plan'", cut("plan.json"), fault="plan.json not_json"),
    _plan("a plan of an older release", "plan.json: is a plan of version 0, this reads version 1", "make it again", change("plan.json", '\n "shimekiri": 1,', '\n "shimekiri": 0,'), fault="plan.json other_version shimekiri"),
    _plan("no agents yet", "addresses.json: cannot be read (No such file", "start the agents with 'coordinator up'", fault="addresses.json unreadable"),
    _plan("half an addresses.json", "addresses.json: is not JSON", "start the agents with 'coordinator up'", write("addresses.json", '{"nodes": {'), fault="addresses.json not_json"),
    Case("a run explained", "coordinator explain run", 2, "run: cannot be read (Is a directory)", "give run/plan.json", (write("run/plan.json", "{}"),), fault="run unreadable"),
    Case("a query's plan explained", "coordinator explain plann.json", 2, "plann.json: cannot be read", "makes a plan", fault="plann.json unreadable"),
)
RUNS = (
    Case("a run that is none", "coordinator report .", 2, ".: no run: run.json cannot be read", "give a directory that 'coordinator collect'"),
    Case("the directory of all runs", "coordinator report runs", 2, "runs: no run: run.json cannot be read", "give a run in it, like runs/20260101T120000Z-0a1b2c3d", (write("runs/20260101T120000Z-0a1b2c3d/run.json", "{}"),)),
    Case("traces removed before the report", "coordinator report run --engine python", 2, "run/trace/raw: is not there", "give a copy of the run", (RUN, _raw_removed)),
    Case("no Java", "coordinator report run --engine spark", 1, "no `java` was found", "use --engine python", (RUN,), alone=NO_JAVA),
    Case("Java is elsewhere", "coordinator report run --engine spark", 1, "JAVA_HOME is /nowhere", "use --engine python", (RUN,), {"JAVA_HOME": "/nowhere"}),
    Case("a disk that is full at the report", "coordinator report run --engine python", 2, "run/tables: cannot be written", "make room", (RUN,), full=True, fault="tables unwritable"),
    Case("simulated into a run that is there", f"{SIMULATE} --out run", 2, "--out run: is there already", "name a new directory", (RUN,)),
    Case("simulated without tuples", "sim-vehicles simulate plan.json --operators operators.py", 0, "operator weigh on node a raised 2 times, first: KeyError: 'g'", "give real ones with --tuples SOURCE=FILE"),
    Case("simulated without the operators", SIMULATE.replace(" --operators operators.py", ""), 2, "no operator 'my.weigh' is installed here", "--operators FILE.py"),
    Case("tuples of no source", SIMULATE.replace("belt=", "bolt="), 2, "--tuples bolt: the plan has no such source", "it has belt, scale"),
    Case("tuples that are not there", SIMULATE.replace("belt=feed", "belt=fed"), 2, "--tuples fed.jsonl: cannot be read", "give a file with one tuple in JSON per line"),
    Case("no coordinator extra", "coordinator plan query.yaml cluster.yaml", 1, "coordinator needs typer, which is not installed", "pip install 'shimekiri[coordinator]'", alone="import sys; sys.modules['typer'] = None"),
)
CASES = {"operators.json": INSTALLED, "operators.py": CODE, "plan.json and addresses.json": PLANS, "Runs and reports": RUNS}
