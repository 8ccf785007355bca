"""All planted bugs, by name: do the simulations find them?

hunt.py runs seeds from 1 on in a copy of the product, until one fails that holds without the bug. A seed that exceeds
its limit of steps or CPU time has found the bug too. A seed takes about 1 s of CPU time in `faults` (a runtime alone),
2 s in `agents` (whole agents) and 3 to 4 s in `street` (a richer query). In `changing` queries come and go.

- A test reports a bug whose text is gone from the product: give the bug its new text.
- A bug that no seed finds is a hole in faults, load or checks: close the hole and keep the bug.
- A new kind of fault has a stream of draws of its own, so it changes only seeds that draw it.

These are no bugs, since a second line of defence holds: a sender without credit that sends one tuple at a time, a peer
that sends again what was received, a receiver that takes a number twice, and a side input that is applied late within
one instant.
"""

from tests.simulation.planted import bugs_of_changes, bugs_of_disks, bugs_of_engines, bugs_of_links, bugs_of_plans

BUGS = {
    each.name: each
    for part in (bugs_of_disks, bugs_of_plans, bugs_of_links, bugs_of_engines, bugs_of_changes)
    for each in part.BUGS
}
