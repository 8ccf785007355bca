"""Other stream processors, a bare EDF loop and Shimekiri on the same workload."""
