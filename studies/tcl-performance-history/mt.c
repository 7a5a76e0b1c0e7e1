/* The benchmark: THREADS threads together format NUMBERS reals and join them into separate strings.

   After the paper's mt_example, which "performs a number of float-to-string conversions and allows the user to
   select the number of threads". Prints the time from the start of the first thread's work to the end of the last one's,
   and the length of all texts. The threads wait for each other first, so the time to start them does not count. */
#include "numtext.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 2000, MOST_THREADS = 256 };

struct share { long first, count, length; double begin, end; };

static pthread_barrier_t start_line;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double number(long which)
{
    uint64_t state = (uint64_t)which * 0x9E3779B97F4A7C15ULL + 0x632BE59BD9B4E019ULL;
    state ^= state >> 29;
    state *= 0xBF58476D1CE4E5B9ULL;
    state ^= state >> 32;
    return (double)(state >> 11) / 9007199254740992.0 * 1000.0;
}

static void *work(void *argument)
{
    struct share *own = argument;
    pthread_barrier_wait(&start_line);
    own->begin = now();
    char *line = numtext_take(LINE), *end = line;
    long written = 0;
    for (long each = 0; each < own->count; each++) {
        char *text = numtext_take(NUMTEXT_ROOM);
        int length = numtext_real(number(own->first + each), text);
        if (end + length > line + LINE) {
            end = line;
        }
        memcpy(end, text, (size_t)length);
        end += length;
        written += length;
        numtext_give(text, NUMTEXT_ROOM);
    }
    numtext_give(line, LINE);
    own->length = written;      /* once: the shares of two threads are neighbours in memory */
    own->end = now();
    return NULL;
}

int main(int count, char **arguments)
{
    static pthread_t thread[MOST_THREADS];
    static struct share share[MOST_THREADS];
    long threads = count == 3 ? atol(arguments[1]) : 0, numbers = count == 3 ? atol(arguments[2]) : 0, length = 0;
    if (threads < 1 || threads > MOST_THREADS || numbers < threads) {
        fprintf(stderr, "mt THREADS NUMBERS\n");
        return 2;
    }
    pthread_barrier_init(&start_line, NULL, (unsigned)threads);
    for (long each = 0; each < threads; each++) {
        long first = numbers * each / threads;
        share[each] = (struct share){ .first = first, .count = numbers * (each + 1) / threads - first };
        if (pthread_create(&thread[each], NULL, work, &share[each]) != 0) {
            perror("mt: pthread_create");
            return 1;
        }
    }
    double begin = 0.0, end = 0.0;
    for (long each = 0; each < threads; each++) {
        pthread_join(thread[each], NULL);
        begin = each == 0 || share[each].begin < begin ? share[each].begin : begin;
        end = share[each].end > end ? share[each].end : end;
        length += share[each].length;
    }
    printf("REAL TIME=%.6f numtext %s length %ld\n", end - begin, NUMTEXT_VERSION, length);
    return 0;
}
