/*
 * Angles of the rotary embedding. They are computed for every pass, which takes a microsecond per
 * token; a table for the context would need megabytes and fix the context length.
 */
#include "engine/model/rope.h"

#include "engine/base/fp16.h"

#include <math.h>

static float load_f32(const uint8_t *p)
{
    return f32_from_bits((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                         (uint32_t)p[3] << 24);
}

bool rope_freq_init(double *freq, const struct model *m, struct bn_error *err)
{
    const struct hparams *hp = &m->hp;
    for (size_t i = 0; i < hp->n_rot / 2; i++) {
        const double factor = m->rope_freqs.bytes ? load_f32(m->rope_freqs.bytes + 4 * i) : 1.0;
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
