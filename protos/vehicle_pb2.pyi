from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Sensor(_message.Message):
    __slots__ = ("station", "x_cm", "y_cm", "speed_cms", "heading_ddeg", "yaw_rate_cdegs", "acceleration_dms2", "generation_ms")
    STATION_FIELD_NUMBER: _ClassVar[int]
    X_CM_FIELD_NUMBER: _ClassVar[int]
    Y_CM_FIELD_NUMBER: _ClassVar[int]
    SPEED_CMS_FIELD_NUMBER: _ClassVar[int]
    HEADING_DDEG_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_CDEGS_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_DMS2_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    station: int
    x_cm: int
    y_cm: int
    speed_cms: int
    heading_ddeg: int
    yaw_rate_cdegs: int
    acceleration_dms2: int
    generation_ms: int
    def __init__(self, station: _Optional[int] = ..., x_cm: _Optional[int] = ..., y_cm: _Optional[int] = ..., speed_cms: _Optional[int] = ..., heading_ddeg: _Optional[int] = ..., yaw_rate_cdegs: _Optional[int] = ..., acceleration_dms2: _Optional[int] = ..., generation_ms: _Optional[int] = ...) -> None: ...

class PerceivedObject(_message.Message):
    __slots__ = ("object_id", "measurement_delta_ms", "x_cm", "y_cm", "vx_cms", "vy_cms", "heading_ddeg", "length_dm", "width_dm", "age_ms", "quality", "classification", "acceleration_dms2", "yaw_rate_cdegs")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MEASUREMENT_DELTA_MS_FIELD_NUMBER: _ClassVar[int]
    X_CM_FIELD_NUMBER: _ClassVar[int]
    Y_CM_FIELD_NUMBER: _ClassVar[int]
    VX_CMS_FIELD_NUMBER: _ClassVar[int]
    VY_CMS_FIELD_NUMBER: _ClassVar[int]
    HEADING_DDEG_FIELD_NUMBER: _ClassVar[int]
    LENGTH_DM_FIELD_NUMBER: _ClassVar[int]
    WIDTH_DM_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_DMS2_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_CDEGS_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    measurement_delta_ms: int
    x_cm: int
    y_cm: int
    vx_cms: int
    vy_cms: int
    heading_ddeg: int
    length_dm: int
    width_dm: int
    age_ms: int
    quality: int
    classification: int
    acceleration_dms2: int
    yaw_rate_cdegs: int
    def __init__(self, object_id: _Optional[int] = ..., measurement_delta_ms: _Optional[int] = ..., x_cm: _Optional[int] = ..., y_cm: _Optional[int] = ..., vx_cms: _Optional[int] = ..., vy_cms: _Optional[int] = ..., heading_ddeg: _Optional[int] = ..., length_dm: _Optional[int] = ..., width_dm: _Optional[int] = ..., age_ms: _Optional[int] = ..., quality: _Optional[int] = ..., classification: _Optional[int] = ..., acceleration_dms2: _Optional[int] = ..., yaw_rate_cdegs: _Optional[int] = ...) -> None: ...

class PathPoint(_message.Message):
    __slots__ = ("latitude_e7", "longitude_e7", "time_cs")
    LATITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    LONGITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    TIME_CS_FIELD_NUMBER: _ClassVar[int]
    latitude_e7: int
    longitude_e7: int
    time_cs: int
    def __init__(self, latitude_e7: _Optional[int] = ..., longitude_e7: _Optional[int] = ..., time_cs: _Optional[int] = ...) -> None: ...

