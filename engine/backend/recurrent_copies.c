/*
 * The lengths of the two copies of a recurrent state: see recurrent_copies.h.
 */
#include "engine/backend/recurrent_copies.h"

#include "engine/base/size.h"

bool recurrent_bytes(const struct hparams *hp, size_t *out)
{
    return size_mul3(out, hp->n_layers - hp->n_attn_layers, delta_state_floats(&hp->delta),
                     sizeof(float));
}

void copies_begin(struct recurrent_copies *r)
{
    r->lengths[1 - r->current] = COPY_NONE;
}

void copies_commit(struct recurrent_copies *r, size_t length)
{
    r->current = 1 - r->current;
    r->lengths[r->current] = length;
}

size_t copies_reachable(const struct recurrent_copies *r, size_t n_keep)
{
    size_t best = 0;
    for (size_t copy = 0; copy < 2; copy++)
        if (r->lengths[copy] != COPY_NONE && r->lengths[copy] <= n_keep)
            best = size_max(best, r->lengths[copy]);
    return best;
}

/* Forget the copy that is not current if it is the result of ids that are removed. */
static void forget_longer(struct recurrent_copies *r, size_t length)
{
    size_t *other = &r->lengths[1 - r->current];
    if (*other > length)
        *other = COPY_NONE;
}

bool copies_truncate(struct recurrent_copies *r, size_t n_keep)
{
    if (r->lengths[r->current] == n_keep)
        return true;
    if (r->lengths[1 - r->current] != n_keep)
        return false; /* so n_keep is 0: see the header */
    r->current = 1 - r->current;
    forget_longer(r, n_keep);
    return true;
}

void copies_replace(struct recurrent_copies *r, size_t length)
{
    if (r->lengths[r->current] < length)
        r->current = 1 - r->current;
    r->lengths[r->current] = length;
    forget_longer(r, length);
}

void copies_set_length(struct recurrent_copies *r, size_t length)
{
    r->lengths[r->current] = length;
    r->lengths[1 - r->current] = COPY_NONE;
}
