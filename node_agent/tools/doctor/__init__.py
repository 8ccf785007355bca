"""What `node-agent doctor` and `node-agent grant-rt` do.

command      the two subcommands                      examine      which findings, from which paths and commands
readers      thin: what the machine says, as facts    machine, heat, storage, software    pure: facts in, a finding out
finding      a finding, the table, the JSON           grant        the right to real-time priorities for one user
"""
