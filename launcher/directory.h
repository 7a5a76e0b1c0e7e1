/* Reading a directory without opendir, which would bring malloc with it. */
#ifndef PERFTRAIL_DIRECTORY_H
#define PERFTRAIL_DIRECTORY_H

#include <stdbool.h>

typedef void visit_name(const char *name, void *context);

/* Visit the entries of an open directory from its start; of directories only where so asked, and never `.` or `..`. */
void directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context);

#endif