class Cpm(_message.Message):
    __slots__ = ("station", "generation_ms", "latitude_e7", "longitude_e7", "object", "closest_ms", "closest_cm", "path")
    STATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    LATITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    LONGITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    CLOSEST_MS_FIELD_NUMBER: _ClassVar[int]
    CLOSEST_CM_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    station: int
    generation_ms: int
    latitude_e7: int
    longitude_e7: int
    object: PerceivedObject
    closest_ms: int
    closest_cm: int
    path: _containers.RepeatedCompositeFieldContainer[PathPoint]
    def __init__(self, station: _Optional[int] = ..., generation_ms: _Optional[int] = ..., latitude_e7: _Optional[int] = ..., longitude_e7: _Optional[int] = ..., object: _Optional[_Union[PerceivedObject, _Mapping]] = ..., closest_ms: _Optional[int] = ..., closest_cm: _Optional[int] = ..., path: _Optional[_Iterable[_Union[PathPoint, _Mapping]]] = ...) -> None: ...

class Hazard(_message.Message):
    __slots__ = ("id", "x_cm", "y_cm", "cause", "sub_cause", "generation_ms")
    ID_FIELD_NUMBER: _ClassVar[int]
    X_CM_FIELD_NUMBER: _ClassVar[int]
    Y_CM_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SUB_CAUSE_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    id: int
    x_cm: int
    y_cm: int
    cause: int
    sub_cause: int
    generation_ms: int
    def __init__(self, id: _Optional[int] = ..., x_cm: _Optional[int] = ..., y_cm: _Optional[int] = ..., cause: _Optional[int] = ..., sub_cause: _Optional[int] = ..., generation_ms: _Optional[int] = ...) -> None: ...

class Cam(_message.Message):
    __slots__ = ("station", "generation_ms", "latitude_e7", "longitude_e7", "speed_cms", "heading_ddeg", "acceleration_dms2", "yaw_rate_cdegs", "length_dm", "width_dm", "classification", "path")
    STATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    LATITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    LONGITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    SPEED_CMS_FIELD_NUMBER: _ClassVar[int]
    HEADING_DDEG_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_DMS2_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_CDEGS_FIELD_NUMBER: _ClassVar[int]
    LENGTH_DM_FIELD_NUMBER: _ClassVar[int]
    WIDTH_DM_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    station: int
    generation_ms: int
    latitude_e7: int
    longitude_e7: int
    speed_cms: int
    heading_ddeg: int
    acceleration_dms2: int
    yaw_rate_cdegs: int
    length_dm: int
    width_dm: int
    classification: int
    path: _containers.RepeatedCompositeFieldContainer[PathPoint]
    def __init__(self, station: _Optional[int] = ..., generation_ms: _Optional[int] = ..., latitude_e7: _Optional[int] = ..., longitude_e7: _Optional[int] = ..., speed_cms: _Optional[int] = ..., heading_ddeg: _Optional[int] = ..., acceleration_dms2: _Optional[int] = ..., yaw_rate_cdegs: _Optional[int] = ..., length_dm: _Optional[int] = ..., width_dm: _Optional[int] = ..., classification: _Optional[int] = ..., path: _Optional[_Iterable[_Union[PathPoint, _Mapping]]] = ...) -> None: ...

class Motion(_message.Message):
    __slots__ = ("x_m", "y_m", "speed_mps", "heading_rad", "yaw_rate_rps", "acceleration_mps2")
    X_M_FIELD_NUMBER: _ClassVar[int]
    Y_M_FIELD_NUMBER: _ClassVar[int]
    SPEED_MPS_FIELD_NUMBER: _ClassVar[int]
    HEADING_RAD_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_RPS_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_MPS2_FIELD_NUMBER: _ClassVar[int]
    x_m: float
    y_m: float
    speed_mps: float
    heading_rad: float
    yaw_rate_rps: float
    acceleration_mps2: float
    def __init__(self, x_m: _Optional[float] = ..., y_m: _Optional[float] = ..., speed_mps: _Optional[float] = ..., heading_rad: _Optional[float] = ..., yaw_rate_rps: _Optional[float] = ..., acceleration_mps2: _Optional[float] = ...) -> None: ...

