#include "link.h"

#include "keep.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_LIST (64u << 20) /* response files, import lists */
#define LARGEST_ARCHIVE (1u << 30)
#define DEEPEST_RESPONSE 16
#define HEADER_BYTES 60 /* of an archive's member, */
#define SIZE_FIELD 48   /* with its size as decimal digits here */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Return the length of a name without a version such as -19 or -2.40. */
static size_t without_version(const char *name)
{
    size_t length = strlen(name), at = length;
    while (at > 0 && (isdigit((unsigned char)name[at - 1]) || name[at - 1] == '.'))
        at--;
    return at > 0 && at < length && name[at - 1] == '-' ? at - 1 : length;
}

static bool is_linker(const char *program, const struct words *arguments)
{
    static const char *const names[] = {"ld", "ld.bfd", "ld.gold", "gold", "ld.lld", "lld", "rust-lld",
                                        "ld.mold", "mold", "wild"};
    const char *name = last_part(program);
    if (strcmp(name, "link") == 0)
        return strstr(program, "/pkg/tool/") != NULL; /* Go */
    if (strcmp(name, "zig") == 0)
        return arguments->count > 1 && strcmp(arguments->items[1], "ld.lld") == 0;
    size_t length = without_version(name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t own = strlen(names[i]);
        if (length >= own && memcmp(name + length - own, names[i], own) == 0
            && (length == own || name[length - own - 1] == '-'))
            return true;
    }
    return false;
}

static char *target_of(pid_t process, const char *name)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    ssize_t length = readlink(path, target, sizeof target - 1);
    return length < 0 ? NULL : strndup(target, (size_t)length);
}

static bool read_words(struct words *words, pid_t process, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    return words_from_file(words, path);
}

void link_free(struct link *link)
{
    free(link->program);
    free(link->directory);
    words_free(&link->arguments);
    words_free(&link->environment);
    *link = (struct link){0};
}

bool link_begin(struct link *link, pid_t process)
{
    *link = (struct link){.program = target_of(process, "exe")};
    if (link->program && read_words(&link->arguments, process, "cmdline")
        && is_linker(link->program, &link->arguments) && read_words(&link->environment, process, "environ")
        && (link->directory = target_of(process, "cwd")))
        return true;
    link_free(link);
    return false;
}

static bool is_file(const char *directory, const char *path)
{
    struct stat status;
    char *full = path_in(directory, path);
    bool found = *path && stat(full, &status) == 0 && S_ISREG(status.st_mode);
    free(full);
    return found;
}

static void expand(struct words *words, const char *word, const char *directory, int depth);

/* Split a response file like GNU ld: words between white space, with quotes and backslashes. */
static void expand_list(struct words *words, char *at, const char *directory, int depth)
{
    while (*at) {
        while (isspace((unsigned char)*at))
            at++;
        if (!*at)
            break;
        char *begin = at, *end = at, quote = '\0';
        for (; *at && (quote || !isspace((unsigned char)*at)); at++) {
            if (*at == '\\' && at[1])
                *end++ = *++at;
            else if (quote ? *at == quote : *at == '"' || *at == '\'')
                quote = quote ? '\0' : *at;
            else
                *end++ = *at;
        }
        char more = *at;
        *end = '\0';
        expand(words, begin, directory, depth);
        at += more != '\0';
    }
}

static void expand(struct words *words, const char *word, const char *directory, int depth)
{
    size_t size;
    char *list = NULL;
    if (word[0] == '@' && depth < DEEPEST_RESPONSE && is_file(directory, word + 1)) {
        char *path = path_in(directory, word + 1);
        list = file_bytes(path, LARGEST_LIST, &size);
        free(path);
    }
    if (list)
        expand_list(words, list, directory, depth + 1);
    else
        words_add(words, word);
    free(list);
}

static const char *output_of(const struct words *words)
{
    for (size_t i = 1; i + 1 < words->count; i++)
        if (strcmp(words->items[i], "-o") == 0 || strcmp(words->items[i], "--output") == 0)
            return words->items[i + 1];
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->items[i];
        if (strncmp(word, "--output=", 9) == 0)
            return word + 9;
        if (strncmp(word, "-o", 2) == 0 && word[2])
            return word + 2;
    }
    return "a.out";
}

static bool has_word(const struct words *words, const char *word)
{
    for (size_t i = 1; i < words->count; i++)
        if (strcmp(words->items[i], word) == 0)
            return true;
    return false;
}

/* Programs that build systems link to learn what the compiler can do. */
static bool is_probe(const char *output)
{
    static const char *const parts[] = {"conftest", "cmTC_", "/CMakeFiles/CMakeTmp", "meson-private", "sanitycheck",
                                        "/CompilerIdC", "CMakeDetermineCompilerABI"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(output, parts[i]))
            return true;
    return false;
}

struct keeping {
    const struct link *link;
    const char *record, *output;
    int list;
    bool complete;
};

static void put(struct keeping *keeping, const char *key, const char *value)
{
    dprintf(keeping->list, "%s=%s", key, value);
    keeping->complete &= write(keeping->list, "", 1) == 1;
}

static void keep_input(struct keeping *keeping, const char *name);

