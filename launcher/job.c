#include "job.h"

#include "job_keys.h"

#include <string.h>

static int digit(char byte)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = byte ? strchr(digits, byte) : NULL;
    if (!found)
        return -1;
    int value = (int)(found - digits);
    return value < 16 ? value : value - 6;
}

/* Decode %xx in place. An argument cannot contain a NUL byte, so neither a raw one nor %00 is valid. */
static const char *unescape(char *value, size_t length)
{
    char *to = value;
    for (const char *from = value; from < value + length; from++) {
        int byte = (unsigned char)*from;
        if (byte == '%') {
            if (value + length - from < 3 || digit(from[1]) < 0 || digit(from[2]) < 0)
                return "a % must be followed by two hexadecimal digits";
            byte = digit(from[1]) * 16 + digit(from[2]);
            from += 2;
        }
        if (byte == 0)
            return "a NUL byte cannot be passed to a program";
        *to++ = (char)byte;
    }
    *to = '\0';
    return NULL;
}

static const char *read_field(struct job *job, char *field, size_t length, uint32_t *seen)
{
    char *value = memchr(field, '=', length);
    if (!value)
        return "a field must be key=value";
    *value++ = '\0';
    const char *wrong = unescape(value, length - (size_t)(value - field));
    if (wrong)
        return wrong;
    const struct job_key *key = job_key_named(field);
    if (!key)
        return "unknown key";
    uint32_t bit = 1u << job_key_number(key);
    if (!key->repeats && *seen & bit)
        return "a key was given twice";
    *seen |= bit;
    return key->read(job, value);
}

/* Restore the given order: programs can see it, and their layout depends on it. */
static void reverse(char **strings, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        char *other = strings[count - 1 - i];
        strings[count - 1 - i] = strings[i];
        strings[i] = other;
    }
}

/* Sort fields by their first bytes; the two vectors are filled from both ends of the slots. */
static const char *read_fields(struct job *job, char *line, size_t length, char **slots, size_t slot_count)
{
    uint32_t seen = 0;
    size_t arguments = 0, variables = 0;
    char *end = line + length;
    for (char *field = line, *next; field <= end; field = next + 1) {
        next = memchr(field, '\t', (size_t)(end - field));
        next = next ? next : end;
        size_t size = (size_t)(next - field);
        *next = '\0';
        const char *wrong;
        if (size >= 4 && memcmp(field, "arg=", 4) == 0) {
            slots[arguments++] = field + 4;
            wrong = unescape(field + 4, size - 4);
        } else if (size >= 4 && memcmp(field, "env=", 4) == 0) {
            slots[slot_count - 2 - variables++] = field + 4;
            wrong = unescape(field + 4, size - 4);
            if (!wrong && (field[4] == '=' || !strchr(field + 4, '=')))
                wrong = "env: must be NAME=VALUE";
        } else {
            wrong = read_field(job, field, size, &seen);
        }
        if (wrong)
            return wrong;
    }
    slots[arguments] = slots[slot_count - 1] = NULL;
    job->arguments = slots;
    job->environment = slots + slot_count - 1 - variables;
    reverse(job->environment, variables);
    return NULL;
}

const char *job_parse(struct job *job, char *line, size_t length, struct region *slots)
{
    *job = (struct job){.directory = ".", .stdin_path = "/dev/null", .stdout_path = "/dev/null",
                        .stderr_path = "/dev/null", .aslr = true};
    size_t fields = 1;
    for (size_t i = 0; i < length; i++)
        fields += line[i] == '\t';
    size_t slot_count = fields + 2; /* one vector ends with a NULL in front, the other at the back */
    if (!region_reserve(slots, slot_count * sizeof(char *)))
        return "not enough memory for this line";
    const char *wrong = read_fields(job, line, length, (char **)(void *)slots->start, slot_count);
    if (wrong)
        return wrong;
    if (!job->id[0])
        return "id: missing";
    if (!job->arguments[0])
        return "arg: at least one is required";
    if (!job->program)
        job->program = job->arguments[0];
    return NULL;
}
