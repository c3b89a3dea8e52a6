/*
 * The list of saved states and the choice of the state that is dropped when the list is full.
 */
#include "engine/session_states.h"

#include "engine/base/size.h"

#include <string.h>

bool states_open(struct states *st, size_t state_bytes, size_t budget, struct bn_error *err)
{
    *st = (struct states){.state_bytes = state_bytes};
    if (state_bytes == 0)
        return true;
    st->n_max = size_min(budget / state_bytes, STATES_MAX);
    st->list = mem_alloc(st->n_max, sizeof *st->list);
    return st->list || bn_fail(err, BN_ENOMEM, "no memory for a list of %zu states", st->n_max);
}

void states_close(struct states *st)
{
    states_cut(st, 0);
    mem_free(st->list);
    *st = (struct states){0};
}

const struct saved_state *states_find(const struct states *st, size_t n_ids)
{
    for (size_t i = st->n; i > 0; i--)
        if (st->list[i - 1].length <= n_ids)
            return &st->list[i - 1];
    return NULL;
}

size_t states_newest(const struct states *st)
{
    return st->n > 0 ? st->list[st->n - 1].length : 0;
}

/* Index of the state that is dropped for a new one of `length` tokens.
 *
 * Without state i, a return to a length between state i and the next one also evaluates the tokens
 * between state i - 1 (for the first state, the beginning) and state i again. Returns to recent
 * lengths are more likely than to old ones. So the loss is the distance to the state before times
 * the distance to the next one, divided by the age, which is the distance to the new state. The
 * state with the smallest loss is dropped. When all losses are equal, the distances grow with the
 * square root of the age. The newest state stays, unless it is the only one. */
static size_t least_useful(const struct states *st, size_t length)
{
    size_t found = 0;
    double least = 0;
    for (size_t i = 0; i + 1 < st->n; i++) { /* not the newest state */
        const size_t at = st->list[i].length, before = i > 0 ? st->list[i - 1].length : 0;
        const double loss =
            (double)(at - before) * (double)(st->list[i + 1].length - at) / (double)(length - at);
        if (i == 0 || loss < least) {
            found = i;
            least = loss;
        }
    }
    return found;
}

void *states_add(struct states *st, size_t length)
{
    struct saved_state new = {.length = length};
    if (st->n_max == 0)
        return NULL;
    if (st->n == st->n_max) {
        const size_t i = least_useful(st, length);
        new.map = st->list[i].map;
        st->n--;
        memmove(&st->list[i], &st->list[i + 1], (st->n - i) * sizeof *st->list);
    } else if (!mem_map_open(&new.map, st->state_bytes, MEM_PAGES_NORMAL)) {
        return NULL;
    }
    st->list[st->n++] = new;
    return new.map.ptr;
}

void states_cut(struct states *st, size_t n_keep)
{
    while (st->n > 0 && st->list[st->n - 1].length > n_keep)
        mem_map_close(&st->list[--st->n].map);
}
