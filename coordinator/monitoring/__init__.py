"""Looking at agents while they run (`coordinator status` and `top`), as text and live on a terminal.

Agents count upwards only, so any number of watchers may look: every figure is the difference of two looks. Loss before
an output is added up over its path, since a node does not know which output a tuple would have reached. It lies between
the ends of the share missed. Results of windows that nothing was fed into are taken off the upper end only: marking
them on their way would cost every tuple a flag. Only live_app.py and details.py import textual.

Begin at status_response.py and query_status.py. metrics.py makes rates, shares and quantiles of two looks, monitor.py
polls the agents on a thread. docs/how_to/deploy.md#watch has how to read the figures.
"""
