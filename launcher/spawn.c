#include "spawn.h"

#include "clock.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's report, in a page that it shares with the parent; hence volatile. */
struct child_report {
    int64_t exec_ns;
    const char *stage;
    int error;
};

/* The child's input. The child has a copy of the parent's memory. If they shared it, the kernel would count pages of
 * the exec for the parent, on one CPU, and subtract them on another; the difference, in steps of 128 KiB, would be the
 * lower limit of a target's peak. Copying these few pages takes about ten microseconds. */
struct child {
    const struct job *job;
    const struct cgroups *cgroups;
    const char *program;
    int stdin_fd, stdout_fd, stderr_fd;
    bool limit_address_space;
};

#define LONGEST_PROGRAM 1024 /* found in PATH; on a stack whose pages count in every peak */

static char child_stack[32768] __attribute__((aligned(64)));
static volatile struct child_report *report;
static unsigned long own_personality;
static cpu_set_t all_cpus, current_cpus;

bool spawn_prepare(void)
{
    void *shared = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    report = shared;
    own_personality = (unsigned long)personality(0xffffffff);
    sched_getaffinity(0, sizeof all_cpus, &all_cpus);
    current_cpus = all_cpus;
    return true;
}

static bool set_limits(const struct child *child)
{
    const struct job *job = child->job;
    for (size_t i = 0; i < job->limit_count; i++) {
        struct rlimit limit = {job->limits[i].value, job->limits[i].value};
        if (prlimit(0, job->limits[i].resource, &limit, NULL) != 0)
            return false;
    }
    struct rlimit space = {(rlim_t)job->memory_limit_bytes, (rlim_t)job->memory_limit_bytes};
    return !child->limit_address_space || prlimit(0, RLIMIT_AS, &space, NULL) == 0;
}

static bool set_aslr(bool on)
{
    unsigned long flag = ADDR_NO_RANDOMIZE;
    unsigned long wanted = on ? own_personality & ~flag : own_personality | flag;
    return wanted == own_personality || personality(wanted) != -1;
}

#define BIND_MEMORY 2 /* MPOL_BIND of linux/mempolicy.h, which musl-gcc does not find */

static bool bind_memory(const struct job *job)
{
    /* The kernel ignores the last bit of the mask. */
    return !job->numa_chosen
        || syscall(SYS_set_mempolicy, BIND_MEMORY, job->numa_nodes, (unsigned long)MOST_NUMA_NODES + 1) == 0;
}

static _Noreturn void stop(const char *stage)
{
    report->error = errno;
    report->stage = stage;
    _exit(127);
}

static int child_main(void *context)
{
    const struct child *child = context;
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0); /* not setsid: a session is a new autogroup, with another share of the CPU */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (child->cgroups && (errno = cgroups_enter(child->cgroups)) != 0)
        stop("cgroup");
    if (chdir(child->job->directory) != 0)
        stop("chdir");
    if (!set_limits(child))
        stop("rlimit");
    if (!set_aslr(child->job->aslr))
        stop("aslr");
    if (child->job->nice_chosen && setpriority(PRIO_PROCESS, 0, child->job->nice) != 0)
        stop("nice");
    if (!bind_memory(child->job))
        stop("numa");
    if (dup2(child->stdin_fd, 0) < 0 || dup2(child->stdout_fd, 1) < 0 || dup2(child->stderr_fd, 2) < 0)
        stop("dup2");
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    report->exec_ns = clock_now_ns();
    execve(child->program, child->job->arguments, child->job->environment);
    stop("exec");
}

/* Bind the launcher to the target's CPUs, where it sees the target's end at once and disturbs no other CPU. */
static bool move_to_cpus(const struct job *job)
{
    const cpu_set_t *wanted = job->cpus_chosen ? &job->cpus : &all_cpus;
    if (CPU_EQUAL(wanted, &current_cpus))
        return true;
    if (sched_setaffinity(0, sizeof *wanted, wanted) != 0)
        return false;
    current_cpus = *wanted;
    return true;
}

