/*
 * Parsing of the config file: see config.h. An unknown name is only a warning, so that one file can
 * serve several versions of the program.
 */
#include "app/options/config.h"

#include "engine/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX_BYTES ((size_t)1 << 20) /* far more than a line for each option */
#define LINE_BYTES 4096 /* of the longest line, with a 0; enough for a name and a usual path */

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

struct line {
    const char *path;
    size_t number;
    config_warn_fn warn;
    void *ud;
};

/* Apply one line, which is changed. A blank line or a comment does nothing. */
static bool apply_line(struct options *o, const struct line *where, char *text,
                       struct bn_error *err)
{
    char sentence[300];
    char *name = trim(text);
    if (!*name || *name == '#')
        return true;
    char *equals = strchr(name, '=');
    if (!equals)
        return bn_fail(err, BN_EARG, "%s:%zu: expected name = value", where->path, where->number);
    *equals = 0;
    name = trim(name);
    if (!options_find(o, name)) {
        (void)snprintf(sentence, sizeof(sentence), "%.200s:%zu: there is no option '%.40s'",
                       where->path, where->number, name); /* cut if too long */
        where->warn(where->ud, sentence);
        return true;
    }
    return options_set(o, name, trim(equals + 1), OPTION_FROM_CONFIG, err) ||
           bn_fail_prefix(err, "%s:%zu", where->path, where->number);
}

bool config_apply(struct options *o, const char *path, struct bn_str text, config_warn_fn warn,
                  void *ud, struct bn_error *err)
{
    struct line where = {.path = path, .warn = warn, .ud = ud};
    for (size_t at = 0; at < text.n_bytes;) {
        char line[LINE_BYTES];
        const char *end = memchr(text.ptr + at, '\n', text.n_bytes - at);
        const size_t n = (end ? (size_t)(end - text.ptr) : text.n_bytes) - at;
        where.number++;
        if (n >= sizeof(line))
            return bn_fail(err, BN_EARG, "%s:%zu: a line of %zu bytes is too long", path,
                           where.number, n);
        memcpy(line, text.ptr + at, n);
        line[n] = 0;
        if (!apply_line(o, &where, line, err))
            return false;
        at += n + 1;
    }
    return true;
}

bool config_load(struct options *o, char path[PATH_BYTES], config_warn_fn warn, void *ud,
                 struct bn_error *err)
{
    const char *given = env_get(ENV_CONFIG);
    struct bn_error no_path; /* without a config directory there is no file; this is no error */
    char *bytes;
    size_t n_bytes;
    path[0] = 0;
    if (given)
        (void)snprintf(path, PATH_BYTES, "%s", given); /* cut only if the system refuses it, too */
    else if (!path_of(PATH_CONFIG, "config", path, &no_path) || access(path, F_OK) != 0)
        return true;
    if (!path_read_all(path, CONFIG_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    const bool ok = config_apply(o, path, (struct bn_str){bytes, n_bytes}, warn, ud, err);
    mem_free(bytes);
    return ok;
}
