/*
 * Global functions: range, dict, namespace, joiner, cycler, raise_exception, strftime_now. This
 * file also has the methods of cyclers and of the loop variable.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_print.h"

#include <locale.h>

#define MAX_RANGE 100000 /* the same as in jinja2's sandbox */

/* *out: number of items. False: more than MAX_RANGE. The difference of two int64_t can need 64 bits
 * without a sign. */
static bool range_length(int64_t start, int64_t stop, int64_t step, size_t *out)
{
    const bool empty = step > 0 ? start >= stop : start <= stop;
    const uint64_t span = empty      ? 0
                          : step > 0 ? (uint64_t)stop - (uint64_t)start
                                     : (uint64_t)start - (uint64_t)stop;
    const uint64_t width = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t n = span == 0 ? 0 : (span - 1) / width + 1;
    *out = (size_t)n;
    return n <= MAX_RANGE;
}

BUILTIN(call_range)
{
    const struct jargs *const args = c->all;
    int64_t part[3] = {0, 0, 1};
    if (args->n_kw || args->n_pos < 1 || args->n_pos > 3)
        return jvm_fail(vm, "range expected 1 to 3 arguments, got %zu", args->n_pos);
    /* A single argument is the stop, part[1]. */
    for (size_t i = 0; i < args->n_pos; i++)
        if (!arg_int(vm, args->pos[i], 0, &part[args->n_pos == 1 ? 1 : i]))
            return false;
    if (part[2] == 0)
        return jvm_fail(vm, "range() arg 3 must not be zero");
    struct jrange *const r = jvm_alloc(vm, 1, sizeof *r);
    if (!r)
        return false;
    *r = (struct jrange){.start = part[0], .stop = part[1], .step = part[2]};
    if (!range_length(part[0], part[1], part[2], &r->n))
        return jvm_fail(vm, "Range too big: more than %d items", MAX_RANGE);
    *out = (struct jval){.kind = J_RANGE, .u.range = r};
    return true;
}

/* The arguments of dict() and namespace(): pairs or a mapping, and keywords. */
static bool fill_dict(struct jvm *vm, const struct jargs *args, struct jdict *d)
{
    if (args->n_pos > 1)
        return jvm_fail(vm, "dict expected at most 1 argument, got %zu", args->n_pos);
    if (args->n_pos == 1 && args->pos[0].kind == J_UNDEF)
        return jundef_fail(vm, args->pos[0]); /* Python looks for its attribute keys, which fails */
    if (args->n_pos == 1 && args->pos[0].kind == J_DICT) {
        if (!jdict_update(vm, d, args->pos[0].u.dict))
            return false;
    } else if (args->n_pos == 1) {
        struct jval pairs;
        if (!jval_to_list(vm, args->pos[0], &pairs))
            return false;
        for (size_t i = 0; i < pairs.u.list->n; i++) {
            struct jval pair;
            if (!jval_to_list(vm, pairs.u.list->items[i], &pair))
                return false;
            if (pair.u.list->n != 2)
                return jvm_fail(vm, "a dict is made from pairs, this item has %zu", pair.u.list->n);
            if (!jdict_set(vm, d, pair.u.list->items[0], pair.u.list->items[1]))
                return false;
        }
    }
    for (size_t i = 0; i < args->n_kw; i++)
        if (!jdict_set(vm, d, jstring(args->kw[i].name), args->kw[i].v))
            return false;
    return true;
}

/* dict() and namespace(): the variant is the kind of the result. */
BUILTIN(call_dict)
{
    return jdict_new(vm, (enum jkind)c->variant, out) && fill_dict(vm, c->all, out->u.dict);
}

static bool new_cycle(struct jvm *vm, enum jkind kind, const struct jval *items, size_t n,
                      struct jval *out)
{
    struct jcycle *const cycle = jvm_alloc(vm, 1, sizeof *cycle);
    struct jval *const copy = jvm_alloc(vm, n, sizeof *copy);
    if (!cycle || !copy)
        return false;
    memcpy(copy, items, n * sizeof *copy);
    *cycle = (struct jcycle){.items = copy, .n = n};
    *out = (struct jval){.kind = kind, .u.cycle = cycle};
    return true;
}

BUILTIN(call_joiner)
{
    struct jval sep = c->arg[0];
    if (!arg_given(sep))
        sep = jstr_lit(vm, ", ");
    return sep.kind != J_MISSING && new_cycle(vm, J_JOINER, &sep, 1, out);
}

BUILTIN(call_cycler)
{
    if (c->all->n_kw || c->all->n_pos == 0)
        return jvm_fail(vm, "a cycler needs at least one item");
    return new_cycle(vm, J_CYCLER, c->all->pos, c->all->n_pos, out);
}

BUILTIN(call_raise)
{
    struct jval text;
    if (!jval_to_str(vm, c->arg[0], &text))
        return false;
    /* 380 bytes fit the buffer of jvm_fail. */
    return jvm_fail(vm, "%.*s", bn_str_shown(jstr_text(text.u.s), 380), text.u.s->ptr);
}

