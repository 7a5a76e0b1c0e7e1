/* Lists of strings that grow, and files read at once. Out of memory ends the recorder, and not the build. */
#ifndef PERFTRAIL_RECORDER_WORDS_H
#define PERFTRAIL_RECORDER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
    char **items;
    size_t count, room;
};

void words_add(struct words *words, const char *word);
void words_free(struct words *words);

/* Add the strings of a file like /proc/PID/cmdline, each ended by a NUL; return whether it could be read. */
bool words_from_file(struct words *words, const char *path);

/* Return a file's bytes and a NUL after them, for free(); NULL if it cannot be read or is larger than `most`. */
char *file_bytes(const char *path, size_t most, size_t *size);

/* Return a path below a directory, for free(); an absolute path stays. */
char *path_in(const char *directory, const char *path);

bool ends_with(const char *text, const char *end);

#endif
