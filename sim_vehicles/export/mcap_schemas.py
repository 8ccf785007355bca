"""JSON Schemas of the messages in an MCAP file.

`foxglove.*` are the well-known schemas that Foxglove draws: it goes by their names, and by these fields of theirs
(docs.foxglove.dev, message schemas; fields as of 2026). Ours are flat where they can be, so that each number can be
plotted; no field is ever null, one without a value is left out.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sim_vehicles.encounter.brake import Brake

Schema = dict[str, Any]

NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
TEXT: Schema = {"type": "string"}
YES_NO: Schema = {"type": "boolean"}


def record(title: str, fields: dict[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """An object with these fields, all required but the optional ones."""
    required = [name for name in fields if name not in optional]
    return {"title": title, "type": "object", "properties": fields, "required": required}


def many(item: Schema) -> Schema:
    """The JSON schema of an array of items."""
    return {"type": "array", "items": item}


def choice(title: str, *names: str) -> Schema:
    """The JSON schema of an enumeration, numbered from 0."""
    return {"title": title, "oneOf": [{"title": name, "const": i} for i, name in enumerate(names)]}


NSEC: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
TIME = record("time", {"sec": {"type": "integer", "minimum": 0}, "nsec": NSEC})
DURATION = record("duration", {"sec": INTEGER, "nsec": NSEC})
VECTOR = record("foxglove.Vector3", dict.fromkeys("xyz", NUMBER))
POINT = record("foxglove.Point3", dict.fromkeys("xyz", NUMBER))
QUATERNION = record("foxglove.Quaternion", dict.fromkeys("xyzw", NUMBER))
POSE = record("foxglove.Pose", {"position": VECTOR, "orientation": QUATERNION})
COLOR = record("foxglove.Color", dict.fromkeys("rgba", NUMBER))
SHAPE = {"pose": POSE, "size": VECTOR, "color": COLOR}
POINTS = {"points": many(POINT), "color": COLOR, "colors": many(COLOR), "indices": many(INTEGER)}
LINE_TYPE = choice("foxglove.LineType", "LINE_STRIP", "LINE_LOOP", "LINE_LIST")

PRIMITIVES: dict[str, Schema] = {
    "arrows": record(
        "foxglove.ArrowPrimitive",
        {
            "pose": POSE,
            **dict.fromkeys(("shaft_length", "shaft_diameter", "head_length", "head_diameter"), NUMBER),
            "color": COLOR,
        },
    ),
    "cubes": record("foxglove.CubePrimitive", SHAPE),
    "spheres": record("foxglove.SpherePrimitive", SHAPE),
    "cylinders": record("foxglove.CylinderPrimitive", {**SHAPE, "bottom_scale": NUMBER, "top_scale": NUMBER}),
    "lines": record(
        "foxglove.LinePrimitive",
        {"type": LINE_TYPE, "pose": POSE, "thickness": NUMBER, "scale_invariant": YES_NO, **POINTS},
    ),
    "triangles": record("foxglove.TriangleListPrimitive", {"pose": POSE, **POINTS}),
    "texts": record(
        "foxglove.TextPrimitive",
        {
            "pose": POSE,
            "billboard": YES_NO,
            "font_size": NUMBER,
            "scale_invariant": YES_NO,
            "color": COLOR,
            "text": TEXT,
        },
    ),
    "models": record(
        "foxglove.ModelPrimitive",
        {
            "pose": POSE,
            "scale": VECTOR,
            "color": COLOR,
            "override_color": YES_NO,
            **dict.fromkeys(("url", "media_type", "data"), TEXT),
        },
    ),
}
ENTITY = record(
    "foxglove.SceneEntity",
    {
        "timestamp": TIME,
        "frame_id": TEXT,
        "id": TEXT,
        "lifetime": DURATION,
        "frame_locked": YES_NO,
        "metadata": many(record("foxglove.KeyValuePair", {"key": TEXT, "value": TEXT})),
        **{name: many(primitive) for name, primitive in PRIMITIVES.items()},
    },
)
DELETION = record(
    "foxglove.SceneEntityDeletion",
    {"timestamp": TIME, "type": choice("foxglove.SceneEntityDeletionType", "MATCHING_ID", "ALL"), "id": TEXT},
)
SCENE_UPDATE = record("foxglove.SceneUpdate", {"deletions": many(DELETION), "entities": many(ENTITY)})
LOG = record(
    "foxglove.Log",
    {
        "timestamp": TIME,
        "level": choice("foxglove.LogLevel", "UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"),
        **dict.fromkeys(("message", "name", "file"), TEXT),
        "line": {"type": "integer", "minimum": 0},
    },
)
TRANSFORM = record(
    "foxglove.FrameTransform",
    {"timestamp": TIME, "parent_frame_id": TEXT, "child_frame_id": TEXT, "translation": VECTOR, "rotation": QUATERNION},
)

EGO = record(
    "shimekiri.Ego",
    {**dict.fromkeys(("t_s", "x_m", "y_m", "heading_rad", "speed_mps", "speed_kmh", "way_m", "left_m"), NUMBER)},
    optional=("left_m",),
)
V2V = record("shimekiri.V2v", {"station": TEXT, "object": TEXT, "measured_s": NUMBER, "at_s": NUMBER, "age_ms": NUMBER})
WARNING = record(
    "shimekiri.Warning",
    {
        **{"at_s": NUMBER, "about": TEXT, "about_crossing": YES_NO, "station": TEXT, "level": INTEGER},
        **{"latency_from_ms": NUMBER, "latency_to_ms": NUMBER, "seq": INTEGER, "lap": INTEGER},
    },
    optional=("latency_from_ms", "latency_to_ms", "seq", "lap"),
)
STAGE = record(
    "shimekiri.Stage",
    {"stage": TEXT, "node": TEXT, "operators": many(TEXT), "ns": INTEGER},
    optional=("node", "operators"),
)
MOMENT = record("shimekiri.Moment", {"by": TEXT, "at_s": NUMBER, "left_m": NUMBER}, optional=("by", "left_m"))
BRAKE = record(
    "shimekiri.Brake",
    {**{each.name: NUMBER for each in fields(Brake)}, "kind": TEXT},
)
BRAKING = record(
    "shimekiri.Braking",
    {"by": BRAKE, **dict.fromkeys(("commanded_s", "begins_s", "stopped_s"), NUMBER)},
    optional=("stopped_s",),
)
DECIDING = record(
    "shimekiri.Deciding",
    {
        **{"source": INTEGER, "station": TEXT, "object": TEXT, "epoch": INTEGER, "seq": INTEGER, "ordinal": INTEGER},
        **{"measured_s": NUMBER, "delivered_s": NUMBER, "latency_ns": many(INTEGER), "split": many(STAGE)},
    },
    optional=("split",),
)
_VERDICT_MAY: dict[str, Schema] = {
    **dict.fromkeys(("crossing", "why_not_valid"), TEXT),
    **dict.fromkeys(("gap_m", "impact_kmh", "impact_s", "speed_kmh"), NUMBER),
    **dict.fromkeys(("burst_phase", "burst_phases", "burst_phase_ns", "crashes", "laps"), INTEGER),
    "first_perceivable": MOMENT,
    "knew": MOMENT,
    "brake": BRAKING,
    "stood": record("shimekiri.Stood", {"left_m": NUMBER, "in_way": YES_NO}, optional=("left_m",)),
    "warnings": record(
        "shimekiri.Warnings",
        {**dict.fromkeys(("about_crossing", "false", "others"), INTEGER), "missed": YES_NO},
        optional=("others",),
    ),
    "closed_form": record("shimekiri.ClosedForm", dict.fromkeys(("needed_m", "left_m", "impact_kmh"), NUMBER)),
    "deciding": DECIDING,
}
VERDICT = record("shimekiri.Verdict", {"outcome": TEXT, "valid": YES_NO, **_VERDICT_MAY}, optional=tuple(_VERDICT_MAY))

TOPICS: dict[str, Schema] = {
    "/scene": SCENE_UPDATE,
    "/vehicles": SCENE_UPDATE,
    "/tf": TRANSFORM,
    "/ego": EGO,
    "/v2v": V2V,
    "/warnings": WARNING,
    "/verdict": VERDICT,
    "/log": LOG,
}
