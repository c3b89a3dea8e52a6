/*
 * The two copies of a recurrent state.
 */
#include "engine/cpu/cpu_recurrent.h"

#include "engine/base/size.h"

#include <string.h>

static size_t count_delta_nets(const struct hparams *hp)
{
    return hp->n_layers - hp->n_attn_layers;
}

bool recurrent_bytes(const struct hparams *hp, size_t *out)
{
    return size_mul3(out, count_delta_nets(hp), delta_state_floats(&hp->delta), sizeof(float));
}

bool recurrent_open(struct recurrent *r, const struct hparams *hp, struct bn_error *err)
{
    size_t n_bytes, n_both;
    *r = (struct recurrent){.lengths = {0, RECURRENT_NONE}};
    if (!recurrent_bytes(hp, &n_bytes) || !size_mul(&n_both, n_bytes, 2))
        return bn_fail(err, BN_EARG, "the recurrent state is too large");
    r->n_floats = n_bytes / sizeof(float);
    return n_bytes == 0 || mem_map_open(&r->map, n_both, MEM_PAGES_HUGE) ||
           bn_fail(err, BN_ENOMEM, "no memory for the %zu bytes of a recurrent state", n_both);
}

void recurrent_close(struct recurrent *r)
{
    mem_map_close(&r->map);
}

static float *copy_at(const struct recurrent *r, size_t copy)
{
    return (float *)r->map.ptr + copy * r->n_floats;
}

const float *recurrent_from(const struct recurrent *r, const struct delta_shape *d, size_t index)
{
    return copy_at(r, r->current) + index * delta_state_floats(d);
}

float *recurrent_to(const struct recurrent *r, const struct delta_shape *d, size_t index)
{
    return copy_at(r, 1 - r->current) + index * delta_state_floats(d);
}

void recurrent_begin(struct recurrent *r)
{
    r->lengths[1 - r->current] = RECURRENT_NONE;
}

void recurrent_commit(struct recurrent *r, size_t length)
{
    r->current = 1 - r->current;
    r->lengths[r->current] = length;
}

size_t recurrent_reachable(const struct recurrent *r, size_t n_keep)
{
    size_t best = 0;
    for (size_t copy = 0; copy < 2; copy++)
        if (r->lengths[copy] != RECURRENT_NONE && r->lengths[copy] <= n_keep)
            best = size_max(best, r->lengths[copy]);
    return best;
}

/* Mark the copy that is not current as undefined if it is the result of more than `length` ids. */
static void forget_longer(struct recurrent *r, size_t length)
{
    size_t *other = &r->lengths[1 - r->current];
    if (*other > length)
        *other = RECURRENT_NONE;
}

void recurrent_truncate(struct recurrent *r, size_t n_keep)
{
    if (r->n_floats == 0 || r->lengths[r->current] == n_keep)
        return;
    if (r->lengths[1 - r->current] == n_keep) {
        r->current = 1 - r->current;
        forget_longer(r, n_keep);
    } else {
        recurrent_reset(r); /* n_keep is 0 */
    }
}

void recurrent_set_length(struct recurrent *r, size_t length)
{
    r->lengths[r->current] = length;
    r->lengths[1 - r->current] = RECURRENT_NONE;
}

void recurrent_reset(struct recurrent *r)
{
    if (r->n_floats > 0)
        memset(recurrent_now(r), 0, r->n_floats * sizeof(float));
    recurrent_set_length(r, 0);
}

void recurrent_load(struct recurrent *r, const void *from, size_t length)
{
    if (r->n_floats == 0)
        return;
    /* Keep a copy of fewer ids, to which a later truncation can return. */
    if (r->lengths[r->current] < length)
        r->current = 1 - r->current;
    memcpy(recurrent_now(r), from, r->n_floats * sizeof(float));
    r->lengths[r->current] = length;
    forget_longer(r, length);
}

float *recurrent_now(const struct recurrent *r)
{
    return copy_at(r, r->current);
}
