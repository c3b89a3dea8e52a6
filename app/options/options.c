/*
 * A set of options: the defaults, the command line, precedence of sources, reading of values.
 *
 * A value is parsed completely before it is stored, so a wrong value changes nothing.
 */
#include "app/options/options.h"

#include "app/options/option_value.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

struct entry {
    const struct option *row;
    const char *group;
    struct option_value value;
    /* The latest value from OPTION_FROM_MODEL or OPTION_FROM_FAMILY, as text: options_reset returns
     * to it. NULL: none. */
    char *model_default;
    enum option_source model_default_source; /* which of the two sources */
    size_t order; /* the larger, the later the value was set; 0: it is the default */
};

struct options {
    struct entry *entries; /* (n_entries) in the order of the tables */
    size_t n_entries;
    const char **words; /* (n_words) of the command line that are not options */
    size_t n_words, words_cap;
    size_t n_stored; /* values stored so far, for entry.order */
};

/* Whether `text` is the option name, with '_' allowed for '-'. */
static bool is_name(const char *name, const char *text, size_t n_text_bytes)
{
    if (strlen(name) != n_text_bytes)
        return false;
    for (size_t i = 0; i < n_text_bytes; i++)
        if (name[i] != (text[i] == '_' ? '-' : text[i]))
            return false;
    return true;
}

/* NULL: no such option. */
static struct entry *find(const struct options *o, const char *name, size_t n_name_bytes)
{
    for (size_t i = 0; i < o->n_entries; i++)
        if (is_name(o->entries[i].row->name, name, n_name_bytes))
            return &o->entries[i];
    return NULL;
}

/* Move `v` into the entry. `v` replaces the value. But if the row repeats, `v` is appended to a
 * value of the same source, and /set appends `v` to a value of any source, as its help says. A
 * value of a stronger source stays. `v` is no longer owned by the caller. */
static bool store(struct options *o, struct entry *e, struct option_value *v,
                  enum option_source source, struct bn_error *err)
{
    struct option_value *to = &e->value;
    v->source = source;
    v->set = true;
    if (source < to->source) {
        option_value_finish(v);
        return true;
    }
    e->order = ++o->n_stored;
    if (!e->row->repeats || (source != to->source && source != OPTION_FROM_SET)) {
        option_value_finish(to);
        *to = *v;
        return true;
    }
    if (!mem_grow(&to->texts, &to->texts_cap, to->n_texts + v->n_texts, sizeof(*to->texts))) {
        option_value_finish(v);
        return bn_fail(err, BN_ENOMEM, "out of memory for option %s", e->row->name);
    }
    for (size_t k = 0; k < v->n_texts; k++)
        to->texts[to->n_texts++] = v->texts[k];
    v->n_texts = 0; /* `to` owns them now */
    to->source = source;
    to->set = true;
    option_value_finish(v);
    return true;
}

static bool parse_and_store(struct options *o, struct entry *e, const char *label, const char *text,
                            enum option_source source, struct bn_error *err)
{
    struct option_value v = {0};
    if (option_value_parse(e->row, label, text, &v, err))
        return store(o, e, &v, source, err);
    option_value_finish(&v);
    return false;
}

/* For a flag: store the opposite of the value in `text`. */
static bool parse_and_store_opposite(struct options *o, struct entry *e, const char *label,
                                     const char *text, enum option_source source,
                                     struct bn_error *err)
{
    struct option_value v = {0}; /* of a flag: owns no memory */
    if (!option_value_parse(e->row, label, text, &v, err))
        return false;
    v.number = !v.number;
    return store(o, e, &v, source, err);
}

/* Set the default of the model, or else that of the row. Without one, the option is unset. A
 * failure changes nothing. */
