#include "run.h"

#include "clock.h"
#include "descendants.h"
#include "kill.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* At 2 GB/s, a target prints 20 MB between two checks; a check takes 2 us. */
#define WATCH_INTERVAL (10 * NS_PER_MS)

/* Orphans that were asked to end have this time, for example a tracer that writes what it counted. */
#define TERMINATE_NS (1 * NS_PER_SECOND)

static int64_t nanoseconds(struct timeval time)
{
    return time.tv_sec * NS_PER_SECOND + time.tv_usec * NS_PER_US;
}

static void add_usage(struct usage *usage, const struct rusage *more)
{
    int64_t rss_bytes = (int64_t)more->ru_maxrss * 1024;
    usage->user_ns += nanoseconds(more->ru_utime);
    usage->system_ns += nanoseconds(more->ru_stime);
    usage->max_rss_bytes = rss_bytes > usage->max_rss_bytes ? rss_bytes : usage->max_rss_bytes;
    usage->minor_faults += more->ru_minflt;
    usage->major_faults += more->ru_majflt;
    usage->voluntary_switches += more->ru_nvcsw;
    usage->involuntary_switches += more->ru_nivcsw;
}

static void count_end(struct run *run, pid_t process, int status, const struct rusage *usage)
{
    add_usage(&run->usage, usage);
    run->tree_end_ns = run->events->woken_ns;
    if (process == run->spawned.pid) {
        run->main_ended = true;
        run->status = status;
        run->end_ns = run->events->woken_ns;
    } else if (run->killing && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        run->orphans_killed++;
    } else {
        run->orphans_waited++;
    }
}

static bool reap(void *context)
{
    struct run *run = context;
    if (run->killing)
        run->events->woken_ns = clock_now_ns();
    for (;;) {
        int status;
        struct rusage usage;
        pid_t process = wait4(-1, &status, WNOHANG, &usage);
        if (process > 0)
            count_end(run, process, status, &usage);
        else if (process == 0 || errno != EINTR)
            return run->childless = process < 0;
    }
}

static void kill_all(struct run *run)
{
    static const struct cgroups none;
    run->killing = true;
    if (!run->main_ended)
        kill(-run->spawned.pid, SIGKILL); /* a group is killed at once: no fork can escape */
    run->unkillable = !kill_tree(run->cgroups ? run->cgroups : &none, reap, run);
}

static bool cut_file(int descriptor, int64_t cap_bytes)
{
    struct stat status;
    if (descriptor < 0 || cap_bytes == 0 || fstat(descriptor, &status) != 0 || status.st_size <= cap_bytes)
        return false;
    return ftruncate(descriptor, cap_bytes) == 0;
}

static void cut_output(struct run *run)
{
    run->stdout_cut |= cut_file(run->spawned.stdout_fd, run->job->output_cap_bytes);
    run->stderr_cut |= cut_file(run->spawned.stderr_fd, run->job->output_cap_bytes);
}

static bool limited_by_cgroup(const struct run *run)
{
    return run->cgroups && run->job->memory_limit_bytes > 0;
}

/* The kernel kills one process at the limit; the results of the others are not valid either. */
static void check_oom(struct run *run)
{
    if (limited_by_cgroup(run) && cgroups_oom_kills(run->cgroups) > 0)
        run->memory_exceeded = true;
}


static int64_t next_check_ns(const struct run *run, int64_t now_ns)
{
    bool output = run->job->output_cap_bytes && (run->spawned.stdout_fd >= 0 || run->spawned.stderr_fd >= 0);
    return output || limited_by_cgroup(run) ? now_ns + WATCH_INTERVAL : NEVER;
}

static int64_t earliest(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static int64_t deadline_ns(const struct run *run)
{
    int64_t timeout_ns = run->job->timeout_ns ? run->spawned.pre_ns + run->job->timeout_ns : NEVER;
    return earliest(timeout_ns, run->orphans_end_ns);
}

static void terminate_orphans(struct run *run)
{
    descendants_signal(SIGTERM);
    run->orphans_end_ns = clock_now_ns() + TERMINATE_NS;
}

/* Watch the tree until it ends, or until there is a reason to kill it. */
static void watch(struct run *run)
{
    int64_t check_ns = next_check_ns(run, run->spawned.pre_ns);
    for (;;) {
        int64_t until_ns = earliest(deadline_ns(run), earliest(check_ns, run->sampling.next_ns));
        int happened = events_wait(run->events, until_ns);
        int64_t now_ns = run->events->woken_ns;
        if (happened & EVENT_CHILD && reap(run))
            return;
        if (run->main_ended && run->job->orphans == ORPHANS_KILL)
            return;
        if (run->main_ended && run->job->orphans == ORPHANS_TERMINATE && run->orphans_end_ns == NEVER)
            terminate_orphans(run);
        run->abandoned = happened & EVENT_GONE;
        run->cancelled = happened & EVENT_CANCEL;
        if (happened & EVENT_SIGNAL && !run->main_ended)
            kill(run->spawned.pid, run->events->signal);
        run->timed_out = now_ns >= deadline_ns(run) && !run->main_ended;
        if (now_ns >= check_ns) {
            cut_output(run);
            check_oom(run);
            check_ns = next_check_ns(run, clock_now_ns());
        }
        if (run->abandoned || run->cancelled || run->memory_exceeded || now_ns >= deadline_ns(run))
            return;
        if (now_ns >= run->sampling.next_ns)
            sampling_take(&run->sampling);
    }
}

static void read_cgroup_counts(struct run *run)
{
    run->tree_peak_bytes = cgroups_peak_memory_bytes(run->cgroups);
    run->tree_file_bytes = cgroups_file_memory_bytes(run->cgroups);
    run->tree_cpu_ns = cgroups_cpu_ns(run->cgroups);
    run->refused_processes = cgroups_refused_processes(run->cgroups);
    check_oom(run);
}

void run_job(struct run *run, const struct job *job, struct events *events, struct cgroups *cgroups)
{
    *run = (struct run){.job = job, .events = events, .orphans_end_ns = NEVER, .tree_peak_bytes = -1, .tree_file_bytes = -1,
                        .tree_cpu_ns = -1, .refused_processes = -1, .sampling = sampling_off()};
    if (job->tree_memory == TREE_AUTO && cgroups_make(cgroups, job->memory_limit_bytes, job->process_limit))
        run->cgroups = cgroups;
    bool memory_by_cgroup = run->cgroups && cgroups_for_memory(cgroups);
    run->limited_by_address_space = job->memory_limit_bytes > 0 && !memory_by_cgroup;
    if (job->counters)
        counters_open(&run->counters);
    run->spawned = spawn(job, run->cgroups, run->limited_by_address_space);
    run->end_ns = run->tree_end_ns = run->spawned.pre_ns;
    if (run->spawned.pid) {
        if (job->tree_memory != TREE_OFF && !memory_by_cgroup)
            run->sampling = sampling_from(run->spawned.exec_ns);
        watch(run);
        if (!run->childless)
            kill_all(run);
    }
    if (job->counters)
        counters_read(&run->counters);
    cut_output(run);
    if (run->spawned.stdout_fd >= 0)
        close(run->spawned.stdout_fd);
    if (run->spawned.stderr_fd >= 0)
        close(run->spawned.stderr_fd);
    if (run->cgroups) {
        read_cgroup_counts(run);
        cgroups_remove(run->cgroups);
    }
}
