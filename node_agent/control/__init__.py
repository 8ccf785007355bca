"""The control process: deployments, status and the trace, over gRPC. Its crash stops no tuple."""
