/* A program with its own allocator, which never frees. */
#include <stddef.h>

static _Alignas(16) char memory[1 << 20];
static size_t used;

void *malloc(size_t bytes)
{
    used += (bytes + 15) & ~(size_t)15;
    return used < sizeof memory ? memory + used : NULL;
}

void *calloc(size_t number, size_t size) { return malloc(number * size); }
void *realloc(void *block, size_t bytes) { return block ? NULL : malloc(bytes); }
void free(void *block) { (void)block; }

int main(void)
{
    char *block = malloc(10);
    return block >= memory && block < memory + sizeof memory ? 0 : 1;
}
