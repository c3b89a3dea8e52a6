/*
 * Makes GGUF files that hold only a vocabulary, in memory: small ones for tests, broken ones for
 * fuzzing. Asserts that there is enough memory.
 *
 *     const struct made_token extra[] = {{"he", TOKEN_NORMAL, 0}, {"<eos>", TOKEN_CONTROL, 0}};
 *     const char *merges[] = {"h e"};
 *     struct made_vocab made = {.model = "gpt2", .tokens = extra, .n_tokens = 2, ...};
 *     struct tokenizer *t = made_open(&made, &cfg, &err);      NULL on failure
 */
#ifndef TESTS_TOKENIZER_VOCAB_BUILDER_H
#define TESTS_TOKENIZER_VOCAB_BUILDER_H

#include "tests/support/gguf_write.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab/vocab_source.h"

/* A writer for the keys of a file without tensors. */
struct gguf_writer *made_keys(void);

/* Write the keys to `bytes`, which must be zeros, and open them as a file. Closes the writer. Free
 * the bytes with mem_free, after the file is closed. */
bool made_file_open(struct gguf_writer *keys, struct gguf_buffer *bytes, struct bn_file **out,
                    struct bn_error *err);

struct made_token {
    const char *text; /* as in files: with mapped bytes ("gpt2") or U+2581 for spaces ("llama") */
    int32_t type;
    float score;
};

struct made_vocab {
    /* "gpt2" begins with 256 mapped bytes, "llama" with <unk>, <s>, </s> and 256 bytes. */
    const char *model;
    const char *pre;                 /* NULL for no key */
    const char *arch;                /* NULL for "test" */
    const struct made_token *tokens; /* (n_tokens) further tokens */
    size_t n_tokens;
    const char *const *merges; /* (n_merges) */
    size_t n_merges;
    const char *marks[N_MARKS]; /* texts of the tokens for the keys; NULL for no key */
    enum vocab_switch add_bos, add_space_prefix;
    bool no_types; /* no key token_type */
};

#define MADE_FIRST_GPT2 256  /* id of tokens[0] in a "gpt2" vocabulary */
#define MADE_FIRST_LLAMA 259 /* id of tokens[0] in a "llama" vocabulary */

/* `cfg` may be NULL. Returns NULL and sets `err` on failure. */
struct tokenizer *made_open(const struct made_vocab *v, const struct tokenizer_config *cfg,
                            struct bn_error *err);

/* Write the character of a byte in byte-level vocabularies as UTF-8. Returns its length. */
size_t made_byte_char(uint8_t byte, char out[4]);

/* The id with exactly this text, found in the hash table of the vocabulary, or TOKEN_NONE. */
int32_t made_find(const struct tokenizer *t, struct bn_str text);

/* Encode one text as a segment of `kind`, without bos. Asserts success. */
struct token_list made_encode(const struct tokenizer *t, enum segment_kind kind,
                              struct bn_str text);

/* Decode ids from the start of a text; free the result with mem_free. */
char *made_decode(const struct tokenizer *t, const struct token_list *ids, size_t *n_bytes);

#endif
