"""Judges a run of the changing line. It shares no code with the product.

What it holds the system to, besides what holds for every line:
- a result is of an output that the plan of its tuple has, and a tuple is known only to nodes on its way;
- the operator with state counts on over a change that keeps it, and begins anew only where nothing keeps it;
- from the end of a command on, every tuple gives all results of the plan that runs then, in time, as long as nothing
  else happens; over a change that keeps them they are never late nor missing;
- the added query has its first result soon, and none of a tuple that was sent after it had been removed;
- in the end all nodes run one plan, and the files on the desk say which.
"""

import json
from functools import cached_property
from pathlib import Path

from protos import records as rec
from tests.simulation.agents.agent_checker import Check, Verdicts
from tests.simulation.agents.agents_line import FED, MS, NODES, SECOND, AgentsLine
from tests.simulation.agents.changing.changing_line import (
    CHANGING,
    FAILS,
    PLAN,
    SPARE,
    SURVIVORS,
    ChangingLine,
    left_of_change,
)
from tests.simulation.agents.changing.plan_chain import BASE, CHAIN, WITH_MORE, plan

GENTLE = frozenset({"add", "remove", "add_killed", "add_beside_killed", "add_collected"})  # no tuple loses by them
PLANNED = GENTLE | {"add_half_told", "fail_over", "fail_over_cut"}
MORE_NS = CHANGING.deadlines_ns["more"]
FIRST_NS = 250 * MS + MORE_NS  # after an add the query has its first result: a period of its source and its deadline
SETTLED_NS = 4 * SECOND  # after a node is back, until all have found it
TAKEN = ("is older than", "is that of another plan")  # an epoch, though nobody else is at it
BESIDE = f"spare-without-{FAILS}.json"
COUNTING = frozenset({*CHAIN, SURVIVORS})  # plans whose operator with state is on b
SOURCES = {source: name for name, (source, _) in FED.items()}


