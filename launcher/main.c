/* perftrail-launcher: starts programs and accounts for them and all their descendants.
 *
 * Reads job lines from standard input and answers each with one JSON line; see PROTOCOL.md. */
#include "events.h"
#include "guard.h"
#include "report.h"
#include "run.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_CANNOT_START = 70 };

static bool serve_line(char *line, size_t length, struct events *events, struct cgroups *cgroups)
{
    static struct job job;
    static struct run run;
    static struct region slots;
    if (strcmp(line, "cancel") == 0)
        return true; /* the job it was meant for has ended */
    const char *wrong = job_parse(&job, line, length, &slots);
    bool heard;
    if (wrong) {
        heard = report_error(job.id[0] ? job.id : NULL, wrong);
    } else {
        run_job(&run, &job, events, cgroups);
        heard = !run.abandoned && report_run(&run);
    }
    region_trim(&slots);
    return heard;
}

static void serve(struct events *events, struct cgroups *cgroups)
{
    for (;;) {
        char *line;
        size_t length;
        enum input_line taken = input_take(&events->input, &line, &length);
        bool on = true;
        if (taken == LINE_TAKEN)
            on = serve_line(line, length, events, cgroups);
        else if (taken == LINE_TOO_LONG)
            on = report_error(NULL, "the line is too long");
        else
            on = events_wait_for_input(events);
        if (!on)
            return;
        input_trim(&events->input);
    }
}

static int be_server(int guard_pipe, int client, pid_t guard, struct cgroups *cgroups)
{
    struct events events = {.guard = guard_pipe, .client = client};
    setpgid(0, 0); /* a signal to the guard's group shall not reach both */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_IGN);
    sigset_t child_ends;
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ends, NULL);
    events.children = signalfd(-1, &child_ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (events.children < 0 || !spawn_prepare())
        return EXIT_CANNOT_START;
    stack_release(); /* what the guard used of it to find the cgroups */
    forget_peak();
    if (report_hello(cgroups, guard))
        serve(&events, cgroups);
    return EXIT_DONE;
}

/* Only what we know of may reach a target. */
static void clean_inheritance(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int descriptor = 3; descriptor < 1024; descriptor++)
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

/* What whoever starts us in a sandbox hands over, since in there we could not find it. */
struct handed {
    bool any;
    int client;       /* a pipe that closes when the client ends; -1: the client is our parent */
    const char *name; /* of the cgroups */
};

static const char *value_of(const char *argument, const char *key)
{
    size_t length = strlen(key);
    return strncmp(argument, key, length) == 0 ? argument + length : NULL;
}

/* The name comes before the directories of cgroups. False for an argument that is none of ours. */
static bool take_handed(struct handed *handed, struct cgroups *cgroups, int count, char **arguments)
{
    *handed = (struct handed){.any = count > 1, .client = -1, .name = "perftrail"};
    for (int i = 1; i < count; i++) {
        const char *client = value_of(arguments[i], "client="), *name = value_of(arguments[i], "name=");
        const char *directory = value_of(arguments[i], "cgroup=");
        if (client)
            handed->client = (int)number_in(client);
        else if (name)
            handed->name = name;
        else if (directory)
            cgroups_take(cgroups, directory, handed->name);
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

/* Killing by name ("pkill -9 perftrail") shall not take the guard together with those it guards. */
static void take_another_name(char *argument)
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
    static struct handed handed;
    int lifeline[2];
    clean_inheritance();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!take_handed(&handed, &cgroups, count, arguments))
        return EXIT_CANNOT_START;
    if (handed.any)
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* what we hold open leads out of the sandbox: /proc/PID/fd is for no target */
    else
        cgroups_find(&cgroups, getpid());
    int client = handed.any ? handed.client : client_descriptor();
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
        take_another_name(arguments[0]);
    return server < 0 ? EXIT_CANNOT_START : guard_server(server, client, &cgroups);
}
