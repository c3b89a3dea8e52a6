/*
 * The command line: long and short options with their values, and the words between them.
 *
 * Values go through option_value.c; this file only finds the row and the text.
 */
#include "app/options/options_impl.h"
#include "engine/base/memory.h"

#include <string.h>

static bool on_command(const struct option *row)
{
    return row->places == 0 || row->places & OPTION_ON_COMMAND;
}

static size_t common_prefix(const char *a, const char *b, size_t n_b)
{
    size_t n = 0;
    while (n < n_b && a[n] && a[n] == b[n])
        n++;
    return n;
}

static bool fail_unknown(const struct options *o, const char *name, size_t n_bytes,
                         struct bn_error *err)
{
    const char *best = NULL;
    size_t most = 2; /* fewer than three letters in common is no help */
    for (size_t i = 0; i < o->n_rows; i++) {
        const size_t n = common_prefix(o->rows[i]->name, name, n_bytes);
        if (n > most && on_command(o->rows[i])) {
            most = n;
            best = o->rows[i]->name;
        }
    }
    const int shown = n_bytes > 80 ? 80 : (int)n_bytes;
    if (best)
        return bn_fail(err, BN_EARG, "unknown option --%.*s (did you mean --%s?)", shown, name,
                       best);
    return bn_fail(err, BN_EARG, "unknown option --%.*s (--help lists them)", shown, name);
}

static bool take(struct options *o, size_t i, const char *said, const char *value,
                 struct bn_error *err)
{
    struct option_value v = {0};
    return option_parse_value(o->rows[i], said, value, &v, err) &&
           options_store(o, i, &v, OPTION_FROM_COMMAND, err);
}

static bool need_value(const struct option *row, const char *said, struct bn_error *err)
{
    char wanted[200];
    option_describe(row, wanted, sizeof(wanted));
    return bn_fail(err, BN_EARG, "%s needs a value: %s", said, wanted);
}

/* --no-name for a flag that config may turn on, or that is on by itself. */
static size_t find_negated(const struct options *o, const char *name, size_t n_bytes)
{
    if (n_bytes <= 3 || memcmp(name, "no-", 3) != 0)
        return SIZE_MAX;
    const size_t i = options_index(o, name + 3, n_bytes - 3);
    if (i == SIZE_MAX || o->rows[i]->kind != OPTION_FLAG)
        return SIZE_MAX;
    const bool can = o->rows[i]->places & OPTION_IN_CONFIG || option_is_on_by_default(o->rows[i]);
    return can ? i : SIZE_MAX;
}

/* "--name", "--name=value", "--no-name"; *used_next when the value was argv's next word. */
static bool parse_long(struct options *o, const char *arg, const char *next, bool *used_next,
                       struct bn_error *err)
{
    const char *name = arg + 2;
    const size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    size_t i = options_index(o, name, n);
    const char *flag = "on";
    if (i == SIZE_MAX) {
        i = find_negated(o, name, n);
        flag = "off";
    }
    if (i == SIZE_MAX || !on_command(o->rows[i]))
        return fail_unknown(o, name, n, err);
    char said[48];
    const size_t n_said = n + 2 < sizeof(said) ? n + 2 : sizeof(said) - 1;
    memcpy(said, arg, n_said);
    said[n_said] = '\0';
    if (o->rows[i]->kind == OPTION_FLAG) {
        if (value)
            return bn_fail(err, BN_EARG, "%s takes no value, got '%s'", said, value);
        return take(o, i, said, flag, err);
    }
    if (!value) {
        if (!next)
            return need_value(o->rows[i], said, err);
        value = next;
        *used_next = true;
    }
    return take(o, i, said, value, err);
}

static size_t find_letter(const struct options *o, char letter)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->rows[i]->letter == letter && on_command(o->rows[i]))
            return i;
    return SIZE_MAX;
}

/* "-q", "-qv", "-n32", "-n 32". */
static bool parse_short(struct options *o, const char *arg, const char *next, bool *used_next,
                        struct bn_error *err)
{
    for (const char *at = arg + 1; *at; at++) {
        const size_t i = find_letter(o, *at);
        const char said[] = {'-', *at, '\0'};
        if (i == SIZE_MAX)
            return bn_fail(err, BN_EARG, "unknown option %s in '%s' (--help lists them)", said,
                           arg);
        if (o->rows[i]->kind == OPTION_FLAG) {
            if (!take(o, i, said, "on", err))
                return false;
            continue;
        }
        if (at[1])
            return take(o, i, said, at + 1, err);
        if (!next)
            return need_value(o->rows[i], said, err);
        *used_next = true;
        return take(o, i, said, next, err);
    }
    return true;
}

static bool add_word(struct options *o, const char *word, struct bn_error *err)
{
    if (!mem_grow(&o->words, &o->words_cap, o->n_words + 1, sizeof(*o->words)))
        return bn_fail(err, BN_ENOMEM, "out of memory for the command line");
    o->words[o->n_words++] = word;
    return true;
}

bool options_parse(struct options *o, int argc, char **argv, struct bn_error *err)
{
    bool options_end = false;
    for (int a = 1; a < argc; a++) {
        const char *arg = argv[a];
        const char *next = a + 1 < argc ? argv[a + 1] : NULL;
        bool used_next = false, ok;
        if (options_end || arg[0] != '-' || arg[1] == '\0') {
            ok = add_word(o, arg, err);
        } else if (arg[1] != '-') {
            ok = parse_short(o, arg, next, &used_next, err);
        } else if (arg[2] == '\0') {
            options_end = ok = true;
        } else {
            ok = parse_long(o, arg, next, &used_next, err);
        }
        if (!ok)
            return false;
        a += used_next;
    }
    return true;
}
