/*
 * Sessions of models that cannot return to every length: after any step the logits are those of the
 * ids, returns evaluate few tokens, and saved states stay within their budget. The backend is a
 * fake.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/session_internal.h"
#include "engine/spec/spec.h"
#include "tests/engine/fake_backend.h"
#include "tests/support/memory_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CTX 20000

struct rig {
    struct fake fake;
    struct bn_session *s;
    int32_t ids[N_CTX];
    size_t n_ids;
    size_t n_stable; /* bn_control.n_stable of the next syncs */
    uint32_t random;
    struct bn_sync_stats stats; /* of the last sync */
};

/* The value of bn_session_config.state_memory for n_states states. For none it is 1 byte, because 0
 * means the default. */
static size_t budget_of(const struct rig *r, size_t n_states)
{
    return n_states > 0 ? n_states * r->fake.model.info.state_bytes : 1;
}

static struct rig *open_rig(enum fake_kind kind, size_t n_states)
{
    struct bn_error err;
    struct rig *r = mem_alloc(1, sizeof *r);
    assert_non_null(r);
    fake_open(&r->fake, kind);
    const struct bn_session_config cfg = {.n_ctx = N_CTX, .state_memory = budget_of(r, n_states)};
    assert_true(bn_session_open(&r->fake.model, &cfg, &r->s, &err));
    return r;
}

static void close_rig(struct rig *r)
{
    bn_session_close(r->s);
    mem_free(r);
}

static uint32_t draw(struct rig *r, uint32_t n)
{
    r->random = r->random * 1664525u + 1013904223u;
    return (r->random >> 8) % n;
}

static void add_ids(struct rig *r, size_t n)
{
    for (size_t i = 0; i < n && r->n_ids < N_CTX; i++)
        r->ids[r->n_ids++] = (int32_t)draw(r, FAKE_VOCAB);
}

static void check_row(const struct rig *r, const struct head_row *row)
{
    float expected[FAKE_VOCAB];
    fake_logits(r->fake.kind, r->ids, r->n_ids, expected);
    for (size_t i = 0; i < FAKE_VOCAB; i++)
        assert_memory_equal(&row->cands[i].logit, &expected[i], sizeof(float));
}

static bool try_sync(struct rig *r)
{
    const struct head_request all = {.kind = HEAD_ALL};
    struct head_cand cands[FAKE_VOCAB];
    struct head_row row = {.cands = cands, .cap = FAKE_VOCAB};
    struct bn_error err;
    size_t n_held;
    const struct bn_control control = {.n_stable = r->n_stable};
    const bool ok = bn_session_sync(r->s, r->ids, r->n_ids, &all, &row, &control, &r->stats, &err);
    const int32_t *held = bn_session_ids(r->s, &n_held);
    assert_true(n_held <= r->n_ids);
    assert_memory_equal(held, r->ids, n_held * sizeof *held);
    if (!ok)
        return false;
    assert_int_equal(n_held, r->n_ids);
    assert_int_equal(r->stats.n_reused + r->stats.n_evaluated, r->n_ids);
    assert_true(r->stats.n_reevaluated < r->stats.n_evaluated);
    check_row(r, &row);
    return true;
}

/* A turn: a question of n_question ids, then an answer that is decoded id by id. */
static void turn(struct rig *r, size_t n_question, size_t n_answer)
{
    add_ids(r, n_question);
    assert_true(try_sync(r));
    for (size_t i = 0; i < n_answer; i++) {
        const struct bn_sync_stats stats = r->stats;
        add_ids(r, 1);
        assert_true(try_sync(r));
        assert_int_equal(r->stats.n_evaluated, 1);
        r->stats = stats;
    }
}

/* ---- every step is correct ---- */

