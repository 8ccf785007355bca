"""`node-agent doctor` and `node-agent grant-rt`: whether a machine suits an agent, and real-time priorities.

Begin at examine.py, which lists all findings. A pure function makes a finding of facts (machine.py, storage.py,
software.py, heat.py). readers.py, disk.py and tcp_ports.py read the facts. finding.py has the table and the JSON,
real_time_permission.py grants one user the right to real-time priorities.
"""
