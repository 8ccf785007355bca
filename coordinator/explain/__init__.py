"""Plans in sentences: what runs where and why, what it costs, what would repair it, how two plans differ.

Begin at explanation.py, which needs plan.json alone. plan_lines.py is the output of `coordinator plan`.
"""
