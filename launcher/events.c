#include "events.h"

#include "clock.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Discard the signal, of which at most one is pending; the caller looks for all ended children in any case. */
static void drain_signals(int descriptor)
{
    struct signalfd_siginfo signal;
    ssize_t ignored = read(descriptor, &signal, sizeof signal);
    (void)ignored;
}

static int input_events(struct events *events, short happened)
{
    if (happened & POLLIN) {
        if (!input_read(&events->input, STDIN_FILENO))
            return EVENT_GONE;
        for (int taken = 0;;) {
            if (input_take_if(&events->input, "cancel"))
                taken |= EVENT_CANCEL;
            else if (input_take_number(&events->input, "signal=", &events->signal))
                taken |= EVENT_SIGNAL;
            else
                return taken;
        }
    }
    return happened ? EVENT_GONE : 0;
}

static bool input_has_room(const struct events *events)
{
    return events->input.end - events->input.start < LONGEST_LINE;
}

int events_wait(struct events *events, int64_t until_ns)
{
    struct pollfd waiting[] = {
        {.fd = events->children, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = input_has_room(events) ? POLLIN : 0},
        {.fd = events->guard, .events = POLLIN},
        {.fd = events->client, .events = POLLIN},
    };
    struct timespec left = {0}, *timeout = NULL;
    if (until_ns != NEVER) {
        int64_t ns = until_ns - clock_now_ns();
        if (ns > 0)
            left = (struct timespec){.tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND};
        timeout = &left;
    }
    int ready = ppoll(waiting, sizeof waiting / sizeof *waiting, timeout, NULL);
    events->woken_ns = clock_now_ns();
    if (ready <= 0)
        return 0;
    int happened = 0;
    if (waiting[0].revents) {
        drain_signals(events->children);
        happened |= EVENT_CHILD;
    }
    happened |= input_events(events, waiting[1].revents);
    if (waiting[2].revents || waiting[3].revents)
        happened |= EVENT_GONE;
    return happened;
}

bool events_wait_for_input(struct events *events)
{
    struct pollfd waiting[] = {
        {.fd = STDIN_FILENO, .events = POLLIN},
        {.fd = events->guard, .events = POLLIN},
        {.fd = events->client, .events = POLLIN},
    };
    while (poll(waiting, sizeof waiting / sizeof *waiting, -1) <= 0)
        continue;
    if (waiting[1].revents || waiting[2].revents)
        return false;
    return input_read(&events->input, STDIN_FILENO);
}
