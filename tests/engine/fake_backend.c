/*
 * The operations of the fake backend. Only those that sessions call are present.
 */
#include "tests/engine/fake_backend.h"

#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RING (FAKE_WINDOW + FAKE_UBATCH + FAKE_SLACK)

struct backend {
    struct fake *fake;
    struct backend_info info;
};

struct seq {
    struct fake *fake;
    size_t n_ctx, length;
    uint64_t state[2];      /* the result of all ids so far, and the one before the last eval */
    size_t current, before; /* index of the current state; length of the other one */
    size_t first;           /* the ring holds the ids from here to the length */
    int32_t ring[RING];
    int32_t *all; /* (n_ctx) */
};

static uint64_t mix(uint64_t state, int32_t id)
{
    return fnv1a_add(state ^ (state >> 31), (uint64_t)id + 1);
}

/* The logits depend on the recurrent state and on the window before the next position. */
static void write_logits(uint64_t hash, float *out)
{
    for (size_t i = 0; i < FAKE_VOCAB; i++)
        out[i] = (float)(mix(hash, (int32_t)i) >> 40);
}

void fake_logits(enum fake_kind kind, const int32_t *ids, size_t n_ids, float *out)
{
    uint64_t hash = FNV1A_START;
    const size_t n = kind == FAKE_RING ? size_min(n_ids, FAKE_WINDOW) : n_ids;
    for (size_t i = n_ids - n; i < n_ids; i++)
        hash = mix(hash, ids[i]);
    write_logits(mix(hash, (int32_t)n_ids), out);
}

static uint64_t hash_of(const struct seq *s, size_t length, uint64_t state)
{
    if (s->fake->kind == FAKE_RING) {
        state = FNV1A_START;
        for (size_t i = length - size_min(length, FAKE_WINDOW); i < length; i++)
            state = mix(state, s->ring[i % RING]);
    } else if (s->fake->kind == FAKE_PLAIN) {
        state = FNV1A_START;
        for (size_t i = 0; i < length; i++)
            state = mix(state, s->all[i]);
    }
    return mix(state, (int32_t)length);
}

static bool seq_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err)
{
    struct seq *s = mem_alloc(1, sizeof *s);
    (void)err;
    assert_non_null(s);
    s->all = mem_alloc(n_ctx, sizeof *s->all);
    assert_non_null(s->all);
    s->fake = b->fake;
    s->n_ctx = n_ctx;
    s->state[0] = FNV1A_START;
    *out = s;
    return true;
}

static void seq_close(struct seq *s)
{
    if (s)
        mem_free(s->all);
    mem_free(s);
}

static void write_row(struct head_row *row, uint64_t hash)
{
    float logits[FAKE_VOCAB];
    write_logits(hash, logits);
    row->n = FAKE_VOCAB;
    for (size_t i = 0; i < FAKE_VOCAB; i++)
        row->cands[i] = (struct head_cand){(int32_t)i, logits[i]};
}

/* A failed eval has changed what real backends change: the other copy and a part of the ring. */
static bool eval_item(struct seq *s, const struct eval_item *item)
{
    struct fake *f = s->fake;
    uint64_t state = s->state[s->current];
    for (size_t i = 0; i < item->n_ids; i++) {
        const size_t length = s->length + i + 1;
        state = mix(state, item->ids[i]);
        s->ring[(length - 1) % RING] = s->all[length - 1] = item->ids[i];
        s->first = size_max(s->first, length - size_min(length, RING));
        f->n_evals++;
        if (f->n_until_fail > 0 && --f->n_until_fail == 0) {
            s->state[!s->current] = state;
            s->before = s->length;
            return false;
        }
        if (i + item->n_rows >= item->n_ids)
            write_row(&item->rows[i + item->n_rows - item->n_ids], hash_of(s, length, state));
    }
    s->current = !s->current;
    s->state[s->current] = state;
    s->before = s->length;
    s->length += item->n_ids;
    return true;
}

