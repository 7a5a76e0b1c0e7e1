/* print_bytes BYTES DESCRIPTOR: writes so many, and fails if they cannot be written. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char block[1 << 16];
    if (count != 3)
        return 2;
    memset(block, 'x', sizeof block);
    for (long long left = atoll(arguments[1]); left > 0;) {
        size_t size = left < (long long)sizeof block ? (size_t)left : sizeof block;
        ssize_t written = write(atoi(arguments[2]), block, size);
        if (written <= 0)
            return 1;
        left -= written;
    }
    return 0;
}
