/* Reals as text. */
#include "numtext.h"
#include "precision.h"

#include <stdio.h>
#include <string.h>

int numtext_real(double value, char *text)
{
    int length = snprintf(text, NUMTEXT_ROOM, numtext_lock_setting()->format, value);
    numtext_unlock_setting();
    if (strpbrk(text, ".eEn") == NULL) {   /* a real is to look like one; n is of inf and nan */
        text[length++] = '.';
        text[length++] = '0';
        text[length] = '\0';
    }
    return length;
}
