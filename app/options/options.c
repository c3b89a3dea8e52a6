/*
 * Storage of option values: opening with defaults, precedence of sources, reading back.
 *
 * A value is parsed into a fresh struct first and stored only when whole, so a failed set changes
 * nothing.
 */
#include "app/options/options_impl.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

static bool same_name(const char *name, const char *said, size_t n_said_bytes)
{
    if (strlen(name) != n_said_bytes)
        return false;
    for (size_t i = 0; i < n_said_bytes; i++) {
        const char c = said[i] == '_' ? '-' : said[i];
        if (c != name[i])
            return false;
    }
    return true;
}

size_t options_index(const struct options *o, const char *name, size_t n_name_bytes)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (same_name(o->rows[i]->name, name, n_name_bytes))
            return i;
    return SIZE_MAX;
}

bool option_is_on_by_default(const struct option *row)
{
    return row->kind == OPTION_FLAG && row->fallback && strcmp(row->fallback, "on") == 0;
}

void option_value_finish(struct option_value *v)
{
    for (size_t i = 0; i < v->n_texts; i++)
        mem_free(v->texts[i]);
    mem_free(v->texts);
    mem_free(v->numbers);
    *v = (struct option_value){0};
}

bool options_store(struct options *o, size_t i, struct option_value *v, enum option_source source,
                   struct bn_error *err)
{
    struct option_value *to = &o->values[i];
    v->source = source;
    v->set = true;
    if (source < to->source) {
        option_value_finish(v);
        return true;
    }
    if (!o->rows[i]->repeats || source != to->source) {
        option_value_finish(to);
        *to = *v;
        *v = (struct option_value){0};
        return true;
    }
    if (!mem_grow(&to->texts, &to->texts_cap, to->n_texts + v->n_texts, sizeof(*to->texts))) {
        option_value_finish(v);
        return bn_fail(err, BN_ENOMEM, "out of memory for option %s", o->rows[i]->name);
    }
    for (size_t k = 0; k < v->n_texts; k++)
        to->texts[to->n_texts++] = v->texts[k];
    v->n_texts = 0;
    to->set = true;
    option_value_finish(v);
    return true;
}

static bool set_default(struct options *o, size_t i, struct bn_error *err)
{
    const struct option *row = o->rows[i];
    option_value_finish(&o->values[i]);
    if (!row->fallback)
        return true;
    struct option_value v = {0};
    return option_parse_value(row, row->name, row->fallback, &v, err) &&
           options_store(o, i, &v, OPTION_FROM_DEFAULT, err);
}

static void assert_row_is_new(const struct options *o, const struct option *row)
{
    for (size_t i = 0; i < o->n_rows; i++) {
        assert(strcmp(o->rows[i]->name, row->name) != 0);
        assert(!row->letter || o->rows[i]->letter != row->letter);
    }
    (void)o, (void)row; /* unused where assert is off */
}

bool options_open(const struct option_table *const *tables, size_t n_tables, struct options **out,
                  struct bn_error *err)
{
    size_t n = 0;
    for (size_t t = 0; t < n_tables; t++)
        n += tables[t]->n;
    struct options *o = mem_alloc(1, sizeof(*o));
    if (o) {
        o->rows = mem_alloc(n, sizeof(*o->rows));
        o->values = mem_alloc(n, sizeof(*o->values));
    }
    if (!o || !o->rows || !o->values) {
        options_close(o);
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu options", n);
    }
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            assert_row_is_new(o, &tables[t]->rows[i]);
            o->rows[o->n_rows++] = &tables[t]->rows[i];
        }
    for (size_t i = 0; i < o->n_rows; i++)
        if (!set_default(o, i, err)) {
            options_close(o);
            return false;
        }
    *out = o;
    return true;
}

void options_close(struct options *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_rows; i++)
        option_value_finish(&o->values[i]);
    mem_free(o->values);
    mem_free(o->rows);
    mem_free(o->words);
    mem_free(o);
}

