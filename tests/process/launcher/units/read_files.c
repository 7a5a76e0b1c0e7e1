/* Read and write files with limits: read_files DIRECTORY NAME SIZE
 *
 * Print what was read into SIZE bytes, and whether the file could be written. */
#include "files.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    size_t size = strtoul(arguments[3], NULL, 10);
    char *buffer = malloc(size); /* at its end, a sanitizer notices each byte too many */
    ssize_t length = file_read_in(arguments[1], arguments[2], buffer, size);
    printf("%zd %s, ", length, length < 0 ? "unread" : buffer);
    puts(file_write_in(arguments[1], arguments[2], "written") ? "written" : "not written");
    free(buffer);
    return 0;
}
