"""The search loop with real and fake builds."""
