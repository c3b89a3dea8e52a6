/*
 * Angles of the rotary embedding. They are computed in every pass, which takes a microsecond per
 * token. A table for the whole context would need megabytes.
 */
#include "engine/model/rope.h"

#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"

#include <math.h>

bool rope_freq_init(double *freq, const struct model *m, struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    for (size_t i = 0; i < hp->n_rot / 2; i++) {
        const uint8_t *factors = m->rope_freqs.bytes;
        const double factor = factors ? (double)f32_from_bits(le_u32(factors + 4 * i)) : 1.0;
        freq[i] =
            hp->rope_scale * pow(hp->rope_base, -2.0 * (double)i / (double)hp->n_rot) / factor;
        if (!isfinite(freq[i]))
            return bn_fail(err, BN_EFORMAT, "the RoPE frequency of pair %zu is not a number", i);
    }
    return true;
}

void rope_angles(const double *freq, size_t n_pairs, size_t pos, float *c, float *s)
{
    for (size_t i = 0; i < n_pairs; i++) {
        const double angle = (double)pos * freq[i];
        c[i] = (float)cos(angle);
        s[i] = (float)sin(angle);
    }
}