/* Open files before the clone and without blocking: a FIFO without a writer must not stop the launcher. */
static int open_file(const char *path, int flags)
{
    int descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        return descriptor;
    if (S_ISDIR(status.st_mode)) {
        close(descriptor);
        errno = EISDIR;
        return -1;
    }
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    return descriptor;
}

/* In append mode, a truncation stays effective while the target writes. */
#define FOR_OUTPUT (O_WRONLY | O_CREAT | O_TRUNC | O_APPEND)

static const char *open_files(struct child *child)
{
    const struct job *job = child->job;
    if ((child->stdin_fd = open_file(job->stdin_path, O_RDONLY)) < 0)
        return "stdin";
    if ((child->stdout_fd = open_file(job->stdout_path, FOR_OUTPUT)) < 0)
        return "stdout";
    bool same = strcmp(job->stdout_path, job->stderr_path) == 0;
    child->stderr_fd =
        same ? fcntl(child->stdout_fd, F_DUPFD_CLOEXEC, 3) : open_file(job->stderr_path, FOR_OUTPUT);
    return child->stderr_fd < 0 ? "stderr" : NULL;
}

static void close_file(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void close_unless_regular(int *descriptor)
{
    struct stat status;
    if (*descriptor >= 0 && (fstat(*descriptor, &status) != 0 || !S_ISREG(status.st_mode)))
        close_file(descriptor);
}

static const char *path_variable(char *const *environment)
{
    for (; *environment; environment++)
        if (strncmp(*environment, "PATH=", 5) == 0)
            return *environment + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* Find a program without a slash in its name like a shell, but in absolute directories only. */
static const char *find_program(const struct job *job, char *buffer, size_t size)
{
    if (strchr(job->program, '/'))
        return job->program;
    int error = ENOENT;
    for (const char *at = path_variable(job->environment); *at;) {
        size_t length = strcspn(at, ":");
        if (*at == '/' && length + strlen(job->program) + 2 <= size) {
            memcpy(buffer, at, length);
            buffer[length] = '/';
            strcpy(buffer + length + 1, job->program);
            struct stat status;
            if (stat(buffer, &status) == 0 && S_ISREG(status.st_mode)) {
                if (access(buffer, X_OK) == 0)
                    return buffer;
                error = EACCES;
            }
        }
        at += length + (at[length] == ':');
    }
    errno = error;
    return NULL;
}

static const char *prepare(struct child *child, char *path, size_t size)
{
    const char *failed = open_files(child);
    if (failed)
        return failed;
    if (!(child->program = find_program(child->job, path, size)))
        return "exec";
    return move_to_cpus(child->job) ? NULL : "cpus";
}

struct spawned spawn(const struct job *job, const struct cgroups *cgroups, bool limit_address_space)
{
    char path[LONGEST_PROGRAM];
    struct child child = {.job = job, .cgroups = cgroups, .limit_address_space = limit_address_space,
                          .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct spawned spawned = {.stdout_fd = -1, .stderr_fd = -1};
    spawned.stage = prepare(&child, path, sizeof path);
    spawned.error = spawned.stage ? errno : 0;
    spawned.pre_ns = spawned.exec_ns = clock_now_ns();
    if (!spawned.stage) {
        *report = (struct child_report){0};
        int flags = CLONE_VFORK | SIGCHLD;
        pid_t pid = clone(child_main, child_stack + sizeof child_stack, flags, &child);
        spawned.stage = pid < 0 ? "clone" : report->stage;
        spawned.error = pid < 0 ? errno : report->error;
        spawned.exec_ns = report->exec_ns ? report->exec_ns : spawned.pre_ns;
        if (pid > 0 && spawned.stage)
            waitpid(pid, NULL, 0);
        else if (pid > 0)
            spawned.pid = pid;
    }
    close_file(&child.stdin_fd);
    close_unless_regular(&child.stdout_fd);
    close_unless_regular(&child.stderr_fd);
    spawned.stdout_fd = child.stdout_fd;
    spawned.stderr_fd = child.stderr_fd;
    return spawned;
}
