/*
 * Exchanges, undo, redo and cuts.
 */
#include "app/chat/conversation/transcript.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t n_until_fail; /* allocation of this number fails; 0: none */

/* The linker option --wrap calls this in place of mem_alloc. */
void *__real_mem_alloc(size_t n, size_t unit_bytes);
void *__wrap_mem_alloc(size_t n, size_t unit_bytes);
void *__wrap_mem_alloc(size_t n, size_t unit_bytes)
{
    return n_until_fail > 0 && --n_until_fail == 0 ? NULL : __real_mem_alloc(n, unit_bytes);
}

#define MAX_STEPS 64 /* steps of the undo list and of the redo list, as in transcript.c */

static void add_exchange(struct transcript *t, const char *user, const char *answer)
{
    const int32_t ids[] = {1, 2};
    const struct answer a = {
        .text = bn_str_of(answer), .ids = ids, .n_ids = 2, .finish = FINISH_STOP};
    assert_true(transcript_add_question(t, bn_str_of(user)));
    assert_true(transcript_answer(t, &a));
}

static void expect(const struct transcript *t, const char *users)
{
    char all[100] = "";
    for (size_t i = 0; i < t->now.n; i++)
        strncat(all, t->now.items[i]->user.ptr, sizeof(all) - strlen(all) - 1);
    assert_string_equal(all, users);
}

static void undo_and_redo_move_one_exchange(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "2");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    expect(&t, "a");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_int_equal(transcript_undo(&t), UNDO_NOTHING);
    expect(&t, "");
    assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    assert_int_equal(transcript_redo(&t), UNDO_NOTHING);
    expect(&t, "ab");
    assert_true(bn_str_is(transcript_last(&t)->answer.text, "2"));
    transcript_finish(&t);
}

static void a_new_message_drops_redo(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    add_exchange(&t, "b", "2");
    assert_int_equal(transcript_redo(&t), UNDO_NOTHING);
    expect(&t, "b");
    transcript_finish(&t);
}

static void a_cut_is_undone_only_if_it_was_the_last_change(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "2");
    assert_true(transcript_clear(&t));
    expect(&t, "");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect(&t, "ab");
    assert_int_equal(transcript_redo(&t), UNDO_CUT);
    expect(&t, "");
    add_exchange(&t, "c", "3");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE); /* removes the message */
    assert_int_equal(transcript_undo(&t), UNDO_CUT);      /* reverts the cut */
    expect(&t, "ab");
    transcript_finish(&t);
}

/* The chat tells which file has the conversation, so undo and redo must restore its number. */
static void clear_and_replace_begin_a_chat_that_undo_leaves(void **state)
{
    struct transcript t = {0}, loaded = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    assert_true(transcript_clear(&t));
    assert_int_equal(t.now.chat_number, 1);
    add_exchange(&loaded, "b", "2");
    assert_true(transcript_replace(&t, &loaded));
    assert_int_equal(t.now.chat_number, 2);
    add_exchange(&t, "c", "3");
    assert_int_equal(transcript_undo_chat_number(&t), 2); /* only the message */
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_true(transcript_rewind(&t, 0));
    assert_int_equal(t.now.chat_number, 2); /* a shorter conversation is the same chat */
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    for (size_t chat = 2; chat-- > 0;) {
        assert_int_equal(transcript_undo_chat_number(&t), chat);
        assert_int_equal(transcript_undo(&t), UNDO_CUT);
        assert_int_equal(t.now.chat_number, chat);
    }
    assert_int_equal(transcript_redo_chat_number(&t), 1);
    assert_int_equal(transcript_redo(&t), UNDO_CUT);
    assert_int_equal(t.now.chat_number, 1);
    transcript_finish(&t);
}

static void an_empty_conversation_can_be_cleared(void **state)
{
    struct transcript t = {0};
    (void)state;
    assert_true(transcript_clear(&t)); /* with a sanitizer: no copy from NULL */
    expect(&t, "");
    transcript_finish(&t);
}

