/*
 * A vocabulary as its file has it: nothing decoded, nothing repaired, nothing judged but the
 * lengths.
 *
 * Strings point into the file's memory and are good while the file is open. The arrays belong to
 * the source: repairs change them in place.
 */
#ifndef TOKENIZER_VOCAB_SOURCE_H
#define TOKENIZER_VOCAB_SOURCE_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;

/* Token types by their numbers in the file. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6,
};

/* The ids that a file may name by key. */
enum vocab_mark { MARK_BOS, MARK_EOS, MARK_EOT, MARK_EOM, MARK_UNK, MARK_PAD, N_MARKS };

enum vocab_switch { SWITCH_UNSET, SWITCH_OFF, SWITCH_ON };

struct vocab_source {
    struct bn_str model;
    struct bn_str pre; /* ptr NULL: no such key */
    struct bn_str architecture;
    struct bn_str *tokens; /* (n_tokens) */
    int32_t *types;        /* (n_tokens); all TOKEN_NORMAL where the file has none */
    float *scores;         /* (n_tokens), or NULL */
    size_t n_tokens;
    struct bn_str *merges; /* (n_merges), or NULL */
    size_t n_merges;
    bool has_mark[N_MARKS];
    uint64_t marks[N_MARKS]; /* UINT64_MAX: the key holds no number at all */
    enum vocab_switch add_bos;
    enum vocab_switch add_space_prefix;
};

extern const char *const vocab_mark_keys[N_MARKS];

/* BN_EFORMAT: no vocabulary, or arrays of different lengths. BN_EUNSUPPORTED: a tokenizer model
 * other than gpt2 and llama. BN_ENOMEM. */
bool vocab_source_init(struct vocab_source *s, const struct bn_file *file, struct bn_error *err);
void vocab_source_finish(struct vocab_source *s);

#endif
