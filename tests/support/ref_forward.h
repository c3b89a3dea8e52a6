/*
 * The reference forward pass: simple C in double precision, written from docs/formats.md and
 * without arithmetic of the backends. Linear layers quantise their input by the scheme of the model
 * (act_scheme), and keys and values are rounded to F16; everything else is double.
 *
 * A correct engine agrees to about 1e-5 relative L2 per row, or 1e-3 to 2e-2 if one rounding to
 * int8 or F16 differs. It is slow and meant for models of a few million weights.
 *
 *     float *logits = mem_alloc(n_ids * n_vocab, sizeof(*logits));
 *     assert_true(ref_forward(model, NULL, ids, n_ids, logits, &err));
 *     assert_true(ref_rel_l2(mine, logits, n_vocab) < 1e-4);
 */
#ifndef TESTS_SUPPORT_REF_FORWARD_H
#define TESTS_SUPPORT_REF_FORWARD_H

#include "engine/model/model.h"

struct ref_options {
    bool plain_kv; /* do not round keys and values */
    /* Receives intermediate results, one token at a time, layer by layer: "attn_norm", "q", "k"
     * (after RoPE), "v", "attn", "attn_sub_norm", "attn_out" (after the residual), "ffn_norm",
     * "gate", "up", "act", "ffn_sub_norm", "ffn_out" (after the residual), "output_norm". */
    void (*trace)(void *ud, const char *step, size_t layer, size_t pos, const double *x, size_t n);
    void *trace_ud;
};

/* logits (n_ids, n_vocab). options may be NULL. BN_EARG: an id outside the vocabulary; BN_EFORMAT
 * from the ternary decoder; BN_ENOMEM. */
bool ref_forward(const struct model *m, const struct ref_options *options, const int32_t *ids,
                 size_t n_ids, float *logits, struct bn_error *err);

/* |a - b| / |b| over n numbers, where b is the expected result. NaN if a or b contains one. */
double ref_rel_l2(const float *a, const float *b, size_t n);

#endif
