/*
 * Writes vocabulary-only GGUF files into memory: small vocabularies for tests, broken ones for
 * fuzzing. Runs out of memory by assert.
 *
 *     const struct made_token extra[] = {{"he", TOKEN_NORMAL, 0}, {"<eos>", TOKEN_CONTROL, 0}};
 *     const char *merges[] = {"h e"};
 *     struct made_vocab made = {.model = "gpt2", .tokens = extra, .n_tokens = 2, ...};
 *     struct tokenizer *t = made_open(&made, &cfg, &err);      NULL on failure
 */
#ifndef TESTS_TOKENIZER_VOCAB_BUILDER_H
#define TESTS_TOKENIZER_VOCAB_BUILDER_H

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab_source.h"

/* A file being written. Zero-initialise; vocab_builder_finish frees it. */
struct vocab_builder {
    uint8_t *bytes; /* (n) a whole GGUF file after vocab_builder_end */
    size_t n, cap;
    uint64_t n_keys;
};

void vocab_builder_str(struct vocab_builder *b, const char *key, struct bn_str value);
void vocab_builder_u32(struct vocab_builder *b, const char *key, uint32_t value);
void vocab_builder_bool(struct vocab_builder *b, const char *key, bool value);
void vocab_builder_strs(struct vocab_builder *b, const char *key, const struct bn_str *v, size_t n);
void vocab_builder_f32s(struct vocab_builder *b, const char *key, const float *v, size_t n);
void vocab_builder_i32s(struct vocab_builder *b, const char *key, const int32_t *v, size_t n);
void vocab_builder_end(struct vocab_builder *b);
void vocab_builder_finish(struct vocab_builder *b);

struct made_token {
    const char *text; /* as in a file: mapped bytes, U+2581 */
    int32_t type;
    float score;
};

struct made_vocab {
    const char *model; /* "gpt2": 256 mapped bytes come first; "llama": <unk> <s> </s>, 256 bytes */
    const char *pre;   /* NULL: no key */
    const char *arch;  /* NULL: "test" */
    const struct made_token *tokens; /* (n_tokens) behind those */
    size_t n_tokens;
    const char *const *merges; /* (n_merges) */
    size_t n_merges;
    const char *marks[N_MARKS]; /* texts of the tokens that keys name; NULL: no key */
    enum vocab_switch add_bos, add_space_prefix;
};

#define MADE_BYTES_GPT2 256  /* the id of tokens[0] in a "gpt2" vocabulary */
#define MADE_BYTES_LLAMA 259 /* and in a "llama" one */

/* `cfg` may be NULL. NULL on failure, with the sentence in `err`. */
struct tokenizer *made_open(const struct made_vocab *v, const struct tokenizer_config *cfg,
                            struct bn_error *err);

/* The character that stands for a byte in byte-level vocabularies, as UTF-8; its length. */
size_t made_byte_char(uint8_t byte, char out[4]);

/* Ids of one piece of text as a segment of `kind`, no BOS; asserts that encoding succeeds. */
struct token_list made_encode(const struct tokenizer *t, enum segment_kind kind,
                              struct bn_str text);

/* All the text of ids, from the start of a text; free with mem_free. */
char *made_decode(const struct tokenizer *t, const struct token_list *ids, size_t *n_bytes);

#endif
