/* The tree's memory where no cgroup sums it: the proportional set sizes of all its processes, now and then. */
#ifndef PERFTRAIL_SAMPLING_H
#define PERFTRAIL_SAMPLING_H

#include <stdint.h>

struct sampling {
    int64_t peak_bytes;
    int64_t samples;
    int64_t spent_ns; /* of our CPU time; a target's memory map is locked for part of it */
    int64_t next_ns;  /* when the next sample is due; NEVER where none is wanted */
};

struct sampling sampling_from(int64_t start_ns);
struct sampling sampling_off(void);
void sampling_take(struct sampling *sampling);

#endif