static bool may_be_set_from(const struct option *row, enum option_source source)
{
    switch (source) {
    case OPTION_FROM_MODEL:
    case OPTION_FROM_CONFIG:
    case OPTION_FROM_ENV:
        return row->places & OPTION_IN_CONFIG;
    case OPTION_FROM_SET:
        return row->places & OPTION_BY_SET;
    default:
        return row->places == 0 || row->places & OPTION_ON_COMMAND;
    }
}

bool options_set(struct options *o, const char *name, const char *value, enum option_source source,
                 struct bn_error *err)
{
    const size_t i = options_index(o, name, strlen(name));
    if (i == SIZE_MAX)
        return bn_fail(err, BN_EARG, "unknown setting '%s'", name);
    if (!may_be_set_from(o->rows[i], source)) {
        const char *place = source == OPTION_FROM_SET ? "/set" : "the configuration";
        return bn_fail(err, BN_EARG, "'%s' cannot be set by %s", name, place);
    }
    struct option_value v = {0};
    return option_parse_value(o->rows[i], o->rows[i]->name, value, &v, err) &&
           options_store(o, i, &v, source, err);
}

bool options_reset(struct options *o, const char *name, struct bn_error *err)
{
    const size_t i = options_index(o, name, strlen(name));
    if (i == SIZE_MAX)
        return bn_fail(err, BN_EARG, "unknown setting '%s'", name);
    return set_default(o, i, err);
}

static const struct option_value *value_of(const struct options *o, const char *name,
                                           enum option_kind kind)
{
    const size_t i = options_index(o, name, strlen(name));
    assert(i != SIZE_MAX && o->rows[i]->kind == kind);
    (void)kind; /* unused where assert is off */
    return &o->values[i];
}

bool options_given(const struct options *o, const char *name)
{
    return options_source(o, name) != OPTION_FROM_DEFAULT;
}

enum option_source options_source(const struct options *o, const char *name)
{
    const size_t i = options_index(o, name, strlen(name));
    assert(i != SIZE_MAX);
    return o->values[i].source;
}

bool options_flag(const struct options *o, const char *name)
{
    return value_of(o, name, OPTION_FLAG)->number != 0;
}

int64_t options_int(const struct options *o, const char *name)
{
    return value_of(o, name, OPTION_INT)->number;
}

double options_real(const struct options *o, const char *name)
{
    return value_of(o, name, OPTION_REAL)->real;
}

const char *options_text(const struct options *o, const char *name)
{
    const size_t i = options_index(o, name, strlen(name));
    assert(i != SIZE_MAX);
    assert(o->rows[i]->kind == OPTION_TEXT || o->rows[i]->kind == OPTION_CHOICE);
    const struct option_value *v = &o->values[i];
    return v->n_texts ? v->texts[v->n_texts - 1] : NULL;
}

size_t options_choice(const struct options *o, const char *name)
{
    return (size_t)value_of(o, name, OPTION_CHOICE)->number;
}

const char *const *options_list(const struct options *o, const char *name, size_t *n_items)
{
    const struct option_value *v = value_of(o, name, OPTION_TEXT);
    *n_items = v->n_texts;
    return (const char *const *)v->texts;
}

const int64_t *options_ints(const struct options *o, const char *name, size_t *n_items)
{
    const struct option_value *v = value_of(o, name, OPTION_INTS);
    *n_items = v->n_numbers;
    return v->numbers;
}

const char *const *options_words(const struct options *o, size_t *n_words)
{
    *n_words = o->n_words;
    return o->words;
}

size_t options_count(const struct options *o)
{
    return o->n_rows;
}

const struct option *options_row(const struct options *o, size_t i)
{
    assert(i < o->n_rows);
    return o->rows[i];
}

const struct option *options_find(const struct options *o, const char *name)
{
    const size_t i = options_index(o, name, strlen(name));
    return i == SIZE_MAX ? NULL : o->rows[i];
}
