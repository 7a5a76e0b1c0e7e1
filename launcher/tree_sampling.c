#include "tree_sampling.h"

#include "clock.h"
#include "descendants.h"
#include "events.h"
#include "files.h"
#include "text.h"

#define FIRST_AFTER (2 * NS_PER_MS)
#define SHORTEST_INTERVAL (10 * NS_PER_MS)
#define LARGEST_SHARE 20 /* sampling uses at most a twentieth of one CPU's time */

struct sampling sampling_from(int64_t start_ns)
{
    return (struct sampling){.next_ns = start_ns + FIRST_AFTER};
}

struct sampling sampling_off(void)
{
    return (struct sampling){.next_ns = NEVER};
}

static void add_process(pid_t process, void *sum)
{
    char path[64], rollup[2048];
    struct text text = text_in(path, sizeof path);
    text_add(&text, "/proc/");
    text_add_number(&text, process);
    text_add(&text, "/smaps_rollup");
    if (file_read(path, rollup, sizeof rollup) <= 0)
        return;
    int64_t kibibytes = number_after(rollup, "Pss:");
    if (kibibytes > 0)
        *(int64_t *)sum += kibibytes * 1024;
}

static int64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * NS_PER_SECOND + used.tv_nsec;
}

void sampling_take(struct sampling *sampling)
{
    int64_t before_ns = own_cpu_ns(), sum = 0;
    descendants_visit(add_process, &sum);
    int64_t cost_ns = own_cpu_ns() - before_ns;
    int64_t interval_ns = cost_ns * LARGEST_SHARE;
    sampling->next_ns = clock_now_ns() + (interval_ns > SHORTEST_INTERVAL ? interval_ns : SHORTEST_INTERVAL);
    sampling->samples++;
    sampling->spent_ns += cost_ns;
    if (sum > sampling->peak_bytes)
        sampling->peak_bytes = sum;
}
