/* Read lines from standard input, of which one is too long, and print what each is. A line within the one that is too long
 * is not taken as another. */
#include "input.h"

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    static struct input input;
    while (input_read(&input, STDIN_FILENO)) {
        char *line;
        size_t length;
        enum input_line taken = LINE_TAKEN;
        while (taken != LINE_NONE) {
            if (input_take_if(&input, "cancel")) {
                puts("cancel");
                continue;
            }
            taken = input_take(&input, &line, &length);
            if (taken == LINE_TAKEN)
                puts(line);
            else if (taken == LINE_TOO_LONG)
                puts("too long");
        }
        input_trim(&input);
    }
    return 0;
}
