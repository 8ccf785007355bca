"""The story's public face to a run's trace: the deciding tuple's split and what the nodes did around it."""

from sim_vehicles.story.gantt import Gantt, Row, gantt
from sim_vehicles.story.split import Split, explain, split
from sim_vehicles.story.walk import MissingRecordError, Stage

__all__ = ["Gantt", "MissingRecordError", "Row", "Split", "Stage", "explain", "gantt", "split"]
