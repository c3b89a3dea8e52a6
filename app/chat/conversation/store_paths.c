/*
 * Where saved chats are: their paths, the last conversations, and the list of /sessions. See
 * store.h.
 */
#include "app/chat/conversation/store_format.h"

#include "app/common/file/new_file.h"
#include "engine/base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".json"
/* A file name has at most 255 bytes, and ".json.journal.old" must fit behind the name. The message
 * of name_fault repeats this number. */
#define NAME_MAX_BYTES 200

/* Why a saved chat cannot have this name of n bytes; NULL if it can. A name with a newline would
 * take two lines in the list of /sessions. */
static const char *name_fault(const char *name, size_t n)
{
    size_t n_plain = 0;
    while (n_plain < n && (unsigned char)name[n_plain] >= ' ' && name[n_plain] != 127)
        n_plain++;
    return n == 0               ? "it is empty"
           : name[0] == '.'     ? "it begins with a dot"
           : n_plain < n        ? "it has a control character"
           : n > NAME_MAX_BYTES ? "it is longer than 200 bytes"
                                : NULL;
}

bool store_path(const char *name, char out[PATH_BYTES], struct bn_error *err)
{
    const size_t n = strlen(name);
    char below[300];
    if (strchr(name, '/') || path_ends_with(name, SUFFIX)) {
        if (n >= PATH_BYTES)
            return bn_fail(err, BN_EARG, "a path of %zu bytes is too long", n);
        memcpy(out, name, n + 1);
        return true;
    }
    const char *const fault = name_fault(name, n);
    if (fault)
        return bn_fail(err, BN_EARG, "'%.40s%s' is not a valid name for a saved chat: %s", name,
                       n > 40 ? "..." : "", fault);
    (void)snprintf(below, sizeof(below), "sessions/%s" SUFFIX, name); /* fits: NAME_MAX_BYTES */
    return path_of(PATH_DATA, below, out, err);
}

bool store_has_folder(const char *path, struct bn_error *err)
{
    char folder[PATH_BYTES], own[PATH_BYTES];
    struct stat st;
    struct bn_error ignored; /* without a data directory there is no folder of saved chats */
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return true; /* in the working directory or in the root directory */
    /* A path that is too long is cut here, and then names no directory. */
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    if (stat(folder, &st) == 0)
        return S_ISDIR(st.st_mode) || bn_fail(err, BN_EIO, "'%s' is not a directory", folder);
    if (path_of(PATH_DATA, "sessions", own, &ignored) && strcmp(folder, own) == 0)
        return true;
    return bn_fail(err, BN_EIO, "there is no directory '%s'", folder);
}

void store_clean(void)
{
    static const struct {
        enum path_dir dir;
        const char *name;
    } places[] = {{PATH_STATE, ""}, {PATH_DATA, "sessions"}, {PATH_CACHE, "kv"}};
    char path[PATH_BYTES];
    struct bn_error ignored; /* no such directory: nothing to remove */
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (path_of(places[i].dir, places[i].name, path, &ignored))
            new_file_clean(path);
}

const char *store_main_path(const struct store *s)
{
    return s->named.path[0] ? s->named.path : s->last.path;
}

void store_copy_path(const char *path, char out[PATH_BYTES])
{
    const size_t n = strlen(path);
    const bool is_json = path_ends_with(path, SUFFIX);
    for (int i = 2; i < 1000; i++) {
        (void)snprintf(out, PATH_BYTES, "%.*s-%d%s", (int)(is_json ? n - strlen(SUFFIX) : n), path,
                       i, is_json ? SUFFIX : ""); /* a path of nearly PATH_BYTES is cut */
        if (access(out, F_OK) != 0)
            return;
    }
}

bool store_last_path(int slot, char out[PATH_BYTES], struct bn_error *err)
{
    char name[32] = "last.json";
    if (slot > 1)
        (void)snprintf(name, sizeof(name), "last-%d.json", slot);
    return path_of(PATH_STATE, name, out, err);
}

/* Whether the file was changed after the time *newest. If so, *newest becomes its time. False if
 * the file is missing. */
static bool is_newer(const char *path, struct timespec *newest)
{
    struct stat st;
    if (stat(path, &st) != 0 || st.st_mtim.tv_sec < newest->tv_sec ||
        (st.st_mtim.tv_sec == newest->tv_sec && st.st_mtim.tv_nsec <= newest->tv_nsec))
        return false;
    *newest = st.st_mtim;
    return true;
}

bool store_newest_last(char out[PATH_BYTES])
{
    char path[PATH_BYTES], journal[STORE_JOURNAL_PATH_BYTES];
    struct timespec newest = {0};
    struct bn_error ignored; /* no state directory: no last conversation */
    bool found = false;
    for (int slot = 1; slot <= STORE_LAST_SLOTS && store_last_path(slot, path, &ignored); slot++) {
        store_journal_path(path, journal);
        /* The time of a chat is that of its file or its journal, whichever is newer. */
        const bool base_is_newer = is_newer(path, &newest);
        if (access(path, F_OK) != 0 || (!is_newer(journal, &newest) && !base_is_newer))
            continue;
        memcpy(out, path, PATH_BYTES);
        found = true;
    }
    return found;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

static void list_names(DIR *dir, struct strbuf *out, size_t *n_chats)
{
    char **names = NULL;
    size_t n = 0, cap = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (!path_ends_with(entry->d_name, SUFFIX) || out->failed)
            continue;
        const size_t n_name = strlen(entry->d_name) - strlen(SUFFIX);
        /* Only a path can name these files; for store_path a name that ends in .json is a path. */
        if (name_fault(entry->d_name, n_name) || path_ends_with(entry->d_name, SUFFIX SUFFIX))
            continue;
        if (!mem_grow(&names, &cap, n + 1, sizeof(*names)) ||
            !(names[n] = mem_alloc(n_name + 1, 1))) {
            out->failed = true; /* a list with a missing name would be wrong */
            continue;
        }
        memcpy(names[n++], entry->d_name, n_name); /* mem_alloc has set the final byte to 0 */
    }
    if (n > 0)
        qsort(names, n, sizeof(*names), compare_names);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s\n", names[i]);
        mem_free(names[i]);
    }
    mem_free(names);
    *n_chats = n;
}

bool store_list(struct strbuf *out, size_t *n_chats, struct bn_error *err)
{
    char path[PATH_BYTES];
    *n_chats = 0;
    if (!path_of(PATH_DATA, "sessions", path, err))
        return false;
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOENT ||
               bn_fail(err, BN_EIO, "cannot read '%s': %s", path, strerror(errno));
    list_names(dir, out, n_chats);
    (void)closedir(dir); /* opened for reading: nothing can be lost */
    return !out->failed || bn_fail(err, BN_ENOMEM, "out of memory for the list of saved chats");
}
