/* Fuzz text.c: a text never exceeds its buffer, quoted strings are printable ASCII, and numbers are read as written.
 *
 * The first byte is the buffer's size, the next eight are a number, the rest is a string. */
#include "text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 9)
        return 0;
    size_t buffer_size = (size_t)data[0] + 1;
    int64_t number;
    memcpy(&number, data + 1, sizeof number);
    char *string = malloc(size - 8), *buffer = malloc(buffer_size);
    if (!string || !buffer)
        abort();
    memcpy(string, data + 9, size - 9);
    string[size - 9] = '\0';
    struct text text = text_in(buffer, buffer_size);
    text_open(&text, NULL);
    text_string(&text, string, string);
    text_number(&text, "n", number);
    text_flag(&text, "f", number & 1);
    text_string(&text, "null", NULL);
    text_close(&text);
    if (text.length >= buffer_size || strlen(buffer) != text.length || (!text.cut && buffer[text.length - 1] != '}'))
        abort();
    for (const char *at = buffer; *at; at++)
        if (*at < ' ' || *at > '~')
            abort();
    char digits[24];
    struct text written = text_in(digits, sizeof digits);
    text_add_number(&written, number);
    int64_t readable = number < 0 ? -1 : number > (INT64_MAX - 9) / 10 * 10 ? number_in(digits) : number;
    if (written.cut || number_in(digits) != readable)
        abort();
    number_after(string, "Pss:");
    number_after(string, "");
    free(string);
    free(buffer);
    return 0;
}
