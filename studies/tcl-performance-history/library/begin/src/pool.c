/* Buffers that a thread keeps for itself, so that no two threads ask for the same. */
#include "numtext.h"

#include <stdlib.h>

/* How many free buffers of which size a thread keeps. */
static const struct { size_t bytes; int keep; } classes[] = {
@CLASSES@
};
enum { CLASSES = sizeof classes / sizeof *classes };

struct buffer { struct buffer *next; };
static _Thread_local struct buffer *spare[CLASSES];
static _Thread_local int kept[CLASSES];

static int class_of(size_t bytes)
{
    int class = 0;
    while (class < CLASSES && classes[class].bytes < bytes) {
        class++;
    }
    return class;
}

char *numtext_take(size_t bytes)
{
    int class = class_of(bytes);
    if (class == CLASSES) {
        return malloc(bytes);
    }
    struct buffer *first = spare[class];
    if (first == NULL) {
        return malloc(classes[class].bytes);
    }
    spare[class] = first->next;
    kept[class]--;
    return (char *)first;
}

void numtext_give(char *buffer, size_t bytes)
{
    int class = class_of(bytes);
    if (class == CLASSES || kept[class] >= classes[class].keep) {
        free(buffer);
        return;
    }
    struct buffer *mine = (struct buffer *)buffer;
    mine->next = spare[class];
    spare[class] = mine;
    kept[class]++;
}
