"""Fakes of the ports, with which the verbs run without starting a process."""
