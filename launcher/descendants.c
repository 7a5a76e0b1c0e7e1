#include "descendants.h"

#include "directory.h"
#include "files.h"
#include "process.h"
#include "region.h"
#include "text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define MOST_PIDS (1 << 22) /* PID_MAX_LIMIT of 64-bit Linux */

/* A bit for each pid found in this pass. Only the pages in use are ever resident. */
static unsigned char found[MOST_PIDS / CHAR_BIT] __attribute__((aligned(4096)));

static bool is_found(int64_t pid)
{
    return found[pid / CHAR_BIT] >> pid % CHAR_BIT & 1;
}

/* Return the parent, from `pid (any name) state parent …`; -1 for an ended process or a zombie. */
static int64_t living_parent(int64_t pid)
{
    char path[64], stat[512];
    struct text text = text_in(path, sizeof path);
    text_add(&text, "/proc/");
    text_add_number(&text, pid);
    text_add(&text, "/stat");
    if (file_read(path, stat, sizeof stat) <= 0)
        return -1;
    const char *after_name = strrchr(stat, ')');
    if (!after_name || strlen(after_name) < 5 || after_name[2] == 'Z' || after_name[2] == 'X')
        return -1;
    return number_in(after_name + 4);
}

/* Whether a process is a child of this process, or of a descendant that was found in this pass. */
static bool is_descendant(pid_t process, const void *root)
{
    int64_t parent = living_parent(process);
    return parent >= 0 && parent < MOST_PIDS && (parent == *(const pid_t *)root || is_found(parent));
}

struct pass {
    pid_t root;
    visit_process *visit;
    void *context;
    int visited;
};

static void visit_entry(const char *name, void *context)
{
    struct pass *pass = context;
    int64_t pid = number_in(name);
    if (pid <= 0 || pid >= MOST_PIDS || is_found(pid))
        return;
    if (!is_descendant((pid_t)pid, &pass->root))
        return;
    found[pid / CHAR_BIT] |= (unsigned char)(1 << pid % CHAR_BIT);
    pass->visit((pid_t)pid, pass->context);
    pass->visited++;
}

/* /proc lists pids in ascending order, and parents are usually older than their children. So one pass usually
 * finds all; after pids wrapped around, another pass is needed. */
void descendants_visit(visit_process *visit, void *context)
{
    struct pass pass = {.root = getpid(), .visit = visit, .context = context};
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), before;
    if (proc < 0)
        return;
    do {
        before = pass.visited;
        directory_visit(proc, true, visit_entry, &pass);
    } while (pass.visited > before);
    close(proc);
    pages_release(found, sizeof found); /* also sets them to zero */
}

struct sending {
    pid_t root;
    int signal;
};

static void send_signal(pid_t process, void *context)
{
    const struct sending *sending = context;
    process_signal(process, sending->signal, is_descendant, &sending->root);
}

void descendants_signal(int signal)
{
    struct sending sending = {.root = getpid(), .signal = signal};
    descendants_visit(send_signal, &sending);
}
