"""Traces: what a finished sweep did, as OpenTelemetry spans, and the sending of them."""
