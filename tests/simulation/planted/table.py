"""All planted bugs, by name."""

from tests.simulation.planted import bugs_of_changes, bugs_of_disks, bugs_of_engines, bugs_of_links, bugs_of_plans

BUGS = {
    each.name: each
    for part in (bugs_of_disks, bugs_of_plans, bugs_of_links, bugs_of_engines, bugs_of_changes)
    for each in part.BUGS
}
