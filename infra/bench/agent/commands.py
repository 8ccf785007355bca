"""How long the coordinator's commands take, as processes that a shell starts, and deployments on many agents."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from infra.bench.agent.process import BIN, agent, deploy_planned, plan_for
from infra.bench.figures import Figure

TIMES, FEW = 9, 3
MANY = (20, 50)
CHAIN = """
shimekiri: 1
query: quick
sources: {{in: {{at: a0, type: json, arrival: {{burst: 1, period: 10 ms}}}}}}
operators:
{operators}
outputs: {{out: {{from: {last}, at: {last_node}, deadline: 10 s}}}}
"""


def commands() -> list[Figure]:
    """ms each, and seconds beyond the nodes' own work."""
    with TemporaryDirectory() as name, _bytecode(Path(name) / "bytecode"):
        folder = Path(name)
        _coordinator("init", str(folder))
        files = [str(folder / each) for each in ("query.yaml", "cluster.yaml")]
        found = [
            _figure("command_help", 120, [_ms("--help") for _ in range(TIMES)], "coordinator --help"),
            _figure("command_validate", 250, [_ms("validate", *files) for _ in range(TIMES)], "of the files of init"),
            _figure(
                "command_plan", 1000, [_ms("plan", *files, "-o", str(folder / "plan.json")) for _ in range(FEW)],
                "of the files of init",
            ),
        ]  # fmt: skip
        taken = [s * 1000 for s, _ in _deployed(2, FEW)]
        found.append(_figure("command_deploy", 300, taken, "an operator on each of two agents"))
        for number in MANY:
            ((wall_s, cpu_s),) = _deployed(number, 1)
            beyond_s = max(0.0, wall_s - cpu_s / (os.cpu_count() or 1))
            how = (
                f"deploy, an operator on each of {number} agents, in {wall_s:.2f} s: without the CPU time of the agents"
            )
            found.append(Figure(f"deploy_{number}", beyond_s, "s beyond the nodes' work", 1, how))
        return found


@contextmanager
def _bytecode(folder: Path) -> Iterator[None]:
    """Meanwhile processes have bytecode, as those of an installation do; a checkout may forbid to write it."""
    before = dict(os.environ)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _figure(name: str, goal: float, values: Sequence[float], how: str) -> Figure:
    return Figure(name, median(values), "ms", goal, f"{how}; median of {len(values)}")


def _coordinator(*words: str) -> None:
    subprocess.run([BIN / "coordinator", *words], check=True, capture_output=True)


def _ms(*words: str) -> float:
    began = time.monotonic()
    _coordinator(*words)
    return (time.monotonic() - began) * 1000


def _deployed(number: int, times: int) -> list[tuple[float, float]]:
    """Seconds of each deployment on so many agents, and the CPU time that these had meanwhile."""
    with ExitStack() as stack:
        agents = [stack.enter_context(agent(name=f"a{at}")) for at in range(number)]
        inputs = ["in", *(f"O{at}" for at in range(number - 1))]
        lines = [f"  O{at}: {{run: pass, in: {each}, cost: 1 us, nodes: [a{at}]}}" for at, each in enumerate(inputs)]
        query = CHAIN.format(operators="\n".join(lines), last=f"O{number - 1}", last_node=f"a{number - 1}")
        found = []
        for time_ in range(times):
            plan_for(query.replace("1 us", f"{time_ + 1} us"), *agents)
            before_s, began = sum(each.cpu_s() for each in agents), time.monotonic()
            deploy_planned(agents[0])
            taken_s = time.monotonic() - began
            found.append((taken_s, sum(each.cpu_s() for each in agents) - before_s))
        return found


if __name__ == "__main__":
    for figure in commands():
        print(f"{figure.name:18} {figure.value:8.3g} {figure.unit}, {figure.how}")
