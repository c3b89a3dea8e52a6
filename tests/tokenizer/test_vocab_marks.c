/*
 * The special tokens of a vocabulary: bos, the ids that end an answer, and the repairs of a file,
 * which --no-repair switches off.
 */
#include "engine/base/memory.h"
#include "tests/tokenizer/token_expect.h"

static struct tokenizer *open_with(const struct made_vocab *made, const char *no_repair,
                                   struct bn_notes *notes)
{
    struct bn_error err;
    *notes = (struct bn_notes){0};
    const struct tokenizer_config cfg = {.no_repair = no_repair, .notes = notes};
    struct tokenizer *t = made_open(made, &cfg, &err);
    assert_non_null(t);
    return t;
}

/* NULL: there is no such note. */
static const char *note_text(const struct bn_notes *notes, enum bn_note_kind kind, const char *id)
{
    for (size_t i = 0; i < notes->n; i++) {
        if (notes->items[i].kind == kind && strcmp(notes->items[i].id, id) == 0)
            return notes->items[i].text;
    }
    return NULL;
}

static bool has_note(const struct bn_notes *notes, enum bn_note_kind kind, const char *id)
{
    return note_text(notes, kind, id) != NULL;
}

static const struct made_token llama3_tokens[] = {
    {"<|begin_of_text|>", TOKEN_CONTROL, 0},
    {"<|end_of_text|>", TOKEN_CONTROL, 0},
    {"<|eot_id|>", TOKEN_CONTROL, 0},
};
enum { BEGIN = MADE_FIRST_GPT2, END_OF_TEXT, EOT };

static struct made_vocab llama3(const char *pre, const char *arch)
{
    return (struct made_vocab){
        .model = "gpt2",
        .pre = pre,
        .arch = arch,
        .tokens = llama3_tokens,
        .n_tokens = 3,
        .marks = {[MARK_BOS] = "<|begin_of_text|>", [MARK_EOS] = "<|end_of_text|>"},
    };
}

static void a_missing_pre_tokenizer_is_repaired_by_architecture(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_vocab made = llama3(NULL, "bitnet-b1.58");
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_string_equal(tokenizer_info(t)->pre, "llama-bpe");
    assert_true(tokenizer_info(t)->add_bos);
    assert_true(has_note(&notes, BN_NOTE_REPAIR, "pre-tokenizer"));
    tokenizer_close(t);
    t = open_with(&made, "pre-tokenizer", &notes);
    assert_string_equal(tokenizer_info(t)->pre, "default");
    assert_false(has_note(&notes, BN_NOTE_REPAIR, "pre-tokenizer"));
    assert_true(has_note(&notes, BN_NOTE_WARNING, "pre-tokenizer"));
    tokenizer_close(t);
    const struct made_vocab other = llama3(NULL, "gpt2");
    t = open_with(&other, NULL, &notes);
    assert_string_equal(tokenizer_info(t)->pre, "default");
    tokenizer_close(t);
}

static void an_unknown_pre_tokenizer_is_reported(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_vocab made = llama3("martian", "bitnet-b1.58");
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_string_equal(tokenizer_info(t)->pre, "default");
    assert_true(has_note(&notes, BN_NOTE_WARNING, "pre-tokenizer"));
    tokenizer_close(t);
    struct bn_error err;
    struct tokenizer_config cfg = {.pre = "venusian"};
    assert_null(made_open(&made, &cfg, &err));
    assert_int_equal(err.code, BN_EARG);
    cfg.pre = "qwen2";
    t = made_open(&made, &cfg, &err);
    assert_non_null(t);
    assert_string_equal(tokenizer_info(t)->pre, "qwen2");
    tokenizer_close(t);
}