class Ego(_message.Message):
    __slots__ = ("station", "generation_ms", "motion", "length_m", "width_m", "bend_1pm")
    STATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    MOTION_FIELD_NUMBER: _ClassVar[int]
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    WIDTH_M_FIELD_NUMBER: _ClassVar[int]
    BEND_1PM_FIELD_NUMBER: _ClassVar[int]
    station: int
    generation_ms: int
    motion: Motion
    length_m: float
    width_m: float
    bend_1pm: float
    def __init__(self, station: _Optional[int] = ..., generation_ms: _Optional[int] = ..., motion: _Optional[_Union[Motion, _Mapping]] = ..., length_m: _Optional[float] = ..., width_m: _Optional[float] = ..., bend_1pm: _Optional[float] = ...) -> None: ...

class Gated(_message.Message):
    __slots__ = ("entry", "distance2", "log_spread")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    DISTANCE2_FIELD_NUMBER: _ClassVar[int]
    LOG_SPREAD_FIELD_NUMBER: _ClassVar[int]
    entry: int
    distance2: float
    log_spread: float
    def __init__(self, entry: _Optional[int] = ..., distance2: _Optional[float] = ..., log_spread: _Optional[float] = ...) -> None: ...

class Way(_message.Message):
    __slots__ = ("x_m", "y_m", "share")
    X_M_FIELD_NUMBER: _ClassVar[int]
    Y_M_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    x_m: _containers.RepeatedScalarFieldContainer[float]
    y_m: _containers.RepeatedScalarFieldContainer[float]
    share: float
    def __init__(self, x_m: _Optional[_Iterable[float]] = ..., y_m: _Optional[_Iterable[float]] = ..., share: _Optional[float] = ...) -> None: ...

class Path(_message.Message):
    __slots__ = ("x_m", "y_m", "heading_rad", "step_s", "share", "free")
    X_M_FIELD_NUMBER: _ClassVar[int]
    Y_M_FIELD_NUMBER: _ClassVar[int]
    HEADING_RAD_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    x_m: _containers.RepeatedScalarFieldContainer[float]
    y_m: _containers.RepeatedScalarFieldContainer[float]
    heading_rad: _containers.RepeatedScalarFieldContainer[float]
    step_s: float
    share: float
    free: bool
    def __init__(self, x_m: _Optional[_Iterable[float]] = ..., y_m: _Optional[_Iterable[float]] = ..., heading_rad: _Optional[_Iterable[float]] = ..., step_s: _Optional[float] = ..., share: _Optional[float] = ..., free: _Optional[bool] = ...) -> None: ...

class Zone(_message.Message):
    __slots__ = ("ego_in_m", "ego_out_m", "object_in_m", "object_out_m", "share")
    EGO_IN_M_FIELD_NUMBER: _ClassVar[int]
    EGO_OUT_M_FIELD_NUMBER: _ClassVar[int]
    OBJECT_IN_M_FIELD_NUMBER: _ClassVar[int]
    OBJECT_OUT_M_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ego_in_m: float
    ego_out_m: float
    object_in_m: float
    object_out_m: float
    share: float
    def __init__(self, ego_in_m: _Optional[float] = ..., ego_out_m: _Optional[float] = ..., object_in_m: _Optional[float] = ..., object_out_m: _Optional[float] = ..., share: _Optional[float] = ...) -> None: ...

class Passage(_message.Message):
    __slots__ = ("ego_in_s", "ego_out_s", "object_in_s", "object_out_s")
    EGO_IN_S_FIELD_NUMBER: _ClassVar[int]
    EGO_OUT_S_FIELD_NUMBER: _ClassVar[int]
    OBJECT_IN_S_FIELD_NUMBER: _ClassVar[int]
    OBJECT_OUT_S_FIELD_NUMBER: _ClassVar[int]
    ego_in_s: float
    ego_out_s: float
    object_in_s: float
    object_out_s: float
    def __init__(self, ego_in_s: _Optional[float] = ..., ego_out_s: _Optional[float] = ..., object_in_s: _Optional[float] = ..., object_out_s: _Optional[float] = ...) -> None: ...

