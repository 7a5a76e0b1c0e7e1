/* A linker's run: its arguments, environment and directory when it began, and its files when it ends. */
#ifndef PERFTRAIL_RECORDER_LINK_H
#define PERFTRAIL_RECORDER_LINK_H

#include "words.h"

#include <stdbool.h>
#include <sys/types.h>

struct link {
    char *program, *directory;
    struct words arguments, environment;
};

/* Read a process that has just executed a program; return whether it is a linker. */
bool link_begin(struct link *link, pid_t process);

/* Keep the inputs and the output of a link that succeeded. Its process must not have ended, because the program that
 * started it may then remove temporary files. */
void link_keep(const struct link *link, const char *record);

void link_free(struct link *link);

#endif
