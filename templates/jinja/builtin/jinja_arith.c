/*
 * Arithmetic as in Python: / of integers and a negative exponent produce a float, // rounds down,
 * and the result of % has the sign of the divisor. + also joins strings, lists and tuples, *
 * repeats them, and % formats a string.
 */
#include "templates/jinja/builtin/jinja_builtin.h"

#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_markup.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_text.h"

#include <math.h>

static const char *const op_signs[] = {
    [OP_ADD] = "+",       [OP_SUB] = "-", [OP_MUL] = "*", [OP_DIV] = "/",
    [OP_FLOORDIV] = "//", [OP_MOD] = "%", [OP_POW] = "**"};

static bool overflow(struct jvm *vm)
{
    return jvm_fail(vm, "integer overflow: only 64 bits");
}

static bool int_power(struct jvm *vm, int64_t base, int64_t exponent, struct jval *out)
{
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0)
            return jvm_fail(vm, "0 cannot be raised to a negative power");
        *out = jfloat(pow((double)base, (double)exponent));
        return true;
    }
    while (exponent > 0) { /* the last square is not computed: it could overflow */
        if ((exponent & 1) && !int_mul(result, base, &result))
            return overflow(vm);
        exponent >>= 1;
        if (exponent > 0 && !int_mul(base, base, &base))
            return overflow(vm);
    }
    *out = jint(result);
    return true;
}

/* a / b, rounded once. A long division computes at least 55 bits, two more than a double has. The
 * last bit is set if there is a remainder, so that the conversion to double rounds as the exact
 * quotient would. */
static double int_quotient(int64_t a, int64_t b)
{
    const uint64_t n = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
    const uint64_t d = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t quotient = n / d, rest = n % d;
    int exponent = 0;
    if (n == 0)
        return b < 0 ? -0.0 : 0.0;
    for (; quotient < (uint64_t)1 << 54; exponent--) {
        const bool one = rest >= d - rest; /* 2 * rest >= d, without overflow */
        rest = one ? rest - (d - rest) : rest + rest;
        quotient = quotient << 1 | one;
    }
    const double value = ldexp((double)(quotient | (rest != 0)), exponent);
    return (a < 0) != (b < 0) ? -value : value;
}

static bool int_binary(struct jvm *vm, enum jop op, int64_t a, int64_t b, struct jval *out)
{
    int64_t r = 0;
    bool fits = true;
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD))
        return jvm_fail(vm, "division by zero");
    switch (op) {
    case OP_ADD:
        fits = int_add(a, b, &r);
        break;
    case OP_SUB:
        fits = int_sub(a, b, &r);
        break;
    case OP_MUL:
        fits = int_mul(a, b, &r);
        break;
    case OP_FLOORDIV:
        fits = int_floordiv(a, b, &r);
        break;
    case OP_MOD:
        r = int_mod(a, b);
        break;
    case OP_DIV:
        *out = jfloat(int_quotient(a, b));
        return true;
    default:
        return int_power(vm, a, b, out);
    }
    *out = jint(r);
    return fits || overflow(vm);
}

static bool float_power(struct jvm *vm, double a, double b, struct jval *out)
{
    if (a == 0 && b < 0 && isfinite(b))
        return jvm_fail(vm, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return jvm_fail(vm, "the power is a complex number");
    const double r = pow(a, b);
    if (isinf(r) && isfinite(a) && isfinite(b))
        return jvm_fail(vm, "the power is too large");
    *out = jfloat(r);
    return true;
}

/* a // b as CPython computes it: from the remainder, so that it fits the result of a % b. Except
 * for rounding errors `div` is a whole number, so the result is the whole number nearest to it. */
static double floor_quotient(double a, double b)
{
    double mod = fmod(a, b);
    double div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0))
        div -= 1.0;
    if (div == 0)
        return copysign(0.0, a / b);
    const double down = floor(div);
    return div - down > 0.5 ? down + 1.0 : down;
}

static bool float_binary(struct jvm *vm, enum jop op, double a, double b, struct jval *out)
{
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD))
        return jvm_fail(vm, "float division by zero");
    switch (op) {
    case OP_ADD:
        *out = jfloat(a + b);
        return true;
    case OP_SUB:
        *out = jfloat(a - b);
        return true;
    case OP_MUL:
        *out = jfloat(a * b);
        return true;
    case OP_DIV:
        *out = jfloat(a / b);
        return true;
    case OP_FLOORDIV:
        *out = jfloat(floor_quotient(a, b));
        return true;
    case OP_MOD:
        *out = jfloat(float_mod(a, b));
        return true;
    default:
        return float_power(vm, a, b, out);
    }
}

