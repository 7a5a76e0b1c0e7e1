/* Run a harness without libFuzzer: deterministic mutations of the seeds, for a number of seconds.
 *
 * mutate -max_total_time=SECONDS [-artifact_prefix=PREFIX …] DIRECTORY. On an abort or a finding of a sanitizer, the input
 * stays in PREFIXcrash-mutated. At the end it prints "Done N runs". */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define MOST_SEEDS 64
#define LONGEST 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    uint8_t bytes[LONGEST];
    size_t size;
} seeds[MOST_SEEDS];
static size_t seed_count;

static uint64_t random_number(void)
{
    static uint64_t state = 20240607;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void read_seeds(const char *directory)
{
    DIR *open_directory = opendir(directory);
    for (struct dirent *entry; open_directory && seed_count < MOST_SEEDS && (entry = readdir(open_directory));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (!file)
            continue;
        seeds[seed_count].size = fread(seeds[seed_count].bytes, 1, LONGEST, file);
        seed_count++;
        fclose(file);
    }
    if (open_directory)
        closedir(open_directory);
}

static size_t mutated(uint8_t *into)
{
    size_t chosen = random_number() % seed_count, size = seeds[chosen].size;
    memcpy(into, seeds[chosen].bytes, size);
    for (uint64_t changes = random_number() % 8; size && changes; changes--) {
        size_t at = random_number() % size, length = random_number() % (size - at) + 1;
        switch (random_number() % 4) {
        case 0: into[at] = (uint8_t)random_number(); break;
        case 1: into[at] ^= (uint8_t)(1u << random_number() % 8); break;
        case 2: memmove(into + at, into + at + length, size - at - length); size -= length; break;
        default:
            length = size + length <= LONGEST ? length : 0;
            memmove(into + at + length, into + at, size - at);
            size += length;
        }
    }
    return size;
}

int main(int count, char **arguments)
{
    char path[1024] = "crash-mutated";
    long seconds = 1, runs = 0;
    for (int i = 1; i < count; i++) {
        if (strncmp(arguments[i], "-max_total_time=", 16) == 0)
            seconds = atol(arguments[i] + 16);
        else if (strncmp(arguments[i], "-artifact_prefix=", 17) == 0)
            snprintf(path, sizeof path, "%scrash-mutated", arguments[i] + 17);
        else if (arguments[i][0] != '-')
            read_seeds(arguments[i]);
    }
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (!seed_count || file < 0 || ftruncate(file, LONGEST) != 0)
        return 70;
    uint8_t *input = mmap(NULL, LONGEST, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (time_t end = time(NULL) + seconds; input != MAP_FAILED && time(NULL) < end; runs++)
        LLVMFuzzerTestOneInput(input, mutated(input));
    unlink(path);
    printf("Done %ld runs\n", runs);
    return 0;
}
