/* Every process below this one, however it was started: sessions and groups do not matter, parents do.
 *
 * Both guard and server are subreapers, so a descendant whose parent died is reparented to one of them
 * and never out of the tree. */
#ifndef PERFTRAIL_DESCENDANTS_H
#define PERFTRAIL_DESCENDANTS_H

#include <sys/types.h>

typedef void visit_process(pid_t process, void *context);

/* Visit each living descendant that /proc shows, parents before their children. */
void descendants_visit(visit_process *visit, void *context);

/* SIGKILL every descendant that can be found, again and again until a pass finds none that is new.
 * Does not wait for their ends. */
void descendants_kill(void);

#endif