static bool join_lists(struct jvm *vm, struct jval a, struct jval b, struct jval *out)
{
    const size_t n = a.u.list->n + b.u.list->n;
    if (!jvm_steps(vm, n / 8) || !jlist_new(vm, a.kind, n, out))
        return false;
    for (size_t i = 0; i < n; i++)
        out->u.list->items[i] =
            i < a.u.list->n ? a.u.list->items[i] : b.u.list->items[i - a.u.list->n];
    out->u.list->n = n;
    return true;
}

/* The limits of steps and memory end a repetition that is too long. */
static bool repeat(struct jvm *vm, struct jval v, int64_t times, struct jval *out)
{
    const size_t n = times > 0 ? (size_t)times : 0;
    if (v.kind == J_STR) {
        struct jbuf b = {.vm = vm};
        for (size_t i = 0; i < n && v.u.s->n_bytes; i++)
            if (!jvm_steps(vm, 1) || !jbuf_str(&b, v.u.s))
                return false;
        if (!jbuf_done(&b, out))
            return false;
        out->u.s->is_markup = v.u.s->is_markup;
        return true;
    }
    if (!jlist_new(vm, v.kind, 0, out))
        return false;
    for (size_t i = 0; i < n && v.u.list->n; i++)
        for (size_t k = 0; k < v.u.list->n; k++)
            if (!jvm_steps(vm, 1) || !jlist_push(vm, *out, v.u.list->items[k]))
                return false;
    return true;
}

static bool join_strings(struct jvm *vm, struct jval a, struct jval b, struct jval *out)
{
    struct jbuf buf = {.vm = vm};
    const bool is_markup = a.u.s->is_markup || b.u.s->is_markup;
    if (is_markup && (!markup_escape(vm, a, &a) || !markup_escape(vm, b, &b)))
        return false;
    if (!jbuf_str(&buf, a.u.s) || !jbuf_str(&buf, b.u.s) || !jbuf_done(&buf, out))
        return false;
    out->u.s->is_markup = is_markup;
    return true;
}

static bool is_sequence(struct jval v)
{
    return v.kind == J_STR || v.kind == J_LIST || v.kind == J_TUPLE;
}

bool jval_binary(struct jvm *vm, enum jop op, struct jval a, struct jval b, struct jval *out)
{
    if (jval_is_integer(a) && jval_is_integer(b))
        return int_binary(vm, op, jval_int(a), jval_int(b), out);
    if (jval_is_number(a) && jval_is_number(b))
        return float_binary(vm, op, jval_double(a), jval_double(b), out);
    if (op == OP_MOD && a.kind == J_STR)
        return format_percent(vm, a, b, out);
    if (a.kind == J_UNDEF || b.kind == J_UNDEF)
        return jundef_fail(vm, a.kind == J_UNDEF ? a : b);
    if (op == OP_ADD && a.kind == J_STR && b.kind == J_STR)
        return join_strings(vm, a, b, out);
    if (op == OP_ADD && a.kind == b.kind && is_sequence(a))
        return join_lists(vm, a, b, out);
    if (op == OP_MUL && is_sequence(a) && jval_is_integer(b))
        return repeat(vm, a, jval_int(b), out);
    if (op == OP_MUL && is_sequence(b) && jval_is_integer(a))
        return repeat(vm, b, jval_int(a), out);
    return jvm_fail(vm, "unsupported operand types for %s: '%s' and '%s'", op_signs[op],
                    jkind_name(a), jkind_name(b));
}

bool jval_negate(struct jvm *vm, struct jval v, bool minus, struct jval *out)
{
    int64_t r = 0;
    if (v.kind == J_FLOAT) {
        *out = jfloat(minus ? -v.u.f : v.u.f);
        return true;
    }
    if (jval_is_integer(v)) {
        if (!int_sub(0, jval_int(v), &r) && minus) /* the result of +v is v itself, not r */
            return overflow(vm);
        *out = jint(minus ? r : jval_int(v));
        return true;
    }
    if (v.kind == J_UNDEF)
        return jundef_fail(vm, v);
    return jvm_fail(vm, "bad operand type for unary %c: '%s'", minus ? '-' : '+', jkind_name(v));
}