static bool set_default(struct entry *e, struct bn_error *err)
{
    const char *text = e->model_default ? e->model_default : e->row->fallback;
    struct option_value v = {0};
    if (text && !option_value_parse(e->row, e->row->name, text, &v, err)) {
        option_value_finish(&v);
        return false;
    }
    v.set = text != NULL;
    v.source = e->model_default ? e->model_default_source : OPTION_FROM_DEFAULT;
    option_value_finish(&e->value);
    e->value = v;
    e->order = 0;
    return true;
}

/* Set e->model_default to `text`, which has been parsed without an error. Call this also if the
 * value of a stronger source stays, because options_reset drops that value. */
static bool set_model_default(struct entry *e, const char *text, enum option_source source,
                              struct bn_error *err)
{
    const size_t n = strlen(text) + 1;
    char *copy = mem_alloc(n, 1);
    if (!copy)
        return bn_fail(err, BN_ENOMEM, "out of memory for option %s", e->row->name);
    memcpy(copy, text, n);
    mem_free(e->model_default);
    e->model_default = copy;
    e->model_default_source = source;
    return true;
}

static void assert_row_is_new(const struct options *o, const struct option *row)
{
    for (size_t i = 0; i < o->n_entries; i++) {
        assert(strcmp(o->entries[i].row->name, row->name) != 0);
        assert(!row->letter || o->entries[i].row->letter != row->letter);
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
    if (o)
        o->entries = mem_alloc(n, sizeof(*o->entries));
    if (!o || !o->entries) {
        options_close(o);
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu options", n);
    }
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const struct option *row = &tables[t]->rows[i];
            assert_row_is_new(o, row);
            o->entries[o->n_entries++] = (struct entry){.row = row, .group = tables[t]->group};
        }
    for (size_t i = 0; i < o->n_entries; i++)
        if (!set_default(&o->entries[i], err)) {
            options_close(o);
            return false;
        }
    *out = o;
    return true;
}

bool options_copy(const struct options *from, struct options **out, struct bn_error *err)
{
    struct options *o = mem_alloc(1, sizeof(*o));
    if (o) {
        o->entries = mem_alloc(from->n_entries, sizeof(*o->entries));
        o->n_stored = from->n_stored;
    }
    bool ok = o && o->entries;
    for (size_t i = 0; ok && i < from->n_entries; i++) {
        const struct entry *e = &from->entries[i];
        struct entry *copy = &o->entries[o->n_entries++];
        *copy = (struct entry){.row = e->row, .group = e->group, .order = e->order};
        ok = option_value_copy(&e->value, &copy->value) &&
             (!e->model_default ||
              set_model_default(copy, e->model_default, e->model_default_source, err));
    }
    if (!ok) {
        options_close(o);
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu options", from->n_entries);
    }
    *out = o;
    return true;
}

void options_close(struct options *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_entries; i++) {
        option_value_finish(&o->entries[i].value);
        mem_free(o->entries[i].model_default);
    }
    mem_free(o->entries);
    mem_free(o->words);
    mem_free(o);
}

/* ---- the command line ---- */

/* The flag of `name` = "no-NAME", if it is on by default or a config file can set it. NULL: no such
 * flag. */
static struct entry *find_negated(const struct options *o, const char *name, size_t n_bytes)
{
    if (n_bytes <= 3 || !is_name("no-", name, 3))
        return NULL;
    struct entry *e = find(o, name + 3, n_bytes - 3);
    return e && option_can_be_negated(e->row) ? e : NULL;
}

static bool fail_unknown(const struct options *o, const char *name, size_t n_bytes,
                         struct bn_error *err)
{
    char near[OPTION_NEAR_BYTES];
    const int shown = n_bytes > 80 ? 80 : (int)n_bytes;
    if (options_near(o, (struct bn_str){name, n_bytes}, OPTION_ON_COMMAND, near))
        return bn_fail(err, BN_EARG, "unknown option --%.*s (did you mean %s?)", shown, name, near);
    return bn_fail(err, BN_EARG, "unknown option --%.*s (--help lists them)", shown, name);
}

