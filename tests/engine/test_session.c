/*
 * Sessions: sync, wrong calls, batches and saved KV caches. A call that fails must not change the
 * session.
 */
#include "engine/base/memory.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/le_put.h"
#include "tests/support/memory_stream.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_IDS 100
#define N_VOCAB 262

static const struct head_request all = {.kind = HEAD_ALL};

static struct synth_spec small_spec(void)
{
    struct synth_spec spec = synth_preset("tiny");
    spec.n_ctx = 128;
    return spec;
}

static int setup(void **state)
{
    struct kit *kit = mem_alloc(1, sizeof *kit);
    const struct bn_model_config cfg = {.n_threads = 2, .n_ubatch = 16};
    const struct synth_spec spec = small_spec();
    kit_open(kit, &spec, &cfg);
    *state = kit;
    return 0;
}

static int teardown(void **state)
{
    kit_close(*state);
    mem_free(*state);
    return 0;
}

static void assert_holds(const struct bn_session *s, const int32_t *ids, size_t n_ids)
{
    size_t n;
    const int32_t *held = bn_session_ids(s, &n);
    assert_int_equal(n, n_ids);
    assert_memory_equal(held, ids, n_ids * sizeof *ids);
}

/* Sync, compare the row with a new evaluation, and check how many tokens were reused. */
static void sync_to(struct kit *kit, const int32_t *ids, size_t n_ids, size_t n_reused)
{
    struct head_row *row = kit_rows(kit, 1);
    struct bn_sync_stats stats;
    struct bn_error err;
    const uint64_t n_before = bn_model_bytes_read(kit->model);
    if (!bn_session_sync(kit->session, ids, n_ids, &all, row, NULL, &stats, &err))
        fail_msg("%s", err.text);
    assert_int_equal(stats.n_reused, n_reused);
    assert_int_equal(stats.n_evaluated, n_ids - n_reused);
    assert_true(bn_model_bytes_read(kit->model) - n_before >
                bn_model_info(kit->model)->weight_bytes);
    assert_holds(kit->session, ids, n_ids);
    float *fresh = kit_logits(kit, ids, n_ids);
    for (size_t id = 0; id < N_VOCAB; id++)
        assert_memory_equal(&row->cands[id].logit, &fresh[(n_ids - 1) * N_VOCAB + id],
                            sizeof(float));
    mem_free(fresh);
    kit_free_rows(row, 1);
}

static void sync_evaluates_only_new_tokens(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 1);
    sync_to(kit, ids, 40, 0);
    sync_to(kit, ids, 60, 40); /* a new turn */
    sync_to(kit, ids, 60, 59); /* the same ids: the last one is evaluated for its row */
    sync_to(kit, ids, 30, 29); /* undo */
    ids[20] ^= 1;
    sync_to(kit, ids, 70, 20); /* an edit */
    ids[0] = 3;
    sync_to(kit, ids, 5, 0); /* another conversation */
}

static void sync_without_a_row_fills_the_cache(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    kit_ids(ids, N_IDS, 2);
    assert_true(bn_session_sync(kit->session, ids, 50, NULL, NULL, NULL, NULL, &err));
    assert_holds(kit->session, ids, 50);
    sync_to(kit, ids, 51, 50);
}

