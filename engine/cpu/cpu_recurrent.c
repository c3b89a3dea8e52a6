/*
 * The two copies of a recurrent state.
 */
#include "engine/cpu/cpu_recurrent.h"

#include "engine/base/size.h"

#include <string.h>

bool recurrent_open(struct recurrent *r, const struct hparams *hp, struct bn_error *err)
{
    size_t n_bytes, n_both;
    *r = (struct recurrent){.copies = {.lengths = {0, COPY_NONE}}};
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
    return copy_at(r, r->copies.current) + index * delta_state_floats(d);
}

float *recurrent_to(const struct recurrent *r, const struct delta_shape *d, size_t index)
{
    return copy_at(r, 1 - r->copies.current) + index * delta_state_floats(d);
}

void recurrent_truncate(struct recurrent *r, size_t n_keep)
{
    if (r->n_floats > 0 && !copies_truncate(&r->copies, n_keep))
        recurrent_reset(r);
}

void recurrent_reset(struct recurrent *r)
{
    if (r->n_floats > 0)
        memset(recurrent_current(r), 0, r->n_floats * sizeof(float));
    copies_set_length(&r->copies, 0);
}

void recurrent_load(struct recurrent *r, const void *from, size_t length)
{
    if (r->n_floats == 0)
        return;
    copies_replace(&r->copies, length);
    memcpy(recurrent_current(r), from, r->n_floats * sizeof(float));
}

float *recurrent_current(const struct recurrent *r)
{
    return copy_at(r, r->copies.current);
}
