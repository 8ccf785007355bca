"""Senses of the vehicles and the centre: their protobuf messages, computed from recorded motion.

- sensor: the ego's own states, `n` of them spread evenly over the last period, the newest at t. A burst counts as
  sensed at t (age 0): that is when the ego's sensor unit hands it over; `generation_ms` says when each state was
  measured. The ego's own sensors have noise (`Noise.own_...`).
- v2v: `n` messages, each ONE object that ONE station perceived at ONE measurement instant, `age` before t or later. The
  stations measure every 50 ms; a burst starts with everything they perceived at t - age (stations in turn, nearest
  object first), goes on with t - age + 50 ms and so on up to t, and is cut at n. Where all that is fewer than n the
  stations broadcast the same measurements again, from the first one on; a repeated message is equal to its first copy
  and has its age. Nothing perceived: nothing sent.
- cam: what a station says of itself (`v2v/` has the rules by which stations send it).
- centre: `n` hazards that stay where they are during a run, on the scene's roads; only their generation time moves on.

Who perceives whom is geometry (`sight`). Noise and hazards depend on the seed, the vehicles and the instant alone,
never on the order of calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice, zip_longest
from math import cos, degrees, pi, radians, sin
from random import Random
from struct import Struct
from typing import NamedTuple

from google.protobuf.message import Message

from protos.vehicle_pb2 import Cam, Cpm, Hazard, PathPoint, PerceivedObject, Sensor
from sim_vehicles.world.motion import State, Track
from sim_vehicles.world.scene import Scenario
from sim_vehicles.world.sight import Sight, perceived

MS = 1_000_000
CYCLE_NS = 50 * MS  # of a station's sensors
OBJECT_AGE_STEP_NS = 100 * MS
OBJECT_AGE_MAX_MS = 1500  # TS 103 324: objectAge ends there
EARTH_M = 6_378_137.0
PASSENGER_CAR, LIGHT_TRUCK, OTHER = 5, 7, 0  # classification, after ETSI's station types
CLASSES = {"car": PASSENGER_CAR, "van": LIGHT_TRUCK, "truck": LIGHT_TRUCK}
CAUSES = ((1, 0), (2, 1), (3, 4), (6, 1), (9, 2), (10, 1), (12, 0), (18, 1), (27, 1), (94, 2))  # DENM cause, sub-cause
HAZARD_REACH_M = 500.0


@dataclass(frozen=True)
class Noise:
    """Standard deviations, drawn anew for every measurement: of what a station measures of others, and of what a
    vehicle measures of itself (own_: satellite position, wheel speed, heading, gyroscope). White noise only; slow
    drifts of a receiver are not modelled."""

    position_m: float = 0.1
    speed_mps: float = 0.1
    own_position_m: float = 0.3
    own_speed_mps: float = 0.05
    own_heading_rad: float = 0.005
    own_yaw_rate_rps: float = 0.0035


NO_NOISE = Noise(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Burst:
    """Tuples of one source, of one age, at one instant of the recording. `age_ns`: how long before that their objects
    were measured (V2V), else 0. `sent_ns`: when the radio sent them; None: at that same instant."""

    source: str
    at_ns: int
    age_ns: int
    values: tuple[Message, ...]
    sent_ns: int | None = None


class Sent(NamedTuple):
    """A V2V tuple as a station's radio sends it. `message` names the message that carries it among those of the station
    at that instant: tuples of one message are lost or delayed together."""

    sent_ns: int
    station: str
    message: str
    measured_ns: int
    value: Cpm


class Place(NamedTuple):
    """Where a station was, on the plane, as it measured it."""

    at_ns: int
    x_m: float
    y_m: float


class Seen(NamedTuple):
    """One object that one station perceived when it measured: states of both, the visible share (0 to 1), and for how
    long it has perceived the object without a break."""

    station: str
    name: str
    measured_ns: int
    here: State
    there: State
    share: float
    age_ms: int


class Senses:
    """Senses of one scenario. Vehicles are numbered in the order of their ids: their ids on the wire."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        noise: Noise | None = None,
        sight: Sight | None = None,
        first_number: int = 1,
    ) -> None:
        """sight: of this scenario's vehicles, if not as recorded."""
        self.scenario = scenario
        self.seed = seed
        self.noise = noise or Noise()
        self.sight = sight or Sight(scenario.motion, scenario.scene)
        self.stations = tuple(name for name in scenario.scene.stations if name != scenario.scene.ego)
        self.numbers = {name: first_number + i for i, name in enumerate(sorted(scenario.motion.tracks))}
        self._hazards: list[tuple[int, int, int, int]] = []

    def moved(self, ego: Track) -> Senses:
        """The same with another motion of the ego."""
        return Senses(self.scenario, self.seed, self.noise, self.sight.moved(ego), min(self.numbers.values()))

    def sensor(self, at_ns: int, n: int, period_ns: int) -> list[Sensor]:
        """The ego's states in (at - period, at]; fewer than n where the recording does not have it."""
        track = self.sight.motion.tracks[self.scenario.scene.ego]
        instants = [at_ns - period_ns * (n - 1 - i) // n for i in range(n)]
        states = ((t_ns, track.at(t_ns / 1e9)) for t_ns in instants)
        return [self._sensor(t_ns, state) for t_ns, state in states if state is not None]

    def v2v(self, at_ns: int, n: int, age_ns: int) -> list[Sent]:
        """n messages, or none if no station perceives anything (see the head)."""
        fresh = list(islice(self._measured(at_ns, age_ns), n))
        again = (fresh[i % len(fresh)]._replace(message=f"{i}") for i in range(n)) if fresh else ()
        return list(again)

    def centre(self, at_ns: int, n: int) -> list[Hazard]:
        """n hazards as the centre knows them."""
        while len(self._hazards) < n:
            self._hazards.append(self._hazard(len(self._hazards)))
        return [
            Hazard(id=i + 1, x_cm=x, y_cm=y, cause=cause, sub_cause=sub_cause, generation_ms=its_ms(at_ns))
            for i, (x, y, cause, sub_cause) in enumerate(self._hazards[:n])
        ]

    def cam(self, at_ns: int, station: str, came: Sequence[Place] = ()) -> Cam:
        """What a station that is there says of itself, as it measures it; `came`: its path, the newest place first."""
        there = self.sight.motion.tracks[station].at(at_ns / 1e9)
        assert there is not None, f"{station} is not there"
        return self.cam_of(at_ns, station, there, came)

    def own_place(self, at_ns: int, station: str, true: State) -> Place:
        """Where a station whose true state this is takes itself to be."""
        state = self._own(station, at_ns, true)
        return Place(at_ns, state.x_m, state.y_m)

    def cam_of(self, at_ns: int, station: str, true: State, came: Sequence[Place] = ()) -> Cam:
        """What a station whose true state this is says of itself; `came`: as in `cam`."""
        state, track = self._own(station, at_ns, true), self.sight.motion.tracks[station]
        latitude_e7, longitude_e7 = self._place(state)
        return Cam(
            station=self.numbers[station],
            generation_ms=its_ms(at_ns),
            latitude_e7=latitude_e7,
            longitude_e7=longitude_e7,
            speed_cms=round(max(0.0, state.speed_mps) * 100),
            heading_ddeg=_compass_ddeg(state.heading_rad),
            acceleration_dms2=round(state.acceleration_mps2 * 10),
            yaw_rate_cdegs=round(degrees(state.yaw_rate_rps) * 100),
            length_dm=round(track.length_m * 10),
            width_dm=round(track.width_m * 10),
            classification=CLASSES.get(track.type, OTHER),
            path=self._path(at_ns, state.x_m, state.y_m, came),
        )

    def cpm(self, at_ns: int, measured_ns: int, station: str, name: str) -> Cpm:
        """One object in one message. The station's place is its reference position when it measured, to the centimetre;
        the object's x (east) and y (north) count from there."""
        states, share = self.sight.at(measured_ns), self.sight.share(measured_ns, station, name)
        age_ms = self._object_age_ms(measured_ns, station, name)
        return self.cpm_of(at_ns, Seen(station, name, measured_ns, states[station], states[name], share, age_ms))

    def cpm_of(self, at_ns: int, seen: Seen) -> Cpm:
        """As `cpm`, of what a station perceived."""
        station, name, measured_ns, here, there, share, age_ms = seen
        track = self.sight.motion.tracks[name]
        draw = Random(f"{self.seed}:{station}:{name}:{measured_ns}").gauss  # noqa: S311 (noise, not secrets)
        vx = there.speed_mps * cos(there.heading_rad) + draw(0.0, self.noise.speed_mps)
        vy = there.speed_mps * sin(there.heading_rad) + draw(0.0, self.noise.speed_mps)
        measured = PerceivedObject(
            object_id=self.numbers[name],
            measurement_delta_ms=(at_ns - measured_ns) // MS,
            x_cm=round((there.x_m - here.x_m + draw(0.0, self.noise.position_m)) * 100),
            y_cm=round((there.y_m - here.y_m + draw(0.0, self.noise.position_m)) * 100),
            vx_cms=round(vx * 100),
            vy_cms=round(vy * 100),
            heading_ddeg=_compass_ddeg(there.heading_rad),
            length_dm=round(track.length_m * 10),
            width_dm=round(track.width_m * 10),
            age_ms=age_ms,
            quality=round(15 * share),
            classification=CLASSES.get(track.type, OTHER),
        )
        latitude_e7, longitude_e7 = self._place(here)
        return Cpm(
            station=self.numbers[station],
            generation_ms=its_ms(at_ns),
            latitude_e7=latitude_e7,
            longitude_e7=longitude_e7,
            object=measured,
        )

    def _measured(self, at_ns: int, age_ns: int) -> Iterator[Sent]:
        for measured_ns in range(at_ns - age_ns, at_ns + 1, CYCLE_NS):
            each = [self.sight.perceived(measured_ns, station) for station in self.stations]
            for turn in zip_longest(*each):
                for station, name in zip(self.stations, turn, strict=True):
                    if name is not None:
                        yield Sent(at_ns, station, "", measured_ns, self.cpm(at_ns, measured_ns, station, name))

    def _own(self, name: str, at_ns: int, state: State) -> State:
        """A vehicle's state as its own sensors measure it."""
        draw = Random(f"{self.seed}:{name}:{at_ns}:own").gauss  # noqa: S311 (noise, not secrets)
        return state._replace(
            x_m=state.x_m + draw(0.0, self.noise.own_position_m),
            y_m=state.y_m + draw(0.0, self.noise.own_position_m),
            speed_mps=state.speed_mps + draw(0.0, self.noise.own_speed_mps),
            heading_rad=state.heading_rad + draw(0.0, self.noise.own_heading_rad),
            yaw_rate_rps=state.yaw_rate_rps + draw(0.0, self.noise.own_yaw_rate_rps),
        )

    def _sensor(self, at_ns: int, true: State) -> Sensor:
        ego = self.scenario.scene.ego
        state = self._own(ego, at_ns, true)
        return Sensor(
            station=self.numbers[ego],
            x_cm=round(state.x_m * 100),
            y_cm=round(state.y_m * 100),
            speed_cms=round(state.speed_mps * 100),
            heading_ddeg=_compass_ddeg(state.heading_rad),
            yaw_rate_cdegs=round(degrees(state.yaw_rate_rps) * 100),
            acceleration_dms2=round(state.acceleration_mps2 * 10),
            generation_ms=its_ms(at_ns),
        )

    def _place(self, state: State) -> tuple[int, int]:
        """Latitude and longitude (-180 to 180) in 1e-7 degree (equirectangular about the scene's origin)."""
        scene = self.scenario.scene
        latitude = scene.latitude_deg + degrees(state.y_m / EARTH_M)
        longitude = scene.longitude_deg + degrees(state.x_m / (EARTH_M * cos(radians(scene.latitude_deg))))
        return round(latitude * 1e7), round(((longitude + 180) % 360 - 180) * 1e7)

    def _path(self, at_ns: int, x_m: float, y_m: float, came: Sequence[Place]) -> Iterator[PathPoint]:
        """Each place from the one after it, the first from here."""
        scale = 1e7 * degrees(1 / EARTH_M)
        east = scale / cos(radians(self.scenario.scene.latitude_deg))
        after = Place(at_ns, x_m, y_m)
        for place in came:
            yield PathPoint(
                latitude_e7=round((place.y_m - after.y_m) * scale),
                longitude_e7=round((place.x_m - after.x_m) * east),
                time_cs=max(1, (after.at_ns - place.at_ns) // (10 * MS)),
            )
            after = place

    def _object_age_ms(self, at_ns: int, station: str, name: str) -> int:
        """For how long the station has perceived the object without a break, in steps of 100 ms."""
        age_ms = 0
        while age_ms < OBJECT_AGE_MAX_MS:
            at_ns -= OBJECT_AGE_STEP_NS
            if not perceived(self.sight.share(at_ns, station, name)):
                break
            age_ms += OBJECT_AGE_STEP_NS // MS
        return age_ms

    def _hazard(self, i: int) -> tuple[int, int, int, int]:
        draw = Random(f"{self.seed}:hazard:{i}")  # noqa: S311 (a scene, not secrets)
        x_m, y_m = self._somewhere(draw)
        return round(x_m * 100), round(y_m * 100), *draw.choice(CAUSES)

    def _somewhere(self, draw: Random) -> tuple[float, float]:
        """On one of the scene's roads; without roads, anywhere within reach of where the ego starts."""
        roads = self.scenario.scene.raw.get("roads") or []
        if roads:
            line = draw.choice(roads)["line"]
            (x0, y0), (x1, y1) = line[-2], line[-1]
            share = draw.random()
            return x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        start = self.scenario.motion.tracks[self.scenario.scene.ego].states[0]
        reach_m, angle = HAZARD_REACH_M * draw.random(), 2 * pi * draw.random()
        return start.x_m + reach_m * cos(angle), start.y_m + reach_m * sin(angle)


def inputs_hash(bursts: Sequence[Burst]) -> str:
    """SHA-256 over every burst's source, instants, age and tuple bytes, in the order given, as hex."""
    digest = sha256()
    head = Struct("<qqqI")
    for burst in bursts:
        name = burst.source.encode()
        sent_ns = burst.at_ns if burst.sent_ns is None else burst.sent_ns
        digest.update(len(name).to_bytes(4, "little") + name)
        digest.update(head.pack(burst.at_ns, sent_ns, burst.age_ns, len(burst.values)))
        for value in burst.values:
            data = value.SerializeToString(deterministic=True)
            digest.update(len(data).to_bytes(4, "little") + data)
    return digest.hexdigest()


def its_ms(at_ns: int) -> int:
    """ITS time of an instant of the recording: ms modulo 65536."""
    return at_ns // MS % 65536


def _compass_ddeg(heading_rad: float) -> int:
    """0.1 degree, clockwise from north, 0 to 3599."""
    return round(degrees(pi / 2 - heading_rad) * 10) % 3600