static void random_step(struct rig *r)
{
    struct bn_error err;
    r->n_stable = draw(r, 2) ? draw(r, (uint32_t)r->n_ids + 60) : 0; /* any number is allowed */
    switch (draw(r, 8)) {
    case 0: /* undo */
        r->n_ids -= draw(r, (uint32_t)r->n_ids);
        break;
    case 1: /* retry */
        break;
    case 2: { /* edit */
        const size_t at = draw(r, (uint32_t)r->n_ids), n = r->n_ids - at;
        r->n_ids = at;
        add_ids(r, n + draw(r, 20));
        break;
    }
    case 3: /* a long text */
        add_ids(r, draw(r, 300));
        break;
    case 4: { /* a caller that truncates */
        const size_t n_keep = draw(r, (uint32_t)r->n_ids), n = bn_session_truncate(r->s, n_keep);
        size_t n_held;
        (void)bn_session_ids(r->s, &n_held);
        assert_true(n <= n_keep && n_held == n);
        r->n_ids = n_keep;
        break;
    }
    case 5: /* Ctrl-C */
        r->fake.n_until_fail = 1 + draw(r, 100);
        break;
    case 6: { /* ids that are added without a sync */
        const size_t n = r->n_ids;
        size_t n_held;
        (void)bn_session_ids(r->s, &n_held);
        add_ids(r, 1 + draw(r, 40));
        if (n_held == n)
            assert_true(bn_session_eval(r->s, r->ids + n, r->n_ids - n, NULL, NULL, 0, NULL, &err));
        break;
    }
    default:
        turn(r, draw(r, 40), draw(r, 40));
    }
    if (r->n_ids == 0 || r->n_ids > N_CTX - 400)
        r->n_ids = 1;
}

static void every_random_step_has_the_logits_of_its_ids(void **state)
{
    (void)state;
    static const size_t budgets[] = {0, 1, 2, 4, 30, STATES_MAX + 1};
    for (int kind = FAKE_PLAIN; kind <= FAKE_RING; kind++)
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
            struct rig *r = open_rig((enum fake_kind)kind, budgets[b]);
            turn(r, 100, 10);
            for (size_t step = 0; step < 1000; step++) {
                random_step(r);
                if (!try_sync(r)) { /* the failure that random_step prepared */
                    r->fake.n_until_fail = 0;
                    assert_true(try_sync(r));
                }
                r->fake.n_until_fail = 0;
                if (kind == FAKE_PLAIN)
                    assert_int_equal(r->stats.n_reevaluated, 0);
                assert_true(bn_session_states(r->s).n_bytes <= budget_of(r, budgets[b]));
            }
            close_rig(r);
        }
}

/* ---- returns are cheap ---- */

#define QUESTION 60
#define ANSWER 90
#define TURN (QUESTION + ANSWER)

static struct rig *open_chat(enum fake_kind kind, size_t n_states, size_t n_turns)
{
    struct rig *r = open_rig(kind, n_states);
    for (size_t i = 0; i < n_turns; i++)
        turn(r, QUESTION, ANSWER);
    return r;
}

static void undo_and_edit_evaluate_at_most_one_turn_again(void **state)
{
    (void)state;
    for (int kind = FAKE_RECURRENT; kind <= FAKE_RING; kind++) {
        struct rig *r = open_chat((enum fake_kind)kind, 100, 30);
        turn(r, QUESTION, 0);
        assert_int_equal(r->stats.n_reevaluated, 0); /* a new turn */
        assert_true(try_sync(r));
        assert_int_equal(r->stats.n_evaluated, 1); /* a retry */
        r->n_ids = 20 * TURN;
        turn(r, QUESTION, 0); /* an undo of 10 turns */
        assert_true(r->stats.n_reevaluated <= 1);
        r->n_ids = 10 * TURN + QUESTION / 2;
        turn(r, QUESTION, 0); /* an edit in the middle of a question */
        assert_true(r->stats.n_reevaluated <= QUESTION);
        close_rig(r);

        r = open_chat((enum fake_kind)kind, 36, 30); /* little more than one state per turn */
        r->n_ids = 20 * TURN;
        turn(r, QUESTION, 0);
        assert_true(r->stats.n_reevaluated <= TURN);
        r->n_ids = 15 * TURN + QUESTION / 2;
        turn(r, QUESTION, 0);
        assert_true(r->stats.n_reevaluated <= TURN);
        close_rig(r);
    }
}

