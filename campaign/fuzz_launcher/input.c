/* Fuzz input.c: bytes that arrive in pieces give the same lines as the whole.
 *
 * Each piece begins with its length, in one byte. */
#include "input.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct input input;
    char *sent = malloc(size + 1);
    size_t sent_size = 0, position = 0, length;
    int pipes[2];
    char *line;
    if (!sent || pipe(pipes) != 0)
        abort();
    input.start = input.end = 0;
    input.skipping = false;
    for (size_t at = 0; at < size;) {
        size_t piece = data[at++];
        piece = piece > size - at ? size - at : piece;
        if (!piece)
            continue;
        memcpy(sent + sent_size, data + at, piece);
        if (write(pipes[1], data + at, piece) != (ssize_t)piece || !input_read(&input, pipes[0]))
            abort();
        sent_size += piece;
        at += piece;
        for (;;) {
            if (input_take_if(&input, "cancel")) {
                if (memcmp(sent + position, "cancel\n", 7) != 0)
                    abort();
                position += 7;
                continue;
            }
            if (input_take(&input, &line, &length) != LINE_TAKEN)
                break;
            if (memcmp(sent + position, line, length) != 0 || sent[position + length] != '\n')
                abort();
            position += length + 1;
        }
        input_trim(&input);
    }
    if (memchr(sent + position, '\n', sent_size - position))
        abort();
    close(pipes[0]);
    close(pipes[1]);
    free(sent);
    return 0;
}
