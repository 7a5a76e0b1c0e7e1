/* The tree's memory without a cgroup: the sum of its processes' proportional set sizes, sampled at intervals. */
#ifndef PERFTRAIL_TREE_SAMPLING_H
#define PERFTRAIL_TREE_SAMPLING_H

#include <stdint.h>

struct sampling {
    int64_t peak_bytes;
    int64_t samples;
    int64_t spent_ns; /* the launcher's CPU time; a target's memory map is locked for part of it */
    int64_t next_ns;  /* time of the next sample; NEVER without sampling */
};

struct sampling sampling_from(int64_t start_ns);
struct sampling sampling_off(void);
void sampling_take(struct sampling *sampling);

#endif