/* Keep the members of a thin archive: their names are in its table, ended by "/\n", relative to the archive. */
static void keep_members(struct keeping *keeping, const char *name, const char *path)
{
    static const char magic[] = "!<thin>\n", table[] = "//              "; /* the name field of its header */
    size_t size;
    char *bytes = file_bytes(path, LARGEST_ARCHIVE, &size);
    if (!bytes || size < sizeof magic || memcmp(bytes, magic, sizeof magic - 1) != 0) {
        free(bytes);
        return;
    }
    char *header = memmem(bytes, size, table, sizeof table - 1);
    if (header && header + HEADER_BYTES < bytes + size) {
        char *at = header + HEADER_BYTES;
        size_t left = (size_t)(bytes + size - at), length = strtoul(header + SIZE_FIELD, NULL, 10);
        char *end = at + (length < left ? length : left);
        const char *slash = strrchr(name, '/');
        int directory = slash ? (int)(slash - name) + 1 : 0;
        for (char *stop; at < end && (stop = memmem(at, (size_t)(end - at), "/\n", 2)); at = stop + 2) {
            char *member;
            if (asprintf(&member, "%.*s%.*s", *at == '/' ? 0 : directory, name, (int)(stop - at), at) < 0)
                break;
            if (is_file(keeping->link->directory, member))
                keep_input(keeping, member);
            free(member);
        }
    }
    free(bytes);
}

/* Keep the packages that Go's list of imports names: lines "packagefile NAME=PATH". */
static void keep_imports(struct keeping *keeping, const char *path)
{
    size_t size;
    char *bytes = file_bytes(path, LARGEST_LIST, &size), *rest = bytes;
    for (char *line; rest && (line = strsep(&rest, "\n"));) {
        char *package = strncmp(line, "packagefile ", 12) == 0 ? strchr(line, '=') : NULL;
        if (package && is_file(keeping->link->directory, package + 1))
            keep_input(keeping, package + 1);
    }
    free(bytes);
}

static void keep_input(struct keeping *keeping, const char *name)
{
    char *path = path_in(keeping->link->directory, name), number[32];
    struct kept kept;
    struct stat own, output;
    bool is_output = stat(path, &own) == 0 && stat(keeping->output, &output) == 0 && own.st_ino == output.st_ino
                     && own.st_dev == output.st_dev;
    if (!is_output) {
        keeping->complete &= keep(keeping->record, path, false, &kept);
        put(keeping, "file", name);
        put(keeping, "as", kept.name);
        snprintf(number, sizeof number, "%lld", (long long)kept.size);
        put(keeping, "size", number);
        snprintf(number, sizeof number, "%lld", (long long)kept.date_ns);
        put(keeping, "date", number);
        if (ends_with(name, ".a"))
            keep_members(keeping, name, path);
        if (ends_with(name, "importcfg.link"))
            keep_imports(keeping, path);
    }
    free(path);
}

/* Keep what -lNAME can mean in the directories of -L. */
static void keep_library(struct keeping *keeping, const struct words *words, const char *name)
{
    static const char *const forms[] = {"%s/lib%s.so", "%s/lib%s.a"};
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->items[i];
        if (strncmp(word, "-L", 2) != 0)
            continue;
        const char *directory = word[2] ? word + 2 : i + 1 < words->count ? words->items[i + 1] : "";
        for (size_t form = 0; form < 2; form++) {
            char *path;
            int made = *name == ':' ? asprintf(&path, "%s/%s", directory, name + 1)
                                    : asprintf(&path, forms[form], directory, name);
            if (made < 0)
                continue;
            if ((*name != ':' || form == 0) && is_file(keeping->link->directory, path))
                keep_input(keeping, path);
            free(path);
        }
    }
}

static void keep_inputs(struct keeping *keeping, const struct words *words)
{
    for (size_t i = 1; i < words->count; i++) {
        const char *word = words->items[i], *value = strchr(word, '=');
        if (is_file(keeping->link->directory, word))
            keep_input(keeping, word);
        else if (value && is_file(keeping->link->directory, value + 1))
            keep_input(keeping, value + 1);
        else if (strncmp(word, "-T", 2) == 0 && is_file(keeping->link->directory, word + 2))
            keep_input(keeping, word + 2);
        else if (strncmp(word, "-l", 2) == 0)
            keep_library(keeping, words, word[2] || i + 1 == words->count ? word + 2 : words->items[i + 1]);
    }
}

static int new_list(const char *record, char *temporary, char *finished, size_t size)
{
    for (unsigned number = 1; number < 1000000; number++) {
        snprintf(temporary, size, "%s/%u.new", record, number);
        snprintf(finished, size, "%s/%u.link", record, number);
        if (access(finished, F_OK) == 0)
            continue;
        int list = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (list >= 0)
            return list;
    }
    return -1;
}

void link_keep(const struct link *link, const char *record)
{
    struct words words = {0};
    for (size_t i = 0; i < link->arguments.count; i++)
        expand(&words, link->arguments.items[i], link->directory, 0);
    char temporary[PATH_MAX], finished[PATH_MAX], *output = path_in(link->directory, output_of(&words));
    struct keeping keeping = {.link = link, .record = record, .output = output, .list = -1, .complete = true};
    struct kept kept;
    if (!has_word(&words, "-r") && !has_word(&words, "--relocatable") && !is_probe(output) && is_file("/", output)
        && (keeping.list = new_list(record, temporary, finished, sizeof finished)) >= 0) {
        put(&keeping, "exe", link->program);
        put(&keeping, "cwd", link->directory);
        put(&keeping, "out", output);
        for (size_t i = 0; i < words.count; i++)
            put(&keeping, "arg", words.items[i]);
        for (size_t i = 0; i < link->environment.count; i++)
            put(&keeping, "env", link->environment.items[i]);
        keep_inputs(&keeping, &words);
        keeping.complete &= keep(record, output, true, &kept);
        put(&keeping, "linked", kept.name);
        put(&keeping, "complete", keeping.complete ? "yes" : "no");
        close(keeping.list);
        rename(temporary, finished);
    }
    free(output);
    words_free(&words);
}
