from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
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
    __slots__ = ("object_id", "measurement_delta_ms", "x_cm", "y_cm", "vx_cms", "vy_cms", "heading_ddeg", "length_dm", "width_dm", "age_ms", "quality", "classification")
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
    def __init__(self, object_id: _Optional[int] = ..., measurement_delta_ms: _Optional[int] = ..., x_cm: _Optional[int] = ..., y_cm: _Optional[int] = ..., vx_cms: _Optional[int] = ..., vy_cms: _Optional[int] = ..., heading_ddeg: _Optional[int] = ..., length_dm: _Optional[int] = ..., width_dm: _Optional[int] = ..., age_ms: _Optional[int] = ..., quality: _Optional[int] = ..., classification: _Optional[int] = ...) -> None: ...

class Cpm(_message.Message):
    __slots__ = ("station", "generation_ms", "latitude_e7", "longitude_e7", "object")
    STATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_MS_FIELD_NUMBER: _ClassVar[int]
    LATITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    LONGITUDE_E7_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    station: int
    generation_ms: int
    latitude_e7: int
    longitude_e7: int
    object: PerceivedObject
    def __init__(self, station: _Optional[int] = ..., generation_ms: _Optional[int] = ..., latitude_e7: _Optional[int] = ..., longitude_e7: _Optional[int] = ..., object: _Optional[_Union[PerceivedObject, _Mapping]] = ...) -> None: ...

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
