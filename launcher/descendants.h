/* Every descendant of this process, by parents; sessions and process groups do not matter.
 *
 * Both guard and server are subreapers, so a descendant whose parent died is reparented to one of them
 * and never leaves the tree. */
#ifndef PERFTRAIL_DESCENDANTS_H
#define PERFTRAIL_DESCENDANTS_H

#include <sys/types.h>

typedef void visit_process(pid_t process, void *context);

/* Visit each living descendant that /proc shows, parents before their children. */
void descendants_visit(visit_process *visit, void *context);

/* Send a signal to every descendant, repeatedly until a pass finds no new one. Do not wait for their ends. */
void descendants_signal(int signal);

#endif
