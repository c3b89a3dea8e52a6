/*
 * Parsing of the config file: see config.h. An unknown name is only a warning, so that one file can
 * serve several versions of the program.
 */
#include "app/options/config.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/strbuf.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX_BYTES ((size_t)1 << 20) /* far more than a line for each option */
#define LINE_BYTES 4096 /* of the longest line, with a 0; enough for a name and a usual path */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *trim(char *text)
{
    while (is_blank(*text))
        text++;
    for (size_t n = strlen(text); n > 0 && is_blank(text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

/* Remove the comment behind a value without quotes. False: there is none. Reads the byte before
 * `value`. */
static bool cut_comment(char *value)
{
    for (char *at = value; (at = strchr(at, '#')) != NULL; at++)
        if (is_blank(at[-1])) {
            *at = 0;
            (void)trim(value); /* `value` begins with no blank, so only its end changes */
            return true;
        }
    return false;
}

struct line {
    const char *path;
    size_t number;
    config_remark_fn remark;
    void *ud;
    struct bn_error last; /* the latest of n_errors; not shown yet, as config_apply may return it */
    struct strbuf warnings; /* of the lines after that error, one a line; shown after the error */
    size_t n_errors;
};

/* Show the latest error and the warnings of the lines behind it. */
static void show_last(struct line *where)
{
    where->remark(where->ud, CONFIG_ERROR, where->last.text);
    for (char *at = where->warnings.ptr; where->warnings.n_bytes > 0 && *at;) {
        char *end = at + strcspn(at, "\n");
        *end = 0;
        where->remark(where->ud, CONFIG_WARNING, at);
        at = end + 1;
    }
    strbuf_cut(&where->warnings, 0);
}

static void warn_line(struct line *where, const char *text)
{
    char sentence[440]; /* fits: path, number and text have at most 423 bytes */
    (void)snprintf(sentence, sizeof(sentence), "%.200s:%zu: %s", where->path, where->number, text);
    if (where->n_errors > 0)
        strbuf_addf(&where->warnings, "%s\n", sentence);
    else
        where->remark(where->ud, CONFIG_WARNING, sentence);
}

/* Warn that the line is ignored because of its name. */
static void warn_unknown(const struct options *o, struct line *where, const char *name)
{
    char text[200], near[OPTION_NEAR_BYTES];
    const bool is_near = options_near(o, bn_str_of(name), OPTION_IN_CONFIG, near);
    (void)snprintf(text, sizeof(text), "there is no option '%.40s'%s%s%s", name, /* cut if long */
                   is_near ? "; did you mean " : "", is_near ? near : "", is_near ? "?" : "");
    warn_line(where, text);
}

/* Apply one line, which is changed. A blank line or a comment does nothing. */
static bool apply_line(struct options *o, struct line *where, char *text, struct bn_error *err)
{
    char *name = trim(text);
    if (!*name || *name == '#')
        return true;
    char *equals = strchr(name, '=');
    if (!equals)
        return bn_fail(err, BN_EARG, "%s:%zu: expected name = value", where->path, where->number);
    *equals = 0;
    name = trim(name);
    const struct option *row = options_find(o, name);
    if (!row) {
        warn_unknown(o, where, name);
        return true;
    }
    char *value = trim(equals + 1);
    if (!option_unquote(&value, '#')) {
        if (cut_comment(value) && row->kind == OPTION_TEXT)
            warn_line(where, "'#' starts a comment; if it is part of the text, "
                             "put the text in double quotes");
        else if (*value == '"' && !strchr(value + 1, '"'))
            warn_line(where, "the double quote is not closed, so it is part of the value");
    }
    return options_set(o, name, value, OPTION_FROM_CONFIG, err) ||
           bn_fail_prefix(err, "%s:%zu", where->path, where->number);
}

static bool check_and_apply(struct options *o, struct line *where, struct bn_str text,
                            struct bn_error *err)
{
    char line[LINE_BYTES];
    if (text.n_bytes >= sizeof(line))
        return bn_fail(err, BN_EARG, "%s:%zu: a line of %zu bytes is too long", where->path,
                       where->number, text.n_bytes);
    if (memchr(text.ptr, 0, text.n_bytes))
        return bn_fail(err, BN_EARG, "%s:%zu: a NUL byte, so this is no UTF-8 text", where->path,
                       where->number);
    memcpy(line, text.ptr, text.n_bytes);
    line[text.n_bytes] = 0;
    return apply_line(o, where, line, err);
}

bool config_apply(struct options *o, const char *path, struct bn_str text, config_remark_fn remark,
                  void *ud, struct bn_error *err)
{
    struct line where = {.path = path, .remark = remark, .ud = ud};
    size_t at = bn_str_bom_bytes(text);
    struct bn_str line;
    while (bn_str_next_line(text, &at, &line)) {
        struct bn_error line_err;
        where.number++;
        if (!check_and_apply(o, &where, line, &line_err)) {
            if (where.n_errors++ > 0)
                show_last(&where);
            where.last = line_err;
            if (where.n_errors == CONFIG_MAX_ERRORS || line_err.code == BN_ENOMEM)
                break;
        }
    }
    if (where.warnings.n_bytes > 0) { /* they follow the error, so it cannot be the returned one */
        show_last(&where);
        (void)bn_fail(err, where.last.code, "%.200s has %zu wrong line%s", path, where.n_errors,
                      where.n_errors == 1 ? "" : "s");
    } else if (where.n_errors == CONFIG_MAX_ERRORS && at < text.n_bytes) {
        show_last(&where);
        (void)bn_fail(err, where.last.code, "%.200s: further lines were not read", path);
    } else if (where.n_errors > 0) {
        *err = where.last;
    }
    strbuf_finish(&where.warnings);
    return where.n_errors == 0;
}

bool config_load(struct options *o, config_remark_fn remark, void *ud, struct bn_error *err)
{
    const char *given = env_get(ENV_CONFIG);
    char path[PATH_BYTES];
    struct bn_error no_path; /* without a config directory there is no file; this is no error */
    char *bytes;
    size_t n_bytes;
    if (given)
        path_expand_home(given, path);
    else if (!path_of(PATH_CONFIG, "config", path, &no_path) || access(path, F_OK) != 0)
        return true;
    if (!path_read_all(path, CONFIG_MAX_BYTES, &bytes, &n_bytes, err))
        return given ? bn_fail_prefix(err, "BITNET_CHAT_CONFIG") : false;
    const bool ok = config_apply(o, path, (struct bn_str){bytes, n_bytes}, remark, ud, err);
    mem_free(bytes);
    return ok;
}
