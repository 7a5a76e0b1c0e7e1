/* The cgroups of one invocation: a leaf in each hierarchy that we may write to.
 *
 * A leaf counts and holds the whole tree: memory as a sum over processes, CPU time also of those
 * nobody waited for, and (cgroup 2) a kill that no fork can outrun. */
#ifndef PERFTRAIL_CGROUP_H
#define PERFTRAIL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MOST_LEAVES 4 /* cgroup 2, and cgroup 1's memory, cpuacct and pids */
#define LEAF_PATH 512

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

/* Find where leaves can be made. All of them are named after `owner`, so that whoever survives can remove them. */
void cgroups_find(struct cgroups *cgroups, pid_t owner);

/* Take a directory that whoever started us holds open, for a leaf of this name, where none can be found: in a sandbox. */
void cgroups_take(struct cgroups *cgroups, const char *descriptor, const char *name);

const struct leaf *cgroups_for_memory(const struct cgroups *cgroups);
const struct leaf *cgroups_for_cpu(const struct cgroups *cgroups);
const struct leaf *cgroups_for_kill(const struct cgroups *cgroups);
const struct leaf *cgroups_for_processes(const struct cgroups *cgroups);

/* Make the leaves of one invocation, with those limits that are not 0. False, and nothing left, when one fails. */
bool cgroups_make(struct cgroups *cgroups, int64_t memory_limit_bytes, int64_t process_limit);

/* Put the calling process in; async-signal-safe, for the child. 0 or an errno. */
int cgroups_enter(const struct cgroups *cgroups);

/* Kill every member. Only sends the signals: wait for the ends elsewhere. */
void cgroups_kill(const struct cgroups *cgroups);

/* Figures of the invocation so far; -1 where there are none. */
int64_t cgroups_peak_memory_bytes(const struct cgroups *cgroups);
int64_t cgroups_file_memory_bytes(const struct cgroups *cgroups);
int64_t cgroups_cpu_ns(const struct cgroups *cgroups);
int64_t cgroups_oom_kills(const struct cgroups *cgroups);
int64_t cgroups_refused_processes(const struct cgroups *cgroups);

/* Remove the leaves, with any that the target made below. */
void cgroups_remove(struct cgroups *cgroups);

#endif
