/* perftrail-recorder DIRECTORY COMMAND...: run a build line, and keep each link that succeeds in it.
 *
 * ptrace reports when the build's processes start others, execute programs and end; no system call is trapped, and
 * nothing in the environment changes. The recorder ends when the command ends, with its status; processes that the
 * command left behind continue untraced.
 *
 * In DIRECTORY, each N.link has a link's facts as "KEY=VALUE", ended by a NUL, and `files` has its files. `refused`
 * exists if the system refuses to trace, and `privileged` if a program of the build may need to run untraced. */

#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PTRACE_EVENT_STOP
#define PTRACE_EVENT_STOP 128
#endif

#define FOLLOWED (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)
#define FAILED_TO_START 127

struct linker {
    pid_t process;
    struct link link;
};

static const char *record;
static struct linker *linkers;
static size_t linker_count, linker_room;

static void leave_note(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", record, name);
    int note = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (note >= 0) {
        dprintf(note, "%s\n", text);
        close(note);
    }
}

static struct linker *linker_of(pid_t process)
{
    for (size_t i = 0; i < linker_count; i++)
        if (linkers[i].process == process)
            return &linkers[i];
    return NULL;
}

static void forget(pid_t process)
{
    struct linker *linker = linker_of(process);
    if (linker) {
        link_free(&linker->link);
        *linker = linkers[--linker_count];
    }
}

static void remember(pid_t process, struct link link)
{
    if (linker_count == linker_room) {
        struct linker *more = realloc(linkers, (linker_room + 64) * sizeof *linkers);
        if (!more) {
            link_free(&link);
            return;
        }
        linkers = more;
        linker_room += 64;
    }
    linkers[linker_count++] = (struct linker){.process = process, .link = link};
}

/* A process has one tracer: programs that trace others are left alone, with everything that they start. */
static bool is_tracer(const char *program)
{
    static const char *const names[] = {"strace", "ltrace", "gdb", "gdbserver", "lldb", "lldb-server", "rr", "proot"};
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof names / sizeof *names; i++)
        if (strcmp(slash + 1, names[i]) == 0)
            return true;
    return false;
}

static void executed(pid_t process)
{
    char path[64], program[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process);
    ssize_t length = readlink(path, program, sizeof program - 1);
    program[length < 0 ? 0 : length] = '\0';
    if (stat(path, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID))
        leave_note("privileged", program);
    forget(process);
    if (is_tracer(program)) {
        ptrace(PTRACE_DETACH, process, NULL, NULL);
        return;
    }
    struct link link;
    bool is_linker = link_begin(&link, process);
    ptrace(PTRACE_SETOPTIONS, process, NULL, (void *)(long)(FOLLOWED | (is_linker ? PTRACE_O_TRACEEXIT : 0)));
    if (is_linker)
        remember(process, link);
    ptrace(PTRACE_CONT, process, NULL, NULL);
}

static void about_to_end(pid_t process)
{
    struct linker *linker = linker_of(process);
    unsigned long code = 1;
    if (linker && ptrace(PTRACE_GETEVENTMSG, process, NULL, &code) == 0 && code == 0)
        link_keep(&linker->link, record);
    forget(process);
    ptrace(PTRACE_CONT, process, NULL, NULL);
}

static bool stops_a_group(int number)
{
    return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void stopped(pid_t process, int status)
{
    int event = status >> 16, number = WSTOPSIG(status);
    if (event == PTRACE_EVENT_EXEC)
        executed(process);
    else if (event == PTRACE_EVENT_EXIT)
        about_to_end(process);
    else if (event == PTRACE_EVENT_STOP && stops_a_group(number))
        ptrace(PTRACE_LISTEN, process, NULL, NULL);
    else
        ptrace(PTRACE_CONT, process, NULL, (void *)(long)(event ? 0 : number));
}

/* Trace everything until the command ends, and return its status. */
static int follow(pid_t command)
{
    for (;;) {
        int status;
        pid_t process = waitpid(-1, &status, __WALL);
        if (process < 0 && errno == EINTR)
            continue;
        if (process < 0)
            return FAILED_TO_START << 8;
        if (WIFSTOPPED(status))
            stopped(process, status);
        else if (process == command)
            return status;
        else
            forget(process);
    }
}

static _Noreturn void end_like(int status)
{
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    kill(getpid(), WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

static _Noreturn void start(char **command, int gate)
{
    char go;
    while (read(gate, &go, 1) < 0 && errno == EINTR)
        continue;
    execvp(command[0], command);
    fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "usage: perftrail-recorder DIRECTORY COMMAND...\n");
        return FAILED_TO_START;
    }
    record = words[1];
    int gate[2];
    if (pipe2(gate, O_CLOEXEC) != 0)
        return FAILED_TO_START;
    pid_t command = fork();
    if (command == 0) {
        close(gate[1]);
        start(words + 2, gate[0]);
    }
    if (command < 0)
        return FAILED_TO_START;
    if (ptrace(PTRACE_SEIZE, command, NULL, (void *)(long)FOLLOWED) != 0)
        leave_note("refused", strerror(errno));
    close(gate[0]);
    close(gate[1]); /* the command starts */
    int status = follow(command);
    end_like(status);
}
