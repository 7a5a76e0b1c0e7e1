"""Tests of samples that other tools took."""
