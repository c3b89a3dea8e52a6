/*
 * Earlier answers enter the prompt with the ids that were generated. MODEL is a file with a
 * vocabulary of bytes, in which the id of a byte is the byte.
 */
#include "app/chat/conversation/chat_prompt.h"
#include "engine/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct tokenizer *tokenizer;
/* The tests compare pointers to these ids, so ids that were encoded again would be noticed. */
static const int32_t hello[] = {' ', 'h', 'i', '\n', 'y', 'o', ' '};
static const struct answer earlier = {
    .text = {" hi\nyo ", 7}, .ids = hello, .n_ids = 7, .finish = FINISH_STOP};

static struct segment restored(const char *run, const struct answer *a)
{
    struct segment s = {.kind = SEGMENT_ANSWER, .text = bn_str_of(run), .message = 1};
    const struct answer *const answers[] = {NULL, a};
    prompt_restore_ids(tokenizer, &s, 1, answers, 2);
    return s;
}

/* In the prompt, the text `run` of the answer becomes n of its ids from index `first` on. */
static void expect_ids(const char *run, size_t first, size_t n)
{
    const struct segment s = restored(run, &earlier);
    assert_int_equal(s.kind, SEGMENT_IDS);
    assert_ptr_equal(s.ids, hello + first);
    assert_int_equal(s.n_ids, n);
}

static void a_whole_message_uses_all_ids_despite_blanks(void **state)
{
    (void)state;
    expect_ids(" hi\nyo ", 0, 7);
    expect_ids("hi\nyo", 0, 7);
    expect_ids("\thi\nyo\xc2\xa0\n", 0, 7);
}

static void a_part_of_a_message_uses_some_ids(void **state)
{
    (void)state;
    expect_ids("yo", 4, 2);
    expect_ids("yo ", 4, 3);
    expect_ids("hi", 1, 2);
}

static void the_end_of_a_message_is_preferred_to_the_same_text_before(void **state)
{
    static const int32_t ids[] = {'4', ',', 's', 'o', '4', '\n'};
    const struct answer a = {.text = {"4,so4\n", 6}, .ids = ids, .n_ids = 6, .finish = FINISH_STOP};
    const struct segment s = restored("4", &a);
    (void)state;
    assert_int_equal(s.kind, SEGMENT_IDS);
    assert_ptr_equal(s.ids, ids + 4);
    assert_int_equal(s.n_ids, 1);
}

static void other_text_stays_text(void **state)
{
    static const char *const runs[] = {"HI\nyo", "hi yo", "hello", "", "hi\nyo more"};
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        assert_int_equal(restored(runs[i], &earlier).kind, SEGMENT_ANSWER);
}

static void ids_with_another_text_are_not_used(void **state)
{
    struct answer edited = earlier;
    (void)state;
    assert_true(prompt_ids_fit(tokenizer, &earlier));
    edited.text = bn_str_of(" ho\nyo ");
    assert_false(prompt_ids_fit(tokenizer, &edited));
    assert_int_equal(restored(" ho\nyo ", &edited).kind, SEGMENT_ANSWER);
    edited = earlier;
    edited.n_ids = 0;
    assert_int_equal(restored(" hi\nyo ", &edited).kind, SEGMENT_ANSWER);
}

static void ids_behind_a_stop_string_are_dropped(void **state)
{
    struct answer cut = earlier;
    (void)state;
    prompt_trim_ids(tokenizer, &cut);
    assert_int_equal(cut.n_ids, earlier.n_ids);
    cut.text = (struct bn_str){earlier.text.ptr, 3};
    prompt_trim_ids(tokenizer, &cut);
    assert_true(cut.n_ids > 0 && cut.n_ids < earlier.n_ids);
    assert_true(prompt_ids_fit(tokenizer, &cut));
    cut = earlier;
    cut.text = bn_str_of(" ho");
    prompt_trim_ids(tokenizer, &cut);
    assert_int_equal(cut.n_ids, 0);
}

static void invalid_bytes_may_be_rendered_as_u_fffd(void **state)
{
    static const int32_t ids[] = {'a', 0xFF, 'b'};
    const struct answer a = {.text = {"a\xff"
                                      "b",
                                      3},
                             .ids = ids,
                             .n_ids = 3,
                             .finish = FINISH_STOP};
    (void)state;
    assert_int_equal(restored("a\xef\xbf\xbd"
                              "b",
                              &a)
                         .kind,
                     SEGMENT_IDS);
}

static void messages_of_the_user_are_not_changed(void **state)
{
    struct segment s = {.kind = SEGMENT_MESSAGE, .text = bn_str_of("hi\nyo"), .message = 1};
    const struct answer *const answers[] = {NULL, &earlier};
    (void)state;
    prompt_restore_ids(tokenizer, &s, 1, answers, 2);
    assert_int_equal(s.kind, SEGMENT_MESSAGE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_message_uses_all_ids_despite_blanks),
        cmocka_unit_test(a_part_of_a_message_uses_some_ids),
        cmocka_unit_test(the_end_of_a_message_is_preferred_to_the_same_text_before),
        cmocka_unit_test(other_text_stays_text),
        cmocka_unit_test(ids_with_another_text_are_not_used),
        cmocka_unit_test(ids_behind_a_stop_string_are_dropped),
        cmocka_unit_test(invalid_bytes_may_be_rendered_as_u_fffd),
        cmocka_unit_test(messages_of_the_user_are_not_changed),
    };
    const struct tokenizer_config cfg = {0};
    struct bn_file *file;
    struct bn_error err;
    if (argc != 2 || !bn_file_open(argv[1], &file, &err) ||
        !tokenizer_open(file, &cfg, &tokenizer, &err))
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tokenizer_close(tokenizer);
    bn_file_close(file);
    return failed;
}
