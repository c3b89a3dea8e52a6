/*
 * A vocabulary as the file stores it, before decoding and repairs. The lengths and
 * element types of the arrays are checked. The ids in `marks` are not, so they can be n_tokens
 * or more. A number of a token type that is not in enum token_type becomes TOKEN_NORMAL.
 *
 * Strings point into the memory of the file and are valid while it is open. The source owns the
 * arrays; repairs change them in place.
 */
#ifndef TOKENIZER_VOCAB_SOURCE_H
#define TOKENIZER_VOCAB_SOURCE_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;

/* Token types with the numbers that files use. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6,
};

/* The special roles of a token that a file can name by key: begin of text (bos_token_id), end of
 * text, end of turn, end of message, unknown, padding. */
enum vocab_mark { MARK_BOS, MARK_EOS, MARK_EOT, MARK_EOM, MARK_UNK, MARK_PAD, N_MARKS };

/* A key with a Boolean value. UNSET: the file does not have it, or its value is no Boolean. */
enum vocab_switch { SWITCH_UNSET, SWITCH_OFF, SWITCH_ON };

struct vocab_source {
    struct bn_str model;        /* "gpt2" or "llama" */
    struct bn_str pre;          /* ptr is NULL if there is no such key, or it is no string */
    struct bn_str architecture; /* empty if there is no such key, or it is no string */
    struct bn_str *tokens;      /* (n_tokens) */
    int32_t *types;             /* (n_tokens); TOKEN_NORMAL if the file has no types */
    bool has_types;             /* the file has types */
    float *scores;              /* (n_tokens); NULL only for gpt2, if the file has none */
    size_t n_tokens;
    struct bn_str *merges; /* (n_merges); NULL for llama */
    size_t n_merges;
    bool has_mark[N_MARKS];  /* the file has the key of this mark */
    uint64_t marks[N_MARKS]; /* UINT64_MAX: no such key, or its value is not an integer >= 0 */
    enum vocab_switch add_bos;
    enum vocab_switch add_space_prefix;
};

extern const char *const vocab_mark_keys[N_MARKS]; /* the whole key, for messages too */

/* BN_EFORMAT: no vocabulary, no tokens or more than INT32_MAX, all tokens are empty, a required
 * array is missing, an array has the wrong type, or arrays have different lengths. BN_EUNSUPPORTED:
 * the tokenizer model is neither gpt2 nor llama. BN_ENOMEM. After an error s needs no
 * vocab_source_finish. */
bool vocab_source_init(struct vocab_source *s, const struct bn_file *file, struct bn_error *err);
void vocab_source_finish(struct vocab_source *s);

#endif