#define SPEC_BYTES 8 /* '%', four flags and digits, E or O, the conversion, and the terminator */

/* One conversion as Python prints it for a datetime without a time zone: C's strftime in the C
 * locale, except for %f (microseconds, 0 here), %z and %Z (empty). */
static bool put_conversion(struct jbuf *b, const char *spec, const struct tm *tm, locale_t c_locale)
{
    char text[128]; /* no conversion is longer: %c has fewer than 40 characters, a width is to 99 */
    if (strcmp(spec, "%f") == 0)
        return jbuf_text(b, "000000");
    if (strpbrk(spec, "zZ"))
        return true;
    const size_t n = strftime_l(text, sizeof text, spec, tm, c_locale);
    return jbuf_add(b, text, n, ORIGIN_TEMPLATE);
}

/* Bytes of the conversion at `p`, which is '%', flags and a width of at most two digits as in the
 * GNU C library ("%-d": no padding), perhaps E or O, and one ASCII character. 0: there is none, and
 * the '%' is text. A template is untrusted: a longer width would only make long output. */
static size_t conversion_bytes(const char *p, size_t n_left)
{
    size_t n = 1, n_digits = 0;
    while (n < n_left && n < SPEC_BYTES - 3 &&
           ((p[n] >= '1' && p[n] <= '9') || (p[n] && strchr("-_0^#", p[n])))) {
        n_digits += p[n] >= (n_digits > 0 ? '0' : '1') && p[n] <= '9'; /* at first, 0 is a flag */
        if (n_digits > 2)
            return 0;
        n++;
    }
    if (n < n_left && (p[n] == 'E' || p[n] == 'O'))
        n++;
    return n < n_left && !(p[n] & 0x80) ? n + 1 : 0;
}

static bool put_date(struct jbuf *b, const struct jstr *format, const struct tm *tm,
                     locale_t c_locale)
{
    for (size_t at = 0; at < format->n_bytes;) {
        const char *const p = format->ptr + at;
        const size_t n = *p == '%' ? conversion_bytes(p, format->n_bytes - at) : 0;
        char spec[SPEC_BYTES] = {0};
        memcpy(spec, p, n);
        if (n > 0 ? !put_conversion(b, spec, tm, c_locale) : !jbuf_slice(b, format, at, at + 1))
            return false;
        at += n > 0 ? n : 1;
    }
    return true;
}

BUILTIN(call_strftime)
{
    struct jval format;
    struct jbuf b = {.vm = vm};
    struct tm tm;
    if (!arg_string(vm, c->arg[0], &format) || !jvm_steps(vm, format.u.s->n_bytes / 4))
        return false;
    if (!localtime_r(&vm->now, &tm))
        return jvm_fail(vm, "the time is out of range");
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return bn_fail(vm->err, BN_ENOMEM, "out of memory in the chat template");
    const bool ok = put_date(&b, format.u.s, &tm, c_locale) && jbuf_done(&b, out);
    freelocale(c_locale);
    return ok;
}

BUILTIN(loop_cycle)
{
    const struct jargs *const args = c->all;
    if (args->n_kw || args->n_pos == 0)
        return jvm_fail(vm, "no items for cycling given");
    *out = args->pos[v.u.loop->index0 % args->n_pos];
    return true;
}

BUILTIN(loop_changed)
{
    struct jloop *const loop = v.u.loop;
    struct jval now;
    bool same = false;
    if (c->all->n_kw)
        return jvm_fail(vm, "changed() takes no keyword arguments");
    if (!jlist_of(vm, J_TUPLE, c->all->pos, c->all->n_pos, &now))
        return false;
    if (loop->changed.kind != J_MISSING && !jval_equal(vm, loop->changed, now, &same))
        return false;
    loop->changed = now;
    *out = jbool(!same);
    return true;
}

BUILTIN(cycler_next)
{
    struct jcycle *const cycle = v.u.cycle;
    *out = cycle->items[cycle->pos];
    cycle->pos = (cycle->pos + 1) % cycle->n;
    return true;
}

BUILTIN(cycler_reset)
{
    v.u.cycle->pos = 0;
    *out = jnone();
    return true;
}

const struct jbuiltin functions_table[] = {
    {"range", "*", call_range, 0},
    {"dict", "*", call_dict, J_DICT},
    {"namespace", "*", call_dict, J_NAMESPACE},
    {"joiner", "sep?", call_joiner, 0},
    {"cycler", "*", call_cycler, 0},
    {"raise_exception", "message", call_raise, 0},
    {"strftime_now", "format", call_strftime, 0},
    {0},
};

const struct jbuiltin methods_loop[] = {
    {"cycle", "*", loop_cycle, 0},
    {"changed", "*", loop_changed, 0},
    {0},
};

const struct jbuiltin methods_cycler[] = {
    {"next", "", cycler_next, 0},
    {"reset", "", cycler_reset, 0},
    {0},
};
