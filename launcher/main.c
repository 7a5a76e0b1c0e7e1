/* perftrail-launcher: start programs, and account for them and all their descendants.
 *
 * Reads job lines from standard input and answers each with one JSON line; see PROTOCOL.md. */
#include "directory.h"
#include "events.h"
#include "guard.h"
#include "process.h"
#include "report.h"
#include "run.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The numbers of <linux/close_range.h>, a header that older systems lack. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

enum { EXIT_DONE = 0, EXIT_CANNOT_START = 70 };

#define KEYCTL_JOIN_SESSION_KEYRING 1 /* of linux/keyctl.h, which musl-gcc does not find */

/* Whether a line requests a signal, as input_take_number reads it. */
static bool is_signal(const char *line)
{
    static const char key[] = "signal=";
    size_t digits = strncmp(line, key, sizeof key - 1) == 0 ? strspn(line + sizeof key - 1, "0123456789") : 0;
    return digits > 0 && digits < 3 && line[sizeof key - 1 + digits] == '\0';
}

static bool serve_line(char *line, size_t length, struct events *events, struct cgroups *cgroups)
{
    static struct job job;
    static struct run run;
    static struct region slots;
    if (strcmp(line, "cancel") == 0 || is_signal(line))
        return true; /* its job has already ended */
    const char *wrong = job_parse(&job, line, length, &slots);
    bool sent;
    if (wrong) {
        sent = report_error(job.id[0] ? job.id : NULL, wrong);
    } else {
        run_job(&run, &job, events, cgroups);
        if (run.unkillable)
            report_fatal(job.id, "some of its processes cannot be killed");
        sent = !run.abandoned && !run.unkillable && report_run(&run);
    }
    region_trim(&slots);
    return sent;
}

static void serve(struct events *events, struct cgroups *cgroups)
{
    for (;;) {
        char *line;
        size_t length;
        enum input_line taken = input_take(&events->input, &line, &length);
        bool connected = true;
        if (taken == LINE_TAKEN)
            connected = serve_line(line, length, events, cgroups);
        else if (taken == LINE_TOO_LONG)
            connected = report_error(NULL, "the line is too long");
        else
            connected = events_wait_for_input(events);
        if (!connected)
            return;
        input_trim(&events->input);
    }
}

static int be_server(int guard_pipe, int client, pid_t guard, struct cgroups *cgroups)
{
    struct events events = {.guard = guard_pipe, .client = client};
    setpgid(0, 0); /* so that a signal to the guard's group does not reach both */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    sigset_t child_ends;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ends, NULL);
    events.children = signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (events.children < 0 || !spawn_prepare())
        return EXIT_CANNOT_START;
    stack_release(); /* the guard used it to find the cgroups */
    forget_peak();
    if (report_hello(cgroups, guard))
        serve(&events, cgroups);
    return EXIT_DONE;
}

static void mark_close_on_exec(const char *name, void *context)
{
    (void)context;
    int descriptor = (int)number_in(name);
    if (descriptor > 2)
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

/* Descriptors of the client may have any number. Linux 5.11 and newer mark them in one call. */
static void close_on_exec(void)
{
    if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    directory_visit(directory, false, mark_close_on_exec, NULL);
    close(directory);
}

/* Reset signals and descriptors, so that targets inherit nothing unknown. */
static void clean_inheritance(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close_on_exec();
}

/* Resources from the process that starts the launcher in a sandbox, where the launcher could not find them. */
struct inherited {
    bool any;
    int client;       /* a pipe that closes when the client ends; -1: the client is the parent */
    const char *name; /* of the cgroups */
};

static const char *value_of(const char *argument, const char *key)
{
    size_t length = strlen(key);
    return strncmp(argument, key, length) == 0 ? argument + length : NULL;
}

/* Parse the arguments, the name before the directories of cgroups. Return false for an unknown argument. */
static bool parse_arguments(struct inherited *inherited, struct cgroups *cgroups, int count, char **arguments)
{
    *inherited = (struct inherited){.any = count > 1, .client = -1, .name = "perftrail"};
    for (int i = 1; i < count; i++) {
        const char *client = value_of(arguments[i], "client="), *name = value_of(arguments[i], "name=");
        const char *directory = value_of(arguments[i], "cgroup=");
        if (client)
            inherited->client = (int)number_in(client);
        else if (name)
            inherited->name = name;
        else if (directory)
            cgroups_take(cgroups, directory, inherited->name);
        else
            return false;
    }
    return true;
}

static int client_descriptor(void)
{
    pid_t client = getppid();
    int descriptor = process_descriptor(client);
    return descriptor >= 0 && getppid() == client ? descriptor : -1;
}

/* Rename the guard, so that killing by name ("pkill -9 perftrail") does not kill it together with the server. */
static void rename_guard(char *argument)
{
    static const char name[] = "pt-guard";
    prctl(PR_SET_NAME, name, 0, 0, 0);
    size_t length = strlen(argument);
    memset(argument, 0, length);
    if (length >= sizeof name)
        memcpy(argument, name, sizeof name);
}

int main(int count, char **arguments)
{
    static struct cgroups cgroups;
    static struct inherited inherited;
    int lifeline[2];
    clean_inheritance();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!parse_arguments(&inherited, &cgroups, count, arguments))
        return EXIT_CANNOT_START;
    if (inherited.any) {
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no target may use /proc/PID/fd, which leads out of the sandbox */
        syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* a new one: no target may read the user's keys */
    } else
        cgroups_find(&cgroups, getpid());
    int client = inherited.any ? inherited.client : client_descriptor();
    if (pipe2(lifeline, O_CLOEXEC) != 0)
        return EXIT_CANNOT_START;
    pid_t guard = getpid();
    pid_t server = fork();
    if (server == 0) {
        close(lifeline[1]);
        return be_server(lifeline[0], client, guard, &cgroups);
    }
    close(lifeline[0]);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    if (count > 0)
        rename_guard(arguments[0]);
    return server < 0 ? EXIT_CANNOT_START : guard_server(server, client, &cgroups);
}
