"""Bugs in deployments and in the supervisor."""

from tests.simulation.planted.bug import Bug

BUGS = (
    Bug(
        "no_epoch_fence", "A plan of an older epoch than one that was seen is prepared.",
        "node_agent/control/deploy_protocol.py",
        "        if wanted.epoch < self.durable.seen:\n", "        if wanted.epoch < 0:\n",
    ),
    Bug(
        "abort_fences_nothing", "An aborted epoch can be prepared again.",
        "node_agent/control/deploy_protocol.py",
        "fence=max(fenced.fence, epoch), seen=max(fenced.seen, epoch))\n", "seen=fenced.seen)\n",
    ),
    Bug(
        "abort_keeps_plan", "An aborted plan stays prepared.",
        "node_agent/control/deploy_protocol.py",
        "        fenced = self.durable.without(hash_) if prepared else self.durable\n",
        "        fenced = self.durable\n",
    ),
    Bug(
        "older_deployment_wins", "What was prepared before a plan was deployed again can end it by a late commit.",
        "node_agent/control/deploy_protocol.py",
        "        if epoch <= known.latest:\n", "        if epoch <= known.latest or known.latest:\n",
    ),
    Bug(
        "prepared_admits", "A plan that is only prepared admits tuples.",
        "node_agent/runtime/deployments/lifecycle.py",
        "            if each.state == COMMITTED\n            for source in each.plan.sources\n",
        "            if each.state in {PREPARED, COMMITTED}\n            for source in each.plan.sources\n",
    ),
    Bug(
        "tuple_proves_nothing", "A tuple that is stamped with a prepared plan does not commit it.",
        "node_agent/runtime/deployments/lifecycle.py",
        "        if deployed.state == PREPARED:\n            self.commit(deployed.hash, why=\"a tuple",
        "        if deployed.state == ENDED:\n            self.commit(deployed.hash, why=\"a tuple",
    ),
    Bug(
        "proof_not_durable", "What a tuple proved is forgotten with the process.",
        "node_agent/control/deploy_protocol.py",
        "        return self._commit_durably(known, written)\n", "        return then(\"\")\n",
    ),
    Bug(
        "proof_unheard", "What a tuple proved while control was away is not heard of when it is there again.",
        "node_agent/control/deploy_driver.py",
        "            elif again and answer.state == State.COMMITTED:",
        "            elif again and answer.state == State.NONE:",
    ),
    Bug(
        "two_admit", "The plan before goes on admitting when another one is committed.",
        "node_agent/runtime/deployments/lifecycle.py",
        "            self._set(before, DRAINING)\n", "            before.arrived_ns = self.shared.now_ns()\n",
    ),
    Bug(
        "stamp_ignored", "A tuple runs under the plan that is committed here, and not under the one of its stamp.",
        "node_agent/runtime/links/roles.py",
        "        deployed = context.plans.stamped(arrived.plan)\n",
        "        deployed = context.plans.committed or context.plans.stamped(arrived.plan)\n",
    ),
    Bug(
        "stale_routes", "A link keeps the address that it had.",
        "node_agent/runtime/links/outbox.py",
        "            link.move(addresses[peer.name], routed)\n", "",
    ),
    Bug(
        "drained_too_early", "A plan counts as drained while peers may still hold tuples for it.",
        "node_agent/runtime/deployments/deployed_plan.py",
        "        return empty and at_ns - self.arrived_ns >= self.quiet_ns()\n", "        return empty\n",
    ),
    Bug(
        "links_not_drained", "A plan counts as drained while links still hold tuples of it.",
        "node_agent/runtime/deployments/deployed_plan.py",
        "        empty = not (self.ready or self.loaded.awaited or self.held)\n",
        "        empty = not (self.ready or self.loaded.awaited)\n",
    ),
    Bug(
        "drain_untold", "A runtime that begins while a plan drains is not told so.",
        "node_agent/control/deploy_protocol.py",
        "    return [DrainInRuntime(known.hash, place)] if known.state is State.DRAINING else []\n", "    return []\n",
    ),
    Bug(
        "no_hand_over", "A plan begins without the state, windows and side values of the one before.",
        "node_agent/runtime/deployments/lifecycle.py",
        "            inherit_state(deployed.loaded, before.loaded,"
        " deployed.inherits if deployed.base is before else None)\n",
        "",
    ),
    Bug(
        "no_watchdog", "An operator that hangs is never killed.",
        "node_agent/supervisor/watchdog.py",
        "running.hang_ns + GRACE_NS:\n        return None\n", "(1 << 62):\n        return None\n",
    ),
    Bug(
        "frozen_stays", "A process that stands still is never replaced.",
        "node_agent/supervisor/watchdog.py",
        "        return self._silent_ns > SILENT_NS\n", "        return False\n",
    ),
    Bug(
        "backoff_never_ends", "Pauses between attempts grow without end.",
        "node_agent/link/backoff.py",
        "        self._pause_ns = min(2 * self._pause_ns, self._most_ns)\n",
        "        self._pause_ns = 4 * self._pause_ns\n",
    ),
    Bug(
        "promises_not_inherited", "A new incarnation knows nothing of what dead ones had taken over.",
        "node_agent/host/trace_ring.py",
        "    return [(at, taken) for taken, at in found.items()][-MOST_INHERITED:]\n", "    return []\n",
    ),
    Bug(
        "older_promises_dropped", "A new incarnation knows only what the last one before it had taken over.",
        "node_agent/host/trace_ring.py",
        "    found = {taken: at for at, taken in before}\n", "    found: dict[TakenOver, int] = {}\n",
    ),
    Bug(
        "crash_is_an_end", "The ring of a killed runtime is not marked as such, nor what it took over read.",
        "node_agent/supervisor/worker.py",
        "            ring.mark_crashed()\n",
        "            ring.cells[STATE] = 5  # ended\n",
    ),
)  # fmt: skip