static void several_ids_end_a_turn(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_vocab made = llama3("llama-bpe", NULL);
    struct tokenizer *t = open_with(&made, NULL, &notes);
    const struct tokenizer_info *info = tokenizer_info(t);
    assert_int_equal(info->bos, BEGIN);
    assert_int_equal(info->eos, END_OF_TEXT);
    assert_int_equal(info->eot, EOT);
    assert_int_equal(info->n_eog, 2);
    assert_int_equal(info->eog[0], END_OF_TEXT);
    assert_int_equal(info->eog[1], EOT);
    assert_true(tokenizer_is_eog(t, EOT));
    assert_false(tokenizer_is_eog(t, BEGIN));
    const char *note = note_text(&notes, BN_NOTE_REPAIR, "end-of-turn");
    assert_non_null(note);
    assert_non_null(strstr(note, "2 tokens end an answer, 1 of them found by their text"));
    tokenizer_close(t);
    t = open_with(&made, "control-text,end-of-turn", &notes);
    assert_int_equal(tokenizer_info(t)->n_eog, 1);
    assert_int_equal(tokenizer_info(t)->eot, TOKEN_NONE);
    assert_false(tokenizer_is_eog(t, EOT));
    assert_int_equal(notes.n, 0);
    tokenizer_close(t);
}

static void a_bos_prefix_of_control_tokens_is_removed(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token tokens[] = {
        {"<|begin_of_text|><|begin_of_text|>", TOKEN_CONTROL, 0},
        {"<|begin_of_text|><|end_of_text|>", TOKEN_CONTROL, 0},
        {"<|begin_of_text|><|eot_id|>", TOKEN_CONTROL, 0},
    };
    struct made_vocab made = llama3("llama-bpe", NULL);
    made.tokens = tokens;
    made.marks[MARK_BOS] = tokens[0].text;
    made.marks[MARK_EOS] = tokens[1].text;
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_true(has_note(&notes, BN_NOTE_REPAIR, "control-text"));
    assert_true(bn_str_is(tokenizer_token_text(t, BEGIN), "<|begin_of_text|>"));
    assert_true(bn_str_is(tokenizer_token_text(t, EOT), "<|eot_id|>"));
    assert_true(tokenizer_is_eog(t, EOT));
    const uint64_t hash = tokenizer_info(t)->hash;
    tokenizer_close(t);
    t = open_with(&made, "control-text", &notes);
    assert_true(bn_str_is(tokenizer_token_text(t, EOT), tokens[2].text));
    assert_false(tokenizer_is_eog(t, EOT));
    assert_true(tokenizer_info(t)->hash == hash); /* the hash ignores repairs */
    tokenizer_close(t);
}

static void a_mark_of_the_wrong_type_becomes_control(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token tokens[] = {
        {"<|im_start|>", TOKEN_USER, 0}, {"<|im_end|>", TOKEN_NORMAL, 0}, {"</s>", TOKEN_NORMAL, 0},
        {"</", TOKEN_NORMAL, 0},         {"s>", TOKEN_NORMAL, 0},
    };
    const char *const merges[] = {"< /", "s >", "</ s>"};
    const struct made_vocab made = {.model = "gpt2",
                                    .pre = "gpt-2",
                                    .tokens = tokens,
                                    .n_tokens = 5,
                                    .merges = merges,
                                    .n_merges = 3};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    const int32_t im_end = made_find(t, bn_str_of("<|im_end|>"));
    assert_true(tokenizer_is_control(t, im_end));
    assert_true(tokenizer_has_special(t, bn_str_of("<|im_end|>")));
    assert_true(tokenizer_has_special(t, bn_str_of("<|im_start|>")));
    assert_false(tokenizer_has_special(t, bn_str_of("</s>"))); /* an ordinary word */
    assert_true(tokenizer_is_eog(t, im_end));
    assert_int_equal(tokenizer_info(t)->eot, im_end);
    /* Merges can produce "</s>", so it is ordinary text (a closing HTML tag) and ends no answer. */
    assert_false(tokenizer_is_eog(t, made_find(t, bn_str_of("</s>"))));
    assert_int_equal(tokenizer_info(t)->n_eog, 1);
    tokenizer_close(t);
}

