"""Contracts of the ports, tested with each implementation and with its fake."""
