"""Tests of the store in its file: opening, locking, migrating, and what a killed writer leaves."""