static void default_ids_need_the_type_of_a_mark(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_vocab bare = {.model = "gpt2", .pre = "llama-bpe"};
    struct tokenizer *t = open_with(&bare, NULL, &notes);
    /* llama.cpp uses id 11 without looking at its type; here it is a token of one byte. */
    assert_int_equal(tokenizer_info(t)->bos, TOKEN_NONE);
    assert_int_equal(tokenizer_info(t)->n_eog, 0);
    assert_false(tokenizer_info(t)->add_bos);
    tokenizer_close(t);
    const struct made_vocab llama = {.model = "llama"};
    t = open_with(&llama, NULL, &notes);
    assert_int_equal(tokenizer_info(t)->bos, 1);
    assert_int_equal(tokenizer_info(t)->eos, 2);
    assert_int_equal(tokenizer_info(t)->unk, 0);
    assert_true(tokenizer_info(t)->add_bos);
    assert_true(tokenizer_info(t)->add_space_prefix);
    tokenizer_close(t);
}

static void missing_types_follow_from_the_texts(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token tokens[] = {
        {"<|im_start|>", TOKEN_NORMAL, 0},
        {"<|im_end|>", TOKEN_NORMAL, 0},
        {"<think>", TOKEN_NORMAL, 0},
        {"<|>", TOKEN_NORMAL, 0},
        {"<\xEF\xBD\x9CUser>", TOKEN_NORMAL, 0},
        {"<|", TOKEN_NORMAL, 0},
    };
    const char *const merges[] = {"< |", "<| >"};
    const struct made_vocab made = {.model = "gpt2",
                                    .pre = "qwen2",
                                    .tokens = tokens,
                                    .n_tokens = 6,
                                    .merges = merges,
                                    .n_merges = 2,
                                    .no_types = true};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_true(tokenizer_is_control(t, MADE_FIRST_GPT2));
    assert_true(tokenizer_is_eog(t, MADE_FIRST_GPT2 + 1));
    assert_true(tokenizer_is_user_defined(t, MADE_FIRST_GPT2 + 2));
    assert_false(tokenizer_has_special(t, bn_str_of("<|>"))); /* merges build it: a word of code */
    assert_true(tokenizer_is_control(t, MADE_FIRST_GPT2 + 4));
    const char *const note = note_text(&notes, BN_NOTE_REPAIR, "token-type");
    assert_non_null(note);
    assert_non_null(strstr(note, "no tokenizer.ggml.token_type; 4 special tokens were found"));
    tokenizer_close(t);
    t = open_with(&made, "token-type", &notes);
    assert_false(tokenizer_has_special(t, bn_str_of("<|im_start|>")));
    assert_true(has_note(&notes, BN_NOTE_WARNING, "token-type"));
    assert_false(has_note(&notes, BN_NOTE_REPAIR, "token-type"));
    tokenizer_close(t);
}

/* With a quadratic algorithm this test takes more than 120 s of processor time, the time limit. */
static void four_hundred_thousand_marks_are_fast(void **state)
{
    (void)state;
    enum { N = 400000, TEXT_BYTES = 16 };
    struct bn_notes notes;
    char(*texts)[TEXT_BYTES] = mem_alloc(2 * N, TEXT_BYTES);
    struct made_token *tokens = mem_alloc(N, sizeof *tokens);
    const char **merges = mem_alloc(N, sizeof *merges);
    assert_true(texts && tokens && merges);
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(texts[i], TEXT_BYTES, "<%010zu>", i);
        (void)snprintf(texts[N + i], TEXT_BYTES, "<%010zu >", i + N / 2);
        tokens[i] = (struct made_token){texts[i], TOKEN_NORMAL, 0};
        merges[i] = texts[N + i];
    }
    const struct made_vocab made = {.model = "gpt2",
                                    .pre = "qwen2",
                                    .tokens = tokens,
                                    .n_tokens = N,
                                    .merges = merges,
                                    .n_merges = N,
                                    .no_types = true};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_true(tokenizer_is_control(t, MADE_FIRST_GPT2 + N / 2 - 1)); /* no merge builds it */
    assert_false(tokenizer_is_control(t, MADE_FIRST_GPT2 + N / 2));
    tokenizer_close(t);
    mem_free(merges);
    mem_free(tokens);
    mem_free(texts);
}

