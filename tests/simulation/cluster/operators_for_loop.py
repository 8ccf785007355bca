"""An operator that warns of all that it is told of, for the closed loop; it raises on level 3."""

from node_agent.sdk import operator
from protos.vehicle_pb2 import Cpm
from protos.vehicle_pb2 import Warning as Told


@operator("test.alarm", inputs={"heard": "vehicle.Cpm"}, output="vehicle.Warning")
class Alarm:
    def __init__(self, level: int = 2) -> None:
        self.level = level

    def __call__(self, heard: Cpm) -> Told:
        if self.level == 3:
            raise RuntimeError("no such level")
        measured_ms = heard.generation_ms - heard.object.measurement_delta_ms
        return Told(object_id=heard.object.object_id, station=heard.station, measured_ms=measured_ms, level=self.level)
