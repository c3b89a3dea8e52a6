/*
 * Angles of the rotary embedding (RoPE). Cosines and sines are computed in every pass, which takes
 * a microsecond per token. A table for the whole context would need megabytes.
 */
#include "engine/model/rope.h"

#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"

#include <math.h>

/* The index i of the pair that turns `turns` times within the original context, as a real number.
 * It solves base^(-2 i / n_rot) * original_ctx = 2 pi turns. */
static double yarn_pair(const struct hparams *hp, double turns)
{
    return (double)hp->n_rot * log(hp->yarn.original_ctx / (2.0 * acos(-1.0) * turns)) /
           (2.0 * log(hp->rope_base));
}

/* The factor of the frequency of pair i (Peng et al., "YaRN", 2023); 1 without YaRN. Pairs up to
 * `low` turn often. They keep their frequency if ext_factor is 1; if it is less, only this part of
 * the frequency is kept and the rest is divided by y->factor. Pairs from `high` on, if it is above
 * `low`, are slowed down by the whole factor. From `low` to `high` the kept part falls linearly. */
static double yarn_scale(const struct hparams *hp, size_t i)
{
    const struct rope_yarn *y = &hp->yarn;
    if (y->factor == 0.0)
        return 1.0;
    const double low = fmax(0.0, floor(yarn_pair(hp, y->beta_fast)));
    const double high = fmin((double)hp->n_rot - 1.0, ceil(yarn_pair(hp, y->beta_slow)));
    /* 0.001 avoids a division by 0. It and the limit n_rot - 1 are those of llama.cpp. */
    const double ramp = ((double)i - low) / fmax(0.001, high - low);
    const double keep = (1.0 - fmin(1.0, fmax(0.0, ramp))) * y->ext_factor;
    return keep + (1.0 - keep) / y->factor;
}

bool rope_is_long(const struct model *m, size_t n_ctx)
{
    return m->rope_factors_long.bytes && n_ctx > m->hp.rope_short_ctx;
}

bool rope_freq_init(double *freq, const struct model *m, bool is_long, struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    const struct tensor_ref *longrope = is_long ? &m->rope_factors_long : &m->rope_factors_short;
    const uint8_t *factors = longrope->bytes ? longrope->bytes : m->rope_freqs.bytes;
    for (size_t i = 0; i < hp->n_rot / 2; i++) {
        const double factor = factors ? (double)f32_from_bits(le_u32(factors + 4 * i)) : 1.0;
        freq[i] = hp->rope_scale * pow(hp->rope_base, -2.0 * (double)i / (double)hp->n_rot) /
                  factor * yarn_scale(hp, i);
        if (!isfinite(freq[i]))
            return bn_fail(err, BN_EFORMAT, "the RoPE frequency of pair %zu is not a number", i);
    }
    return true;
}

void rope_angles(const double *freq, size_t n_pairs, double magnitude, size_t pos, float *c,
                 float *s)
{
    for (size_t i = 0; i < n_pairs; i++) {
        const double angle = (double)pos * freq[i];
        c[i] = (float)(cos(angle) * magnitude);
        s[i] = (float)(sin(angle) * magnitude);
    }
}
