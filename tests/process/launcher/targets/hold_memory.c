/* hold_memory CHILDREN MEBIBYTES MILLISECONDS: so many processes hold so much each, all at the same time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    int children = atoi(arguments[1]);
    size_t bytes = (size_t)atoi(arguments[2]) << 20;
    int ready[2], held[2];
    if (pipe(ready) != 0 || pipe(held) != 0)
        return 2;
    for (int i = 0; i < children; i++) {
        if (fork() == 0) {
            char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED)
                _exit(1);
            madvise(memory, bytes, MADV_NOHUGEPAGE);
            memset(memory, 1, bytes);
            char byte = 0;
            close(held[1]);
            if (write(ready[1], &byte, 1) != 1 || read(held[0], &byte, 1) != 0)
                _exit(1);
            _exit(0);
        }
    }
    char byte;
    for (int i = 0; i < children; i++)
        if (read(ready[0], &byte, 1) != 1)
            return 1;
    usleep((useconds_t)atoi(arguments[3]) * 1000);
    close(held[1]);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    return failed ? 1 : 0;
}
