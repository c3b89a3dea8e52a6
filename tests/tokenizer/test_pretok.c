/*
 * Pre-tokenizers: where each one cuts. The expected texts show cuts as "|".
 */
#include "tokenizer/bpe/pretok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct cuts {
    char text[512];
    size_t n;
};

static bool append(void *ud, struct bn_str piece, struct bn_error *err)
{
    struct cuts *cuts = ud;
    (void)err;
    assert_true(piece.n_bytes > 0);
    assert_true(cuts->n + piece.n_bytes + 1 < sizeof(cuts->text));
    if (cuts->n > 0)
        cuts->text[cuts->n++] = '|';
    memcpy(cuts->text + cuts->n, piece.ptr, piece.n_bytes);
    cuts->n += piece.n_bytes;
    return true;
}

static void expect(const char *pre, const char *text, const char *expected)
{
    struct bn_error err;
    struct pretok *p;
    const struct pretok_rule *rule = pretok_rule_find(bn_str_of(pre));
    assert_non_null(rule);
    assert_true(pretok_open(rule, &p, &err));
    struct cuts cuts = {.n = 0};
    assert_true(pretok_split(p, bn_str_of(text), append, &cuts, &err));
    pretok_close(p);
    cuts.text[cuts.n] = '\0';
    assert_string_equal(cuts.text, expected);
}

static void llama3_cuts_like_its_expression(void **state)
{
    (void)state;
    expect("llama-bpe", "Hello world", "Hello| world");
    expect("llama-bpe", "1 + 1 =", "1| +| |1| =");
    expect("llama-bpe", "1234567", "123|456|7");
    expect("llama-bpe", "I'VE it's 'Tabc", "I|'VE| it|'s| '|Tabc");
    expect("llama-bpe", "'Tabc x'Rex", "'T|abc| x|'Re|x");
    expect("llama-bpe", "a  b   \n\n c", "a| | b|   \n\n| c");
    expect("llama-bpe", "end.\r\n\r\nnext", "end|.\r\n\r\n|next");
    expect("llama-bpe", "x   ", "x|   ");
    expect("llama-bpe", "(call)", "(call|)");
    expect("llama-bpe", "\tgo", "\tgo");
}

static void qwen2_cuts_digits_one_by_one(void **state)
{
    (void)state;
    expect("qwen2", "a 123", "a| |1|2|3");
}

/* U+0905 U+0902 is a Devanagari letter with a mark, and U+0301 a mark after a sign. */
static void qwen35_keeps_marks_with_letters(void **state)
{
    (void)state;
    expect("qwen35", "a 123", "a| |1|2|3");
    expect("qwen35", "IT'S +\xE0\xA4\x85\xE0\xA4\x82", "IT|'S| +|\xE0\xA4\x85\xE0\xA4\x82");
    expect("qwen2", "\xE0\xA4\x85\xE0\xA4\x82\xE0\xA4\x85",
           "\xE0\xA4\x85|\xE0\xA4\x82\xE0\xA4\x85");
    expect("qwen35", "\xE0\xA4\x85\xE0\xA4\x82\xE0\xA4\x85",
           "\xE0\xA4\x85\xE0\xA4\x82\xE0\xA4\x85");
    expect("qwen35", "+\xCC\x81!", "+\xCC\x81|!");
}

static void gpt2_cuts_like_its_expression(void **state)
{
    (void)state;
    expect("gpt-2", "Hello world 123!", "Hello| world| 123|!");
    expect("gpt-2", "it's IT'S", "it|'s| IT|'|S");
    expect("gpt-2", "a\nb", "a|\n|b"); /* no expression matches the lone newline */
    expect("gpt-2", "a \n b", "a| \n| b");
}

static void later_expressions_cut_every_piece(void **state)
{
    (void)state;
    expect("default", "a+b 12345!?", "a|+|b| |123|45|!?");
    expect("falcon", "`x` 12345", "`|x|`| |123|45");
    expect("starcoder", "ab 123", "ab| |1|2|3");
    /* The first expression cuts before "!". Then the run of spaces is at the end of a piece, so the
     * next expression does not leave its last space to a following word. */
    expect("default", "a   !", "a|   |!");
    expect("gpt-2", "a   !", "a|  | !");
}

static void white_space_is_that_of_unicode(void **state)
{
    (void)state;
    expect("gpt-2", "a\xC2\xA0\xC2\xA0", "a|\xC2\xA0\xC2\xA0");      /* U+00A0 */
    expect("gpt-2", "\xE3\x80\x80\xC2\x85", "\xE3\x80\x80\xC2\x85"); /* U+3000 U+0085 */
    expect("gpt-2", " \xE1\xA0\x8E!", " \xE1\xA0\x8E!");             /* U+180E is not white space */
    expect("llama3", "\xC3\x84rger \xE7\x9A\x84", "\xC3\x84rger| \xE7\x9A\x84");
}

static void ill_formed_utf8_is_a_piece_of_its_own(void **state)
{
    (void)state;
    expect("llama-bpe",
           "ab\xFF\xFE"
           "cd",
           "ab|\xFF\xFE|cd");
    expect("llama-bpe", "\xE2\x82", "\xE2\x82");
    expect("gpt-2", "x \xC3 y", "x| |\xC3| y");
}

static void every_name_has_its_rule(void **state)
{
    (void)state;
    const char *const names[] = {"llama3",   "llama-v3", "llama-bpe", "falcon3",      "falcon-h1",
                                 "falcon_e", "bitnet",   "qwen2",     "gpt-2",        "phi-2",
                                 "mpt",      "olmo",     "jais",      "jina-v2-code", "default",
                                 "falcon",   "smollm",   "starcoder", "refact",       "command-r",
                                 "glm4",     "dbrx",     "smaug-bpe", "trillion",     "jina-v1-en"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(pretok_rule_find(bn_str_of(names[i])));
    assert_null(pretok_rule_find(bn_str_of("")));
    assert_null(pretok_rule_find(bn_str_of("llama")));
    assert_null(pretok_rule_find(bn_str_of("gpt-2 phi-2")));
    assert_true(pretok_rule_find(bn_str_of("falcon_e"))->ignore_merges);
    assert_true(pretok_rule_find(bn_str_of("falcon3"))->add_bos);
    assert_false(pretok_rule_find(bn_str_of("glm4"))->ignore_merges);
    assert_false(pretok_rule_find(bn_str_of("qwen2"))->add_bos);
    assert_true(pretok_rule_find(bn_str_of("qwen2"))->nfc);
    assert_true(pretok_rule_find(bn_str_of("qwen35"))->nfc);
    assert_false(pretok_rule_find(bn_str_of("llama3"))->nfc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama3_cuts_like_its_expression),
        cmocka_unit_test(qwen2_cuts_digits_one_by_one),
        cmocka_unit_test(qwen35_keeps_marks_with_letters),
        cmocka_unit_test(gpt2_cuts_like_its_expression),
        cmocka_unit_test(later_expressions_cut_every_piece),
        cmocka_unit_test(white_space_is_that_of_unicode),
        cmocka_unit_test(ill_formed_utf8_is_a_piece_of_its_own),
        cmocka_unit_test(every_name_has_its_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
