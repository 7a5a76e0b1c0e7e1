/* Read a directory without opendir, which uses malloc. */
#ifndef PERFTRAIL_DIRECTORY_H
#define PERFTRAIL_DIRECTORY_H

#include <stdbool.h>

typedef void visit_name(const char *name, void *context);

/* Visit the entries of an open directory from its start, or only its directories; never `.` or `..`. */
void directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context);

#endif