class Encounter(_message.Message):
    __slots__ = ("station", "object_id", "measured_ms", "latitude_e7", "longitude_e7", "east_m", "north_m", "vx_mps", "vy_mps", "heading_rad", "length_m", "width_m", "quality", "classification", "range_m", "closing_mps", "ego", "age_s", "ego_age_s", "measured", "object", "ego_now", "lane", "ego_lane", "gated", "entry", "track", "position_sd_m", "hits", "confirmed", "ego_paths", "object_paths", "zone", "passage", "pet_s", "ttc_s", "drac_mps2", "risk", "on", "acceleration_mps2", "yaw_rate_rps", "ways", "ego_ways", "path", "bend_1pm")
    STATION_FIELD_NUMBER: _ClassVar[int]
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MS_FIELD_NUMBER: _ClassVar[int]
    LATITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    LONGITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    EAST_M_FIELD_NUMBER: _ClassVar[int]
    NORTH_M_FIELD_NUMBER: _ClassVar[int]
    VX_MPS_FIELD_NUMBER: _ClassVar[int]
    VY_MPS_FIELD_NUMBER: _ClassVar[int]
    HEADING_RAD_FIELD_NUMBER: _ClassVar[int]
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    WIDTH_M_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_FIELD_NUMBER: _ClassVar[int]
    RANGE_M_FIELD_NUMBER: _ClassVar[int]
    CLOSING_MPS_FIELD_NUMBER: _ClassVar[int]
    EGO_FIELD_NUMBER: _ClassVar[int]
    AGE_S_FIELD_NUMBER: _ClassVar[int]
    EGO_AGE_S_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    EGO_NOW_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    EGO_LANE_FIELD_NUMBER: _ClassVar[int]
    GATED_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    POSITION_SD_M_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    EGO_PATHS_FIELD_NUMBER: _ClassVar[int]
    OBJECT_PATHS_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    PASSAGE_FIELD_NUMBER: _ClassVar[int]
    PET_S_FIELD_NUMBER: _ClassVar[int]
    TTC_S_FIELD_NUMBER: _ClassVar[int]
    DRAC_MPS2_FIELD_NUMBER: _ClassVar[int]
    RISK_FIELD_NUMBER: _ClassVar[int]
    ON_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_MPS2_FIELD_NUMBER: _ClassVar[int]
    YAW_RATE_RPS_FIELD_NUMBER: _ClassVar[int]
    WAYS_FIELD_NUMBER: _ClassVar[int]
    EGO_WAYS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BEND_1PM_FIELD_NUMBER: _ClassVar[int]
    station: int
    object_id: int
    measured_ms: int
    latitude_e7: int
    longitude_e7: int
    east_m: float
    north_m: float
    vx_mps: float
    vy_mps: float
    heading_rad: float
    length_m: float
    width_m: float
    quality: int
    classification: int
    range_m: float
    closing_mps: float
    ego: Ego
    age_s: float
    ego_age_s: float
    measured: Motion
    object: Motion
    ego_now: Motion
    lane: str
    ego_lane: str
    gated: _containers.RepeatedCompositeFieldContainer[Gated]
    entry: int
    track: int
    position_sd_m: float
    hits: int
    confirmed: bool
    ego_paths: _containers.RepeatedCompositeFieldContainer[Path]
    object_paths: _containers.RepeatedCompositeFieldContainer[Path]
    zone: Zone
    passage: Passage
    pet_s: float
    ttc_s: float
    drac_mps2: float
    risk: float
    on: bool
    acceleration_mps2: float
    yaw_rate_rps: float
    ways: _containers.RepeatedCompositeFieldContainer[Way]
    ego_ways: _containers.RepeatedCompositeFieldContainer[Way]
    path: _containers.RepeatedCompositeFieldContainer[PathPoint]
    bend_1pm: float
    def __init__(self, station: _Optional[int] = ..., object_id: _Optional[int] = ..., measured_ms: _Optional[int] = ..., latitude_e7: _Optional[int] = ..., longitude_e7: _Optional[int] = ..., east_m: _Optional[float] = ..., north_m: _Optional[float] = ..., vx_mps: _Optional[float] = ..., vy_mps: _Optional[float] = ..., heading_rad: _Optional[float] = ..., length_m: _Optional[float] = ..., width_m: _Optional[float] = ..., quality: _Optional[int] = ..., classification: _Optional[int] = ..., range_m: _Optional[float] = ..., closing_mps: _Optional[float] = ..., ego: _Optional[_Union[Ego, _Mapping]] = ..., age_s: _Optional[float] = ..., ego_age_s: _Optional[float] = ..., measured: _Optional[_Union[Motion, _Mapping]] = ..., object: _Optional[_Union[Motion, _Mapping]] = ..., ego_now: _Optional[_Union[Motion, _Mapping]] = ..., lane: _Optional[str] = ..., ego_lane: _Optional[str] = ..., gated: _Optional[_Iterable[_Union[Gated, _Mapping]]] = ..., entry: _Optional[int] = ..., track: _Optional[int] = ..., position_sd_m: _Optional[float] = ..., hits: _Optional[int] = ..., confirmed: _Optional[bool] = ..., ego_paths: _Optional[_Iterable[_Union[Path, _Mapping]]] = ..., object_paths: _Optional[_Iterable[_Union[Path, _Mapping]]] = ..., zone: _Optional[_Union[Zone, _Mapping]] = ..., passage: _Optional[_Union[Passage, _Mapping]] = ..., pet_s: _Optional[float] = ..., ttc_s: _Optional[float] = ..., drac_mps2: _Optional[float] = ..., risk: _Optional[float] = ..., on: _Optional[bool] = ..., acceleration_mps2: _Optional[float] = ..., yaw_rate_rps: _Optional[float] = ..., ways: _Optional[_Iterable[_Union[Way, _Mapping]]] = ..., ego_ways: _Optional[_Iterable[_Union[Way, _Mapping]]] = ..., path: _Optional[_Iterable[_Union[PathPoint, _Mapping]]] = ..., bend_1pm: _Optional[float] = ...) -> None: ...

