/* Fuzz cgroup_find.c: any contents of /proc/self/cgroup and /proc/self/mountinfo give a short path or none.
 *
 * The two contents are separated by a byte 1. */
#include "../../launcher/cgroup_find.c"

#include <stdlib.h>

/* What the parsers do not need: nothing of the machine is touched. */
ssize_t file_read(const char *path, char *buffer, size_t size) { (void)path, (void)buffer, (void)size; return -1; }
ssize_t file_read_in(const char *directory, const char *name, char *buffer, size_t size)
{
    (void)directory, (void)name, (void)buffer, (void)size;
    return -1;
}
bool file_write_in(const char *directory, const char *name, const char *content)
{
    (void)directory, (void)name, (void)content;
    return false;
}
const struct leaf *cgroups_for_memory(const struct cgroups *cgroups) { (void)cgroups; return NULL; }
const struct leaf *cgroups_for_cpu(const struct cgroups *cgroups) { (void)cgroups; return NULL; }

static void find(const char *own, const char *mounts, const char *controller)
{
    char *directory = malloc(LEAF_PATH);
    if (!directory)
        abort();
    struct text text = text_in(directory, LEAF_PATH);
    const char *path = own_path(own, controller);
    if (path && find_directory(mounts, controller, path, &text))
        if (text.length >= LEAF_PATH || strlen(directory) != text.length || strchr(directory, '\n'))
            abort();
    free(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *own = malloc(size + 1);
    if (!own)
        return 0;
    if (size)
        memcpy(own, data, size);
    own[size] = '\0';
    char *separator = strchr(own, 1);
    char *mounts = separator ? strdup(separator + 1) : strdup("");
    if (separator)
        *separator = '\0';
    find(own, mounts, NULL);
    find(own, mounts, "memory");
    find(own, mounts, "cpuacct");
    free(mounts);
    free(own);
    return 0;
}
