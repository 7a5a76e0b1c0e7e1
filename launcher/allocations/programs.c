/* Count the programs that this program starts, so that the client knows whether each of them counted its allocations:
 * a static program cannot load this object, and others remove LD_PRELOAD from the environment. */
#include "counts.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FUNCTIONS(each) \
    each(execve) each(execv) each(execvp) each(execvpe) each(fexecve) each(posix_spawn) each(posix_spawnp) each(system) \
        each(popen)
#define POINTER(name) __typeof__(&name) name;
#define LOOK_UP(name) original.name = __extension__(__typeof__(&name))next_definition(#name);

static struct {
    FUNCTIONS(POINTER)
} original;

/* Not at the first call: a child of fork may not look anything up. */
__attribute__((constructor(102))) static void look_up(void)
{
    FUNCTIONS(LOOK_UP)
}

static void add_started(uint64_t number)
{
    if (counts.head)
        __atomic_add_fetch(&counts.head->started, number, __ATOMIC_RELAXED);
}

/* A program that replaces this one starts before the call could return; a call that returns has failed. */
#define REPLACE(call)             \
    add_started(1);               \
    int result = original.call;   \
    add_started(-(uint64_t)1);    \
    return result

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
    REPLACE(execve(path, arguments, environment));
}

EXPORTED int execv(const char *path, char *const arguments[])
{
    REPLACE(execv(path, arguments));
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
    REPLACE(execvp(file, arguments));
}

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    REPLACE(execvpe(file, arguments, environment));
}

EXPORTED int fexecve(int file, char *const arguments[], char *const environment[])
{
    REPLACE(fexecve(file, arguments, environment));
}

/* The arguments of execl, execlp and execle as an array, on the stack: a child of vfork may not allocate. */
#define AS_ARRAY(first)                                              \
    va_list list, again;                                             \
    va_start(list, first);                                           \
    va_copy(again, list);                                            \
    size_t number = 1;                                               \
    for (const char *each = first; each; each = va_arg(again, char *)) \
        number++;                                                    \
    va_end(again);                                                   \
    char *arguments[number];                                         \
    arguments[0] = (char *)(uintptr_t)first;                         \
    for (size_t i = 1; i < number; i++)                              \
        arguments[i] = va_arg(list, char *)

EXPORTED int execl(const char *path, const char *first, ...)
{
    AS_ARRAY(first);
    va_end(list);
    REPLACE(execv(path, arguments));
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
    AS_ARRAY(first);
    va_end(list);
    REPLACE(execvp(file, arguments));
}

EXPORTED int execle(const char *path, const char *first, ...)
{
    AS_ARRAY(first);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    REPLACE(execve(path, arguments, environment));
}

EXPORTED int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    int failed = original.posix_spawn(child, path, actions, attributes, arguments, environment);
    add_started(!failed);
    return failed;
}

EXPORTED int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    int failed = original.posix_spawnp(child, file, actions, attributes, arguments, environment);
    add_started(!failed);
    return failed;
}

/* These start a shell. */
EXPORTED int system(const char *line)
{
    int result = original.system(line);
    add_started(result != -1);
    return result;
}

EXPORTED FILE *popen(const char *line, const char *mode)
{
    FILE *stream = original.popen(line, mode);
    add_started(stream != NULL);
    return stream;
}