static bool fail_no_value(const struct option *row, const char *label, struct bn_error *err)
{
    char expected[200];
    option_describe(row, expected, sizeof(expected));
    return bn_fail(err, BN_EARG, "%s needs a value: %s", label, expected);
}

/* The option of --NAME, or of --no-NAME; then *flag is "off", otherwise "on". NULL: no such
 * option. */
static struct entry *find_long(const struct options *o, const char *name, size_t n_bytes,
                               const char **flag)
{
    struct entry *e = find(o, name, n_bytes);
    *flag = e ? "on" : "off";
    if (!e)
        e = find_negated(o, name, n_bytes);
    return e && option_on_command_line(e->row) ? e : NULL;
}

/* "--name", "--name=value", "--no-name". *used_next is set if `next` is the value. */
static bool parse_long(struct options *o, const char *arg, const char *next, bool *used_next,
                       struct bn_error *err)
{
    const char *name = arg + 2, *flag;
    const size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    struct entry *e = find_long(o, name, n, &flag);
    if (!e)
        return fail_unknown(o, name, n, err);
    char label[48];
    (void)snprintf(label, sizeof(label), "--%.*s", (int)n,
                   name); /* fits: a name of a row, perhaps after "no-" */
    if (e->row->kind == OPTION_FLAG) {
        if (value)
            return bn_fail(err, BN_EARG, "%s takes no value, got '%s'", label, value);
        return parse_and_store(o, e, label, flag, OPTION_FROM_COMMAND, err);
    }
    if (!value) {
        if (!next)
            return fail_no_value(e->row, label, err);
        value = next;
        *used_next = true;
    }
    return parse_and_store(o, e, label, value, OPTION_FROM_COMMAND, err);
}

static struct entry *find_letter(const struct options *o, char letter)
{
    for (size_t i = 0; i < o->n_entries; i++)
        if (o->entries[i].row->letter == letter && option_on_command_line(o->entries[i].row))
            return &o->entries[i];
    return NULL;
}

/* "-q", "-qv", "-n32", "-n 32". *used_next is set if `next` is the value. The name of a long option
 * is refused: without this, "-seed" would be -s with the value "eed". */
