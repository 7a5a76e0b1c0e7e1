#include "directory.h"

#include <dirent.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux_dirent64 of getdents64(2), which no header declares. */
struct entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static bool is_wanted(const struct entry *entry, bool directories_only)
{
    if (directories_only && entry->type != DT_DIR)
        return false;
    return strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0;
}

void directory_visit(int descriptor, bool directories_only, visit_name *visit, void *context)
{
    char buffer[2048] __attribute__((aligned(8)));
    lseek(descriptor, 0, SEEK_SET);
    for (;;) {
        long length = syscall(SYS_getdents64, descriptor, buffer, sizeof buffer);
        if (length <= 0)
            return;
        for (long at = 0; at < length;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
            if (is_wanted(entry, directories_only))
                visit(entry->name, context);
            at += entry->length;
        }
    }
}
