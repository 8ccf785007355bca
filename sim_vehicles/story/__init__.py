"""Story of a run, for people: the deciding tuple's time stage by stage, what the nodes did, and a page.

It decides nothing: verdicts are the judge's (`encounter`), facts the trace's. The report reads the same records with
code of its own. Begin at timeline/lineage_trace.py (one result backwards), page/scene_html.py (the page) and
picture/crossing_svg.py (two runs as an SVG that moves). See docs/reference/sim_vehicles.md#the-page.
"""