class Warning(_message.Message):
    __slots__ = ("object_id", "station", "measured_ms", "level", "slack_ms", "risk_permille", "distance_cm", "cause", "sub_cause", "track")
    OBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    STATION_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SLACK_MS_FIELD_NUMBER: _ClassVar[int]
    RISK_PERMILLE_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_CM_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SUB_CAUSE_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    object_id: int
    station: int
    measured_ms: int
    level: int
    slack_ms: int
    risk_permille: int
    distance_cm: int
    cause: int
    sub_cause: int
    track: int
    def __init__(self, object_id: _Optional[int] = ..., station: _Optional[int] = ..., measured_ms: _Optional[int] = ..., level: _Optional[int] = ..., slack_ms: _Optional[int] = ..., risk_permille: _Optional[int] = ..., distance_cm: _Optional[int] = ..., cause: _Optional[int] = ..., sub_cause: _Optional[int] = ..., track: _Optional[int] = ...) -> None: ...

class Advice(_message.Message):
    __slots__ = ("id", "cause", "sub_cause", "distance_cm", "time_ms", "speed_cms", "closing_cms")
    ID_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SUB_CAUSE_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_CM_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    SPEED_CMS_FIELD_NUMBER: _ClassVar[int]
    CLOSING_CMS_FIELD_NUMBER: _ClassVar[int]
    id: int
    cause: int
    sub_cause: int
    distance_cm: int
    time_ms: int
    speed_cms: int
    closing_cms: int
    def __init__(self, id: _Optional[int] = ..., cause: _Optional[int] = ..., sub_cause: _Optional[int] = ..., distance_cm: _Optional[int] = ..., time_ms: _Optional[int] = ..., speed_cms: _Optional[int] = ..., closing_cms: _Optional[int] = ...) -> None: ...
