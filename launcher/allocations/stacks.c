/* Store the stacks of allocations, and where the programs and libraries of their addresses lie. */
#include "counts.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define EXACT_STACKS 100000 /* of each thread; each further hundred thousand represents twice as many allocations */
#define PROBES 64
#define FRAMES (sizeof((struct stack *)NULL)->frames / sizeof(uint64_t))

static struct stack *stacks;
static struct module *modules;
static char program[sizeof modules->path];

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden"))); /* of this object */
static uint64_t own_first, own_last; /* the addresses of this object */

void begin_stacks(struct stack *first_stack, struct module *first_module)
{
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    own_first = own_last = (uint64_t)(uintptr_t)&__ehdr_start;
    const ElfW(Phdr) *part = (const ElfW(Phdr) *)(const void *)((const char *)&__ehdr_start + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++)
        if (part[i].p_type == PT_LOAD && own_first + part[i].p_vaddr + part[i].p_memsz > own_last)
            own_last = own_first + part[i].p_vaddr + part[i].p_memsz;
    stacks = first_stack;
    modules = first_module;
    counts.stacks = true;
}

struct trace {
    uint64_t frames[FRAMES];
    uint64_t depth;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *into)
{
    struct trace *trace = into;
    int is_before_call = 0;
    uint64_t address = _Unwind_GetIPInfo(context, &is_before_call);
    if (!address || trace->depth == FRAMES)
        return _URC_END_OF_STACK;
    if (address < own_first || address >= own_last)
        trace->frames[trace->depth++] = is_before_call ? address : address - 1;
    return _URC_NO_REASON;
}

static uint64_t number_of_process(void)
{
    return (uint64_t)(counts.process - (struct slot *)(void *)counts.head);
}

/* Store the program or library of an address, unless this process did. Threads may do so at once, and store it twice. */
static void add_module(uint64_t address)
{
    uint64_t process = number_of_process(), number = __atomic_load_n(&counts.head->module_count, __ATOMIC_ACQUIRE);
    for (uint64_t i = 0; i < number && i < counts.head->modules; i++)
        if (modules[i].process == process && modules[i].first <= address && address <= modules[i].last)
            return;
    const struct link_map *map = NULL;
    uint64_t first = address, last = address;
#if __GLIBC_PREREQ(2, 35)
    struct dl_find_object found; /* without locks, which this or another thread may have */
    if (_dl_find_object((void *)(uintptr_t)address, &found))
        return; /* generated code */
    map = found.dlfo_link_map;
    first = (uint64_t)(uintptr_t)found.dlfo_map_start;
    last = (uint64_t)(uintptr_t)found.dlfo_map_end;
#else
    Dl_info found;
    if (!dladdr1((void *)(uintptr_t)address, &found, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return;
#endif
    number = __atomic_fetch_add(&counts.head->module_count, 1, __ATOMIC_ACQ_REL);
    if (number >= counts.head->modules)
        return;
    struct module *module = modules + number;
    const char *path = map->l_name[0] ? map->l_name : program;
    memcpy(module->path, path, strnlen(path, sizeof module->path - 1)); /* the file is all zero */
    module->base = map->l_addr;
    module->first = first;
    module->last = last;
    module->process = process;
}

static uint64_t hash_of(const struct trace *trace, uint64_t process)
{
    uint64_t hash = 0xcbf29ce484222325 ^ process;
    for (uint64_t i = 0; i < trace->depth; i++) {
        hash = (hash ^ trace->frames[i]) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

static void store(const struct trace *trace, uint64_t allocations, uint64_t bytes)
{
    uint64_t process = number_of_process(), hash = hash_of(trace, process);
    for (uint64_t i = 0; i < PROBES; i++) {
        struct stack *stack = stacks + (hash + i) % counts.head->stacks;
        uint64_t known = 0;
        if (__atomic_compare_exchange_n(&stack->hash, &known, hash, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            stack->process = process;
            memcpy(stack->frames, trace->frames, sizeof stack->frames);
            stack->depth = trace->depth;
            for (uint64_t frame = 0; frame < trace->depth; frame++)
                add_module(trace->frames[frame]);
        } else if (known != hash)
            continue;
        __atomic_add_fetch(&stack->allocations, allocations, __ATOMIC_RELAXED);
        __atomic_add_fetch(&stack->bytes, bytes, __ATOMIC_RELAXED);
        return;
    }
    __atomic_add_fetch(&counts.head->lost_stacks, allocations, __ATOMIC_RELAXED);
}

static uint64_t next_random(struct slot *slot)
{
    uint64_t state = slot->as.thread.random += 0x9e3779b97f4a7c15; /* splitmix64 */
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    return state ^ (state >> 31);
}

/* Store the stack of an allocation, or skip it. A sample represents as many allocations as the mean distance of samples. */
void add_stack(struct slot *slot, size_t bytes)
{
    if (--slot->as.thread.until_stack)
        return;
    uint64_t stored = slot->as.thread.stacks++ / EXACT_STACKS;
    uint64_t distance = (uint64_t)1 << (stored < 32 ? stored : 32);
    slot->as.thread.until_stack = 1 + next_random(slot) % (2 * distance - 1);
    slot->as.thread.busy = 1;
    struct trace trace = {.depth = 0};
    _Unwind_Backtrace(add_frame, &trace);
    store(&trace, distance, distance * bytes);
    slot->as.thread.busy = 0;
}
