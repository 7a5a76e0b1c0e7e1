"""Change points in a measured series: perftrail and other detectors, on the same simulated histories."""
