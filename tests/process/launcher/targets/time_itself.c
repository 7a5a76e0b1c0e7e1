/* time_itself MILLISECONDS: runs so long by the wall, then prints CLOCK_MONOTONIC at the start and end of main in ns. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int count, char **arguments)
{
    long long start = now();
    if (count != 2)
        return 2;
    long long wanted = atoll(arguments[1]) * 1000000;
    while (now() - start < wanted)
        continue;
    printf("%lld %lld\n", start, now());
    return 0;
}
