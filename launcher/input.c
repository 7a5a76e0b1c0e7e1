#include "input.h"

#include "text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ROOM_FOR_A_READ ((size_t)4096)

bool input_read(struct input *input, int descriptor)
{
    if (input->start > 0) {
        memmove(input->memory.start, input->memory.start + input->start, input->end - input->start);
        input->end -= input->start;
        input->start = 0;
    }
    if (input->end + ROOM_FOR_A_READ > input->memory.size
        && !region_reserve(&input->memory, input->end + ROOM_FOR_A_READ))
        return false;
    for (;;) {
        ssize_t got = read(descriptor, input->memory.start + input->end, input->memory.size - input->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        input->end += (size_t)got;
        return true;
    }
}

enum input_line input_take(struct input *input, char **line, size_t *length)
{
    size_t waiting = input->end - input->start;
    if (waiting == 0)
        return LINE_NONE;
    char *start = input->memory.start + input->start;
    char *newline = memchr(start, '\n', waiting);
    if (!newline) {
        input->skipping = input->skipping || waiting >= LONGEST_LINE;
        if (input->skipping)
            input->start = input->end = 0;
        return LINE_NONE;
    }
    input->start += (size_t)(newline - start) + 1;
    if (input->skipping) {
        input->skipping = false;
        return LINE_TOO_LONG;
    }
    *newline = '\0';
    *line = start;
    *length = (size_t)(newline - start);
    return LINE_TAKEN;
}

bool input_take_if(struct input *input, const char *wanted)
{
    size_t length = strlen(wanted);
    if (input->skipping || input->end - input->start < length + 1)
        return false;
    const char *start = input->memory.start + input->start;
    if (memcmp(start, wanted, length) != 0 || start[length] != '\n')
        return false;
    input->start += length + 1;
    return true;
}

bool input_take_number(struct input *input, const char *key, int *number)
{
    size_t length = strlen(key), waiting = input->end - input->start;
    const char *start = input->memory.start + input->start;
    if (input->skipping || waiting <= length || memcmp(start, key, length) != 0)
        return false;
    const char *digits = start + length, *newline = memchr(digits, '\n', waiting - length);
    size_t count = newline ? (size_t)(newline - digits) : 0;
    if (count < 1 || count > 2 || strspn(digits, "0123456789") != count)
        return false;
    *number = (int)number_in(digits);
    input->start += length + count + 1;
    return true;
}

void input_trim(struct input *input)
{
    if (input->start < input->end)
        return;
    input->start = input->end = 0;
    region_trim(&input->memory);
}
