/* The kernel's and the processor's counters of a tree, if perf_event_open(2) provides them. */
#ifndef PERFTRAIL_COUNTERS_H
#define PERFTRAIL_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_COUNT 7

struct counters {
    int descriptors[COUNTER_COUNT]; /* -1 if the machine has no such counter, or denies it */
    int64_t values[COUNTER_COUNT];  /* -1 if it never ran */
};

extern const char *const counter_names[COUNTER_COUNT];

/* Open the available counters for every process that the next target executes or forks. */
void counters_open(struct counters *counters);

/* Read the sums after the end of the tree, and close the counters. */
void counters_read(struct counters *counters);

#endif