static bool parse_short(struct options *o, const char *arg, const char *next, bool *used_next,
                        struct bn_error *err)
{
    const char *const name = arg + 1, *flag; /* `flag` is not needed */
    const size_t n = strcspn(name, "=");
    if (n > 1 && find_long(o, name, n, &flag))
        return bn_fail(err, BN_EARG, "unknown option -%.*s (did you mean --%.*s?)", (int)n, name,
                       (int)n, name);
    for (const char *at = arg + 1; *at; at++) {
        struct entry *e = find_letter(o, *at);
        const char label[] = {'-', *at, '\0'};
        if (!e)
            return bn_fail(err, BN_EARG, "unknown option %s in '%s' (--help lists them)", label,
                           arg);
        if (e->row->kind == OPTION_FLAG) {
            if (!parse_and_store(o, e, label, "on", OPTION_FROM_COMMAND, err))
                return false;
            continue;
        }
        if (!at[1] && !next)
            return fail_no_value(e->row, label, err);
        *used_next = !at[1];
        return parse_and_store(o, e, label, at[1] ? at + 1 : next, OPTION_FROM_COMMAND, err);
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

const char *const *options_words(const struct options *o, size_t *n_words)
{
    *n_words = o->n_words;
    return o->words;
}

/* ---- one value ---- */

static bool can_be_set_from(const struct option *row, enum option_source source)
{
    switch (source) {
    case OPTION_FROM_FAMILY:
    case OPTION_FROM_MODEL:
    case OPTION_FROM_CONFIG:
    case OPTION_FROM_ENV:
        return row->places & OPTION_IN_CONFIG;
    case OPTION_FROM_SET:
        return row->places & OPTION_BY_SET;
    default:
        return option_on_command_line(row);
    }
}

bool options_set(struct options *o, const char *name, const char *value, enum option_source source,
                 struct bn_error *err)
{
    struct entry *e = find(o, name, strlen(name));
    struct entry *negated = e ? NULL : find_negated(o, name, strlen(name));
    e = negated ? negated : e;
    if (!e)
        return bn_fail(err, BN_EARG, "unknown setting '%s'", name);
    if (!can_be_set_from(e->row, source)) {
        return bn_fail(err, BN_EARG, "'%s' cannot be set by %s", name,
                       source == OPTION_FROM_SET ? "/set" : "the configuration");
    }
    if (negated)
        return parse_and_store_opposite(o, e, name, value, source, err);
    const bool is_model_default = source == OPTION_FROM_FAMILY || source == OPTION_FROM_MODEL;
    return parse_and_store(o, e, e->row->name, value, source, err) &&
           (!is_model_default || set_model_default(e, value, source, err));
}

bool options_reset(struct options *o, const char *name, struct bn_error *err)
{
    struct entry *e = find(o, name, strlen(name));
    return e ? set_default(e, err) : bn_fail(err, BN_EARG, "unknown setting '%s'", name);
}

/* For names in the source code: a missing name is a programming error. */
static const struct entry *must_find(const struct options *o, const char *name)
{
    const struct entry *e = find(o, name, strlen(name));
    assert(e);
    return e;
}

static const struct option_value *value_of(const struct options *o, const char *name,
                                           enum option_kind kind)
{
    const struct entry *e = must_find(o, name);
    assert(e->row->kind == kind);
    (void)kind; /* unused where assert is off */
    return &e->value;
}

enum option_source options_source(const struct options *o, const char *name)
{
    return must_find(o, name)->value.source;
}

bool options_outranks(const struct options *o, const char *name, const char *other)
{
    const struct entry *a = must_find(o, name), *b = must_find(o, other);
    return a->value.source != b->value.source ? a->value.source > b->value.source
                                              : a->order > b->order;
}

const char *option_source_name(enum option_source source)
{
    static const char *const names[] = {
        [OPTION_FROM_DEFAULT] = "default",  [OPTION_FROM_FAMILY] = "family",
        [OPTION_FROM_MODEL] = "model file", [OPTION_FROM_CONFIG] = "config",
        [OPTION_FROM_ENV] = "environment",  [OPTION_FROM_COMMAND] = "flag",
        [OPTION_FROM_SET] = "set",
    };
    return names[source];
}

bool options_given(const struct options *o, const char *name)
{
    return options_source(o, name) != OPTION_FROM_DEFAULT;
}

bool options_given_on(const struct options *o, const char *name)
{
    const struct entry *e = must_find(o, name);
    return options_given(o, name) && (e->row->kind != OPTION_FLAG || e->value.number != 0);
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
    const struct entry *e = must_find(o, name);
    assert(e->row->kind == OPTION_TEXT || e->row->kind == OPTION_CHOICE);
    return e->value.n_texts ? e->value.texts[e->value.n_texts - 1] : NULL;
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

size_t options_count(const struct options *o)
{
    return o->n_entries;
}

const struct option *options_row(const struct options *o, size_t i)
{
    assert(i < o->n_entries);
    return o->entries[i].row;
}

const char *options_group(const struct options *o, size_t i)
{
    assert(i < o->n_entries);
    return o->entries[i].group;
}

const struct option *options_find(const struct options *o, const char *name)
{
    const struct entry *e = find(o, name, strlen(name));
    if (!e)
        e = find_negated(o, name, strlen(name));
    return e ? e->row : NULL;
}

void options_format(const struct options *o, const char *name, char *out, size_t out_bytes)
{
    const struct entry *e = must_find(o, name);
    option_value_format(e->row, &e->value, out, out_bytes);
}
