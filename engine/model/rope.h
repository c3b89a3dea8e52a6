/*
 * Angles of the rotary embedding (RoPE): frequencies once per model, cosines and sines for each
 * token. They are computed in double precision, and cosines and sines are rounded to float once, so
 * that all backends use the same bits.
 */
#ifndef ENGINE_MODEL_ROPE_H
#define ENGINE_MODEL_ROPE_H

#include "engine/model/model.h"

/* Whether a session of n_ctx tokens uses rope_factors_long. The choice is per session, because it
 * changes the keys of all positions. */
bool rope_is_long(const struct model *m, size_t n_ctx);

/* Write freq (n_rot / 2) in radians per position: rope_scale * base^(-2i / n_rot) / factor_i, times
 * yarn_scale (rope.c) with YaRN. factor_i is from rope_factors_long (is_long) or rope_factors_short
 * if the model has them, else from rope_freqs, else 1. BN_EFORMAT: a frequency is not finite; then
 * `freq` is set in part. */
bool rope_freq_init(double *freq, const struct model *m, bool is_long, struct bn_error *err);

/* Write cosines c and sines s (n_pairs) of one position, both times `magnitude`
 * (hparams.rope_magnitude). */
void rope_angles(const double *freq, size_t n_pairs, double magnitude, size_t pos, float *c,
                 float *s);

#endif
