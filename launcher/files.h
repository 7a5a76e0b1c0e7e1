/* Read and write whole small files of /proc and cgroups. */
#ifndef PERFTRAIL_FILES_H
#define PERFTRAIL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Read as much as fits, and end it with a NUL. Return the number of bytes, or -1. */
ssize_t file_read(const char *path, char *buffer, size_t size);

/* The same for `directory/name`. */
ssize_t file_read_in(const char *directory, const char *name, char *buffer, size_t size);

bool file_write_in(const char *directory, const char *name, const char *content);

/* Write all bytes to a pipe; return false if its reading end is closed. */
bool write_all(int descriptor, const char *bytes, size_t length);

#endif