static bool eval(struct backend *b, struct eval_item *items, size_t n_items,
                 const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err)
{
    (void)b;
    (void)control;
    assert_int_equal(n_items, 1);
    *n_bytes = 0;
    assert_true(items->n_ids <= FAKE_UBATCH);
    return eval_item(items->seq, items) || bn_fail(err, BN_ECANCELLED, "cancelled");
}

static size_t reachable(const struct seq *s, size_t n_keep)
{
    assert_true(n_keep <= s->length);
    if (s->fake->kind == FAKE_PLAIN || n_keep == s->length)
        return n_keep;
    if (s->fake->kind == FAKE_RECURRENT)
        return s->before <= n_keep ? s->before : 0;
    return n_keep - size_min(n_keep, FAKE_WINDOW) >= s->first ? n_keep : 0;
}

static void truncate(struct seq *s, size_t n_keep)
{
    assert_int_equal(reachable(s, n_keep), n_keep);
    if (n_keep == 0)
        s->state[s->current] = FNV1A_START;
    else if (n_keep < s->length && s->fake->kind == FAKE_RECURRENT)
        s->current = !s->current;
    if (n_keep < s->length)
        s->before = n_keep;
    s->length = n_keep;
    s->first = n_keep == 0 ? 0 : s->first;
}

/* The recurrent state or the window; both with the length, which state_load checks. */
struct saved {
    uint64_t length, state;
    int32_t window[FAKE_WINDOW];
};

static bool state_save(struct seq *s, void *to)
{
    struct saved *saved = to;
    *saved = (struct saved){s->length, s->state[s->current], {0}};
    for (size_t i = s->length - size_min(s->length, FAKE_WINDOW); i < s->length; i++)
        saved->window[i % FAKE_WINDOW] = s->ring[i % RING];
    return !s->fake->state_save_fails;
}

static bool state_load(struct seq *s, const void *from, size_t length)
{
    const struct saved *saved = from;
    assert_true(length <= s->length);
    assert_int_equal(saved->length, length);
    s->length = s->before = length;
    s->first = length - size_min(length, FAKE_WINDOW);
    s->state[s->current] = saved->state;
    memset(s->ring, 0xff, sizeof s->ring); /* the rest of the ring is not part of a state */
    for (size_t i = length - size_min(length, FAKE_WINDOW); i < length; i++)
        s->ring[i % RING] = saved->window[i % FAKE_WINDOW];
    return true;
}

static bool seq_save(struct seq *s, const struct bn_stream *out, struct bn_error *err)
{
    struct saved saved;
    (void)state_save(s, &saved);
    return out->move(out->ud, &saved, sizeof saved) || bn_fail(err, BN_EIO, "not written");
}

static size_t seq_save_bytes(const struct seq *s)
{
    (void)s;
    return sizeof(struct saved);
}

static bool seq_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err)
{
    struct saved saved;
    s->length = 0;
    if (!in->move(in->ud, &saved, sizeof saved))
        return bn_fail(err, BN_EIO, "too short");
    s->length = length;
    return state_load(s, &saved, length);
}

static const struct backend_info *info(const struct backend *b)
{
    return &b->info;
}

static const struct backend_ops ops = {
    .name = "fake",
    .info = info,
    .seq_open = seq_open,
    .seq_close = seq_close,
    .eval = eval,
    .reachable = reachable,
    .truncate = truncate,
    .state_save = state_save,
    .state_load = state_load,
    .seq_save = seq_save,
    .seq_save_bytes = seq_save_bytes,
    .seq_load = seq_load,
};

void fake_open(struct fake *f, enum fake_kind kind)
{
    static struct backend backend = {.info = {.kv_version = "fake-1"}};
    *f = (struct fake){.kind = kind};
    backend.fake = f;
    f->model = (struct bn_model){
        .model = &f->nothing,
        .ops = &ops,
        .backend = &backend,
        .info = {.n_vocab = FAKE_VOCAB, .n_ubatch = FAKE_UBATCH, .n_ctx_default = 1 << 16}};
    if (kind != FAKE_PLAIN)
        f->model.info.state_bytes = sizeof(struct saved);
}
