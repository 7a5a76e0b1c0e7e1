"""Change points in a measured series: perftrail beside other detectors, on the same simulated histories."""
