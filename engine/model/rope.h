/*
 * Angles of the rotary embedding (RoPE): frequencies once per model, cosines and sines for each
 * token. They are computed in double precision and rounded once, so that all backends use the same
 * bits.
 */
#ifndef ENGINE_MODEL_ROPE_H
#define ENGINE_MODEL_ROPE_H

#include "engine/model/model.h"

/* Write freq (n_rot / 2) in radians per position: rope_scale * base^(-2i / n_rot) / rope_freqs_i,
 * which YaRN divides by its factor for the pairs that turn rarely.
 * BN_EFORMAT: one of them is not finite. */
bool rope_freq_init(double *freq, const struct model *m, struct bn_error *err);

/* Write cosines c and sines s (n_pairs) of one position, both times `magnitude`
 * (hparams.rope_magnitude). */
void rope_angles(const double *freq, size_t n_pairs, double magnitude, size_t pos, float *c,
                 float *s);

#endif
