"""Shedding and admission control: which tuples do not run when there are more than a node or a window can take.

It knows no engine: the engine asks it and applies the answers. Begin at source_admission.py (at a source) and
entry_shedders.py (before a unit). install.py puts shedders into a compiled plan, shedding_policies.py has the rules.
See docs/explanation/shedding.md.
"""
