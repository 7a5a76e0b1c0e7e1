/* Find where this process may create cgroups: below its own, or (cgroup 2) below the nearest ancestor that delegates
 * the memory controller. */
#include "cgroup.h"

#include "files.h"
#include "region.h"
#include "text.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONGEST_TABLE ((size_t)1 << 18) /* /proc/self/mountinfo of a busy container host */

/* Is `word` one of the comma-separated words before the first of `ends`? */
static bool lists(const char *words, const char *word, const char *ends)
{
    size_t length = strlen(word);
    const char *stop = words + strcspn(words, ends);
    while (words < stop) {
        size_t size = strcspn(words, ",\n :");
        if (size == length && memcmp(words, word, length) == 0)
            return true;
        words += size + 1;
    }
    return false;
}

static void add_up_to(struct text *text, const char *string, const char *ends)
{
    char part[LEAF_PATH];
    size_t length = strcspn(string, ends);
    if (length >= sizeof part) {
        text->cut = true;
        return;
    }
    memcpy(part, string, length);
    part[length] = '\0';
    text_add(text, part);
}

static const char *next_line(const char *line)
{
    const char *newline = strchr(line, '\n');
    return newline ? newline + 1 : line + strlen(line);
}

/* This process's path in the hierarchy of a cgroup 1 controller, or of cgroup 2 (controller NULL), from
 * /proc/self/cgroup. */
static const char *own_path(const char *table, const char *controller)
{
    for (const char *line = table; *line; line = next_line(line)) {
        const char *controllers = strchr(line, ':');
        const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        if (controller ? lists(controllers + 1, controller, ":") : path == controllers + 1)
            return path + 1;
    }
    return NULL;
}

/* The field `count` words into a line of mountinfo. */
static const char *word_at(const char *line, int count)
{
    while (count-- > 0) {
        line += strcspn(line, " \n");
        line += *line == ' ';
    }
    return line;
}

/* Find the directory of `path` in the mounted hierarchy, from lines of mountinfo:
 * `… root mount … - type source options`. */
static bool find_directory(const char *mounts, const char *controller, const char *path, struct text *into)
{
    for (const char *line = mounts; *line; line = next_line(line)) {
        const char *type = word_at(line, 6); /* optional words follow, ended by a dash */
        while (*type && *type != '\n' && *type != '-')
            type = word_at(type, 1);
        type = word_at(type, 1);
        const char *wanted = controller ? "cgroup " : "cgroup2 ";
        if (strncmp(type, wanted, strlen(wanted)) != 0)
            continue;
        if (controller && !lists(word_at(type, 2), controller, "\n"))
            continue;
        const char *root = word_at(line, 3);
        size_t root_length = strcspn(root, " ");
        if (root_length == 1)
            root_length = 0; /* the whole hierarchy is mounted: "/" is not a prefix to remove */
        if (strncmp(path, root, root_length) != 0)
            continue;
        add_up_to(into, word_at(line, 4), " ");
        add_up_to(into, path + root_length, "\n");
        while (into->length > 1 && into->bytes[into->length - 1] == '/')
            into->bytes[--into->length] = '\0';
        return !into->cut;
    }
    return false;
}

