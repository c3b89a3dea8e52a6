/*
 * The tests after `is`.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"
#include "templates/jinja/value/jinja_unicode.h"

#define KIND(kind) (1 << (kind)) /* a bit for each enum jkind */

/* The variant is a set of KIND bits. */
BUILTIN(is_of_kind)
{
    *out = jbool(KIND(v.kind) & c->variant);
    return true;
}

/* A test that cannot fail. `condition` may use v, c and vm. */
#define PREDICATE(name, condition)                                                                 \
    BUILTIN(name)                                                                                  \
    {                                                                                              \
        *out = jbool(condition);                                                                   \
        return true;                                                                               \
    }

PREDICATE(is_true, v.kind == J_BOOL && v.u.b)
PREDICATE(is_false, v.kind == J_BOOL && !v.u.b)
PREDICATE(is_iterable, jval_is_iterable(v))
PREDICATE(is_escaped, v.kind == J_STR && v.u.s->is_markup)
PREDICATE(is_sameas, jval_same(v, c->arg[0]))
PREDICATE(is_filter, v.kind == J_STR && vm->ops->find_filter(jstr_text(v.u.s)))
PREDICATE(is_test, v.kind == J_STR && vm->ops->find_test(jstr_text(v.u.s)))

static bool has_remainder(struct jvm *vm, struct jval v, struct jval by, int64_t remainder,
                          struct jval *out)
{
    struct jval r;
    bool same;
    if (!jval_binary(vm, OP_MOD, v, by, &r) || !jval_equal(vm, r, jint(remainder), &same))
        return false;
    *out = jbool(same);
    return true;
}

/* The variant is the remainder of a division by 2. */
BUILTIN(is_parity)
{
    return has_remainder(vm, v, jint(2), c->variant, out);
}

BUILTIN(is_divisibleby)
{
    return has_remainder(vm, v, c->arg[0], 0, out);
}

BUILTIN(is_one_case)
{
    struct jval text;
    return jval_to_str(vm, v, &text) && string_is_one_case(vm, text.u.s, (unsigned)c->variant, out);
}

BUILTIN(is_compared)
{
    bool result;
    if (!jval_compare(vm, (enum jop)c->variant, v, c->arg[0], &result))
        return false;
    *out = jbool(result);
    return true;
}

/* jinja2's Undefined has __len__, __getitem__ and __call__, so it is a sequence and callable. The
 * loop variable has __call__ too, for recursive loops. */
const struct jbuiltin tests_table[] = {
    {"defined", "", is_of_kind, ~KIND(J_UNDEF)},
    {"undefined", "", is_of_kind, KIND(J_UNDEF)},
    {"none", "", is_of_kind, KIND(J_NONE)},
    {"boolean", "", is_of_kind, KIND(J_BOOL)},
    {"true", "", is_true, 0},
    {"false", "", is_false, 0},
    {"integer", "", is_of_kind, KIND(J_INT)},
    {"float", "", is_of_kind, KIND(J_FLOAT)},
    {"number", "", is_of_kind, KIND(J_BOOL) | KIND(J_INT) | KIND(J_FLOAT)},
    {"string", "", is_of_kind, KIND(J_STR)},
    {"mapping", "", is_of_kind, KIND(J_DICT)},
    {"sequence", "", is_of_kind,
     KIND(J_STR) | KIND(J_LIST) | KIND(J_TUPLE) | KIND(J_DICT) | KIND(J_RANGE) | KIND(J_UNDEF)},
    {"iterable", "", is_iterable, 0},
    {"callable", "", is_of_kind,
     KIND(J_MACRO) | KIND(J_FUNC) | KIND(J_METHOD) | KIND(J_JOINER) | KIND(J_UNDEF) | KIND(J_LOOP)},
    {"escaped", "", is_escaped, 0},
    {"sameas", "other", is_sameas, 0},
    {"filter", "", is_filter, 0},
    {"test", "", is_test, 0},
    {"odd", "", is_parity, 1},
    {"even", "", is_parity, 0},
    {"divisibleby", "num", is_divisibleby, 0},
    {"lower", "", is_one_case, UNI_LOWER},
    {"upper", "", is_one_case, UNI_UPPER},
    {"in", "seq", is_compared, OP_IN},
    {"==", "!b", is_compared, OP_EQ},
    {"eq", "!b", is_compared, OP_EQ},
    {"equalto", "!b", is_compared, OP_EQ},
    {"!=", "!b", is_compared, OP_NE},
    {"ne", "!b", is_compared, OP_NE},
    {"<", "!b", is_compared, OP_LT},
    {"lt", "!b", is_compared, OP_LT},
    {"lessthan", "!b", is_compared, OP_LT},
    {"<=", "!b", is_compared, OP_LE},
    {"le", "!b", is_compared, OP_LE},
    {">", "!b", is_compared, OP_GT},
    {"gt", "!b", is_compared, OP_GT},
    {"greaterthan", "!b", is_compared, OP_GT},
    {">=", "!b", is_compared, OP_GE},
    {"ge", "!b", is_compared, OP_GE},
    {0},
};
