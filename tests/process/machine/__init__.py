"""Tests of what is read of a machine."""
