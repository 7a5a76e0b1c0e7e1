"""Campaigns that look for losses: programs that try to break perftrail, and print what they found."""
