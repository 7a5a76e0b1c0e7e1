/* Lines from the client: any length up to a cap, buffered across reads. */
#ifndef PERFTRAIL_INPUT_H
#define PERFTRAIL_INPUT_H

#include "region.h"

#define LONGEST_LINE ((size_t)16 << 20) /* Linux lets arguments and environment take at most 6 MiB together */

struct input {
    struct region memory;
    size_t start, end;  /* the bytes that were read and not yet taken */
    bool skipping;      /* inside a line that was too long */
};

enum input_line { LINE_NONE, LINE_TAKEN, LINE_TOO_LONG };

/* One read(2) from the client; return false if it closed its end. It may move the earlier bytes: pointers into a line become
 * invalid. The caller reads only while less than LONGEST_LINE bytes wait. */
bool input_read(struct input *input, int descriptor);

/* Take the next whole line, ended by a NUL in place of its newline. */
enum input_line input_take(struct input *input, char **line, size_t *length);

/* Take the next line only if it equals `wanted`. */
bool input_take_if(struct input *input, const char *wanted);

/* Take the next line only if it is `key` followed by a number of at most two digits. */
bool input_take_number(struct input *input, const char *key, int *number);

/* Return memory to the kernel if no bytes wait in it. */
void input_trim(struct input *input);

#endif
