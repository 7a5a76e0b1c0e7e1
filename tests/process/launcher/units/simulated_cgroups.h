/* Directories as in a file system of cgroups. A directory beside a directory `template` gets the files of that by hard
 * links, and they do not keep it from being removed. So what is written to a cgroup remains in its template. With
 * IS_SIMULATED_ONLY, no other directory can be made.
 *
 * Linked with --wrap=mkdir,--wrap=rmdir. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);

#ifndef FAILS
#define FAILS(name) false
#endif
#ifndef IS_SIMULATED_ONLY
#define IS_SIMULATED_ONLY false
#endif

/* Call `use` for each file of the template beside `leaf`; return false if there is none. */
static bool visit_template(const char *leaf, int (*use)(const char *file, const char *in_leaf))
{
    char template[2048], file[4096], in_leaf[4096];
    const char *name = strrchr(leaf, '/');
    snprintf(template, sizeof template, "%.*s/template", name ? (int)(name - leaf) : 0, leaf);
    DIR *directory = opendir(template);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", template, entry->d_name);
        snprintf(in_leaf, sizeof in_leaf, "%s/%s", leaf, entry->d_name);
        if (use(file, in_leaf) != 0)
            abort();
    }
    return directory && closedir(directory) == 0;
}

static int count_file(const char *file, const char *in_leaf)
{
    (void)file, (void)in_leaf;
    return 0;
}

static int remove_file(const char *file, const char *in_leaf)
{
    (void)file;
    return unlink(in_leaf) == 0 || errno == ENOENT ? 0 : -1;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (FAILS("mkdir"))
        return -1;
    if (IS_SIMULATED_ONLY && !visit_template(path, count_file)) {
        errno = EROFS;
        return -1;
    }
    if (__real_mkdir(path, mode) != 0)
        return -1;
    visit_template(path, link);
    return 0;
}

int __wrap_rmdir(const char *path)
{
    visit_template(path, remove_file);
    return __real_rmdir(path);
}
