/*
 * Decides the types of all tensors and checks the places of their bytes.
 *
 * Some type ids have several meanings, and only the room of a tensor, which is the distance to the
 * next tensor, tells them apart. So the room of each tensor is computed first. The types follow
 * from it, and the sizes from the types, with the check for truncation. The check for overlap is
 * last. Offsets are relative to the data section until gguf_place_tensors makes them absolute.
 */
#include "engine/gguf/gguf.h"

#include "engine/base/memory.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

#include <stdlib.h>

struct placing {
    struct gguf *g;
    size_t n_data;              /* bytes of the data section */
    struct gguf_tensor **order; /* (n_tensors) sorted by offset */
    /* per type: a tensor with the type's id whose room fits no other type of our table, or NULL */
    const struct gguf_tensor *proof[TENSOR_N_TYPES];
};

/* At one offset, tensors without elements come first. Otherwise the room of the other tensor would
 * be 0. */
static int compare_offset(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;
    const bool x_is_empty = x->n_cols == 0 || x->n_rows == 0;
    const bool y_is_empty = y->n_cols == 0 || y->n_rows == 0;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (int)y_is_empty - (int)x_is_empty;
}

/* Sort the tensors and set n_bytes of each to its room: the distance to the next tensor, for the
 * last one to the end of the file (0 if it begins past the end). */
static bool find_rooms(struct placing *p, struct bn_error *err)
{
    const struct gguf *g = p->g;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = p->order[i] = &g->tensors[i];
        if (t->offset % g->alignment != 0)
            return bn_fail(err, BN_EFORMAT, "tensor '%.*s': offset %zu is not a multiple of %zu",
                           STR_ARG(t->name), t->offset, g->alignment);
    }
    qsort(p->order, g->n_tensors, sizeof(p->order[0]), compare_offset);
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct gguf_tensor *t = p->order[i];
        const size_t end = i + 1 < g->n_tensors ? p->order[i + 1]->offset : p->n_data;
        t->n_bytes = end > t->offset ? end - t->offset : 0;
    }
    return true;
}

bool gguf_check_type_ids(const struct gguf_tensor *const tensors[TENSOR_N_TYPES],
                         struct bn_error *err)
{
    for (enum tensor_type a = TENSOR_F32; a < TENSOR_OTHER; a++)
        for (enum tensor_type b = a + 1; b < TENSOR_OTHER; b++)
            if (tensors[a] && tensors[b] && tensors[a]->type_id == tensors[b]->type_id)
                return bn_fail(
                    err, BN_EFORMAT, "type id %u has two meanings: '%.*s' is %s, '%.*s' is %s",
                    tensors[a]->type_id, STR_ARG(tensors[a]->name), tensor_geometries[a].name,
                    STR_ARG(tensors[b]->name), tensor_geometries[b].name);
    return true;
}

/* Find tensors whose room fits exactly one type of our table. An id that is proved to have two
 * types in one file is an error. */
static bool find_proofs(struct placing *p, struct bn_error *err)
{
    const struct gguf *g = p->g;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        const enum tensor_type type =
            tensor_type_match(t->type_id, t->n_cols, t->n_rows, t->n_bytes, g->alignment);
        if (type != TENSOR_OTHER && !p->proof[type])
            p->proof[type] = t;
    }
    return gguf_check_type_ids(p->proof, err);
}

/* If a tensor proves a type for an id, all tensors with this id have it: also those whose room fits
 * several types, or none, for example because the file is truncated. */
static enum tensor_type type_of(const struct placing *p, const struct gguf_tensor *t)
{
    for (enum tensor_type type = TENSOR_F32; type < TENSOR_OTHER; type++) {
        if (p->proof[type] && tensor_geometries[type].file_id == t->type_id)
            return type;
    }
    return tensor_type_decide(t->type_id, t->n_cols, t->n_rows, t->n_bytes, p->g->alignment);
}

/* Record unused bytes behind a tensor that needs `need` bytes. t->n_bytes is still its room. */
static void record_gap(const struct placing *p, const struct gguf_tensor *t, size_t need)
{
    struct gguf *g = p->g;
    if (t->n_bytes < need || t->n_bytes - need < g->alignment)
        return;
    const struct gguf_gap gap = {t->name, t->n_bytes - need};
    if (t->offset + t->n_bytes == p->n_data)
        g->end = gap;
    else if (g->n_gaps++ == 0)
        g->gap = gap;
}

/* Decide the types, and replace n_bytes by the size that follows from the type. No tensor may begin
 * past the end of the file. A tensor of our table must have a valid shape and also end inside the
 * file. They are checked in file order, so that the message names the first missing tensor. */
static bool find_sizes(const struct placing *p, struct bn_error *err)
{
    for (size_t i = 0; i < p->g->n_tensors; i++) {
        struct gguf_tensor *t = &p->g->tensors[i];
        size_t need = 0;
        t->type = type_of(p, t);
        if (t->type != TENSOR_OTHER && !tensor_bytes(t->type, t->n_cols, t->n_rows, &need))
            return bn_fail(err, BN_EFORMAT,
                           "tensor '%.*s': %zu x %zu is not a valid shape for type %s",
                           STR_ARG(t->name), t->n_cols, t->n_rows, tensor_geometries[t->type].name);
        if (t->offset > p->n_data || need > p->n_data - t->offset)
            return refusal_of_cut(
                err,
                "tensor '%.*s' needs %zu bytes at %zu of the data, which has %zu (file: %zu bytes)",
                STR_ARG(t->name), need, t->offset, p->n_data, p->g->n_bytes);
        if (t->type == TENSOR_OTHER)
            continue;
        record_gap(p, t, need);
        t->n_bytes = need;
    }
    return true;
}

static bool refuse_overlaps(const struct placing *p, struct bn_error *err)
{
    for (size_t i = 0; i + 1 < p->g->n_tensors; i++) {
        const struct gguf_tensor *t = p->order[i], *next = p->order[i + 1];
        if (t->n_bytes > next->offset - t->offset)
            return bn_fail(err, BN_EFORMAT, "tensor '%.*s' (%zu bytes at %zu) overlaps '%.*s'",
                           STR_ARG(t->name), t->n_bytes, p->g->data_start + t->offset,
                           STR_ARG(next->name));
    }
    return true;
}

bool gguf_place_tensors(struct gguf *g, struct bn_error *err)
{
    struct placing p = {.g = g, .n_data = g->n_bytes - g->data_start};
    p.order = mem_alloc(g->n_tensors, sizeof(p.order[0]));
    if (!p.order)
        return bn_fail(err, BN_ENOMEM, "no memory to order %zu tensors", g->n_tensors);
    const bool ok = find_rooms(&p, err) && find_proofs(&p, err) && find_sizes(&p, err) &&
                    refuse_overlaps(&p, err);
    for (size_t i = 0; ok && i < g->n_tensors; i++) {
        g->tensors[i].offset += g->data_start;
        g->tensors[i].bytes = g->bytes + g->tensors[i].offset;
    }
    mem_free(p.order);
    return ok;
}
