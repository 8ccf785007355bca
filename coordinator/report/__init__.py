"""From raw trace records to verdicts and ledgers: which deadlines were missed, and which hop spent the time."""
