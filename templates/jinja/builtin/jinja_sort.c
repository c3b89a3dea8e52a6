/*
 * A bottom-up merge sort. It sorts an array of indices, then permutes items and keys once.
 */
#include "templates/jinja/builtin/jinja_builtin.h"

struct sorting {
    struct jvm *vm;
    const struct jval *keys;
    bool reverse;
};

/* Merge the sorted runs [bound[0], bound[1]) and [bound[1], bound[2]) of `from` into `to`. An item
 * of the second run comes first only if it is less (with `reverse`: greater), so equal items keep
 * their order. */
static bool merge(const struct sorting *s, const size_t *from, size_t *to, const size_t bound[3])
{
    size_t i = bound[0], k = bound[1];
    for (size_t at = bound[0]; at < bound[2]; at++) {
        bool from_right = i == bound[1];
        if (i < bound[1] && k < bound[2]) {
            const struct jval left = s->keys[from[i]], right = s->keys[from[k]];
            if (!jvm_steps(s->vm, 1) || !jval_order(s->vm, OP_LT, s->reverse ? left : right,
                                                    s->reverse ? right : left, &from_right))
                return false;
        }
        to[at] = from_right ? from[k++] : from[i++];
    }
    return true;
}

bool sort_values(struct jvm *vm, struct jval *items, struct jval *keys, size_t n, bool reverse)
{
    const struct sorting s = {.vm = vm, .keys = keys, .reverse = reverse};
    size_t *from = jvm_alloc(vm, n, sizeof *from);
    size_t *to = jvm_alloc(vm, n, sizeof *to);
    struct jval *const moved = jvm_alloc(vm, n, sizeof *moved);
    if (!from || !to || !moved)
        return false;
    for (size_t i = 0; i < n; i++)
        from[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            const size_t bound[3] = {at, at + width < n ? at + width : n,
                                     at + 2 * width < n ? at + 2 * width : n};
            if (!merge(&s, from, to, bound))
                return false;
        }
        size_t *const swap = from;
        from = to;
        to = swap;
    }
    for (size_t i = 0; i < n; i++)
        moved[i] = items[from[i]];
    if (keys != items) {
        struct jval *const moved_keys = jvm_alloc(vm, n, sizeof *moved_keys);
        if (!moved_keys)
            return false;
        for (size_t i = 0; i < n; i++)
            moved_keys[i] = keys[from[i]];
        if (n) /* without items an array may be NULL */
            memcpy(keys, moved_keys, n * sizeof *keys);
    }
    if (n)
        memcpy(items, moved, n * sizeof *items);
    return true;
}
