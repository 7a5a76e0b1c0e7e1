#include "report.h"

#include "files.h"
#include "region.h"
#include "text.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#define LIBC "glibc"
#else
#define LIBC "musl"
#endif

/* A hello fits with paths whose bytes are all escaped. Pages that no line needs are never resident. */
#define LONGEST_ANSWER 16384
_Static_assert(MOST_LEAVES * 6 * LEAF_PATH + 1024 <= LONGEST_ANSWER, "a cut line would have no newline");

static char buffer[LONGEST_ANSWER] __attribute__((aligned(64)));

static bool send_line(struct text *text)
{
    text_close(text);
    text_add(text, "\n");
    return write_all(STDOUT_FILENO, text->bytes, text->length);
}

static struct text start_line(const char *event)
{
    struct text text = text_in(buffer, sizeof buffer);
    text_open(&text, NULL);
    text_string(&text, "event", event);
    return text;
}

static const char *version_name(const struct leaf *leaf)
{
    return !leaf ? NULL : leaf->version == 2 ? "cgroup2" : "cgroup1";
}

/* The launcher's own peak resident size: the lower limit of a target's peak. */
static int64_t own_peak_bytes(void)
{
    if (file_read("/proc/self/status", buffer, sizeof buffer) <= 0)
        return -1;
    return number_after(buffer, "VmHWM:") * 1024;
}

bool report_hello(const struct cgroups *cgroups, pid_t guard)
{
    struct timespec resolution;
    int64_t own_bytes = own_peak_bytes();
    clock_getres(CLOCK_MONOTONIC, &resolution);
    struct text text = start_line("hello");
    text_string(&text, "version", LAUNCHER_VERSION);
    text_number(&text, "protocol", 1);
    text_number(&text, "pid", guard);
    text_number(&text, "server_pid", getpid());
    text_string(&text, "libc", LIBC);
    text_string(&text, "linking", LAUNCHER_LINKING);
    text_number(&text, "own_peak_bytes", own_bytes);
    text_number(&text, "clock_resolution_ns", resolution.tv_sec * 1000000000 + resolution.tv_nsec);
    text_open(&text, "cgroup");
    text_string(&text, "memory", version_name(cgroups_for_memory(cgroups)));
    text_string(&text, "cpu", version_name(cgroups_for_cpu(cgroups)));
    text_string(&text, "kill", version_name(cgroups_for_kill(cgroups)));
    text_string(&text, "processes", version_name(cgroups_for_processes(cgroups)));
    text_key(&text, "paths");
    text_add(&text, "[");
    for (int i = 0; i < cgroups->count; i++) {
        text_add(&text, i ? "," : "");
        text_quoted(&text, cgroups->leaves[i].path);
    }
    text_add(&text, "]");
    text_close(&text);
    return send_line(&text);
}

static struct text start_error(const char *id, const char *message)
{
    struct text text = start_line("error");
    text_string(&text, "id", id);
    text_string(&text, "message", message);
    return text;
}

bool report_error(const char *id, const char *message)
{
    struct text text = start_error(id, message);
    return send_line(&text);
}

void report_fatal(const char *id, const char *message)
{
    struct text text = start_error(id, message);
    text_flag(&text, "fatal", true);
    send_line(&text);
}

static void add_ending(struct text *text, const struct run *run)
{
    text_open(text, "ended");
    if (run->spawned.stage) {
        text_string(text, "how", "not_started");
        text_string(text, "stage", run->spawned.stage);
        text_number(text, "errno", run->spawned.error);
    } else if (WIFSIGNALED(run->status)) {
        text_string(text, "how", "signalled");
        text_number(text, "signal", WTERMSIG(run->status));
    } else {
        text_string(text, "how", "exited");
        text_number(text, "code", WEXITSTATUS(run->status));
    }
    text_close(text);
    text_flag(text, "timed_out", run->timed_out);
    text_flag(text, "memory_exceeded", run->memory_exceeded);
    text_flag(text, "cancelled", run->cancelled);
    text_flag(text, "stdout_truncated", run->stdout_cut);
    text_flag(text, "stderr_truncated", run->stderr_cut);
}

