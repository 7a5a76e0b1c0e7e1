/* One invocation, from its job to its measurements. */
#ifndef PERFTRAIL_RUN_H
#define PERFTRAIL_RUN_H

#include "cgroup.h"
#include "counters.h"
#include "events.h"
#include "job.h"
#include "tree_sampling.h"
#include "spawn.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Sums over the target and every orphan of its tree; a process's usage includes the children it waited for. */
struct usage {
    int64_t user_ns, system_ns;
    int64_t max_rss_bytes; /* not a sum: the largest process */
    int64_t minor_faults, major_faults;
    int64_t voluntary_switches, involuntary_switches;
};

struct run {
    const struct job *job;
    struct events *events;
    struct cgroups *cgroups; /* NULL if none is used */
    struct spawned spawned;
    struct usage usage;
    struct sampling sampling;
    struct counters counters; /* if the job requests them */
    bool main_ended, childless, killing;
    int status;                  /* as wait4 returns it */
    int64_t end_ns, tree_end_ns; /* of the target, of the last of its tree */
    int64_t orphans_end_ns;      /* when terminated orphans are killed */
    int64_t orphans_waited, orphans_killed;
    bool timed_out, memory_exceeded, cancelled, abandoned;
    bool unkillable; /* processes remain: no other job may start */
    bool limited_by_address_space;
    bool stdout_cut, stderr_cut;
    int64_t tree_peak_bytes, tree_file_bytes, tree_cpu_ns, refused_processes; /* by cgroup, or -1 */
};

/* Start the job, wait for its tree, remove its cgroups. Check `abandoned` and `unkillable` before reporting. */
void run_job(struct run *run, const struct job *job, struct events *events, struct cgroups *cgroups);

#endif
