"""Fuzz the parts of the launcher that parse bytes, with AddressSanitizer and UndefinedBehaviorSanitizer."""
