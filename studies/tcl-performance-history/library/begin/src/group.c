/* Whole numbers with their digits in groups of three. */
#include "numtext.h"

#include <stdio.h>
#include <string.h>

int numtext_grouped(long value, char *text)
{
    char plain[32];
    int length = snprintf(plain, sizeof plain, "%ld", value), made = 0;
    int sign = plain[0] == '-';
    for (int each = 0; each < length; each++) {
        if (each > sign && (length - each) % 3 == 0) {
            text[made++] = '_';
        }
        text[made++] = plain[each];
    }
    text[made] = '\0';
    return made;
}
