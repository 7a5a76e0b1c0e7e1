#include "counters.h"

#include <sys/syscall.h>
#include <unistd.h>

/* The first published size of the structure in <linux/perf_event.h>, which musl's compiler wrapper does not find. */
struct event {
    uint32_t type, size;
    uint64_t config, sample_period, sample_type, read_format, flags;
    uint32_t wakeup, breakpoint;
    uint64_t address;
};

enum { HARDWARE = 0, SOFTWARE = 1 };
enum { READ_TIME_ENABLED = 1, READ_TIME_RUNNING = 2 };
enum {
    DISABLED = 1 << 0,
    INHERIT = 1 << 1,
    EXCLUDE_KERNEL = 1 << 5,
    EXCLUDE_HYPERVISOR = 1 << 6,
    ENABLE_ON_EXEC = 1 << 12,
};

/* The processor's counters count user space only: that needs no privilege, and depends on the program alone. */
const char *const counter_names[COUNTER_COUNT] = {
    "instructions_user", "cycles_user", "cache_misses_user", "branch_misses_user",
    "task_clock_ns", "context_switches", "page_faults",
};

static const struct {
    uint32_t type;
    uint64_t config;
} kinds[COUNTER_COUNT] = {
    {HARDWARE, 1}, {HARDWARE, 0}, {HARDWARE, 3}, {HARDWARE, 5}, {SOFTWARE, 1}, {SOFTWARE, 3}, {SOFTWARE, 2},
};

/* Open a counter on this process, which never executes another program: so only its children are counted. */
static int open_counter(uint32_t type, uint64_t config)
{
    uint64_t scope = type == HARDWARE ? EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR : 0;
    struct event event = {.type = type, .size = sizeof event, .config = config,
                          .read_format = READ_TIME_ENABLED | READ_TIME_RUNNING,
                          .flags = DISABLED | INHERIT | ENABLE_ON_EXEC | scope};
    const unsigned long close_on_exec = 1 << 3;
    return (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, close_on_exec);
}

void counters_open(struct counters *counters)
{
    for (int i = 0; i < COUNTER_COUNT; i++)
        counters->descriptors[i] = open_counter(kinds[i].type, kinds[i].config);
}

/* Scale up a counter that shared its hardware register to the whole time. */
static int64_t read_counter(int descriptor)
{
    uint64_t found[3]; /* value, time enabled, time running */
    if (read(descriptor, found, sizeof found) != sizeof found)
        return -1;
    if (found[2] >= found[1])
        return (int64_t)found[0];
    return found[2] ? (int64_t)((double)found[0] * (double)found[1] / (double)found[2]) : -1;
}

void counters_read(struct counters *counters)
{
    for (int i = 0; i < COUNTER_COUNT; i++) {
        int descriptor = counters->descriptors[i];
        counters->values[i] = descriptor < 0 ? -1 : read_counter(descriptor);
        if (descriptor >= 0)
            close(descriptor);
        counters->descriptors[i] = -1;
    }
}
