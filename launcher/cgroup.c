#include "cgroup.h"

#include "clock.h"
#include "directory.h"
#include "files.h"
#include "process.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_TRIES 500 /* to remove a leaf, a millisecond apart */

static const struct leaf *first_with(const struct cgroups *cgroups, bool (*has)(const struct leaf *))
{
    for (int i = 0; i < cgroups->count; i++)
        if (has(&cgroups->leaves[i]))
            return &cgroups->leaves[i];
    return NULL;
}

static bool has_memory(const struct leaf *leaf) { return leaf->memory; }
static bool has_cpu(const struct leaf *leaf) { return leaf->cpu; }
static bool has_kill(const struct leaf *leaf) { return leaf->kill; }
static bool has_processes(const struct leaf *leaf) { return leaf->processes; }

const struct leaf *cgroups_for_memory(const struct cgroups *cgroups) { return first_with(cgroups, has_memory); }
const struct leaf *cgroups_for_cpu(const struct cgroups *cgroups) { return first_with(cgroups, has_cpu); }
const struct leaf *cgroups_for_kill(const struct cgroups *cgroups) { return first_with(cgroups, has_kill); }

const struct leaf *cgroups_for_processes(const struct cgroups *cgroups)
{
    return first_with(cgroups, has_processes);
}

static bool write_number(const struct leaf *leaf, const char *file, int64_t number)
{
    char digits[24];
    struct text text = text_in(digits, sizeof digits);
    text_add_number(&text, number);
    return file_write_in(leaf->path, file, digits);
}

/* Swap is part of the limit if the kernel counts it; otherwise its file is missing. */
static bool limit_memory(const struct leaf *leaf, int64_t bytes)
{
    if (leaf->version == 2) {
        file_write_in(leaf->path, "memory.swap.max", "0");
        file_write_in(leaf->path, "memory.oom.group", "1");
        return write_number(leaf, "memory.max", bytes);
    }
    bool limited = write_number(leaf, "memory.limit_in_bytes", bytes);
    write_number(leaf, "memory.memsw.limit_in_bytes", bytes);
    return limited;
}

static bool make_leaf(struct leaf *leaf, int64_t memory_limit_bytes, int64_t process_limit)
{
    if (mkdir(leaf->path, 0755) != 0)
        return false;
    if (leaf->memory && memory_limit_bytes > 0 && !limit_memory(leaf, memory_limit_bytes))
        return false;
    if (leaf->processes && process_limit > 0 && !write_number(leaf, "pids.max", process_limit))
        return false;
    char path[LEAF_PATH + 16];
    struct text text = text_in(path, sizeof path);
    text_add(&text, leaf->path);
    text_add(&text, "/cgroup.procs");
    leaf->procs = open(path, O_RDWR | O_CLOEXEC);
    return leaf->procs >= 0;
}

bool cgroups_make(struct cgroups *cgroups, int64_t memory_limit_bytes, int64_t process_limit)
{
    for (int i = 0; i < cgroups->count; i++)
        if (!make_leaf(&cgroups->leaves[i], memory_limit_bytes, process_limit)) {
            cgroups_remove(cgroups);
            return false;
        }
    return cgroups->count > 0;
}

int cgroups_enter(const struct cgroups *cgroups)
{
    for (int i = 0; i < cgroups->count; i++)
        if (write(cgroups->leaves[i].procs, "0", 1) != 1)
            return errno;
    return 0;
}

/* Whether a process is in the leaf or below it. A process whose cgroups cannot be read counts as a member, also one whose
 * paths are too long to read all of them. */
static bool is_member(pid_t process, const void *leaf_path)
{
    char path[64], own[4096];
    struct text text = text_in(path, sizeof path);
    text_add(&text, "/proc/");
    text_add_number(&text, process);
    text_add(&text, "/cgroup");
    ssize_t read = file_read(path, own, sizeof own);
    if (read <= 0 || read >= (ssize_t)sizeof own - 1)
        return true;
    const char *name = strrchr(leaf_path, '/');
    size_t length = strlen(name);
    for (const char *at = own; (at = strstr(at, name)); at += length)
        if (at[length] == '\n' || at[length] == '/')
            return true;
    return false;
}

