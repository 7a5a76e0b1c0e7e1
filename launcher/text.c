#include "text.h"

#include <string.h>

struct text text_in(char *buffer, size_t size)
{
    buffer[0] = '\0';
    return (struct text){.bytes = buffer, .size = size};
}

static void add_byte(struct text *text, char byte)
{
    if (text->length + 1 >= text->size) {
        text->cut = true;
        return;
    }
    text->bytes[text->length++] = byte;
    text->bytes[text->length] = '\0';
}

void text_add(struct text *text, const char *string)
{
    while (*string)
        add_byte(text, *string++);
}

void text_add_number(struct text *text, int64_t number)
{
    char digits[24];
    size_t position = sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    digits[--position] = '\0';
    do {
        digits[--position] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0)
        digits[--position] = '-';
    text_add(text, digits + position);
}

void text_quoted(struct text *text, const char *string)
{
    static const char hexadecimal[] = "0123456789abcdef";
    add_byte(text, '"');
    for (; *string; string++) {
        unsigned char byte = (unsigned char)*string;
        if (byte == '"' || byte == '\\') {
            add_byte(text, '\\');
            add_byte(text, (char)byte);
        } else if (byte < 0x20 || byte > 0x7e) {
            text_add(text, "\\u00");
            add_byte(text, hexadecimal[byte >> 4]);
            add_byte(text, hexadecimal[byte & 15]);
        } else {
            add_byte(text, (char)byte);
        }
    }
    add_byte(text, '"');
}

void text_key(struct text *text, const char *key)
{
    if (text->length && text->bytes[text->length - 1] != '{')
        add_byte(text, ',');
    text_quoted(text, key);
    add_byte(text, ':');
}

void text_string(struct text *text, const char *key, const char *value)
{
    text_key(text, key);
    if (value)
        text_quoted(text, value);
    else
        text_add(text, "null");
}

void text_number(struct text *text, const char *key, int64_t value)
{
    text_key(text, key);
    text_add_number(text, value);
}

void text_flag(struct text *text, const char *key, bool value)
{
    text_key(text, key);
    text_add(text, value ? "true" : "false");
}

void text_open(struct text *text, const char *key)
{
    if (key)
        text_key(text, key);
    add_byte(text, '{');
}

void text_close(struct text *text)
{
    add_byte(text, '}');
}

int64_t number_in(const char *string)
{
    if (*string < '0' || *string > '9')
        return -1;
    int64_t number = 0;
    for (; *string >= '0' && *string <= '9'; string++) {
        if (number > (INT64_MAX - 9) / 10)
            return INT64_MAX;
        number = number * 10 + (*string - '0');
    }
    return number;
}

int64_t number_after(const char *content, const char *key)
{
    size_t length = strlen(key);
    while (strncmp(content, key, length) != 0) {
        content = strchr(content, '\n');
        if (!content)
            return -1;
        content++;
    }
    content += length;
    return number_in(content + strspn(content, " \t"));
}