/* Whether a process can enter: this depends on delegation, ownership and the rule of no inner processes. */
static bool can_enter(const char *leaf)
{
    pid_t child = fork();
    if (child == 0)
        _exit(file_write_in(leaf, "cgroup.procs", "0") ? 0 : 1);
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* Try a leaf below `directory`; add it to `cgroups` if a process can enter it and it has the file `needed`. */
static bool try_leaf(struct cgroups *cgroups, const char *directory, pid_t owner, const char *needed, int version)
{
    struct leaf *leaf = &cgroups->leaves[cgroups->count];
    struct text path = text_in(leaf->path, sizeof leaf->path);
    text_add(&path, directory);
    text_add(&path, "/perftrail-");
    text_add_number(&path, owner);
    if (path.cut || (mkdir(leaf->path, 0755) != 0 && access(leaf->path, F_OK) != 0))
        return false;
    char buffer[64];
    bool good = file_read_in(leaf->path, needed, buffer, sizeof buffer) >= 0 && can_enter(leaf->path);
    leaf->version = version;
    leaf->procs = -1;
    leaf->memory = leaf->cpu = leaf->kill = leaf->processes = false;
    rmdir(leaf->path);
    cgroups->count += good;
    return good;
}

/* Search upwards from this process's cgroup for the first ancestor with memory accounting for its children. */
static bool try_ancestors(struct cgroups *cgroups, char *directory, pid_t owner)
{
    for (;;) {
        if (try_leaf(cgroups, directory, owner, "memory.peak", 2))
            return true;
        char *slash = strrchr(directory, '/');
        if (!slash || slash == directory)
            return false;
        *slash = '\0';
        if (access(directory, W_OK) != 0)
            return false;
    }
}

static void find_version_2(struct cgroups *cgroups, const char *own, const char *mounts, pid_t owner)
{
    char directory[LEAF_PATH], ancestor[LEAF_PATH];
    struct text text = text_in(directory, sizeof directory);
    const char *path = own_path(own, NULL);
    if (!path || !find_directory(mounts, NULL, path, &text))
        return;
    memcpy(ancestor, directory, sizeof ancestor);
    bool memory = try_ancestors(cgroups, ancestor, owner);
    if (!memory && !try_leaf(cgroups, directory, owner, "cpu.stat", 2))
        return;
    struct leaf *leaf = &cgroups->leaves[cgroups->count - 1];
    leaf->memory = memory;
    leaf->cpu = leaf->kill = true;
}

static void find_version_1(
    struct cgroups *cgroups, const char *own, const char *mounts, pid_t owner, const char *controller)
{
    char directory[LEAF_PATH];
    struct text text = text_in(directory, sizeof directory);
    const char *path = own_path(own, controller);
    bool memory = strcmp(controller, "memory") == 0;
    if (!path || !find_directory(mounts, controller, path, &text))
        return;
    if (!try_leaf(cgroups, directory, owner, memory ? "memory.max_usage_in_bytes" : "cpuacct.usage", 1))
        return;
    struct leaf *leaf = &cgroups->leaves[cgroups->count - 1];
    leaf->memory = memory;
    leaf->cpu = !memory;
}

void cgroups_find(struct cgroups *cgroups, pid_t owner)
{
    cgroups->count = 0;
    struct region tables = {0};
    if (!region_reserve(&tables, 2 * LONGEST_TABLE))
        return;
    char *own = tables.start, *mounts = tables.start + LONGEST_TABLE;
    if (file_read("/proc/self/cgroup", own, LONGEST_TABLE) > 0
        && file_read("/proc/self/mountinfo", mounts, LONGEST_TABLE) > 0) {
        find_version_2(cgroups, own, mounts, owner);
        if (!cgroups_for_memory(cgroups))
            find_version_1(cgroups, own, mounts, owner, "memory");
        if (!cgroups_for_cpu(cgroups))
            find_version_1(cgroups, own, mounts, owner, "cpuacct");
    }
    region_release(&tables);
}

static bool has_file(const struct leaf *leaf, const char *name)
{
    char buffer[64];
    return file_read_in(leaf->path, name, buffer, sizeof buffer) >= 0;
}

/* The kernel's files in a leaf show what it can count and limit. */
static void detect_controllers(struct leaf *leaf)
{
    leaf->version = has_file(leaf, "cgroup.controllers") ? 2 : 1;
    leaf->memory = has_file(leaf, leaf->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes");
    leaf->cpu = has_file(leaf, leaf->version == 2 ? "cpu.stat" : "cpuacct.usage");
    leaf->processes = has_file(leaf, "pids.max");
    leaf->kill = leaf->version == 2;
    leaf->procs = -1;
}

void cgroups_take(struct cgroups *cgroups, const char *descriptor, const char *name)
{
    if (cgroups->count == MOST_LEAVES || strlen(descriptor) > 10)
        return;
    struct leaf *leaf = &cgroups->leaves[cgroups->count];
    struct text path = text_in(leaf->path, sizeof leaf->path);
    text_add(&path, "/proc/self/fd/");
    text_add(&path, descriptor);
    text_add(&path, "/");
    text_add(&path, name);
    if (path.cut || (mkdir(leaf->path, 0755) != 0 && access(leaf->path, F_OK) != 0))
        return;
    detect_controllers(leaf);
    bool useful = leaf->memory || leaf->cpu || leaf->processes;
    cgroups->count += useful && can_enter(leaf->path);
    rmdir(leaf->path);
}
