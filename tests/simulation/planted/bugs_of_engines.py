"""Bugs in what happens to a tuple on a node."""

from tests.simulation.planted.bug import Bug

BUGS = (
    Bug(
        "delivered_twice", "Each result is delivered twice.",
        "node_agent/core/engine/engine.py",
        "            self._commands.deliver(at_ns, route.loaded, output, lineage, payload)\n",
        "            self._commands.deliver(at_ns, route.loaded, output, lineage, payload)\n"
        "            self._commands.deliver(at_ns, route.loaded, output, lineage, payload)\n",
    ),
    Bug(
        "output_not_recorded", "A result is delivered and not recorded.",
        "node_agent/core/engine/engine.py",
        "            self.ledger.delivered(at_ns, route, output, lineage)\n", "",
    ),
    Bug(
        "side_lost", "A side input's value does not arrive.",
        "node_agent/core/engine/engine.py",
        "            side.put(payload, lineage[4])\n", "",
    ),
    Bug(
        "policing_off_by_one", "A source may send one tuple more than its curve allows.",
        "node_agent/core/shedding/policing.py",
        "        return at_ns * self.parts + self.slack >= self.due[self.position]\n",
        "        return at_ns * self.parts + self.slack >= self.due[self.position - 1]\n",
    ),
    Bug(
        "too_old_by_a_millisecond", "A tuple that is a millisecond too old is admitted.",
        "node_agent/core/shedding/refusals.py",
        "    if certain or (counted and at_ns - lo_ns > source.max_age_ns):\n",
        "    certain = at_ns - hi_ns > source.max_age_ns + 1_000_000\n"
        "    if certain or (counted and at_ns - lo_ns > source.max_age_ns + 1_000_000):\n",
    ),
    Bug(
        "window_closed_early", "A window is closed 450 ms before its end is certain.",
        "node_agent/core/windows/open_windows.py",
        "        while ends and ends[0][0] <= watermark:\n",
        "        while ends and ends[0][0] <= watermark + 450_000_000:\n",
    ),
    Bug(
        "join_forgets", "A join gives up what waits while its partner is on the way.",
        "node_agent/core/engine/joins.py",
        "        entry = join.waiting[key] = Waiting(join.ports, at_ns + join.wait_ns)\n",
        "        entry = join.waiting[key] = Waiting(join.ports, at_ns)\n",
    ),
    Bug(
        "join_mixes", "A join takes what comes at one port for what comes at the other.",
        "node_agent/core/engine/joins.py",
        "        entry.lineages[port], entry.values[port] = lineage, payload\n",
        "        entry.lineages[port], entry.values[0] = lineage, payload\n",
    ),
    Bug(
        "hung_untold", "An operator that was killed leaves no record of its tuple.",
        "node_agent/supervisor/watchdog.py",
        "    return ring.append(lost)\n", "    return bool(lost)\n",
    ),
)  # fmt: skip
