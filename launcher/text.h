/* Build text in a fixed buffer: paths and JSON.
 *
 * printf would add 20 KiB of code to a process whose resident size is the lower limit of every peak. */
#ifndef PERFTRAIL_TEXT_H
#define PERFTRAIL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes;
    size_t size;   /* of the buffer; the text ends with a NUL within it */
    size_t length;
    bool cut;      /* something did not fit */
};

struct text text_in(char *buffer, size_t size);
void text_add(struct text *text, const char *string);
void text_add_number(struct text *text, int64_t number);

/* A JSON string. Bytes outside ASCII are written as U+0080..U+00FF, one for one, so that the line
 * is valid JSON for any bytes of a path or a key. */
void text_quoted(struct text *text, const char *string);

/* `"key":`, with a comma before it if JSON needs one. */
void text_key(struct text *text, const char *key);
void text_string(struct text *text, const char *key, const char *value); /* null for NULL */
void text_number(struct text *text, const char *key, int64_t value);
void text_flag(struct text *text, const char *key, bool value);
void text_open(struct text *text, const char *key); /* `"key":{`, or `{` if key is NULL */
void text_close(struct text *text);

/* Return the number on the line that begins with `key`, as in `Pss:   123 kB`; -1 without such a line. */
int64_t number_after(const char *content, const char *key);

/* Return the decimal number at the start of a string, or -1 if there is none. */
int64_t number_in(const char *string);

#endif
