/* The cgroups of one invocation: a leaf in each hierarchy that the launcher may write to.
 *
 * A leaf contains and counts the whole tree: memory as a sum over processes, and CPU time also of processes
 * that no parent waited for. A leaf of cgroup 2 can be killed without a race against forks. */
#ifndef PERFTRAIL_CGROUP_H
#define PERFTRAIL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MOST_LEAVES 4 /* cgroup 2, and cgroup 1's memory, cpuacct and pids */
#define LEAF_PATH 480 /* with 512, all small variables need one page more, below every target */

struct leaf {
    char path[LEAF_PATH];
    int version;                       /* 1 or 2 */
    bool memory, cpu, kill, processes; /* what it is used for */
    int procs;                         /* descriptor of its cgroup.procs while an invocation runs */
};

struct cgroups {
    struct leaf leaves[MOST_LEAVES];
    int count;
};

/* Find where leaves can be created. Their names contain `owner`, so that a surviving process can remove them. */
void cgroups_find(struct cgroups *cgroups, pid_t owner);

/* In a sandbox: use an inherited descriptor of a directory for a leaf of this name. */
void cgroups_take(struct cgroups *cgroups, const char *descriptor, const char *name);

const struct leaf *cgroups_for_memory(const struct cgroups *cgroups);
const struct leaf *cgroups_for_cpu(const struct cgroups *cgroups);
const struct leaf *cgroups_for_kill(const struct cgroups *cgroups);
const struct leaf *cgroups_for_processes(const struct cgroups *cgroups);

/* Create the leaves of one invocation, with the limits that are not 0. If one fails, remove all and return false. */
bool cgroups_make(struct cgroups *cgroups, int64_t memory_limit_bytes, int64_t process_limit);

/* Move the calling process into the leaves; async-signal-safe, for the child. Return 0 or an errno. */
int cgroups_enter(const struct cgroups *cgroups);

/* Send SIGKILL to every member; do not wait for their ends. */
void cgroups_kill(const struct cgroups *cgroups);

/* Counts of the invocation so far; -1 if not available. */
int64_t cgroups_peak_memory_bytes(const struct cgroups *cgroups);
int64_t cgroups_file_memory_bytes(const struct cgroups *cgroups);
int64_t cgroups_cpu_ns(const struct cgroups *cgroups);
int64_t cgroups_oom_kills(const struct cgroups *cgroups);
int64_t cgroups_refused_processes(const struct cgroups *cgroups);

/* Remove the leaves, with any cgroups that the target created below. */
void cgroups_remove(struct cgroups *cgroups);

#endif
