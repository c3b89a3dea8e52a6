/*
 * Tokenizers of made vocabularies, and assertions on ids, written as token texts:
 * expect_ids(t, &ids, "he l l o"). A space inside a token is written as "_".
 */
#ifndef TESTS_TOKENIZER_TOKEN_EXPECT_H
#define TESTS_TOKENIZER_TOKEN_EXPECT_H

#include "tests/tokenizer/vocab_builder.h"

#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* made_open without settings, which must succeed. */
static inline struct tokenizer *expect_tokenizer(const struct made_vocab *made)
{
    struct bn_error err;
    struct tokenizer *t = made_open(made, NULL, &err);
    if (!t)
        fail_msg("%s", err.text);
    return t;
}

/* Compare token texts, separated by spaces, with `expected`. Frees the list. */
static inline void expect_ids(const struct tokenizer *t, struct token_list *ids,
                              const char *expected)
{
    char got[1024] = "";
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++) {
        const struct bn_str text = tokenizer_token_text(t, ids->ids[i]);
        assert_true(n + text.n_bytes + 2 < sizeof(got));
        if (i > 0)
            got[n++] = ' ';
        for (size_t k = 0; k < text.n_bytes; k++)
            got[n++] = text.ptr[k] == ' ' ? '_' : text.ptr[k];
    }
    got[n] = '\0';
    token_list_finish(ids);
    assert_string_equal(got, expected);
}

static inline void expect_message(const struct tokenizer *t, const char *text, const char *expected)
{
    struct token_list ids = made_encode(t, SEGMENT_MESSAGE, bn_str_of(text));
    expect_ids(t, &ids, expected);
}

/* A pseudo-random number below `n`, with the constants of Numerical Recipes. */
static inline uint32_t made_random(uint32_t *state, uint32_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

#endif