static void forget_and_rewind_keep_the_right_part(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        add_exchange(&t, (const char *[]){"a", "b", "c", "d"}[i], "x");
    t.now.n_skipped = 2;
    assert_true(transcript_forget(&t, 1));
    expect(&t, "bcd");
    assert_int_equal(t.now.n_skipped, 1);
    assert_true(transcript_rewind(&t, 1));
    expect(&t, "b");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect(&t, "abcd");
    assert_int_equal(t.now.n_skipped, 2);
    transcript_finish(&t);
}

/* The answer of /continue and /retry replaces the exchange, which gets a new serial. */
static void forgotten_turns_return_after_a_new_answer(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "2");
    assert_true(transcript_forget(&t, 1));
    assert_true(transcript_answer(&t, &(struct answer){.text = bn_str_of("3")}));
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    expect(&t, "");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect(&t, "ab");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    expect(&t, "a");
    transcript_finish(&t);
}

static void expect_saved(const struct transcript *t, size_t n, const char *system)
{
    assert_int_equal(transcript_saved(t)->n, n);
    assert_true(bn_str_is(transcript_saved(t)->system, system));
}

static void an_edited_message_is_saved_until_it_is_sent(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "2");
    assert_true(transcript_rewind(&t, 1));
    transcript_begin_edit(&t);
    expect_saved(&t, 2, "");
    assert_true(transcript_set_system(&t, bn_str_of("brief")));
    expect_saved(&t, 2, "brief");
    assert_true(transcript_clear(&t)); /* another chat, and back */
    expect_saved(&t, 0, "brief");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect_saved(&t, 2, "brief");
    assert_true(transcript_add_question(&t, bn_str_of("c")));
    expect_saved(&t, 2, "brief");
    transcript_remove_last(&t); /* it was stopped before its answer began */
    expect_saved(&t, 2, "brief");
    add_exchange(&t, "c", "3");
    expect(&t, "ac");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    expect_saved(&t, 1, "brief");
    transcript_finish(&t);
}

static void a_system_message_is_set_everywhere_or_nowhere(void **state)
{
    struct transcript t = {0};
    size_t n_failed = 0;
    (void)state;
    add_exchange(&t, "a", "1");
    assert_true(transcript_set_system(&t, bn_str_of("old")));
    assert_true(transcript_rewind(&t, 0));
    transcript_begin_edit(&t);
    for (n_until_fail = 1; !transcript_set_system(&t, bn_str_of("new"));
         n_until_fail = ++n_failed + 1) {
        assert_true(bn_str_is(t.now.system, "old"));
        expect_saved(&t, 1, "old");
    }
    n_until_fail = 0;
    assert_int_equal(n_failed, 2); /* the state that is shown and the one in the files */
    assert_true(bn_str_is(t.now.system, "new"));
    expect_saved(&t, 1, "new");
    transcript_finish(&t);
}

/* As prompt_fit would do for a large message: leave out `n` turns. */
static void add_large(struct transcript *t, size_t n)
{
    assert_true(transcript_add_question(t, bn_str_of("L")));
    t->now.n_skipped = n;
    assert_true(transcript_answer(t, &(struct answer){.finish = FINISH_STOP}));
}

static void turns_that_a_removed_message_left_out_return(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        add_exchange(&t, (const char *[]){"a", "b", "c"}[i], "x");
    add_large(&t, 1);
    add_large(&t, 4);
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_int_equal(t.now.n_skipped, 1);
    assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    assert_int_equal(t.now.n_skipped, 4);
    assert_true(transcript_forget(&t, 1)); /* the places of all turns change */
    assert_int_equal(t.now.n_skipped, 3);
    assert_true(transcript_rewind(&t, 3)); /* without the second large message */
    expect(&t, "bcL");
    assert_int_equal(t.now.n_skipped, 0);
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    assert_int_equal(t.now.n_skipped, 3);
    assert_true(transcript_rewind(&t, 1));
    assert_int_equal(t.now.n_skipped, 0);
    assert_true(transcript_add_question(&t, bn_str_of("q")));
    t.now.n_skipped = 1;
    transcript_remove_last(&t);
    assert_int_equal(t.now.n_skipped, 0);
    transcript_finish(&t);
}

