/* Allocate in every way: alloc_work HOW [NUMBER...]. Nothing else of this program allocates. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static long rounds, size;
static void *volatile kept;
static pthread_barrier_t all;

static void *work(void *unused)
{
    (void)unused;
    for (long i = 0; i < rounds; i++) {
        void *block = malloc((size_t)size);
        if (!block)
            _exit(3);
        free(block);
    }
    return NULL;
}

/* Each thread has its block while all others have theirs. */
static void *hold(void *unused)
{
    void *block = malloc((size_t)size);
    (void)unused;
    pthread_barrier_wait(&all);
    return block;
}

static int threads(int number, void *(*body)(void *))
{
    pthread_t each[64];
    pthread_barrier_init(&all, NULL, (unsigned)number);
    for (int i = 0; i < number; i++)
        if (pthread_create(each + i, NULL, body, NULL))
            return 4;
    for (int i = 0; i < number; i++) {
        void *block;
        pthread_join(each[i], &block);
        free(block);
    }
    return 0;
}

static void *call(const char *function)
{
    void *block = NULL;
    if (!strcmp(function, "malloc"))
        return malloc(1000);
    if (!strcmp(function, "calloc"))
        return calloc(10, 100);
    if (!strcmp(function, "realloc"))
        return realloc(NULL, 1000);
    if (!strcmp(function, "reallocarray"))
        return reallocarray(NULL, 10, 100);
    if (!strcmp(function, "memalign"))
        return memalign(64, 1000);
    if (!strcmp(function, "aligned_alloc"))
        return aligned_alloc(64, 1000);
    if (!strcmp(function, "posix_memalign"))
        return posix_memalign(&block, 64, 1000) ? NULL : block;
    if (!strcmp(function, "valloc"))
        return valloc(1000);
    if (!strcmp(function, "pvalloc"))
        return pvalloc(1000);
    _exit(5);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "nothing";
    const char *what = count > 2 ? arguments[2] : "";
    if (!strcmp(how, "call")) {
        void *block = call(what);
        if (!block)
            return 2;
        memset(block, 1, 1000);
        free(block);
    } else if (!strcmp(how, "threads")) {
        rounds = atol(arguments[3]);
        size = atol(arguments[4]);
        int failed = threads(atoi(what), work);
        if (!strcmp(arguments[5], "kill"))
            kill(getpid(), SIGKILL);
        if (!strcmp(arguments[5], "_exit"))
            _exit(failed);
        return failed;
    } else if (!strcmp(how, "hold")) {
        size = atol(arguments[3]);
        return threads(atoi(what), hold);
    } else if (!strcmp(how, "peak")) {
        kept = malloc(10000000);
        kept = realloc(kept, 20000000);
        free(kept);
        kept = malloc(1000);
    } else if (!strcmp(how, "realloc")) {
        kept = realloc(malloc(100), 200);
        kept = realloc(kept, 50);
        if (realloc(kept, (size_t)-1 / 2) || reallocarray(kept, (size_t)-1, 2))
            return 2;
        kept = realloc(kept, 0);
    } else if (!strcmp(how, "fork")) {
        kept = malloc(1000000);
        if (fork() == 0) {
            kept = malloc(500000);
            _exit(0);
        }
        int status;
        wait(&status);
        return status;
    } else if (!strcmp(how, "map")) {
        mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else if (!strcmp(how, "exec")) {
        if (!strcmp(what, "execl"))
            execl(arguments[3], arguments[3], "call", "malloc", (char *)NULL);
        if (!strcmp(what, "execlp"))
            execlp(arguments[3], arguments[3], "call", "malloc", (char *)NULL);
        char *const environment[] = {NULL};
        if (!strcmp(what, "execle"))
            execle(arguments[3], arguments[3], "call", "malloc", (char *)NULL, environment);
        return execv("/nonexistent", arguments) == -1 ? 7 : 0;
    }
    return 0;
}
