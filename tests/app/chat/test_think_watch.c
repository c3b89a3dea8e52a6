/*
 * The budget of a thought: when it closes the thought, and what it counts.
 */
#include "app/chat/answer/think_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N_CLOSE 3
static const int32_t close_ids[N_CLOSE] = {71, 72, 73};

static struct think_watch watch(enum thought_mode mode, size_t n_budget)
{
    const struct think_limit limit = {
        .mode = mode, .n_budget = n_budget, .close = close_ids, .n_close = N_CLOSE};
    struct think_watch w;
    think_watch_init(&w, &limit);
    return w;
}

/* Add the text one byte per token, up to the byte where the thought must be closed. Returns the
 * number of bytes added. */
static size_t run(struct think_watch *w, const char *text)
{
    int32_t id;
    for (size_t i = 0;; i++) {
        if (!text[i] || think_watch_next(w, &id))
            return i;
        think_watch_add(w, (struct bn_str){text + i, 1});
    }
}

static void expect_cut(enum thought_mode mode, size_t n_budget, const char *text, size_t n_bytes,
                       size_t n_thought)
{
    struct think_watch w = watch(mode, n_budget);
    assert_int_equal(run(&w, text), n_bytes);
    assert_int_equal(w.is_cut, text[n_bytes] != 0);
    assert_int_equal(w.n_thought, n_thought);
    think_watch_finish(&w);
}

static void a_thought_ends_at_its_budget(void **state)
{
    (void)state;
    expect_cut(THOUGHT_RUNNING, 4, "abcdefgh", 4, 4);
    expect_cut(THOUGHT_RUNNING, 0, "abcdefgh", 0, 0);
    expect_cut(THOUGHT_MAYBE, 4, "<think>abcdefgh", 11, 4);
    expect_cut(THOUGHT_MAYBE, 0, "<think>abcdefgh", 7, 0);
}

static void nothing_else_is_cut(void **state)
{
    (void)state;
    expect_cut(THOUGHT_NONE, 0, "<think>abc", 10, 0);
    expect_cut(THOUGHT_MAYBE, 0, "abc <think>", 11, 0);
    expect_cut(THOUGHT_RUNNING, THINK_NO_BUDGET, "abc", 3, 3);
    expect_cut(THOUGHT_RUNNING, 10, "abc</think>defghijklmn", 22, 3);
}

static void a_character_is_completed_first(void **state)
{
    (void)state;
    expect_cut(THOUGHT_RUNNING, 2,
               "a\xE2\x82\xAC"
               "bcd",
               4, 4);
    expect_cut(THOUGHT_RUNNING, 4,
               "a\xE2\x82\xAC"
               "bcd",
               4, 4);
    expect_cut(THOUGHT_RUNNING, 1, "\xF0\x9F\x98\x80\xF0\x9F\x98\x80", 4, 4);
}

static void a_marker_is_completed_first(void **state)
{
    (void)state;
    expect_cut(THOUGHT_RUNNING, 2, "a</think>bcd", 12, 1);
    expect_cut(THOUGHT_RUNNING, 2, "a</thingy", 8, 8);
}

static void waiting_is_bounded(void **state)
{
    (void)state;
    expect_cut(THOUGHT_RUNNING, 2, "<<<<<<<<<<<<<<<<<<<<", 2 + THINK_WAIT, 2 + THINK_WAIT);
    expect_cut(THOUGHT_RUNNING, 1, "\xE2\xE2\xE2\xE2\xE2\xE2\xE2\xE2\xE2\xE2\xE2\xE2",
               1 + THINK_WAIT, 1 + THINK_WAIT);
}

static void the_closing_tokens_come_once_and_in_order(void **state)
{
    struct think_watch w = watch(THOUGHT_RUNNING, 2);
    int32_t id;
    (void)state;
    (void)run(&w, "abcd");
    for (size_t i = 0; i < N_CLOSE; i++) {
        id = -1;
        assert_true(think_watch_next(&w, &id));
        assert_int_equal(id, close_ids[i]);
        assert_true(think_watch_next(&w, &id)); /* without an effect of its own */
        assert_int_equal(id, close_ids[i]);
        think_watch_add(&w, bn_str_of("x"));
    }
    assert_false(think_watch_next(&w, &id));
    think_watch_add(&w, bn_str_of("<think>answer"));
    assert_false(think_watch_next(&w, &id));
    assert_true(w.is_cut);
    assert_int_equal(w.n_thought, 2);
    think_watch_finish(&w);
}

static void an_earlier_part_counts_for_the_budget(void **state)
{
    struct think_watch w = watch(THOUGHT_RUNNING, 5);
    (void)state;
    w.limit.n_before = 3;
    assert_int_equal(run(&w, "abcdef"), 2);
    assert_int_equal(w.n_thought, 2);
    think_watch_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thought_ends_at_its_budget),
        cmocka_unit_test(nothing_else_is_cut),
        cmocka_unit_test(a_character_is_completed_first),
        cmocka_unit_test(a_marker_is_completed_first),
        cmocka_unit_test(waiting_is_bounded),
        cmocka_unit_test(the_closing_tokens_come_once_and_in_order),
        cmocka_unit_test(an_earlier_part_counts_for_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
