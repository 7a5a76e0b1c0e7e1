/* Prints how long its work took, or would have: a level and noise of 5 %, new for each run.
 *
 * The noise is repeatable: its seed is NOISE_SEED and the number of runs so far, which the file NOISE_COUNT
 * stores. LEVEL is the level of the revision, REVISION its number.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "level.h"

static uint64_t next(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15ULL; /* splitmix64 */
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
}

/* Return the number of this run, from one; 0 when the count cannot be stored. */
static uint64_t count_run(const char *file)
{
    uint64_t runs = 0;
    int descriptor = open(file, O_RDWR | O_CREAT, 0600);
    if (descriptor < 0 || flock(descriptor, LOCK_EX) < 0) return 0;
    if (pread(descriptor, &runs, sizeof runs, 0) < 0) return 0;
    runs++;
    if (pwrite(descriptor, &runs, sizeof runs, 0) != sizeof runs) return 0;
    close(descriptor);
    return runs;
}

int main(void)
{
    const char *seed = getenv("NOISE_SEED"), *file = getenv("NOISE_COUNT");
    if (!seed || !file) return 2;
    uint64_t runs = count_run(file);
    if (!runs) return 3;
    /* Mixed first: streams that begin one step apart overlap, so the noise of neighbouring runs would be alike. */
    uint64_t state = strtoull(seed, NULL, 10);
    state = next(&state) + runs;
    state = next(&state);
    double normal = -6.0; /* the sum of twelve uniform numbers, minus its mean: nearly normal, variance 1 */
    for (int part = 0; part < 12; part++) normal += (double)(next(&state) >> 11) / 9007199254740992.0;
    printf("revision %d\nmilliseconds %.6f\n", REVISION, LEVEL * (1.0 + 0.05 * normal));
    return 0;
}
