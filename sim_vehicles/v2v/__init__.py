"""Vehicle to vehicle: when stations send, what the channel does to it, and what the ego's radio makes of it.

Begin at etsi.py (when a station sends), stations.py (a few stations), all_stations.py (hundreds, in arrays),
channel.py, and received.py (what the ego hears). See docs/explanation/many_stations.md.
"""