static void forgotten_turns_do_not_keep_others_out(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < 5; i++)
        add_exchange(&t, (const char *[]){"a", "b", "c", "d", "e"}[i], "x");
    add_large(&t, 4); /* the oldest turn before it was a */
    assert_true(transcript_forget(&t, 2));
    assert_int_equal(t.now.n_skipped, 2);
    assert_true(transcript_rewind(&t, 3));
    expect(&t, "cde");
    assert_int_equal(t.now.n_skipped, 0);
    transcript_finish(&t);
}

static void the_skipped_turns_of_a_file_stay_skipped(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < 4; i++)
        add_exchange(&t, "a", "x");
    transcript_set_skipped(&t, 2);
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_int_equal(t.now.n_skipped, 2);
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_int_equal(t.now.n_skipped, 0); /* of two turns, the last one must stay */
    transcript_finish(&t);
}

static void an_answer_replaces_only_the_one_in_this_state(void **state)
{
    struct transcript t = {0};
    const struct answer other = {.text = {"2", 1}, .finish = FINISH_LENGTH};
    (void)state;
    add_exchange(&t, "a", "1");
    assert_true(transcript_clear(&t));
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    assert_true(transcript_answer(&t, &other));
    assert_true(bn_str_is(transcript_last(&t)->answer.text, "2"));
    assert_int_equal(transcript_last(&t)->answer.n_ids, 0);
    transcript_finish(&t);
}

static void a_removed_question_is_not_in_redo(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    assert_true(transcript_add_question(&t, bn_str_of("b")));
    transcript_remove_last(&t);
    expect(&t, "a");
    assert_int_equal(transcript_redo(&t), UNDO_NOTHING);
    transcript_finish(&t);
}

static void redo_works_until_an_answer(void **state)
{
    struct transcript t = {0};
    const struct answer other = {.text = {"2", 1}, .finish = FINISH_STOP};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "1");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_true(transcript_add_question(&t, bn_str_of("c")));
    transcript_remove_last(&t); /* it was refused or taken back */
    assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    expect(&t, "ab");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_true(transcript_answer(&t, &other)); /* as /retry: redo would lose this answer */
    assert_int_equal(transcript_redo(&t), UNDO_NOTHING);
    assert_true(bn_str_is(transcript_last(&t)->answer.text, "2"));
    transcript_finish(&t);
}

static void expect_answer(const struct transcript *t, const char *text)
{
    assert_int_equal(t->now.n, 1);
    assert_true(bn_str_is(transcript_last(t)->answer.text, text));
}

static void undo_restores_the_answers_that_retries_replaced(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    for (size_t i = 0; i < 2; i++)
        assert_true(transcript_retry(
            &t, &(struct answer){.text = {&"23"[i], 1}, .finish = FINISH_INTERRUPTED}, 0));
    expect_answer(&t, "3");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect_answer(&t, "2");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect_answer(&t, "1");
    assert_int_equal(transcript_last(&t)->answer.n_ids, 2);
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    expect(&t, "");
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(transcript_redo(&t), UNDO_NOTHING);
    expect_answer(&t, "3");
    add_exchange(&t, "b", "4");
    assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE); /* removes the message */
    assert_int_equal(transcript_undo(&t), UNDO_CUT);      /* reverts the retry */
    expect_answer(&t, "2");
    transcript_finish(&t);
}

/* A user may stop the new answer, continue it, and want the earlier answer nevertheless. */
static void undo_restores_the_answer_before_a_continued_retry(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    assert_true(transcript_retry(&t, &(struct answer){.text = bn_str_of("2")}, 0));
    assert_true(transcript_answer(&t, &(struct answer){.text = bn_str_of("23")}));
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect_answer(&t, "1");
    assert_int_equal(transcript_redo(&t), UNDO_CUT);
    expect_answer(&t, "23");
    transcript_finish(&t);
}

