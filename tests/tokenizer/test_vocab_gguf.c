/*
 * Opening a vocabulary: refused files and their errors; functions about single tokens.
 */
#include "tests/tokenizer/token_expect.h"

#include "engine/base/memory.h"
#include "engine/file.h"

#define KEY "tokenizer.ggml."

static enum bn_errcode open_code(struct gguf_writer *keys)
{
    const struct tokenizer_config cfg = {0};
    struct bn_error err = {0};
    struct bn_file *file = NULL;
    struct tokenizer *t = NULL;
    struct gguf_buffer bytes = {0};
    assert_true(made_file_open(keys, &bytes, &file, &err));
    if (tokenizer_open(file, &cfg, &t, &err))
        err.code = BN_OK;
    else
        assert_null(t);
    tokenizer_close(t);
    bn_file_close(file);
    mem_free(bytes.bytes);
    return err.code;
}

static const struct bn_str three[] = {{"a", 1}, {"b", 1}, {"ab", 2}};

static struct gguf_writer *begin(const char *model)
{
    struct gguf_writer *w = made_keys();
    gguf_put_str(w, KEY "model", bn_str_of(model));
    return w;
}

static struct gguf_writer *begin_gpt2(const char *merge)
{
    struct gguf_writer *w = begin("gpt2");
    const struct bn_str merges[] = {bn_str_of(merge)};
    gguf_put_strs(w, KEY "tokens", three, 3);
    gguf_put_strs(w, KEY "merges", merges, 1);
    return w;
}

static void opens_the_smallest_vocabulary(void **state)
{
    (void)state;
    struct gguf_writer *w = begin_gpt2("a b");
    assert_int_equal(open_code(w), BN_OK);
}

static void refuses_files_without_a_vocabulary(void **state)
{
    (void)state;
    struct gguf_writer *w = made_keys();
    gguf_put_str(w, "general.architecture", bn_str_of("llama"));
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin("gpt2");
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin("gpt2");
    gguf_put_strs(w, KEY "tokens", three, 0);
    gguf_put_strs(w, KEY "merges", three, 0);
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin("gpt2");
    gguf_put_str(w, KEY "tokens", bn_str_of("a"));
    assert_int_equal(open_code(w), BN_EFORMAT);
    const struct bn_str empty[] = {{"", 0}, {"", 0}};
    w = begin("gpt2");
    gguf_put_strs(w, KEY "tokens", empty, 2);
    gguf_put_strs(w, KEY "merges", three, 0);
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin("bert");
    assert_int_equal(open_code(w), BN_EUNSUPPORTED);
}

static void refuses_arrays_of_different_lengths(void **state)
{
    (void)state;
    const int32_t types[] = {1, 1};
    const float scores[] = {0, 0, 0, 0};
    struct gguf_writer *w = begin_gpt2("a b");
    gguf_put_array(w, KEY "token_type", GGUF_I32, types, 2);
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin_gpt2("a b");
    gguf_put_array(w, KEY "scores", GGUF_F32, scores, 4);
    assert_int_equal(open_code(w), BN_EFORMAT);
    w = begin("llama"); /* scores are required here */
    gguf_put_strs(w, KEY "tokens", three, 3);
    assert_int_equal(open_code(w), BN_EFORMAT);
}

static void refuses_merges_without_two_halves(void **state)
{
    (void)state;
    const char *const bad[] = {"", " ", "a", "ab", "a ", " b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gguf_writer *w = begin_gpt2(bad[i]);
        assert_int_equal(open_code(w), BN_EFORMAT);
    }
}

static void special_ids_out_of_range_are_ignored(void **state)
{
    (void)state;
    struct gguf_writer *w = begin_gpt2("a b");
    gguf_put_u32(w, KEY "bos_token_id", 3);
    gguf_put_u32(w, KEY "eos_token_id", UINT32_MAX);
    gguf_put_str(w, KEY "eot_token_id", bn_str_of("a"));
    assert_int_equal(open_code(w), BN_OK);
}

static void tokens_are_found_by_their_bytes(void **state)
{
    (void)state;
    const struct made_token tokens[] = {{"\xC4\xA0go", TOKEN_NORMAL, 0},
                                        {"<x>", TOKEN_CONTROL, 0},
                                        {"two words", TOKEN_NORMAL, 0},
                                        {"\xC4\xA0go", TOKEN_NORMAL, 0}};
    const struct made_vocab made = {
        .model = "gpt2", .pre = "gpt-2", .tokens = tokens, .n_tokens = 4};
    struct tokenizer *t = expect_tokenizer(&made);
    assert_int_equal(tokenizer_info(t)->n_vocab, 260);
    assert_int_equal(made_find(t, bn_str_of(" go")), 256);
    assert_int_equal(made_find(t, bn_str_of("<x>")), 257);
    assert_int_equal(made_find(t, bn_str_of("two words")), 258);
    assert_int_equal(made_find(t, bn_str_of("\n")), 10);
    assert_int_equal(made_find(t, bn_str_of("no such")), TOKEN_NONE);
    assert_int_equal(made_find(t, bn_str_of("")), TOKEN_NONE);
    assert_true(bn_str_is(tokenizer_token_text(t, 259), " go"));
    assert_int_equal(tokenizer_token_text(t, 260).n_bytes, 0);
    assert_int_equal(tokenizer_token_text(t, -1).n_bytes, 0);
    assert_int_equal(tokenizer_piece(t, 257, TOKENIZER_SPECIAL_HIDE).n_bytes, 0);
    assert_true(bn_str_is(tokenizer_piece(t, 257, TOKENIZER_SPECIAL_SHOW), "<x>"));
    assert_false(tokenizer_is_control(t, 1 << 30));
    tokenizer_close(t);
}

static void the_hash_depends_on_texts_and_types(void **state)
{
    (void)state;
    struct made_token tokens[] = {{"ab", TOKEN_NORMAL, 0}, {"c", TOKEN_NORMAL, 0}};
    const struct made_vocab made = {
        .model = "gpt2", .pre = "gpt-2", .tokens = tokens, .n_tokens = 2};
    uint64_t hashes[4];
    for (size_t i = 0; i < 4; i++) {
        tokens[0].text = i == 2 ? "a" : "ab"; /* "a", "bc": the same letters, split differently */
        tokens[1].text = i == 2 ? "bc" : "c";
        tokens[1].type = i == 3 ? TOKEN_CONTROL : TOKEN_NORMAL;
        struct tokenizer *t = expect_tokenizer(&made);
        hashes[i] = tokenizer_info(t)->hash;
        tokenizer_close(t);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] != hashes[2]);
    assert_true(hashes[0] != hashes[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_the_smallest_vocabulary),
        cmocka_unit_test(refuses_files_without_a_vocabulary),
        cmocka_unit_test(refuses_arrays_of_different_lengths),
        cmocka_unit_test(refuses_merges_without_two_halves),
        cmocka_unit_test(special_ids_out_of_range_are_ignored),
        cmocka_unit_test(tokens_are_found_by_their_bytes),
        cmocka_unit_test(the_hash_depends_on_texts_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
