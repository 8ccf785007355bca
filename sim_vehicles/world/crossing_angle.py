"""The one definition of crossing: two headings that differ by 30 to 150 degrees.

30 degrees are the limit between crossing and following of FHWA's Surrogate Safety Assessment Model (Gettman et al.,
FHWA-HRT-08-051, 2008). Within as much of opposite two vehicles meet as oncoming traffic does, on roads of two lanes.
"""

from math import pi, radians

LEAST_DEG = 30.0
LEAST_RAD = radians(LEAST_DEG)
MOST_RAD = pi - LEAST_RAD

__all__ = ["LEAST_DEG", "LEAST_RAD", "MOST_RAD"]
