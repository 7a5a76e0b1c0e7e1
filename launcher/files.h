/* Whole small files, as /proc and cgroups have them. */
#ifndef PERFTRAIL_FILES_H
#define PERFTRAIL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Read what fits and end it with a NUL; the number of bytes, or -1. */
ssize_t file_read(const char *path, char *buffer, size_t size);

/* The same for `directory/name`. */
ssize_t file_read_in(const char *directory, const char *name, char *buffer, size_t size);

bool file_write_in(const char *directory, const char *name, const char *content);

/* Write all of it to a pipe; false when nobody reads any more. */
bool write_all(int descriptor, const char *bytes, size_t length);

#endif
