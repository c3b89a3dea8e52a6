/*
 * The tests after `is`.
 */
#include "templates/jinja/builtin/jinja_arith.h"
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"
#include "templates/jinja/value/jinja_unicode.h"

#define TEST(name)                                                                                 \
    static bool name(struct jvm *vm, struct jval v, const struct jcall *c, struct jval *out)

/* A test that only looks at the value. */
#define LOOK(name, condition)                                                                      \
    TEST(name)                                                                                     \
    {                                                                                              \
        (void)vm;                                                                                  \
        (void)c;                                                                                   \
        *out = jbool(condition);                                                                   \
        return true;                                                                               \
    }

LOOK(is_defined, v.kind != J_UNDEF)
LOOK(is_undefined, v.kind == J_UNDEF)
LOOK(is_none, v.kind == J_NONE)
LOOK(is_boolean, v.kind == J_BOOL)
LOOK(is_true, v.kind == J_BOOL && v.u.b)
LOOK(is_false, v.kind == J_BOOL && !v.u.b)
LOOK(is_integer, v.kind == J_INT)
LOOK(is_float, v.kind == J_FLOAT)
LOOK(is_number, jval_is_number(v))
LOOK(is_string, v.kind == J_STR)
LOOK(is_mapping, v.kind == J_DICT)
LOOK(is_iterable, jval_is_iterable(v))
LOOK(is_escaped, v.kind == J_STR && v.u.s->is_markup)
LOOK(is_sameas, jval_same(v, c->arg[0]))
LOOK(is_callable, v.kind == J_MACRO || v.kind == J_FUNC || v.kind == J_METHOD ||
                      v.kind == J_JOINER || v.kind == J_UNDEF)
LOOK(is_filter, v.kind == J_STR && builtin_filter(jstr_text(v.u.s)))
LOOK(is_test, v.kind == J_STR && builtin_test(jstr_text(v.u.s)))
/* What has a length and can be indexed; undefined raises for the second and is none. */
LOOK(is_sequence, v.kind == J_STR || v.kind == J_LIST || v.kind == J_TUPLE || v.kind == J_DICT ||
                      v.kind == J_RANGE || v.kind == J_UNDEF)

static bool remainder_is(struct jvm *vm, struct jval v, struct jval by, int64_t want,
                         struct jval *out)
{
    struct jval r;
    bool same;
    if (!jval_binary(vm, OP_MOD, v, by, &r) || !jval_equal(vm, r, jint(want), &same))
        return false;
    *out = jbool(same);
    return true;
}

TEST(is_odd)
{
    (void)c; /* no arguments */
    return remainder_is(vm, v, jint(2), 1, out);
}

TEST(is_even)
{
    (void)c; /* no arguments */
    return remainder_is(vm, v, jint(2), 0, out);
}

TEST(is_divisibleby)
{
    return remainder_is(vm, v, c->arg[0], 0, out);
}

/* Python's islower and isupper: some letter with case, and none of another. */
static bool has_only_case(struct jvm *vm, struct jval v, unsigned want, struct jval *out)
{
    struct jval text;
    bool some = false, other = false;
    if (!jval_to_str(vm, v, &text) || !jvm_steps(vm, text.u.s->n_bytes / 8))
        return false;
    for (size_t at = 0; at < text.u.s->n_bytes;) {
        uint32_t cp;
        at += text_next(jstr_text(text.u.s), at, &cp);
        some = some || uni_is(cp, want);
        other = other || uni_is(cp, UNI_CASED & ~want);
    }
    *out = jbool(some && !other);
    return true;
}

TEST(is_lower)
{
    (void)c; /* no arguments */
    return has_only_case(vm, v, UNI_LOWER, out);
}

TEST(is_upper)
{
    (void)c; /* no arguments */
    return has_only_case(vm, v, UNI_UPPER, out);
}

static bool compared(struct jvm *vm, enum jop op, struct jval a, struct jval b, struct jval *out)
{
    bool result;
    if (!jval_compare(vm, op, a, b, &result))
        return false;
    *out = jbool(result);
    return true;
}

#define COMPARE(name, op)                                                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        return compared(vm, op, v, c->arg[0], out);                                                \
    }

COMPARE(is_eq, OP_EQ)
COMPARE(is_ne, OP_NE)
COMPARE(is_lt, OP_LT)
COMPARE(is_le, OP_LE)
COMPARE(is_gt, OP_GT)
COMPARE(is_ge, OP_GE)
COMPARE(is_in, OP_IN)

const struct jbuiltin tests_table[] = {
    {"defined", "", is_defined},
    {"undefined", "", is_undefined},
    {"none", "", is_none},
    {"boolean", "", is_boolean},
    {"true", "", is_true},
    {"false", "", is_false},
    {"integer", "", is_integer},
    {"float", "", is_float},
    {"number", "", is_number},
    {"string", "", is_string},
    {"mapping", "", is_mapping},
    {"sequence", "", is_sequence},
    {"iterable", "", is_iterable},
    {"callable", "", is_callable},
    {"escaped", "", is_escaped},
    {"sameas", "other", is_sameas},
    {"filter", "", is_filter},
    {"test", "", is_test},
    {"odd", "", is_odd},
    {"even", "", is_even},
    {"divisibleby", "num", is_divisibleby},
    {"lower", "", is_lower},
    {"upper", "", is_upper},
    {"in", "seq", is_in},
    {"==", "!b", is_eq},
    {"eq", "!b", is_eq},
    {"equalto", "!b", is_eq},
    {"!=", "!b", is_ne},
    {"ne", "!b", is_ne},
    {"<", "!b", is_lt},
    {"lt", "!b", is_lt},
    {"lessthan", "!b", is_lt},
    {"<=", "!b", is_le},
    {"le", "!b", is_le},
    {">", "!b", is_gt},
    {"gt", "!b", is_gt},
    {"greaterthan", "!b", is_gt},
    {">=", "!b", is_ge},
    {"ge", "!b", is_ge},
    {NULL, NULL, NULL},
};
