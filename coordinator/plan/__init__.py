"""Makes a plan of choices: task units, ids, sub-deadlines, routes, local plans. Writes it, and opens it again.

It knows no solver. Begin at layout.py, a placement with every choice made. assemble.py makes a whole plan of it, with
guarantee and hash. The document itself is protos/plan_document.py.
"""
