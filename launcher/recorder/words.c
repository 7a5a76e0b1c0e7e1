#include "words.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *or_exit(void *memory)
{
    if (!memory)
        _exit(127);
    return memory;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas" // before gcc 10
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak" // gcc 12 loses sight of what `items` points to
#endif

void words_add(struct words *words, const char *word)
{
    if (words->count == words->room) {
        words->room = words->room ? 2 * words->room : 64;
        words->items = or_exit(realloc(words->items, words->room * sizeof *words->items));
    }
    words->items[words->count++] = or_exit(strdup(word));
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

void words_free(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->items[i]);
    free(words->items);
    *words = (struct words){0};
}

char *file_bytes(const char *path, size_t most, size_t *size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return NULL;
    size_t room = 1 << 16;
    char *bytes = or_exit(malloc(room + 1));
    ssize_t more;
    *size = 0;
    while ((more = read(descriptor, bytes + *size, room - *size)) > 0) {
        *size += (size_t)more;
        if (*size > most)
            break;
        if (*size == room) {
            room *= 2;
            bytes = or_exit(realloc(bytes, room + 1));
        }
    }
    close(descriptor);
    if (more != 0) {
        free(bytes);
        return NULL;
    }
    bytes[*size] = '\0';
    return bytes;
}

#define LARGEST_OF_PROC (64u << 20)

bool words_from_file(struct words *words, const char *path)
{
    size_t size;
    char *bytes = file_bytes(path, LARGEST_OF_PROC, &size);
    if (!bytes)
        return false;
    for (char *at = bytes; at < bytes + size; at += strlen(at) + 1)
        words_add(words, at);
    free(bytes);
    return true;
}

char *path_in(const char *directory, const char *path)
{
    char *joined;
    int failed = *path == '/' ? asprintf(&joined, "%s", path) : asprintf(&joined, "%s/%s", directory, path);
    return failed < 0 ? or_exit(NULL) : joined;
}

bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && memcmp(text + length - tail, end, tail) == 0;
}