static void wrong_calls_are_refused_and_change_nothing(void **state)
{
    struct kit *kit = *state;
    struct bn_session *s = kit->session;
    int32_t ids[200];
    struct bn_error err;
    struct head_row *rows = kit_rows(kit, 2);
    kit_ids(ids, 200, 3);
    assert_true(bn_session_eval(s, ids, 10, NULL, NULL, 0, NULL, &err));

    assert_false(bn_session_sync(s, ids, 0, &all, rows, NULL, NULL, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_false(bn_session_sync(s, ids, 129, &all, rows, NULL, NULL, &err));
    assert_int_equal(err.code, BN_ECONTEXT);
    assert_false(bn_session_eval(s, ids, 119, &all, rows, 1, NULL, &err));
    assert_int_equal(err.code, BN_ECONTEXT);
    assert_false(bn_session_eval(s, ids, 1, &all, rows, 2, NULL, &err));
    assert_int_equal(err.code, BN_EARG);

    const int32_t bad[] = {N_VOCAB, -1, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < 4; i++) {
        ids[15] = bad[i];
        assert_false(bn_session_sync(s, ids, 20, &all, rows, NULL, NULL, &err));
        assert_int_equal(err.code, BN_EARG);
    }
    const struct head_request wrong[] = {
        {.kind = HEAD_TOP, .k = 0},
        {.kind = HEAD_TOP, .k = 0, .gap = 1.0f, .ids = ids, .n_ids = 1},
        {.kind = HEAD_TOP, .k = 1, .gap = -1.0f},
        {.kind = HEAD_TOP, .k = 1, .gap = NAN},
        {.kind = HEAD_TOP, .k = 1, .ids = bad, .n_ids = 1},
        {.kind = HEAD_GUMBEL, .temp = 0.0f},
        {.kind = HEAD_GUMBEL, .temp = INFINITY},
        {.kind = (enum head_kind)9},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(bn_session_eval(s, ids, 1, &wrong[i], rows, 1, NULL, &err));
        assert_int_equal(err.code, BN_EARG);
    }
    assert_holds(s, ids, 10);
    kit_free_rows(rows, 2);
}

static void rows_that_are_too_small_are_refused(void **state)
{
    struct kit *kit = *state;
    const struct head_request top = {.kind = HEAD_TOP, .k = 5, .gap = 1000.0f};
    struct head_cand cands[8];
    struct head_row row = {.cands = cands, .cap = 8, .n = 77};
    int32_t ids[N_IDS];
    struct bn_error err;
    kit_ids(ids, N_IDS, 4);
    assert_false(bn_session_eval(kit->session, ids, 3, &all, &row, 1, NULL, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_false(bn_session_eval(kit->session, ids, 3, &top, &row, 1, NULL, &err));
    assert_int_equal(err.code, BN_EARG);
    assert_int_equal(row.n, 77);
    assert_holds(kit->session, ids, 0);
}

/* The reports of one call: each has to be larger than the one before, except the first one, 0. */
struct reports {
    const struct bn_session *session;
    struct bn_cancel cancel;
    size_t cancel_at; /* cancel when more tokens are reported; 0: never */
    size_t n, n_parts, n_total;
    size_t n_done, n_held; /* of the last report */
};

static void on_report(void *ud, size_t n_done, size_t n_total)
{
    struct reports *r = ud;
    (void)bn_session_ids(r->session, &r->n_held);
    assert_true(r->n == 0 ? n_done == 0 : n_done > r->n_done);
    assert_in_range(n_done, r->n_held, n_total);
    r->n++;
    r->n_parts += n_done > r->n_held;
    r->n_done = n_done;
    r->n_total = n_total;
    if (r->cancel_at > 0 && n_done > r->cancel_at)
        bn_cancel_request(&r->cancel);
}

static void progress_rises_inside_a_micro_batch(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    struct head_row *row = kit_rows(kit, 1);
    const size_t n_between = bn_model_info(kit->model)->n_layers - 1; /* reports of a pass */
    assert_true(n_between > 0);
    kit_ids(ids, N_IDS, 5);
    for (size_t n_ids = 10; n_ids <= 42; n_ids += 32) { /* 1 and 3 micro-batches of 16 */
        struct reports r = {.session = kit->session};
        const struct bn_control control = {.progress = {on_report, &r}};
        bn_session_truncate(kit->session, 0);
        assert_true(bn_session_sync(kit->session, ids, n_ids, &all, row, &control, NULL, &err));
        const size_t n_batches = (n_ids + 15) / 16;
        assert_int_equal(r.n_parts, n_batches * n_between);
        assert_int_equal(r.n, 1 + n_batches * (n_between + 1));
        assert_int_equal(r.n_done, n_ids);
        assert_int_equal(r.n_total, n_ids);
        assert_int_equal(r.n_held, n_ids);
    }
    /* One token has no parts. */
    struct reports r = {.session = kit->session};
    const struct bn_control control = {.progress = {on_report, &r}};
    bn_session_truncate(kit->session, 0);
    assert_true(bn_session_sync(kit->session, ids, 1, &all, row, &control, NULL, &err));
    assert_int_equal(r.n, 2);
    kit_free_rows(row, 1);
}

static void cancelling_keeps_whole_micro_batches(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    struct reports c = {.session = kit->session, .cancel_at = 32};
    const struct bn_control control = {.progress = {on_report, &c}, .cancel = &c.cancel};
    struct head_row *row = kit_rows(kit, 1);
    kit_ids(ids, N_IDS, 5);
    assert_false(bn_session_sync(kit->session, ids, 90, &all, row, &control, NULL, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    assert_int_equal(row->n, 0);
    assert_in_range(c.n_done, 33, 47); /* a part of the third micro-batch of 16 */
    assert_int_equal(c.n_total, 90);
    assert_holds(kit->session, ids, 32);
    sync_to(kit, ids, 90, 32);
    kit_free_rows(row, 1);
}

static void request_kinds_agree_with_each_other(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    kit_ids(ids, N_IDS, 6);
    struct head_row *full = kit_rows(kit, 1), *top = kit_rows(kit, 1), *drawn = kit_rows(kit, 1);
    const struct head_request best = {.kind = HEAD_TOP, .k = 10};
    const struct head_request cold = {.kind = HEAD_GUMBEL, .temp = 1e-6f, .seed = 1};
    for (size_t i = 1; i < 5; i++) {
        assert_true(bn_session_sync(kit->session, ids, i, &all, full, NULL, NULL, &err));
        assert_true(bn_session_sync(kit->session, ids, i, &best, top, NULL, NULL, &err));
        assert_true(bn_session_sync(kit->session, ids, i, &cold, drawn, NULL, NULL, &err));
        assert_int_equal(top->n, 10);
        assert_int_equal(drawn->n, 1);
        assert_int_equal(drawn->cands[0].id, top->cands[0].id);
        for (size_t j = 0; j < 10; j++)
            assert_true(top->cands[j].logit == full->cands[top->cands[j].id].logit);
    }
    kit_free_rows(full, 1);
    kit_free_rows(top, 1);
    kit_free_rows(drawn, 1);
}

static void loaded_cache_continues_as_the_session_would(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    struct memory_stream saved = {0}, again = {0};
    const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved),
                           out_again = memory_stream_writer(&again);
    kit_ids(ids, N_IDS, 7);
    /* Tokens that were removed by a truncation must not change the bytes. */
    sync_to(kit, ids, 90, 0);
    bn_session_truncate(kit->session, 70);
    assert_true(bn_session_save(kit->session, &out, &err));
    struct bn_session *other = kit_session(kit, 100);
    assert_true(bn_session_eval(other, ids, 70, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_save(other, &out_again, &err));
    assert_int_equal(saved.n_bytes, bn_session_save_bytes(kit->session));
    assert_int_equal(saved.n_bytes, again.n_bytes);
    assert_memory_equal(saved.bytes, again.bytes, saved.n_bytes);
    bn_session_close(other);

    bn_session_truncate(kit->session, 0);
    assert_true(bn_session_load(kit->session, &in, &err));
    assert_holds(kit->session, ids, 70);
    sync_to(kit, ids, 80, 70);
    mem_free(saved.bytes);
    mem_free(again.bytes);
}

#define SAVED_HEADER_BYTES 48 /* version, hash and number of ids; the ids follow */

static void damaged_saved_cache_is_refused(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    struct memory_stream saved = {0};
    const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved);
    kit_ids(ids, N_IDS, 8);
    sync_to(kit, ids, 20, 0);
    assert_true(bn_session_save(kit->session, &out, &err));
    const size_t n_bytes = saved.n_bytes;
    for (size_t cut = 0; cut < n_bytes; cut += cut < 200 ? 1 : n_bytes / 5) {
        saved.n_bytes = cut;
        saved.at = 0;
        assert_false(bn_session_load(kit->session, &in, &err));
        assert_int_equal(err.code, BN_EIO);
    }
    saved.n_bytes = n_bytes;
    saved.at = 0;
    saved.bytes[0] ^= 1; /* another version of the KV cache */
    assert_false(bn_session_load(kit->session, &in, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "another type or version"));
    saved.bytes[0] ^= 1;
    le_put_u32(saved.bytes + SAVED_HEADER_BYTES, N_VOCAB); /* the first id */
    saved.at = 0;
    assert_false(bn_session_load(kit->session, &in, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "saved token"));
    struct bn_session *small = kit_session(kit, 19);
    saved.at = 0;
    assert_false(bn_session_load(small, &in, &err));
    assert_int_equal(err.code, BN_ECONTEXT);
    bn_session_close(small);
    sync_to(kit, ids, 25, 0); /* the session still works */
    mem_free(saved.bytes);
}

/* A saved Q8 cache can be loaded only into a Q8 session. */
static void saved_q8_cache_needs_a_q8_session(void **state)
{
    struct kit *f16 = *state, kit;
    const struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.n_threads = 2, .n_ubatch = 16, .kv = BN_KV_Q8};
    int32_t ids[N_IDS];
    struct bn_error err;
    struct memory_stream saved = {0}, again = {0};
    const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved),
                           out_again = memory_stream_writer(&again);
    kit_open(&kit, &spec, &cfg);
    kit_ids(ids, N_IDS, 7);
    sync_to(&kit, ids, 90, 0);
    bn_session_truncate(kit.session, 70);
    assert_true(bn_session_save(kit.session, &out, &err));
    bn_session_truncate(kit.session, 0);
    sync_to(&kit, ids, 70, 0);
    assert_true(bn_session_save(kit.session, &out_again, &err));
    assert_int_equal(saved.n_bytes, again.n_bytes);
    assert_memory_equal(saved.bytes, again.bytes, saved.n_bytes);

    bn_session_truncate(f16->session, 0);
    assert_false(bn_session_load(f16->session, &in, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "cpu-f16-1"));
    saved.at = 0;
    bn_session_truncate(kit.session, 0);
    assert_true(bn_session_load(kit.session, &in, &err));
    assert_holds(kit.session, ids, 70);
    sync_to(&kit, ids, 80, 70);
    mem_free(saved.bytes);
    mem_free(again.bytes);
    kit_close(&kit);
}

/* Two models of one shape with scales per block differ only in weights. */
static void saved_cache_of_other_blocks_is_refused(void **state)
{
    (void)state;
    int32_t ids[10];
    struct bn_error err;
    struct memory_stream saved = {0};
    const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved);
    struct synth_spec spec = synth_preset("tiny");
    struct kit kit;
    spec.arch = "qwen3";
    spec.type = TENSOR_PQ2_0;
    spec.scale_cols = 128;
    kit_ids(ids, 10, 3);
    kit_open(&kit, &spec, NULL);
    assert_true(bn_session_eval(kit.session, ids, 10, NULL, NULL, 0, NULL, &err));
    assert_true(bn_session_save(kit.session, &out, &err));
    bn_session_truncate(kit.session, 0);
    assert_true(bn_session_load(kit.session, &in, &err));
    kit_close(&kit);
    spec.seed = 2;
    kit_open(&kit, &spec, NULL);
    saved.at = 0;
    assert_false(bn_session_load(kit.session, &in, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "belongs to another model"));
    kit_close(&kit);
    mem_free(saved.bytes);
}

static void contexts_beyond_memory_are_refused(void **state)
{
    struct kit *kit = *state;
    struct bn_session *s;
    struct bn_error err;
    static const size_t sizes[] = {(size_t)1 << 31, (size_t)1 << 40, SIZE_MAX, SIZE_MAX - 63};
    for (size_t i = 0; i < 4; i++) {
        const struct bn_session_config cfg = {.n_ctx = sizes[i]};
        assert_false(bn_session_open(kit->model, &cfg, &s, &err));
        assert_int_equal(err.code, BN_EARG);
    }
    assert_int_equal(bn_session_n_ctx(kit->session), 128);
}

static void batch_is_checked_before_it_is_evaluated(void **state)
{
    struct kit *kit = *state;
    int32_t ids[N_IDS];
    struct bn_error err;
    kit_ids(ids, N_IDS, 9);
    struct bn_session *other = kit_session(kit, 16);
    struct bn_batch_item items[2] = {{.session = kit->session, .ids = ids, .n_ids = 10},
                                     {.session = kit->session, .ids = ids, .n_ids = 1}};
    assert_false(bn_batch_eval(items, 2, NULL, &err)); /* the same session twice */
    assert_int_equal(err.code, BN_EARG);
    items[1].session = other;
    items[1].n_ids = 7;
    assert_false(bn_batch_eval(items, 2, NULL, &err)); /* 17 tokens in micro-batches of 16 */
    assert_int_equal(err.code, BN_EARG);
    items[1].n_ids = 0;
    assert_false(bn_batch_eval(items, 2, NULL, &err)); /* a sequence without tokens */
    assert_int_equal(err.code, BN_EARG);
    assert_holds(kit->session, ids, 0);
    items[1].n_ids = 6;
    assert_true(bn_batch_eval(items, 2, NULL, &err));
    assert_holds(kit->session, ids, 10);
    assert_holds(other, ids, 6);
    assert_true(bn_batch_eval(NULL, 0, NULL, &err));
    bn_session_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sync_evaluates_only_new_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(sync_without_a_row_fills_the_cache, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_calls_are_refused_and_change_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(rows_that_are_too_small_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(progress_rises_inside_a_micro_batch, setup, teardown),
        cmocka_unit_test_setup_teardown(cancelling_keeps_whole_micro_batches, setup, teardown),
        cmocka_unit_test_setup_teardown(request_kinds_agree_with_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(loaded_cache_continues_as_the_session_would, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(damaged_saved_cache_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(saved_q8_cache_needs_a_q8_session, setup, teardown),
        cmocka_unit_test(saved_cache_of_other_blocks_is_refused),
        cmocka_unit_test_setup_teardown(contexts_beyond_memory_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(batch_is_checked_before_it_is_evaluated, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
