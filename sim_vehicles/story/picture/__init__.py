"""A picture that moves: two runs of one encounter side by side as an SVG, for a README.

It plays by CSS, without scripts, and its end stays where nothing plays. Positions are the replay's, figures the
judge's. Begin at crossing_svg.py, which puts a panel.py and a time_bar.py for each run side by side. keyframes.py turns
motion and instants into CSS, ground.py metres into pixels.
"""