static void kill_listed(const struct leaf *leaf)
{
    char list[4096];
    ssize_t length = file_read_in(leaf->path, "cgroup.procs", list, sizeof list);
    for (char *at = list; length > 0 && at < list + length; at++) {
        int64_t pid = number_in(at);
        at += strspn(at, "0123456789");
        /* A truncated list may end within a number: the next round reads it again. */
        if (*at == '\n' && pid > 1 && pid != getpid())
            process_signal((pid_t)pid, SIGKILL, is_member, leaf->path);
    }
}

void cgroups_kill(const struct cgroups *cgroups)
{
    const struct leaf *leaf = cgroups_for_kill(cgroups);
    if (leaf && file_write_in(leaf->path, "cgroup.kill", "1"))
        return;
    if (!leaf)
        leaf = cgroups_for_memory(cgroups);
    if (!leaf)
        leaf = cgroups_for_cpu(cgroups);
    if (leaf)
        kill_listed(leaf);
}

static int64_t read_number(const struct leaf *leaf, const char *file, const char *key)
{
    char content[4096];
    if (!leaf || file_read_in(leaf->path, file, content, sizeof content) <= 0)
        return -1;
    return number_after(content, key);
}

int64_t cgroups_peak_memory_bytes(const struct cgroups *cgroups)
{
    const struct leaf *leaf = cgroups_for_memory(cgroups);
    return leaf ? read_number(leaf, leaf->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes", "") : -1;
}

int64_t cgroups_file_memory_bytes(const struct cgroups *cgroups)
{
    const struct leaf *leaf = cgroups_for_memory(cgroups);
    return leaf ? read_number(leaf, "memory.stat", leaf->version == 2 ? "file " : "total_cache ") : -1;
}

int64_t cgroups_cpu_ns(const struct cgroups *cgroups)
{
    const struct leaf *leaf = cgroups_for_cpu(cgroups);
    if (!leaf || leaf->version == 1)
        return read_number(leaf, "cpuacct.usage", "");
    int64_t microseconds = read_number(leaf, "cpu.stat", "usage_usec ");
    return microseconds < 0 ? -1 : microseconds * NS_PER_US;
}

int64_t cgroups_oom_kills(const struct cgroups *cgroups)
{
    const struct leaf *leaf = cgroups_for_memory(cgroups);
    return leaf ? read_number(leaf, leaf->version == 2 ? "memory.events" : "memory.oom_control", "oom_kill ") : -1;
}

int64_t cgroups_refused_processes(const struct cgroups *cgroups)
{
    return read_number(cgroups_for_processes(cgroups), "pids.events", "max ");
}

/* Below a leaf, names are relative to their directory: a target may create paths of any length. */
static void remove_child(const char *name, void *parent_descriptor)
{
    int parent = *(const int *)parent_descriptor;
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return;
    int child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child < 0)
        return;
    directory_visit(child, true, remove_child, &child);
    close(child);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static bool remove_empty(const char *path)
{
    return rmdir(path) == 0 || errno == ENOENT;
}

/* Try once to remove a directory with its children: a target that runs containers creates some. */
static bool remove_tree(const char *path)
{
    if (remove_empty(path))
        return true;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        directory_visit(directory, true, remove_child, &directory);
        close(directory);
    }
    return remove_empty(path);
}

/* A leaf is busy until the kernel has released its last process, a moment after it was reaped. Only the whole tree is
 * tried again: tries at each level would multiply. */
static void remove_leaf(const char *path)
{
    struct timespec pause = {.tv_nsec = NS_PER_MS};
    for (int tries = 0; !remove_tree(path) && tries < MOST_TRIES; tries++)
        nanosleep(&pause, NULL);
}

void cgroups_remove(struct cgroups *cgroups)
{
    for (int i = 0; i < cgroups->count; i++) {
        struct leaf *leaf = &cgroups->leaves[i];
        if (leaf->procs >= 0)
            close(leaf->procs);
        leaf->procs = -1;
        remove_leaf(leaf->path);
    }
}