static void a_retry_while_a_message_is_edited_ends_the_edit(void **state)
{
    struct transcript t = {0};
    (void)state;
    add_exchange(&t, "a", "1");
    add_exchange(&t, "b", "2");
    assert_true(transcript_rewind(&t, 1));
    transcript_begin_edit(&t);
    assert_true(transcript_retry(&t, &(struct answer){.text = bn_str_of("3")}, 0));
    expect_saved(&t, 1, "");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect_saved(&t, 1, "");
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect(&t, "ab");
    transcript_finish(&t);
}

static void many_cuts_keep_the_newest(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < 200; i++) {
        add_exchange(&t, "a", "1");
        assert_true(transcript_clear(&t));
    }
    assert_int_equal(transcript_undo(&t), UNDO_CUT);
    expect(&t, "a");
    transcript_finish(&t);
}

static void an_undo_with_nothing_to_undo_keeps_all_redo_steps(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < MAX_STEPS; i++)
        add_exchange(&t, "a", "1");
    for (size_t i = 0; i < MAX_STEPS; i++)
        assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    assert_int_equal(transcript_undo(&t), UNDO_NOTHING);
    for (size_t i = 0; i < MAX_STEPS; i++)
        assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    assert_int_equal(t.now.n, MAX_STEPS);
    transcript_finish(&t);
}

static void many_undos_keep_the_newest_redo_steps(void **state)
{
    struct transcript t = {0};
    (void)state;
    for (size_t i = 0; i < MAX_STEPS + 6; i++)
        add_exchange(&t, "a", "1");
    for (size_t i = 0; i < MAX_STEPS + 6; i++)
        assert_int_equal(transcript_undo(&t), UNDO_EXCHANGE);
    for (size_t i = 0; i < MAX_STEPS; i++)
        assert_int_equal(transcript_redo(&t), UNDO_EXCHANGE);
    assert_int_equal(transcript_redo(&t), UNDO_NOTHING);
    assert_int_equal(t.now.n, MAX_STEPS);
    transcript_finish(&t);
}

static void finish_names_can_be_parsed(void **state)
{
    (void)state;
    for (int f = FINISH_NONE; f < FINISH_N; f++)
        assert_int_equal(finish_reason_of(finish_reason_name((enum finish_reason)f)), f);
    assert_int_equal(finish_reason_of("nonsense"), FINISH_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undo_and_redo_move_one_exchange),
        cmocka_unit_test(a_new_message_drops_redo),
        cmocka_unit_test(a_cut_is_undone_only_if_it_was_the_last_change),
        cmocka_unit_test(clear_and_replace_begin_a_chat_that_undo_leaves),
        cmocka_unit_test(an_empty_conversation_can_be_cleared),
        cmocka_unit_test(forget_and_rewind_keep_the_right_part),
        cmocka_unit_test(forgotten_turns_return_after_a_new_answer),
        cmocka_unit_test(an_edited_message_is_saved_until_it_is_sent),
        cmocka_unit_test(a_system_message_is_set_everywhere_or_nowhere),
        cmocka_unit_test(turns_that_a_removed_message_left_out_return),
        cmocka_unit_test(forgotten_turns_do_not_keep_others_out),
        cmocka_unit_test(the_skipped_turns_of_a_file_stay_skipped),
        cmocka_unit_test(an_answer_replaces_only_the_one_in_this_state),
        cmocka_unit_test(a_removed_question_is_not_in_redo),
        cmocka_unit_test(redo_works_until_an_answer),
        cmocka_unit_test(undo_restores_the_answers_that_retries_replaced),
        cmocka_unit_test(undo_restores_the_answer_before_a_continued_retry),
        cmocka_unit_test(a_retry_while_a_message_is_edited_ends_the_edit),
        cmocka_unit_test(many_cuts_keep_the_newest),
        cmocka_unit_test(an_undo_with_nothing_to_undo_keeps_all_redo_steps),
        cmocka_unit_test(many_undos_keep_the_newest_redo_steps),
        cmocka_unit_test(finish_names_can_be_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