static void add_times(struct text *text, const struct run *run)
{
    text_number(text, "pre_ns", run->spawned.pre_ns);
    text_number(text, "exec_ns", run->spawned.exec_ns);
    text_number(text, "end_ns", run->end_ns);
    text_number(text, "tree_end_ns", run->tree_end_ns);
    text_number(text, "wall_ns", run->spawned.stage ? 0 : run->end_ns - run->spawned.exec_ns);
    text_number(text, "user_ns", run->usage.user_ns);
    text_number(text, "system_ns", run->usage.system_ns);
    text_number(text, "cpu_ns", run->usage.user_ns + run->usage.system_ns);
}

static void add_usage(struct text *text, const struct usage *usage)
{
    text_number(text, "max_rss_bytes", usage->max_rss_bytes);
    text_number(text, "voluntary_switches", usage->voluntary_switches);
    text_number(text, "involuntary_switches", usage->involuntary_switches);
    text_number(text, "minor_faults", usage->minor_faults);
    text_number(text, "major_faults", usage->major_faults);
}

/* The tree's memory is at least that of its largest process. */
static void add_tree_memory(struct text *text, const struct run *run)
{
    const struct sampling *sampling = &run->sampling;
    if (run->tree_peak_bytes < 0 && sampling->samples == 0) {
        text_key(text, "peak_memory_tree");
        text_add(text, "null");
        return;
    }
    text_open(text, "peak_memory_tree");
    if (run->tree_peak_bytes >= 0) {
        text_number(text, "bytes", run->tree_peak_bytes);
        text_string(text, "method", version_name(cgroups_for_memory(run->cgroups)));
        text_number(text, "file_bytes_at_end", run->tree_file_bytes);
    } else {
        int64_t largest = run->usage.max_rss_bytes;
        text_number(text, "bytes", sampling->peak_bytes > largest ? sampling->peak_bytes : largest);
        text_string(text, "method", "sampled");
        text_number(text, "samples", sampling->samples);
        text_number(text, "sampling_ns", sampling->spent_ns);
    }
    text_close(text);
}

static void add_tree_cpu(struct text *text, const struct run *run)
{
    if (run->tree_cpu_ns < 0) {
        text_key(text, "cpu_tree");
        text_add(text, "null");
        return;
    }
    text_open(text, "cpu_tree");
    text_number(text, "ns", run->tree_cpu_ns);
    text_string(text, "method", version_name(cgroups_for_cpu(run->cgroups)));
    text_close(text);
}

static void add_counters(struct text *text, const struct counters *counters)
{
    text_open(text, "counters");
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (counters->values[i] >= 0)
            text_number(text, counter_names[i], counters->values[i]);
    text_close(text);
}

bool report_run(const struct run *run)
{
    struct text text = start_line("result");
    text_string(&text, "id", run->job->id);
    add_ending(&text, run);
    add_times(&text, run);
    add_usage(&text, &run->usage);
    add_tree_memory(&text, run);
    add_tree_cpu(&text, run);
    const char *limit = run->limited_by_address_space ? "rlimit_as" : NULL;
    if (!limit && run->job->memory_limit_bytes > 0)
        limit = version_name(cgroups_for_memory(run->cgroups));
    text_string(&text, "memory_limit_method", limit);
    if (run->refused_processes >= 0)
        text_number(&text, "refused_processes", run->refused_processes);
    if (run->job->counters)
        add_counters(&text, &run->counters);
    text_open(&text, "orphans");
    text_number(&text, "waited", run->orphans_waited);
    text_number(&text, "killed", run->orphans_killed);
    text_close(&text);
    return send_line(&text);
}
