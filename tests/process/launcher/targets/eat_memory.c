/* eat_memory MEBIBYTES: touches that much, page by page, says "ate it" and exits with 0; 1 when it is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    for (int left = atoi(arguments[1]); left > 0; left--) {
        char *block = malloc(1 << 20);
        if (!block)
            return 1;
        memset(block, 1, 1 << 20);
    }
    puts("ate it");
    return 0;
}
