/*
 * Joins the parts of a split model into one parsed file.
 *
 * Every part is a complete GGUF file. The first one has the metadata; the others may have only the
 * keys that describe the split. The parts may come from different places, so each part is compared
 * with its place in the split and with the first part.
 */
#include "engine/gguf/gguf.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"

#include <string.h>

bool gguf_split_of(const struct gguf *g, size_t *number, size_t *count, struct bn_error *err)
{
    uint64_t n = 0, i = 0;
    *number = 0;
    *count = 1;
    if (!gguf_find_kv(g, "split.count"))
        return true;
    if (!gguf_get_u64(g, "split.count", &n) || n > GGUF_MAX_PARTS)
        return bn_fail(err, BN_EFORMAT, "split.count is not a number from 0 to %d", GGUF_MAX_PARTS);
    if (n <= 1)
        return true;
    if (!gguf_get_u64(g, "split.no", &i) || i >= n)
        return bn_fail(err, BN_EFORMAT, "split.no is not a number below split.count, which is %llu",
                       (unsigned long long)n);
    *number = (size_t)i;
    *count = (size_t)n;
    return true;
}

/* If this key is a string in both parts, the strings must be equal. */
static bool same_key(const struct gguf *first, const struct gguf *other, const char *key,
                     size_t number, struct bn_error *err)
{
    struct bn_str a, b;
    return !gguf_get_str(first, key, &a) || !gguf_get_str(other, key, &b) || bn_str_equal(a, b) ||
           bn_fail(err, BN_EFORMAT,
                   "part %zu belongs to another model: its %s is '%.*s', that of part 1 is '%.*s'",
                   number + 1, key, STR_ARG(b), STR_ARG(a));
}

static bool check_part(struct gguf *const *parts, size_t n_parts, size_t i, struct bn_error *err)
{
    size_t number, count;
    if (!gguf_split_of(parts[i], &number, &count, err))
        return bn_fail_prefix(err, "part %zu", i + 1);
    if (count != n_parts || number != i)
        return bn_fail(err, BN_EFORMAT,
                       "part %zu of %zu says that it is part %zu of %zu: the parts do not belong "
                       "together",
                       i + 1, n_parts, number + 1, count);
    return same_key(parts[0], parts[i], "general.architecture", i, err) &&
           same_key(parts[0], parts[i], "general.name", i, err);
}

/* No type id may have two meanings in our table, because one converter writes all parts of a
 * model. */
static bool check_types(const struct gguf *g, struct bn_error *err)
{
    const struct gguf_tensor *first[TENSOR_N_TYPES] = {0};
    for (size_t i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].type < TENSOR_OTHER && !first[g->tensors[i].type])
            first[g->tensors[i].type] = &g->tensors[i];
    return gguf_check_type_ids(first, err);
}

static bool check_parts(struct gguf *const *parts, size_t n_parts, size_t *n_tensors,
                        struct bn_error *err)
{
    uint64_t n_claimed;
    *n_tensors = 0;
    for (size_t i = 0; i < n_parts; i++) {
        /* The sum cannot overflow: the info of each tensor has its own bytes in memory. */
        if (!check_part(parts, n_parts, i, err) ||
            !size_add(n_tensors, *n_tensors, parts[i]->n_tensors))
            return false;
    }
    if (!gguf_get_u64(parts[0], "split.tensors.count", &n_claimed))
        return bn_fail(err, BN_EFORMAT, "part 1 of %zu has no split.tensors.count", n_parts);
    return n_claimed == *n_tensors ||
           bn_fail(err, BN_EFORMAT,
                   "the %zu parts have %zu tensors, but split.tensors.count of part 1 is %llu",
                   n_parts, *n_tensors, (unsigned long long)n_claimed);
}

bool gguf_join(struct gguf *const *parts, size_t n_parts, struct bn_error *err)
{
    struct gguf *g = parts[0];
    size_t n_tensors;
    if (!check_parts(parts, n_parts, &n_tensors, err))
        return false;
    struct gguf_tensor *all = mem_alloc(n_tensors, sizeof *all);
    if (!all)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu tensors", n_tensors);
    size_t n = 0;
    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i]->n_tensors > 0)
            memcpy(all + n, parts[i]->tensors, parts[i]->n_tensors * sizeof *all);
        n += parts[i]->n_tensors;
        if (i == 0)
            continue;
        g->n_bytes += parts[i]->n_bytes; /* no overflow: all parts are mapped at once */
        if (g->n_gaps == 0)
            g->gap = parts[i]->gap;
        g->n_gaps += parts[i]->n_gaps;
        if (g->end.n_bytes == 0)
            g->end = parts[i]->end;
    }
    mem_free(g->tensors);
    mem_free(g->kv_index);
    mem_free(g->tensor_index);
    g->kv_index = g->tensor_index = NULL;
    g->tensors = all;
    g->n_tensors = n_tensors;
    return check_types(g, err) && gguf_build_index(g, err);
}
