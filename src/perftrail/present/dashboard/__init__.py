"""What the dashboard tells, worked out from what is stored: it makes and measures nothing."""
