/*
 * Angles of the rotary embedding: frequencies once, cosines and sines for each token of a pass. In
 * double, rounded once, so that every backend rotates by the same bits.
 */
#ifndef ENGINE_MODEL_ROPE_H
#define ENGINE_MODEL_ROPE_H

#include "engine/model/model.h"

/* freq (n_rot / 2): radians a position, rope_scale * base^(-2i / n_rot) / rope_freqs_i. BN_EFORMAT:
 * one of them is no finite number. */
bool rope_freq_init(double *freq, const struct model *m, struct bn_error *err);

/* c, s (n_pairs) of one position. */
void rope_angles(const double *freq, size_t n_pairs, size_t pos, float *c, float *s);

#endif
