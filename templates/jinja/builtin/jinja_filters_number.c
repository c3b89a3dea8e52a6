/*
 * The filters int, float, round and abs, and two filters for any value: default and attr.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_markup.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_text.h"

#include <math.h>

#define HALF_OF_1E19 5000000000000000000 /* round_int rounds it to even, that is, to 0 */

/* int(f). *out is J_MISSING for NaN, where jinja2 returns the default. */
static bool int_of_float(struct jvm *vm, double f, struct jval *out)
{
    if (isinf(f))
        return jvm_fail(vm, "cannot convert float infinity to integer");
    if (isnan(f)) {
        *out = (struct jval){.kind = J_MISSING};
        return true;
    }
    if (!(f >= -0x1p63 && f < 0x1p63))
        return jvm_fail(vm, "integer overflow: only 64 bits");
    *out = jint((int64_t)f);
    return true;
}

/* int(v); *out is J_MISSING where jinja2 returns the default. */
static bool to_int(struct jvm *vm, struct jval v, int64_t base, struct jval *out)
{
    const bool is_base = base == 0 || (base >= 2 && base <= 36);
    int64_t i;
    double f;
    *out = (struct jval){.kind = J_MISSING};
    switch (v.kind) {
    case J_UNDEF:
        return jundef_fail(vm, v);
    case J_BOOL:
    case J_INT:
        *out = jint(jval_int(v));
        return true;
    case J_FLOAT:
        return int_of_float(vm, v.u.f, out);
    case J_STR:
        if (!jvm_steps(vm, v.u.s->n_bytes / 8))
            return false;
        switch (is_base ? number_parse_int(jstr_text(v.u.s), base, &i) : NUMBER_BAD) {
        case NUMBER_OK:
            *out = jint(i);
            return true;
        case NUMBER_TOO_LARGE:
            return jvm_fail(vm, "integer overflow: only 64 bits");
        default:
            break;
        }
        if (!number_parse_float(jstr_text(v.u.s), &f))
            return true;
        if (isinf(f)) /* jinja2 catches this error */
            return true;
        return int_of_float(vm, f, out);
    default:
        return true;
    }
}

BUILTIN(do_int)
{
    int64_t base;
    if (!arg_int(vm, c->arg[1], 10, &base) || !to_int(vm, v, base, out))
        return false;
    if (out->kind == J_MISSING)
        *out = arg_given(c->arg[0]) ? c->arg[0] : jint(0);
    return true;
}

BUILTIN(do_float)
{
    double f;
    if (v.kind == J_UNDEF)
        return jundef_fail(vm, v);
    if (v.kind == J_STR && !jvm_steps(vm, v.u.s->n_bytes / 8))
        return false;
    if (jval_is_number(v))
        *out = jfloat(jval_double(v));
    else if (v.kind == J_STR && number_parse_float(jstr_text(v.u.s), &f))
        *out = jfloat(f);
    else
        *out = arg_given(c->arg[0]) ? c->arg[0] : jfloat(0);
    return true;
}

/* round(v, n_digits) of an integer: half to even. */
static bool round_int(struct jvm *vm, int64_t v, int64_t n_digits, struct jval *out)
{
    int64_t unit = 1, r = v;
    if (n_digits >= 0) {
        *out = jint(v);
        return true;
    }
    if (n_digits < -18) { /* 10^19 and more: the result is 0, or too large for 64 bits */
        if (n_digits == -19 && (v > HALF_OF_1E19 || v < -HALF_OF_1E19))
            return jvm_fail(vm, "integer overflow: only 64 bits");
        *out = jint(0);
        return true;
    }
    for (; n_digits < 0; n_digits++)
        unit *= 10;
    const int64_t rest = v % unit, half = unit / 2, distance = rest < 0 ? -rest : rest;
    const bool odd = v / unit % 2 != 0;
    const bool away = distance > half || (distance == half && odd); /* from zero */
    if (away && !int_add(v - rest, v < 0 ? -unit : unit, &r))
        return jvm_fail(vm, "integer overflow: only 64 bits");
    *out = jint(away ? r : v - rest);
    return true;
}

