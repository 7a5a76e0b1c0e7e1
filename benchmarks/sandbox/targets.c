/* The program that runs inside and outside: it counts, opens files, or touches memory; the amount is an argument. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void count(long steps)
{
    uint64_t state = 88172645463325252ULL;
    while (steps-- > 0) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        __asm__ volatile("" : "+r"(state));
    }
}

static void open_files(long times)
{
    struct stat status;
    char byte;
    while (times-- > 0) {
        int file = open("/usr/include/stdio.h", O_RDONLY);
        if (file < 0 || fstat(file, &status) != 0 || read(file, &byte, 1) != 1)
            exit(1);
        close(file);
    }
}

static void touch_memory(long mebibytes)
{
    char *memory = malloc((size_t)mebibytes << 20);
    if (!memory)
        exit(1);
    memset(memory, 1, (size_t)mebibytes << 20);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3)
        return 2;
    long amount = atol(arguments[2]);
    if (strcmp(arguments[1], "count") == 0)
        count(amount);
    else if (strcmp(arguments[1], "files") == 0)
        open_files(amount);
    else
        touch_memory(amount);
    return 0;
}
