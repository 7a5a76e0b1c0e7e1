/* The kernel's and the processor's own counters of a tree, where perf_event_open(2) gives them. */
#ifndef PERFTRAIL_COUNTERS_H
#define PERFTRAIL_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_COUNT 7

struct counters {
    int descriptors[COUNTER_COUNT]; /* -1 where the machine has no such counter or does not let us */
    int64_t values[COUNTER_COUNT];  /* -1 where it never ran */
};

extern const char *const counter_names[COUNTER_COUNT];

/* Open what can be opened, to count in every process that the next target execs or forks. */
void counters_open(struct counters *counters);

/* Take the sums once the tree has ended, and close. */
void counters_read(struct counters *counters);

#endif
