"""The control process of an agent: deployments over gRPC, plans on disk, status, profile, and the trace spool.

No tuple passes here, and a crash of this process stops none. It never imports the registry or an operator: their
imports would stay in its memory. Begin at service.py (calls), deploy_driver.py (a deployment) and spool/ (traces). See
docs/explanation/control.md.
"""
