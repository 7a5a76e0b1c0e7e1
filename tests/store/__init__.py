"""Tests of the store in its file: opening, locking, its format, and what a killed writer leaves."""
