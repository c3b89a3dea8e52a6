/*
 * Models that cannot return to every length, on the CPU: rings of window layers, and recurrent
 * states. Every way to a sequence gives the logits of a new evaluation, byte for byte, and memory
 * is as planned.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/memory_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_CTX 12000
#define MAX_IDS 250 /* of the random steps */

/* With sanitizers a pass takes five times as long, so the long tests run in full only without
 * them. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifdef IS_SANITIZED
#define LONG_IDS 3000
#define RANDOM_STEPS 200
#else
#define LONG_IDS 10000
#define RANDOM_STEPS 1000
#endif

/* Window 40 in three of four layers. With micro-batches of 16 a ring has one block. */
static struct synth_spec maple_spec(void)
{
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.n_ctx = N_CTX;
    return spec;
}

static struct bn_session *open_session(const struct kit *kit, size_t n_ctx, size_t n_states)
{
    const size_t state_bytes = bn_model_info(kit->model)->state_bytes;
    const struct bn_session_config cfg = {.n_ctx = n_ctx,
                                          .state_memory = size_max(n_states * state_bytes, 1)};
    struct bn_session *s;
    struct bn_error err;
    if (!bn_session_open(kit->model, &cfg, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static bool try_sync(struct bn_session *s, const int32_t *ids, size_t n_ids, struct head_row *row,
                     const struct bn_control *control, struct bn_sync_stats *stats)
{
    const struct head_request all = {.kind = HEAD_ALL};
    struct bn_error err;
    const bool ok = bn_session_sync(s, ids, n_ids, &all, row, control, stats, &err);
    if (!ok)
        assert_int_equal(err.code, BN_ECANCELLED);
    return ok;
}

static void assert_same_row(const struct head_row *a, const struct head_row *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->cands, b->cands, a->n * sizeof *a->cands);
}

/* ---- long sequences ---- */

static void check_long_sequence(enum bn_kv_type kv, size_t n_ids)
{
    const struct synth_spec spec = maple_spec();
    const struct bn_model_config with = {.n_threads = 2, .n_ubatch = 96, .kv = kv};
    const struct bn_model_config without = {
        .n_threads = 2, .n_ubatch = 64, .kv = kv, .no_ring = true};
    struct kit ring, full;
    int32_t *ids = mem_alloc(N_CTX, sizeof *ids);
    assert_non_null(ids);
    kit_open(&ring, &spec, &with);
    kit_open(&full, &spec, &without);
    kit_ids(ids, n_ids, 3);
    struct head_row *rows[2] = {kit_rows(&ring, 1), kit_rows(&full, 1)};
    for (size_t n = 100; n <= n_ids; n += n < 1000 ? 37 : n_ids / 20) {
        assert_true(try_sync(ring.session, ids, n, rows[0], NULL, NULL));
        assert_true(try_sync(full.session, ids, n, rows[1], NULL, NULL));
        assert_same_row(rows[0], rows[1]);
    }
    size_t n_held;
    (void)bn_session_ids(ring.session, &n_held);
    assert_true(n_held > n_ids - n_ids / 20);
    kit_free_rows(rows[0], 1);
    kit_free_rows(rows[1], 1);
    kit_close(&ring);
    kit_close(&full);
    mem_free(ids);
}

static void ring_equals_a_cache_of_all_positions(void **state)
{
    (void)state;
    check_long_sequence(BN_KV_F16, LONG_IDS);
    check_long_sequence(BN_KV_Q8, 1000);
}

/* ---- memory ---- */

static void plan_counts_rings_and_states(void **state)
{
    (void)state;
    struct synth_spec spec = maple_spec();
    const struct bn_model_config cfg = {.n_threads = 1, .n_ubatch = 16};
    const struct bn_model_config no_ring = {.n_threads = 1, .n_ubatch = 16, .no_ring = true};
    struct kit kit;
    kit_open(&kit, &spec, &no_ring);
    const size_t all = bn_model_info(kit.model)->kv_bytes_per_token;
    const size_t read = bn_model_info(kit.model)->bytes_per_token;
    assert_int_equal(bn_model_info(kit.model)->seq_fixed_bytes, 0);
    assert_int_equal(bn_model_info(kit.model)->state_bytes, 0);
    assert_int_equal(bn_model_state_memory(kit.model), 0);
    kit_close(&kit);

    kit_open(&kit, &spec, &cfg);
    const struct bn_model_info *info = bn_model_info(kit.model);
    assert_int_equal(spec.n_layers, 4);
    assert_int_equal(info->kv_bytes_per_token, all / 4);
    assert_int_equal(info->bytes_per_token, read); /* a window is not a recurrent state */
    assert_int_equal(info->seq_fixed_bytes, all / 4 * 3 * 64); /* 40 + 16 positions in blocks */
    assert_int_equal(info->state_bytes, all / 4 * 3 * 64);     /* 40 positions in blocks */
    assert_true(bn_model_state_memory(kit.model) >= 4 * info->state_bytes);
    kit_close(&kit);

    spec.n_ctx = 64; /* a ring would be as large as the cache */
    kit_open(&kit, &spec, &cfg);
    assert_int_equal(bn_model_info(kit.model)->kv_bytes_per_token, all);
    assert_int_equal(bn_model_info(kit.model)->state_bytes, 0);
    kit_close(&kit);
}

/* ---- random steps ---- */

struct walk {
    struct kit kit, plain; /* the second without rings */
    struct bn_session *s;
    struct head_row *row, *fresh;
    struct bn_sync_stats stats;
    int32_t ids[MAX_IDS];
    size_t n_ids;
    uint32_t random;
};

static uint32_t draw(struct walk *w, uint32_t n)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

static void add_ids(struct walk *w, size_t n)
{
    for (size_t i = 0; i < n && w->n_ids < MAX_IDS; i++)
        w->ids[w->n_ids++] = (int32_t)draw(w, 256);
}

/* Cancels after some micro-batches: the flag is set when the progress is reported. */
static void cancel_later(void *ud, size_t n_done, size_t n_total)
{
    struct bn_cancel *cancel = ud;
    if (n_done > n_total / 2)
        bn_cancel_request(cancel);
}

static void random_step(struct walk *w)
{
    const size_t n = w->n_ids;
    struct bn_cancel cancel = {.requested = false};
    const struct bn_control control = {.progress = {cancel_later, &cancel}, .cancel = &cancel};
    switch (draw(w, 7)) {
    case 0: /* undo */
        w->n_ids = 1 + draw(w, (uint32_t)n);
        break;
    case 1: /* retry */
        break;
    case 2: /* edit */
        w->n_ids = 1 + draw(w, (uint32_t)n);
        add_ids(w, n - w->n_ids + draw(w, 20));
        break;
    case 3: /* Ctrl-C in a long prompt */
        add_ids(w, 100);
        (void)try_sync(w->s, w->ids, w->n_ids, w->row, &control, NULL);
        break;
    case 4: /* Ctrl-C in the first layers of a pass */
        add_ids(w, 3);
        bn_cancel_request(&cancel);
        assert_false(try_sync(w->s, w->ids, w->n_ids, w->row, &control, NULL));
        break;
    case 5: /* a caller that truncates */
        w->n_ids = 1 + draw(w, (uint32_t)n);
        assert_true(bn_session_truncate(w->s, w->n_ids) <= w->n_ids);
        break;
    default:
        add_ids(w, draw(w, 60)); /* a question and some ids of its answer */
        for (size_t i = draw(w, 8); i > 0; i--) {
            assert_true(try_sync(w->s, w->ids, w->n_ids, w->row, NULL, NULL));
            add_ids(w, 1);
        }
    }
    if (w->n_ids > MAX_IDS - 100)
        w->n_ids = 1 + draw(w, 50);
}

static void check_random_steps(const struct synth_spec *spec, size_t n_states, size_t n_steps)
{
    const struct bn_model_config cfg = {.n_threads = 1, .n_ubatch = 16};
    const struct bn_model_config no_ring = {.n_threads = 1, .n_ubatch = 64, .no_ring = true};
    struct walk *w = mem_alloc(1, sizeof *w);
    size_t n_reevaluated = 0;
    assert_non_null(w);
    kit_open(&w->kit, spec, &cfg);
    kit_open(&w->plain, spec, &no_ring);
    assert_true(bn_model_info(w->kit.model)->state_bytes > 0);
    w->s = open_session(&w->kit, MAX_IDS, n_states);
    struct bn_session *fresh = open_session(&w->plain, MAX_IDS, 0);
    w->row = kit_rows(&w->kit, 1);
    w->fresh = kit_rows(&w->kit, 1);
    add_ids(w, 150);
    for (size_t i = 0; i < n_steps; i++) {
        random_step(w);
        assert_true(try_sync(w->s, w->ids, w->n_ids, w->row, NULL, &w->stats));
        bn_session_truncate(fresh, 0);
        assert_true(try_sync(fresh, w->ids, w->n_ids, w->fresh, NULL, NULL));
        assert_same_row(w->row, w->fresh);
        n_reevaluated += w->stats.n_reevaluated;
    }
    assert_true(n_reevaluated > 0);
    kit_free_rows(w->row, 1);
    kit_free_rows(w->fresh, 1);
    bn_session_close(fresh);
    bn_session_close(w->s);
    kit_close(&w->kit);
    kit_close(&w->plain);
    mem_free(w);
}

static void random_steps_with_rings_equal_a_new_evaluation(void **state)
{
    (void)state;
    const struct synth_spec spec = maple_spec();
    check_random_steps(&spec, 20, RANDOM_STEPS);
    check_random_steps(&spec, 3, 100);
    check_random_steps(&spec, 0, 30);
}

static void random_steps_with_recurrent_states_equal_a_new_evaluation(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    check_random_steps(&spec, 20, RANDOM_STEPS);
    check_random_steps(&spec, 3, 100);
    check_random_steps(&spec, 0, 30);
}

/* ---- saved sessions ---- */

/* Save ids[0 .. n) after more ids were evaluated and removed, and after a simple evaluation: the
 * bytes are the same. Load them and continue. */
static void check_saved(const struct synth_spec *spec, enum bn_kv_type kv, size_t n)
{
    enum { N_ALL = 300 };
    const struct bn_model_config cfg = {.n_threads = 1, .n_ubatch = 16, .kv = kv};
    struct kit kit;
    struct memory_stream saved = {0}, again = {0};
    const struct bn_stream out = memory_stream_writer(&saved),
                           out_again = memory_stream_writer(&again),
                           in = memory_stream_reader(&saved);
    int32_t ids[N_ALL];
    struct bn_error err;
    kit_open(&kit, spec, &cfg);
    kit_ids(ids, N_ALL, 5);
    struct head_row *row = kit_rows(&kit, 2);
    struct bn_session *s = open_session(&kit, N_ALL, 0), *other = open_session(&kit, N_ALL, 0);
    assert_true(bn_session_eval(s, ids, n, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_eval(s, ids + 50, 5, NULL, NULL, 0, NULL, &err)); /* a wrong draft */
    if (bn_session_truncate(s, n) < n) {
        size_t n_held;
        (void)bn_session_ids(s, &n_held);
        assert_true(bn_session_eval(s, ids + n_held, n - n_held, NULL, NULL, 0, NULL, &err));
    }
    assert_true(bn_session_eval(other, ids, n, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_save(s, &out, &err));
    assert_true(bn_session_save(other, &out_again, &err));
    assert_int_equal(saved.n_bytes, bn_session_save_bytes(s));
    assert_int_equal(saved.n_bytes, again.n_bytes);
    assert_memory_equal(saved.bytes, again.bytes, saved.n_bytes);

    bn_session_close(other);
    other = open_session(&kit, N_ALL, 4);
    assert_true(bn_session_load(other, &in, &err));
    assert_int_equal(saved.at, saved.n_bytes);
    struct bn_sync_stats stats;
    assert_true(try_sync(other, ids, N_ALL, &row[0], NULL, &stats));
    assert_int_equal(stats.n_reused, n);
    assert_true(try_sync(s, ids, N_ALL, &row[1], NULL, NULL));
    assert_same_row(&row[0], &row[1]);
    for (size_t cut = saved.n_bytes - 500; cut < saved.n_bytes; cut += 99) {
        struct memory_stream damaged = {.bytes = saved.bytes, .n_bytes = cut};
        const struct bn_stream short_in = memory_stream_reader(&damaged);
        assert_false(bn_session_load(other, &short_in, &err));
        assert_int_equal(err.code, BN_EIO);
        assert_true(try_sync(other, ids, N_ALL, &row[0], NULL, NULL));
        assert_same_row(&row[0], &row[1]);
    }
    kit_free_rows(row, 2);
    bn_session_close(s);
    bn_session_close(other);
    kit_close(&kit);
    mem_free(saved.bytes);
    mem_free(again.bytes);
}

static const size_t lengths[] = {1, 30, 64, 127, 193, 256, 290};

static void saved_recurrent_states_continue_as_the_session_would(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        check_saved(&spec, i % 2 == 0 ? BN_KV_F16 : BN_KV_Q8, lengths[i]);
}

static void saved_rings_continue_as_the_session_would(void **state)
{
    (void)state;
    struct synth_spec spec = maple_spec();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        spec.window = i % 2 == 0 ? 40 : 64; /* the second fills its blocks */
        check_saved(&spec, BN_KV_F16, lengths[i]);
        check_saved(&spec, BN_KV_Q8, lengths[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_equals_a_cache_of_all_positions),
        cmocka_unit_test(plan_counts_rings_and_states),
        cmocka_unit_test(random_steps_with_rings_equal_a_new_evaluation),
        cmocka_unit_test(random_steps_with_recurrent_states_equal_a_new_evaluation),
        cmocka_unit_test(saved_recurrent_states_continue_as_the_session_would),
        cmocka_unit_test(saved_rings_continue_as_the_session_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
