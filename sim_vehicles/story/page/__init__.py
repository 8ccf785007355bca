"""The page about one run, or about several of one encounter side by side, as one self-contained file.

assets/plotly-basic.min.js.gz is plotly.js 4.1.1, its part `basic` (MIT), minified and packed. Begin at run_story.py,
which reads a run once and works out the contents. scene_html.py puts the page together. Texts from files are escaped.
Numbers are rounded in wording.py only.
"""