static void missing_types_of_sentencepiece_follow_from_known_texts(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token tokens[] = {{"<|user|>", TOKEN_NORMAL, 0},
                                        {"<td>", TOKEN_NORMAL, 0},
                                        {"<start_of_turn>", TOKEN_NORMAL, 0},
                                        {"[INST]", TOKEN_NORMAL, 0},
                                        {"[/INST]", TOKEN_NORMAL, 0}};
    const struct made_vocab made = {
        .model = "llama", .tokens = tokens, .n_tokens = 5, .no_types = true};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_int_equal(tokenizer_info(t)->unk, 0); /* the default ids need the types */
    assert_int_equal(tokenizer_info(t)->bos, 1);
    assert_int_equal(tokenizer_info(t)->eos, 2);
    assert_true(tokenizer_is_control(t, MADE_FIRST_LLAMA));
    assert_false(tokenizer_has_special(t, bn_str_of("<td>")));
    for (int32_t i = 2; i < 5; i++)
        assert_true(tokenizer_is_control(t, MADE_FIRST_LLAMA + i));
    struct token_list ids = made_encode(t, SEGMENT_MESSAGE, bn_str_of("\n"));
    assert_int_equal(ids.ids[ids.n - 1], 3 + '\n'); /* a byte token */
    size_t n_bytes;
    char *const decoded = made_decode(t, &ids, &n_bytes);
    assert_int_equal(decoded[n_bytes - 1], '\n');
    mem_free(decoded);
    token_list_finish(&ids);
    /* Byte tokens are not special: <unk>, <s>, </s>, and all of `tokens` but <td>. */
    const char *const note = note_text(&notes, BN_NOTE_REPAIR, "token-type");
    assert_non_null(note);
    assert_non_null(strstr(note, "7 special tokens were found"));
    tokenizer_close(t);
}

static void no_bos_if_it_equals_eos(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token end = {"<|endoftext|>", TOKEN_CONTROL, 0};
    struct made_vocab made = {
        .model = "gpt2",
        .pre = "falcon3",
        .tokens = &end,
        .n_tokens = 1,
        .marks = {[MARK_BOS] = "<|endoftext|>", [MARK_EOS] = "<|endoftext|>"}};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_false(tokenizer_info(t)->add_bos);
    tokenizer_close(t);
    made.add_bos = SWITCH_ON;
    t = open_with(&made, NULL, &notes);
    assert_true(tokenizer_info(t)->add_bos);
    tokenizer_close(t);
}

/* In the harmony format <|end|> ends a part of an answer, <|return|> and <|call|> the answer. */
static void end_ends_no_answer_if_return_and_call_exist(void **state)
{
    (void)state;
    struct bn_notes notes;
    const struct made_token tokens[] = {{"<|end|>", TOKEN_CONTROL, 0},
                                        {"<|return|>", TOKEN_CONTROL, 0},
                                        {"<|call|>", TOKEN_CONTROL, 0}};
    enum { END = MADE_FIRST_GPT2, RETURN, CALL };
    struct made_vocab made = {.model = "gpt2", .pre = "gpt-2", .tokens = tokens, .n_tokens = 2};
    struct tokenizer *t = open_with(&made, NULL, &notes);
    assert_true(tokenizer_is_eog(t, END)); /* there is no <|call|> */
    tokenizer_close(t);
    made.n_tokens = 3;
    t = open_with(&made, NULL, &notes);
    assert_false(tokenizer_is_eog(t, END));
    assert_true(tokenizer_is_eog(t, CALL));
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_pre_tokenizer_is_repaired_by_architecture),
        cmocka_unit_test(an_unknown_pre_tokenizer_is_reported),
        cmocka_unit_test(several_ids_end_a_turn),
        cmocka_unit_test(a_bos_prefix_of_control_tokens_is_removed),
        cmocka_unit_test(a_mark_of_the_wrong_type_becomes_control),
        cmocka_unit_test(default_ids_need_the_type_of_a_mark),
        cmocka_unit_test(missing_types_follow_from_the_texts),
        cmocka_unit_test(four_hundred_thousand_marks_are_fast),
        cmocka_unit_test(missing_types_of_sentencepiece_follow_from_known_texts),
        cmocka_unit_test(no_bos_if_it_equals_eos),
        cmocka_unit_test(end_ends_no_answer_if_return_and_call_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
