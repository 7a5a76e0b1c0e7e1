/* Does every thread see a new precision after it was written? THREADS threads read while one writes WRITES times.

   A reader reads the number of ended writes before its conversion, and that of begun writes after it: its digits must be
   those of a write between the two. First, all threads meet repeatedly at a barrier after a write, and each must see
   exactly that write. Prints the number of stale answers; exits with 1 if there is any. */
#include "numtext.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 16, MEETINGS = 200, MOST_THREADS = 64 };

static atomic_long begun, ended, stale, answers;
static atomic_int over;
static pthread_barrier_t meeting;

/* The precision of the nth write. */
static int digits_of(long write)
{
    return 1 + (int)(write % DIGITS);
}

static int digits_written(void)
{
    char text[NUMTEXT_ROOM];
    return numtext_real(1.0 / 3.0, text) - (int)strlen("0.");
}

static int is_of(int digits, long first, long last)
{
    for (long write = first; write <= last && write < first + DIGITS; write++) {
        if (digits_of(write) == digits) {
            return 1;
        }
    }
    return 0;
}

static void *read_on(void *nothing)
{
    for (long each = 0; each < MEETINGS; each++) {
        pthread_barrier_wait(&meeting);          /* the writer has written */
        stale += digits_written() != digits_of(ended);
        answers++;
        pthread_barrier_wait(&meeting);          /* it may write again */
    }
    while (!over) {
        long first = ended;
        int digits = digits_written();
        long last = begun;
        stale += !is_of(digits, first, last);
        answers++;
    }
    return nothing;
}

static void write_next(void)
{
    long write = ++begun;
    numtext_set_precision(digits_of(write));
    ended = write;
}

int main(int count, char **arguments)
{
    static pthread_t thread[MOST_THREADS];
    int threads = count == 3 ? atoi(arguments[1]) : 0;
    long writes = count == 3 ? atol(arguments[2]) : 0;
    if (threads < 1 || threads > MOST_THREADS || writes < MEETINGS) {
        fprintf(stderr, "sees THREADS WRITES\n");
        return 2;
    }
    write_next();
    pthread_barrier_init(&meeting, NULL, (unsigned)threads + 1);
    for (int each = 0; each < threads; each++) {
        if (pthread_create(&thread[each], NULL, read_on, NULL) != 0) {
            perror("sees: pthread_create");
            return 1;
        }
    }
    for (long each = 0; each < writes; each++) {
        write_next();
        if (each < MEETINGS) {
            pthread_barrier_wait(&meeting);
            pthread_barrier_wait(&meeting);
        }
    }
    over = 1;
    for (int each = 0; each < threads; each++) {
        pthread_join(thread[each], NULL);
    }
    printf("answers %ld stale %ld\n", (long)answers, (long)stale);
    return stale != 0;
}