static void expect_states(const struct rig *r, size_t n, const size_t *lengths)
{
    const struct states *st = &r->s->states;
    assert_int_equal(st->n, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(st->list[i].length, lengths[i]);
}

/* docs/architecture.md, "Saved states", tells this session with the same numbers. */
static void the_documented_session_saves_these_states(void **state)
{
    (void)state;
    for (int kind = FAKE_RECURRENT; kind <= FAKE_RING; kind++) {
        struct rig *r = open_rig((enum fake_kind)kind, 100);
        turn(r, 60, 0); /* the first prompt: only the state before its last id */
        expect_states(r, 1, (const size_t[]){59});
        turn(r, 0, 90); /* its answer */
        expect_states(r, 1, (const size_t[]){59});
        turn(r, 60, 90); /* the second prompt begins at 150 and ends at 210 */
        expect_states(r, 3, (const size_t[]){59, 150, 209});
        assert_int_equal(r->n_ids, 300);
        r->n_ids = 210; /* /retry */
        turn(r, 0, 0);
        assert_int_equal(r->stats.n_reused, 209);
        expect_states(r, 3, (const size_t[]){59, 150, 209});
        turn(r, 0, 90);
        r->n_ids = 150; /* /undo, then another question */
        turn(r, 40, 0);
        assert_int_equal(r->stats.n_reused, 150);
        assert_int_equal(r->stats.n_reevaluated, 0);
        expect_states(r, 3, (const size_t[]){59, 150, 189});
        r->n_ids = 100; /* a change of the first answer: a branch without a state */
        turn(r, 80, 0);
        assert_int_equal(r->stats.n_reused, 59);
        assert_int_equal(r->stats.n_reevaluated, 41);
        expect_states(r, 3, (const size_t[]){59, 100, 179});
        close_rig(r);
    }
}

/* The template of a thinking model removes thoughts from earlier turns. */
static void an_answer_without_its_thoughts_evaluates_no_question_again(void **state)
{
    (void)state;
    struct rig *r = open_chat(FAKE_RECURRENT, 8, 5);
    r->n_ids -= ANSWER - 1;
    turn(r, ANSWER / 2 + QUESTION, 0);
    assert_int_equal(r->stats.n_reused, 4 * TURN + QUESTION - 1);
    assert_int_equal(r->stats.n_reevaluated, 2);
    close_rig(r);
}

/* The template of a thinking model ends a prompt with the beginning of a thought, which earlier
 * turns do not have. */
static void a_state_is_kept_where_the_next_prompt_differs(void **state)
{
    enum { OPENED = 2 }; /* ids that begin a thought */
    (void)state;
    for (int hint = 0; hint <= 1; hint++) {
        struct rig *r = open_rig(FAKE_RECURRENT, 20);
        size_t n_reevaluated = 0;
        for (size_t i = 0; i < 10; i++) {
            add_ids(r, QUESTION + OPENED);
            r->n_stable = hint ? r->n_ids - OPENED : 0;
            assert_true(try_sync(r));
            if (i > 0)
                n_reevaluated += r->stats.n_reevaluated;
            assert_true(try_sync(r)); /* a retry */
            assert_int_equal(r->stats.n_evaluated, hint ? OPENED : 1);
            turn(r, 0, ANSWER);
            r->n_ids -= ANSWER + OPENED; /* the answer without its thought */
            add_ids(r, ANSWER / 2);
        }
        if (hint)
            assert_int_equal(n_reevaluated, 0);
        else
            assert_true(n_reevaluated >= 9 * QUESTION / 2);
        close_rig(r);
    }
}

static void a_long_prompt_has_states_inside(void **state)
{
    (void)state;
    struct rig *r = open_rig(FAKE_RECURRENT, 50);
    turn(r, 15000, 0);
    assert_int_equal(bn_session_states(r->s).n_states, 8); /* 7 inside, 1 at the end */
    r->n_ids = 9001;
    add_ids(r, 100);
    assert_true(try_sync(r));
    assert_true(r->stats.n_reevaluated > 0 && r->stats.n_reevaluated < 2048);
    /* The second branch at the same place evaluates nothing again. */
    r->n_ids = 9001;
    add_ids(r, 100);
    assert_true(try_sync(r));
    assert_int_equal(r->stats.n_reevaluated, 0);
    close_rig(r);
}

static void a_failed_pass_keeps_the_length(void **state)
{
    (void)state;
    struct rig *r = open_chat(FAKE_RECURRENT, 4, 2);
    const size_t n = r->n_ids;
    size_t n_held;
    add_ids(r, 1);
    r->fake.n_until_fail = 1;
    assert_false(try_sync(r));
    (void)bn_session_ids(r->s, &n_held);
    assert_int_equal(n_held, n);
    assert_true(try_sync(r));
    assert_int_equal(r->stats.n_evaluated, 1);
    close_rig(r);
}

static void a_state_that_cannot_be_saved_is_not_used(void **state)
{
    (void)state;
    struct rig *r = open_chat(FAKE_RECURRENT, 100, 3);
    const size_t n_states = bn_session_states(r->s).n_states;
    r->fake.state_save_fails = true;
    turn(r, QUESTION, ANSWER);
    assert_int_equal(bn_session_states(r->s).n_states, n_states);
    r->n_ids = 3 * TURN + 5;
    assert_true(try_sync(r));
    assert_true(r->stats.n_reevaluated > 5);
    close_rig(r);
}

/* ---- the budget ---- */

static void full_budget_keeps_new_states_close_and_old_ones_sparse(void **state)
{
    (void)state;
    struct states st;
    struct bn_error err;
    assert_true(states_open(&st, 8, 100, &err)); /* 12 states */
    for (size_t length = 100; length <= 40000; length += 100) {
        uint64_t *to = states_add(&st, length);
        assert_non_null(to);
        *to = length;
        assert_int_equal(states_newest(&st), length);
        if (st.n >= 2)
            assert_int_equal(st.list[st.n - 2].length, length - 100);
    }
    assert_int_equal(st.n, 12);
    for (size_t i = 0; i < st.n; i++)
        assert_int_equal(*(uint64_t *)st.list[i].map.ptr, st.list[i].length);
    assert_true(st.list[0].length < 12000 && st.list[st.n - 4].length > 30000);
    assert_ptr_equal(states_find(&st, 39999), &st.list[st.n - 2]);
    assert_null(states_find(&st, st.list[0].length - 1));
    states_cut(&st, 39950);
    assert_int_equal(st.n, 11);
    states_close(&st);

    assert_true(states_open(&st, 8, 7, &err)); /* none */
    assert_null(states_add(&st, 1));
    assert_null(states_find(&st, 1));
    states_close(&st);
}

/* ---- saved sessions ---- */

static struct memory_stream save_session(struct rig *r)
{
    struct bn_error err;
    struct memory_stream saved = {0};
    const struct bn_stream out = memory_stream_writer(&saved);
    assert_true(bn_session_save(r->s, &out, &err));
    assert_int_equal(saved.n_bytes, bn_session_save_bytes(r->s));
    return saved;
}

static bool load_saved(struct rig *r, struct memory_stream *saved, struct bn_error *err)
{
    const struct bn_stream in = memory_stream_reader(saved);
    saved->at = 0;
    return bn_session_load(r->s, &in, err);
}

static void saved_states_are_loaded(void **state)
{
    (void)state;
    static const size_t budgets[] = {100, 3, 0}; /* of the session that loads */
    struct bn_error err;
    struct rig *r = open_chat(FAKE_RECURRENT, 100, 6);
    struct memory_stream saved = save_session(r);
    for (size_t i = 0; i < 3; i++) {
        struct rig *other = open_rig(FAKE_RECURRENT, budgets[i]);
        assert_true(load_saved(other, &saved, &err));
        assert_int_equal(saved.at, saved.n_bytes);
        assert_int_equal(bn_session_states(other->s).n_states,
                         size_min(budgets[i], bn_session_states(r->s).n_states));
        memcpy(other->ids, r->ids, r->n_ids * sizeof *r->ids);
        other->n_ids = 3 * TURN;
        turn(other, QUESTION, 3);
        if (i == 0)
            assert_true(other->stats.n_reevaluated <= 1);
        close_rig(other);
    }
    mem_free(saved.bytes);
    close_rig(r);
}

static void damaged_states_are_refused(void **state)
{
    (void)state;
    struct bn_error err;
    struct rig *r = open_chat(FAKE_RECURRENT, 2, 2);
    struct memory_stream saved = save_session(r);
    const size_t n_bytes = saved.n_bytes, state_bytes = r->fake.model.info.state_bytes;
    /* The end of the stream: version, number and size of the states, and two states. */
    enum { HEADER_BYTES = 16, LENGTH_BYTES = 8 };
    const size_t header = n_bytes - 2 * (LENGTH_BYTES + state_bytes) - HEADER_BYTES;
    const size_t length_1 = HEADER_BYTES, length_2 = length_1 + LENGTH_BYTES + state_bytes;
    size_t n_held;
    for (saved.n_bytes = header; saved.n_bytes < n_bytes; saved.n_bytes++) {
        assert_false(load_saved(r, &saved, &err));
        assert_int_equal(err.code, BN_EIO);
        (void)bn_session_ids(r->s, &n_held);
        assert_int_equal(n_held, 0);
    }
    /* Offsets of bytes that must not change: version, size, and bytes of both lengths. */
    const size_t wrong[] = {0, 8, length_1 + 7, length_2 + 7, length_2 + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        saved.bytes[header + wrong[i]] ^= 0x40;
        assert_false(load_saved(r, &saved, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        saved.bytes[header + wrong[i]] ^= 0x40;
    }
    assert_true(load_saved(r, &saved, &err));
    assert_true(try_sync(r));
    mem_free(saved.bytes);
    close_rig(r);
}

/* ---- speculation ---- */

/* Drafts whose first n_right ids are the ones that the sampler will choose. */
struct oracle {
    const int32_t *ids;
    size_t n_right;
};

static size_t draft_ids(void *ud, const int32_t *ids, size_t n_ids, int32_t *out, size_t n)
{
    const struct oracle *o = ud;
    (void)ids;
    for (size_t i = 0; i < n; i++)
        out[i] = o->ids[n_ids + i] ^ (i >= o->n_right ? 1 : 0);
    return 32; /* a long match */
}

static double tick(void)
{
    static double seconds;
    return seconds += 0.5;
}

static void drafts_do_not_change_the_ids(void **state)
{
    (void)state;
    enum { N_PROMPT = 50, N_TOKENS = 100 };
    const struct sampler_params params = {.top_p = 1, .typical = 1, .repeat_penalty = 1};
    int32_t ids[N_PROMPT + N_TOKENS + 16] = {0}, again[N_PROMPT + N_TOKENS + 16];
    struct bn_error err;
    struct sampler *sampler;
    assert_true(sampler_open(FAKE_VOCAB, &sampler, &err));
    assert_true(sampler_set(sampler, &params, &err));
    for (int kind = FAKE_PLAIN; kind <= FAKE_RING; kind++)
        for (size_t n_right = 0; n_right <= 16; n_right += n_right < 3 ? 1 : 13) {
            struct rig *r = open_rig((enum fake_kind)kind, 4);
            struct oracle oracle = {ids, n_right};
            struct spec_config cfg = {.session = r->s,
                                      .sampler = sampler,
                                      .n_vocab = FAKE_VOCAB,
                                      .n_ubatch = FAKE_UBATCH,
                                      .draft = draft_ids,
                                      .draft_ud = &oracle,
                                      .now = tick};
            struct spec *sp;
            assert_true(spec_open(&cfg, &sp, &err));
            for (size_t n = N_PROMPT; n < N_PROMPT + N_TOKENS; n++)
                assert_true(spec_step(sp, ids, n, NULL, NULL, &ids[n], &err));
            spec_reset(sp, SPEC_ON);
            memcpy(again, ids, sizeof ids);
            const size_t n_before = r->fake.n_evals;
            for (size_t n = N_PROMPT; n < N_PROMPT + N_TOKENS; n++) {
                assert_true(spec_step(sp, again, n, NULL, NULL, &again[n], &err));
                assert_int_equal(again[n], ids[n]);
            }
            const struct spec_stats stats = spec_stats_of(sp);
            assert_true(stats.n_drafted > 0);
            assert_true(n_right == 0 ? stats.n_accepted == 0 : stats.n_accepted > 0);
            /* No step evaluates a turn or more again. */
            assert_true(r->fake.n_evals - n_before < 20 * N_TOKENS);
            spec_close(sp);
            close_rig(r);
        }
    sampler_close(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_random_step_has_the_logits_of_its_ids),
        cmocka_unit_test(undo_and_edit_evaluate_at_most_one_turn_again),
        cmocka_unit_test(the_documented_session_saves_these_states),
        cmocka_unit_test(an_answer_without_its_thoughts_evaluates_no_question_again),
        cmocka_unit_test(a_state_is_kept_where_the_next_prompt_differs),
        cmocka_unit_test(a_long_prompt_has_states_inside),
        cmocka_unit_test(a_failed_pass_keeps_the_length),
        cmocka_unit_test(a_state_that_cannot_be_saved_is_not_used),
        cmocka_unit_test(full_budget_keeps_new_states_close_and_old_ones_sparse),
        cmocka_unit_test(saved_states_are_loaded),
        cmocka_unit_test(damaged_states_are_refused),
        cmocka_unit_test(drafts_do_not_change_the_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
