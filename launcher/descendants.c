#include "descendants.h"

#include "files.h"
#include "region.h"
#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_PIDS (1 << 22) /* PID_MAX_LIMIT of 64-bit Linux */

/* A bit for each pid found in this pass. Only the pages in use are ever resident. */
static unsigned char found[MOST_PIDS / CHAR_BIT] __attribute__((aligned(4096)));

static bool is_found(int64_t pid)
{
    return found[pid / CHAR_BIT] >> pid % CHAR_BIT & 1;
}

struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

/* `pid (any name at all) state parent …`; -1 for a process that is gone or a zombie. */
static int64_t living_parent(const char *pid)
{
    char path[64], stat[512];
    struct text text = text_in(path, sizeof path);
    text_add(&text, "/proc/");
    text_add(&text, pid);
    text_add(&text, "/stat");
    if (file_read(path, stat, sizeof stat) <= 0)
        return -1;
    const char *after_name = strrchr(stat, ')');
    if (!after_name || strlen(after_name) < 5 || after_name[2] == 'Z' || after_name[2] == 'X')
        return -1;
    return number_in(after_name + 4);
}

static int visit_entry(const char *name, pid_t root, visit_process *visit, void *context)
{
    int64_t pid = number_in(name);
    if (pid <= 0 || pid >= MOST_PIDS || is_found(pid))
        return 0;
    int64_t parent = living_parent(name);
    if (parent < 0 || parent >= MOST_PIDS || (parent != root && !is_found(parent)))
        return 0;
    found[pid / CHAR_BIT] |= (unsigned char)(1 << pid % CHAR_BIT);
    visit((pid_t)pid, context);
    return 1;
}

/* /proc lists pids in ascending order and parents are mostly older than their children, so that
 * one reading mostly finds all; after pids wrapped around it takes another. */
static int read_proc(int proc, pid_t root, visit_process *visit, void *context)
{
    char buffer[4096] __attribute__((aligned(8)));
    int visited = 0;
    lseek(proc, 0, SEEK_SET);
    for (;;) {
        long length = syscall(SYS_getdents64, proc, buffer, sizeof buffer);
        if (length <= 0)
            return visited;
        for (long at = 0; at < length;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
            visited += visit_entry(entry->name, root, visit, context);
            at += entry->length;
        }
    }
}

int descendants_visit(visit_process *visit, void *context)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0)
        return 0;
    int visited = 0, more;
    do {
        more = read_proc(proc, getpid(), visit, context);
        visited += more;
    } while (more > 0);
    close(proc);
    pages_release(found, sizeof found); /* which also zeroes them */
    return visited;
}

static void kill_process(pid_t process, void *context)
{
    (void)context;
    kill(process, SIGKILL);
}

void descendants_kill(void)
{
    descendants_visit(kill_process, NULL);
}