/* ceil or floor of v * 10**precision, divided by 10**precision, as jinja2 computes it. */
static bool round_method(struct jvm *vm, struct jval v, int64_t precision, bool up,
                         struct jval *out)
{
    struct jval power, r;
    if (!jval_binary(vm, OP_POW, jint(10), jint(precision), &power) ||
        !jval_binary(vm, OP_MUL, v, power, &r))
        return false;
    if (r.kind == J_FLOAT) {
        if (isnan(r.u.f))
            return jvm_fail(vm, "cannot convert float NaN to integer");
        if (!int_of_float(vm, up ? ceil(r.u.f) : floor(r.u.f), &r))
            return false;
    }
    return jval_binary(vm, OP_DIV, r, power, out);
}

BUILTIN(do_round)
{
    int64_t precision;
    struct jval method = c->arg[1];
    if (!arg_int(vm, c->arg[0], 0, &precision))
        return false;
    const bool common =
        !arg_given(method) || (method.kind == J_STR && jstr_is(method.u.s, "common"));
    const bool up = method.kind == J_STR && jstr_is(method.u.s, "ceil");
    if (!common && !up && !(method.kind == J_STR && jstr_is(method.u.s, "floor")))
        return jvm_fail(vm, "method must be common, ceil or floor");
    if (v.kind == J_UNDEF)
        return jundef_fail(vm, v);
    if (!jval_is_number(v))
        return jvm_fail(vm, "type %s cannot be rounded", jkind_name(v));
    if (!common)
        return round_method(vm, v, precision, up, out);
    if (v.kind != J_FLOAT)
        return round_int(vm, jval_int(v), precision, out);
    *out = jfloat(number_round(v.u.f, precision));
    if (isinf(out->u.f) && !isinf(v.u.f))
        return jvm_fail(vm, "rounded value too large to represent");
    return true;
}

BUILTIN(do_abs)
{
    if (v.kind == J_FLOAT) {
        *out = jfloat(fabs(v.u.f));
        return true;
    }
    if (!jval_is_integer(v))
        return v.kind == J_UNDEF ? jundef_fail(vm, v)
                                 : jvm_fail(vm, "bad operand type for abs(): '%s'", jkind_name(v));
    if (jval_int(v) < 0)
        return jval_negate(vm, v, true, out);
    *out = jint(jval_int(v));
    return true;
}

BUILTIN(do_default)
{
    const bool missing = v.kind == J_UNDEF || (arg_flag(c->arg[1]) && !jval_truth(v));
    *out = v;
    if (missing)
        *out = arg_given(c->arg[0]) ? c->arg[0] : jstr_lit(vm, "");
    return out->kind != J_MISSING;
}

BUILTIN(do_attr)
{
    struct jval name;
    if (!arg_string(vm, c->arg[0], &name))
        return false;
    /* attr ignores items, so only methods of a dict are found: look for the name in an empty dict,
     * and then make v the object of the method. */
    if (v.kind == J_DICT) {
        struct jval empty;
        return jdict_new(vm, J_DICT, &empty) && vm->ops->get_attr(vm, empty, name, out) &&
               (out->kind != J_METHOD || (out->u.method->self = v, true));
    }
    return vm->ops->get_attr(vm, v, name, out);
}

const struct jbuiltin filters_number[] = {
    {"int", "default?,base?", do_int, 0},
    {"float", "default?", do_float, 0},
    {"round", "precision?,method?", do_round, 0},
    {"abs", "!", do_abs, 0},
    {"default", "default_value?,boolean?", do_default, 0},
    {"d", "default_value?,boolean?", do_default, 0},
    {"attr", "name", do_attr, 0},
    {0},
};