class ChangeCheck(Check):
    """One run."""

    line: ChangingLine

    def run(self) -> Verdicts:
        """All checks."""
        super().run()
        self._ways()
        self._counts()
        if self.line.kinds <= PLANNED:
            self._commands()
            self._steady()
        if self.line.kinds <= GENTLE:
            self._kept()
        self._files()
        return self.found

    def _plan_of_tuple(self, key: tuple[int, int, int]) -> str:
        epochs = self._plan_epochs(key)
        return self.plan_of.get(min(epochs), "") if epochs else ""

    def _ways(self) -> None:
        paths = self.line.shape.paths
        for seen in self.line.seen:
            ran, output = self._plan_of_tuple(seen.lineage[:3]), self.line.output_of(seen)
            if ran and output not in paths[ran]:
                self.found.say(f"{output}: a result of {seen.lineage[:3]}, which ran under {ran}")
            sent_ns = self.line.planned[SOURCES[seen.lineage[0]]][seen.number]
            if output == "out" and any(
                sent_ns < until < seen.at_ns for node, _, until in self.line.away if node == FAILS
            ):
                self.found.counts["results of a gone plan"] += 1
        for one in self.written:
            for key in one.by_key:
                ran = self._plan_of_tuple(key)
                if ran and one.node not in {
                    node for source, path in paths[ran].values() if source == key[0] for node, _ in path
                }:
                    self.found.say(f"{one.node} has records of tuple {key}, which ran under {ran}")

    def _counts(self) -> None:
        """Of each incarnation of b, in order. It may begin anew after a plan that has it elsewhere, or a stop."""
        if self.disturbed:
            return
        last: dict[tuple[int, int], int] = {}
        for counted in self.line.counted:
            key = counted.lineage[:3]
            if self._plan_of_tuple(key) not in COUNTING:
                continue
            state = self._ends_before(self._epoch_on_b(key))
            begun = [ends for epoch, ends in last if epoch == counted.epoch]
            if (counted.epoch, state) in last:
                expected = {last[counted.epoch, state] + 1}
            else:
                expected = {1, *(last[counted.epoch, ends] + 1 for ends in begun)}  # a stop may not have reached it
            if counted.count not in expected:
                self.found.say(f"y counted {counted.count} for {key}, and not one of {sorted(expected)}")
            last[counted.epoch, state] = counted.count
            self.found.counts["counted"] += 1
            self.found.counts["counted anew"] += counted.count == 1 and bool(begun)

    def _epoch_on_b(self, key: tuple[int, int, int]) -> int:
        """In which b had the plan of that tuple: others may have deployed it again since, without b, or it without
        them."""
        records = (record for each in self.written if each.node == "b" for record in each.by_key.get(key, ()))
        return min(record.flags & rec.PLAN_EPOCH_MASK for record in records)

    def _ends_before(self, epoch: int) -> int:
        """How often the state of b's operator may have ended before a plan of that epoch began."""
        elsewhere = {each for each, name in self.plan_of.items() if name not in COUNTING}
        stopped = {each.epoch for each in self.line.ledger.asked["b"] if each.method == "Stop"}
        return sum(each < epoch for each in elsewhere | stopped)

    def _commands(self) -> None:
        """Nothing is in the way of a command that is alone."""
        for index, command in enumerate(self.line.commands):
            others = self.line.commands[:index] + self.line.commands[index + 1 :]
            alone = not any(
                each.began_ns <= (command.ended_ns or 1 << 62) and (each.ended_ns or 1 << 62) >= command.began_ns
                for each in others
            )
            reached = not any(
                since < command.ended_ns and until > command.began_ns - SETTLED_NS for _, since, until in self.line.away
            )
            drains = "is being stopped here" in command.why  # the same plan, which another has followed a moment ago
            if command.other_plan and self._file_that_runs(command.began_ns) != command.file:
                continue  # somebody has deployed that one meanwhile
            answered = any(each in command.why for each in TAKEN)  # so the node could be reached
            expected = reached or answered or command.kind == "fail_over"
            if alone and command.result == "failed" and not drains and expected:
                self.found.say(f"{command.kind} of {command.file} has failed: {command.why}")

    def _file_that_runs(self, at_ns: int) -> str:
        """The one of the last command that has committed by then."""
        done = [each for each in self.line.commands if each.result == "committed" and each.ended_ns <= at_ns]
        return max(done, key=lambda each: each.ended_ns).file if done else ""

    def _steady(self) -> None:
        """Every tuple of a time in which one plan runs gives all its results, in time."""
        for command, until_ns in self.line.steady():
            nodes = {node for _, path in self.line.shape.paths[command.plan].values() for node, _ in path}
            gone = [(since, until + SETTLED_NS) for node, since, until in self.line.away if node in nodes]
            for output, (source, _) in self.line.shape.paths[command.plan].items():
                self._given(output, SOURCES[source], command.plan, (command.ended_ns, until_ns - SECOND // 2), gone)

    def _given(
        self, output: str, name: str, ran: str, span: tuple[int, int], gone: list[tuple[int, int]]
    ) -> None:  # fmt: skip
        for number, at_ns in enumerate(self.line.planned[name]):
            apart = not any(since - SECOND < at_ns < until for since, until in gone)
            if span[0] < at_ns < span[1] and apart:
                self.found.counts[f"steady {output} of {ran}"] += 1
                if (output, number) not in self._in_time:
                    self.found.say(f"{output}: number {number} of {name}, sent at {at_ns} ns as {ran} ran and nothing "
                                   f"else happened, gave no result in time")  # fmt: skip

    @cached_property
    def _in_time(self) -> set[tuple[str, int]]:
        found: set[tuple[str, int]] = set()
        for seen in self.line.seen:
            output, name = self.line.output_of(seen), SOURCES[seen.lineage[0]]
            if seen.at_ns - self.line.planned[name][seen.number] <= self.line.shape.deadlines_ns[output]:
                found.add((output, seen.number))
        return found

    def _kept(self) -> None:
        """Streams that are in all plans notice nothing of a change."""
        for output, (source, _) in self.line.shape.paths[BASE].items():
            name = SOURCES[source]
            late = [number for number in range(len(self.line.planned[name])) if (output, number) not in self._in_time]
            if late:
                self.found.say(f"{output}: {len(late)} results are missing or late, of number {late[0]} first")
        for name, source in self.line.sources.items():
            for each in source.fed.values():
                if each.why:
                    self.found.say(f"number {each.number} of {name} was refused: {each.why}")
        for command, until_ns in self.line.steady():
            more = [seen.at_ns for seen in self.line.seen if self.line.output_of(seen) == "more"]
            last_ns = command.ended_ns + FIRST_NS
            sent = any(command.ended_ns < at_ns < last_ns - MORE_NS for at_ns in self.line.planned["s"])
            if command.plan in WITH_MORE and until_ns > last_ns and sent:
                self.found.counts["adds with a first result"] += 1
                if not any(command.began_ns < at_ns <= last_ns for at_ns in more):
                    self.found.say(f"more: no result within {FIRST_NS} ns after it was added, at {command.ended_ns} ns")

    def _files(self) -> None:
        last = self.line.commands[-1]
        if last.result != "committed":
            return  # it is told elsewhere
        wanted = {name: last.plan for name in NODES if last.plan != SURVIVORS or name != FAILS}
        if {name: self.line.runs.get(name, "") for name in wanted} != wanted:
            self.found.say(f"in the end {self.line.runs} run, and {last.plan} was deployed")
        self._expect_file(last.file, SPARE if last.plan == SURVIVORS else last.plan)
        held = {path.name: self._held(path) for path in self.line.desk.folder.glob("*-*.json")}
        unfinished = left_of_change(self.line) is not None and last.file != PLAN  # nobody has gone on with that file
        for file, name in held.items():
            waits = unfinished and bool(name) and file == f"plan-{plan(name).hash[:8]}-next.json"
            if file != BESIDE and not waits and (not name or file != f"plan-{plan(name).hash[:8]}.json"):
                self.found.say(f"{file} holds {name or 'no plan that is known'}")
        ran = {each.plan for each in self.line.commands if each.file == PLAN and each.result == "committed"}
        if lost := ran - {*held.values(), self._held(self.line.file(PLAN))}:
            self.found.say(f"{sorted(lost)} ran, and no file on the desk holds it")
        if last.file == PLAN and last.kind != "deploy" and left_of_change(self.line) is not None:
            self.found.say("a change has not been finished, and a later one has ended well")

    def _held(self, path: Path) -> str:
        hash_ = json.loads(path.read_bytes())["hash"]
        return next((name for name in self.line.shape.plans if plan(name).hash == hash_), "")

    def _expect_file(self, file: str, name: str) -> None:
        if (held := self._held(self.line.file(file))) != name:
            self.found.say(f"{name} runs, and {file} holds {held or 'no plan that is known'}")


def check(line: AgentsLine, healed_ns: int) -> ChangeCheck:
    """Of a changing line."""
    assert isinstance(line, ChangingLine)
    return ChangeCheck(line, healed_ns)
