"""Fakes of the ports, so that the verbs run whole without a process being started."""
