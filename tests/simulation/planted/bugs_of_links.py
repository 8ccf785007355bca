"""Bugs in links and clocks."""

from tests.simulation.planted.bug import Bug

BUGS = (
    Bug(
        "no_peer_fence", "The last one to come under a node's name is taken for it.",
        "node_agent/link/fence.py",
        "    return incarnation > living or not (incarnation or living)\n",
        "    return True\n",
    ),
    Bug(
        "offset_ignored", "A peer's instants are taken for this node's.",
        "node_agent/link/clock_offset.py",
        "        early, late = lo_ns + self._lo_ns, hi_ns + self._hi_ns\n", "        early, late = lo_ns, hi_ns\n",
    ),
    Bug(
        "drift_ignored", "An offset that was found counts for ever as it was.",
        "node_agent/link/clock_offset.py",
        "        return -(-(elapsed_ns + 1) * self._rate // self._per)\n", "        return 0\n",
    ),
    Bug(
        "own_suspension_ignored", "What was known of others' clocks holds on after this machine was suspended.",
        "node_agent/runtime/links/acceptor.py",
        "        for clock in self.context.clocks.values():\n            clock.suspended(at_ns)\n", "",
    ),
    Bug(
        "suspensions_untold", "A peer hears nothing of a suspension that was shorter than its link is slow.",
        "node_agent/runtime/links/roles.py",
        'suspensions=shared.counters["suspensions"]', "suspensions=0",
    ),
    Bug(
        "old_era_counts", "An offset of after a suspension counts for instants of before.",
        "node_agent/link/clock_offset.py",
        "        if early < self._since_ns:\n", "        if early < -FAR_NS:\n",
    ),
    Bug(
        "suspension_not_seen", "Nobody looks whether the machine was suspended.",
        "node_agent/runtime/loop.py",
        "        found = self.shared.clock.suspended()\n        if found is None:\n",
        "        found = self.shared.clock.suspended()\n        if found is None or found.slept_ns:\n",
    ),
    Bug(
        "upper_bound_forgotten", "The youngest that a tuple may be counts as its age.",
        "node_agent/link/clock_offset.py",
        "        return min(early, late), late\n", "        return late, late\n",
    ),
    Bug(
        "resent_taken_twice", "What was taken over is forgotten with its connection, and is taken again.",
        "node_agent/link/receiver.py",
        "        self._acked = self.last\n        self._granted = credit_bytes\n"
        "        return Acknowledgement(self.last, credit_bytes)\n\n    def resume",
        "        self._acked = self.last = 0\n        self._granted = credit_bytes\n"
        "        return Acknowledgement(self.last, credit_bytes)\n\n    def resume",
    ),
    Bug(
        "incarnations_not_compared", "A tuple that two incarnations of a peer have sent is taken twice.",
        "node_agent/link/receiver.py",
        "            return not left\n", "            return True\n",
    ),
    Bug(
        "acknowledged_first", "Tuples are acknowledged before their records are published.",
        "node_agent/runtime/links/acceptor.py",
        "            role.on_batch(at_ns, frame)\n",
        "            role.on_batch(at_ns, frame)\n            role.acknowledge(drained=True)\n",
    ),
    Bug(
        "acknowledged_early", "A batch is acknowledged by one more than it has.",
        "node_agent/link/receiver.py",
        "        self._acked = self.last\n        self._granted = credit_bytes\n"
        "        return Acknowledgement(self.last, credit_bytes)\n\n\ndef share_credit",
        "        self._acked = self.last = self.last + 1\n        self._granted = credit_bytes\n"
        "        return Acknowledgement(self.last, credit_bytes)\n\n\ndef share_credit",
    ),
    Bug(
        "no_promise", "What runs before it is acknowledged is promised nowhere.",
        "node_agent/runtime/links/acceptor.py",
        "        return self._ring.promise_acknowledgements(taken, written * RECORD_BYTES) and promised\n",
        "        return True\n",
    ),
    Bug(
        "flight_not_resent", "What was under way on a connection that ended is not sent again.",
        "node_agent/link/sender.py",
        "        self._again.extendleft(reversed(self._flight))\n",
        "        self.held_bytes -= sum(len(entry[1]) for entry in self._flight)\n",
    ),
    Bug(
        "resent_out_of_order", "What was under way when a link was cut a second time is sent after what is younger.",
        "node_agent/link/sender.py",
        "        self._again.extendleft(reversed(self._flight))\n", "        self._again.extend(self._flight)\n",
    ),
    Bug(
        "resent_and_kept", "What is sent again counts as under way on the connection that ended as well.",
        "node_agent/link/sender.py",
        "        self._flight.clear()\n        self._flight_bytes = self._offset = 0",
        "        self._flight_bytes = self._offset = 0",
    ),
    Bug(
        "credit_growth_untold", "A sender is not told that it has more credit.",
        "node_agent/link/receiver.py",
        "        moved = credit_bytes != granted and (\n", "        moved = credit_bytes < granted and (\n",
    ),
    Bug(
        "promised_for_ever", "Outcomes that were told go on counting as promised, in place of later ones.",
        "node_agent/link/outcomes.py",
        "        self._promised = max(0, self._promised - len(taken))\n", "",
    ),
    Bug(
        "credit_ignored", "A sender that has any credit sends all that it has.",
        "node_agent/link/sender.py",
        "        room = self._credit - self._flight_bytes\n", "        room = 1 << 40\n",
    ),
    Bug(
        "stall_not_seen", "A connection over which nothing is acknowledged is kept.",
        "node_agent/link/sender.py",
        "        if self._flight and at_ns - self._progress_ns > self._stall_ns:\n", "        if not self:\n",
    ),
    Bug(
        "silence_not_seen", "A connection over which nothing comes is kept, though its peer is dead.",
        "node_agent/link/sender.py",
        "        silent_since_ns = self._heard_ns if self.connected else None\n",
        "        silent_since_ns = None\n",
    ),
    Bug(
        "outcomes_not_recalled", "A client that connects again is not told of outcomes that it may have missed.",
        "node_agent/link/outcomes.py",
        "        self._new[:0] = again\n", "",
    ),
    Bug(
        "given_up_untold", "A tuple that a link gave up has no record.",
        "node_agent/runtime/links/peer_link.py",
        "        if punctuation is None:\n            self.shared.facts.write(\n                GAVE_UP,",
        "        if punctuation is not None:\n            self.shared.facts.write(\n                GAVE_UP,",
    ),
    Bug(
        "loss_not_told", "The peer is not told of numbers that a link has lost.",
        "node_agent/runtime/links/peer_link.py",
        "            self.pending.lost(key, punctuation.first if isinstance(punctuation, Removal) else lineage[2],"
        " lineage)\n",
        "            pass\n",
    ),
)  # fmt: skip
