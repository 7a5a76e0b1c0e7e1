/* One job line: what to start and how. PROTOCOL.md lists the keys. */
#ifndef PERFTRAIL_JOB_H
#define PERFTRAIL_JOB_H

#include "region.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#define LONGEST_ID 64
#define MOST_LIMITS 16
#define MOST_NUMA_NODES 1024 /* of the kernel */

enum orphans { ORPHANS_WAIT, ORPHANS_KILL, ORPHANS_TERMINATE };
enum tree_memory { TREE_AUTO, TREE_SAMPLED, TREE_OFF };

struct job_limit {
    int resource;
    rlim_t value;
};

/* The strings point into the line and become invalid with it: while the target runs, use only the other values. */
struct job {
    char id[LONGEST_ID + 1];
    char **arguments;   /* ended by NULL */
    char **environment; /* ended by NULL */
    const char *program, *directory, *stdin_path, *stdout_path, *stderr_path;
    int64_t output_cap_bytes;   /* 0: none */
    int64_t timeout_ns;         /* 0: none */
    int64_t memory_limit_bytes; /* 0: none */
    int64_t process_limit;      /* 0: none */
    bool cpus_chosen;
    cpu_set_t cpus;
    bool nice_chosen;
    int nice;
    bool numa_chosen;
    unsigned long numa_nodes[MOST_NUMA_NODES / (8 * sizeof(unsigned long))];
    bool aslr;
    bool counters;
    enum orphans orphans;
    enum tree_memory tree_memory;
    struct job_limit limits[MOST_LIMITS];
    size_t limit_count;
};

/* Parse a line into `job`, and rewrite the line in place. `slots` is the memory of the argument and environment
 * vectors. Return NULL, or an error message; `job->id` is set as soon as it was read. */
const char *job_parse(struct job *job, char *line, size_t length, struct region *slots);

#endif
