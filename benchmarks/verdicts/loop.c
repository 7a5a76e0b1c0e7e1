/* Steps of a xorshift generator; the argument is their number. */
#include <stdint.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    uint64_t steps = count > 1 ? strtoull(arguments[1], NULL, 10) : 0;
    uint64_t state = 88172645463325252ULL;
    for (uint64_t step = 0; step < steps; step++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state == 1;
}
