/*
 * Computes the graph of docs/formats.md, "Graphs", layer by layer for all positions. It keeps the
 * codes of one tensor and the activations of all positions in memory.
 */
#include "tests/support/ref_forward.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"
#include "tests/support/table_encode.h"

#include <math.h>
#include <string.h>

/* Activations of all positions. `widest` is the largest number of columns of a linear layer. */
struct ref {
    const struct model *m;
    const struct ref_options *o;
    size_t n;  /* positions */
    double *h; /* (n, n_embd) the residual stream */
    double *a; /* (n, widest) input of linear layers */
    /* (n, 2 * n_heads * head_dim) or, with delta nets, (n, channels) if that is more; attention
     * uses n_heads * head_dim of q and n_kv_heads * head_dim of k and v */
    double *q, *k, *v;
    double *gate, *up; /* (n, n_ff) */
    double *out;       /* (n, n_embd) */
    double *scores;    /* (n) */
    uint8_t *codes;    /* one tensor */
    double *row;       /* (widest) */
    double *rotated;   /* (widest) */
    float *values;     /* (n_embd) a row of a ternary embedding */
};

static double *doubles(size_t rows, size_t cols)
{
    return mem_alloc(rows, cols * sizeof(double));
}

static bool ref_alloc(struct ref *r)
{
    const struct hparams *hp = &r->m->hp;
    const size_t q_dim = hp->n_heads * hp->head_dim;
    size_t widest = q_dim > hp->n_ff ? q_dim : hp->n_ff;
    widest = widest > hp->n_embd ? widest : hp->n_embd;
    widest = size_max(widest, delta_width(&hp->delta));
    const size_t heads_dim = size_max(2 * q_dim, delta_channels(&hp->delta));
    const size_t most_rows = size_max(size_max(widest, hp->n_vocab), heads_dim);
    r->h = doubles(r->n, hp->n_embd);
    r->a = doubles(r->n, widest);
    r->q = doubles(r->n, heads_dim);
    r->k = doubles(r->n, heads_dim);
    r->v = doubles(r->n, heads_dim);
    r->gate = doubles(r->n, hp->n_ff);
    r->up = doubles(r->n, hp->n_ff);
    r->out = doubles(r->n, hp->n_embd);
    r->scores = doubles(r->n, 1);
    r->row = doubles(widest, 1);
    r->rotated = doubles(widest, 1);
    r->codes = mem_alloc(most_rows, widest);
    r->values = mem_alloc(hp->n_embd, sizeof(*r->values));
    return r->h && r->a && r->q && r->k && r->v && r->gate && r->up && r->out && r->scores &&
           r->row && r->rotated && r->codes && r->values;
}

static void ref_free(struct ref *r)
{
    double *const all[] = {r->h,  r->a,   r->q,      r->k,   r->v,      r->gate,
                           r->up, r->out, r->scores, r->row, r->rotated};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        mem_free(all[i]);
    mem_free(r->codes);
    mem_free(r->values);
}

static void trace(const struct ref *r, const char *step, size_t layer, const double *x, size_t n)
{
    for (size_t t = 0; r->o->trace && t < r->n; t++)
        r->o->trace(r->o->trace_ud, step, layer, t, x + t * n, n);
}

static double f32_at(const struct tensor_ref *t, size_t i)
{
    return (double)f32_from_bits(le_u32(t->bytes + 4 * i));
}

/* y = x / sqrt(mean(x^2) + eps) * w for each position; y may be x. */
static void rms_norm(const struct ref *r, const double *x, const struct tensor_ref *w, double *y)
{
    const size_t n = w->n_cols;
    for (size_t t = 0; t < r->n; t++, x += n, y += n) {
        double ss = 0.0;
        for (size_t i = 0; i < n; i++)
            ss += x[i] * x[i];
        const double scale = 1.0 / sqrt(ss / (double)n + (double)r->m->hp.rms_eps);
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * scale * f32_at(w, i);
    }
}

/* y (n) = the transform of each block of x: element i is the sum of the elements k, each with the
 * sign (-1)^(bits that i and k share), divided by the square root of the block. */
static void transform(const double *x, size_t n, size_t block, double *y)
{
    for (size_t at = 0; at < n; at += block)
        for (size_t i = 0; i < block; i++) {
            double sum = 0.0;
            for (size_t k = 0; k < block; k++)
                sum += __builtin_parityll(i & k) ? -x[at + k] : x[at + k];
            y[at + i] = sum / sqrt((double)block);
        }
}

/* The input x (n) of a layer after its rotation: x itself or r->rotated. */
static const double *rotate(const struct ref *r, const struct rotation *rotation, const double *x,
                            size_t n)
{
    if (rotation->block == 0)
        return x;
    const size_t n_outer = rotation->n_outer ? rotation->n_outer : 1;
    const size_t n_inner = rotation->n_outer ? rotation->n_inner : 1;
    const size_t dim = n / (n_outer * n_inner);
    for (size_t i = 0; i < n; i++) { /* element i of the weights' order */
        const size_t head = i / dim;
        const size_t from = head % n_outer * n_inner + head / n_outer;
        r->row[i] = x[from * dim + i % dim] * (rotation->signs ? (double)rotation->signs[i] : 1.0);
    }
    transform(r->row, n, rotation->block, r->rotated);
    return r->rotated;
}

/* Quantise x (n) to whole numbers in r->row, with one scale. Returns it: row = round(s x). */
static double quantise_token(const struct ref *r, const double *x, size_t n)
{
    double most = 1e-5;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    const double s = 127.0 / most;
    for (size_t i = 0; i < n; i++)
        r->row[i] = fmax(-128.0, fmin(127.0, rint(x[i] * s)));
    return s;
}

/* Round x (n) to `levels` steps up to the largest magnitude of its block. The factor and the
 * product are single precision, because rows of a ternary embedding give many exact ties. */
static void round_blocks(const struct ref *r, const double *x, size_t n, size_t block_cols,
                         float levels)
{
    for (size_t begin = 0; begin < n; begin += block_cols) {
        const size_t end = size_min(begin + block_cols, n);
        float most = 0.0f;
        for (size_t i = begin; i < end; i++)
            most = fmaxf(most, fabsf((float)x[i]));
        const float s = most > 0.0f ? levels / most : 0.0f;
        for (size_t i = begin; i < end; i++)
            r->row[i] = (double)rintf((float)x[i] * s) * ((double)most / (double)levels);
    }
}

/* Quantise the input x (n) of a layer to r->row by the scheme of the model. The result of the layer
 * must be divided by the returned number. */
static double quantise(const struct ref *r, const struct linear *w, const double *x, size_t n)
{
    const struct ternary_scales *s = &w->scales;
    const size_t span = s->scaling == SCALE_BLOCK && s->block_cols == 64 ? 64 : 128;
    switch (r->m->act_scheme) {
    case ACT_TOKEN:
        return quantise_token(r, x, n);
    case ACT_BLOCK32:
        round_blocks(r, x, n, 32, 127.0f);
        break;
    case ACT_BLOCK128:
        round_blocks(r, x, n, span, 127.0f);
        break;
    case ACT_16:
        round_blocks(r, x, n, span, 127.0f * 128.0f);
        break;
    case ACT_FLOAT:
        memcpy(r->row, x, n * sizeof(*x));
        break;
    }
    return 1.0;
}

/* The scales of a linear layer as (n_rows, blocks of *cols columns). Free it with mem_free. */
static double *scales_of(const struct linear *w, size_t *cols, struct bn_error *err)
{
    const struct ternary_scales *s = &w->scales;
    const size_t n_rows = w->source.n_rows;
    *cols = s->scaling == SCALE_BLOCK ? s->block_cols : w->source.n_cols;
    const size_t row_blocks = (w->source.n_cols + *cols - 1) / *cols;
    double *out = mem_alloc(n_rows, row_blocks * sizeof(*out));
    uint16_t *bits = mem_alloc(row_blocks, sizeof(*bits));
    bool ok = (out && bits) || bn_fail(err, BN_ENOMEM, "no memory for the scales of a layer");
    for (size_t i = 0; ok && i < n_rows; i++) {
        float of_row = s->tensor_scale;
        if (s->scaling == SCALE_ROW)
            ternary_row_scales(&w->source, i, i + 1, &of_row);
        ok = s->scaling != SCALE_BLOCK || ternary_block_scales(&w->source, s, i, i + 1, bits, err);
        for (size_t k = 0; ok && k < row_blocks; k++)
            out[i * row_blocks + k] =
                s->scaling == SCALE_BLOCK ? (double)f16_to_f32(bits[k]) : (double)of_row;
    }
    mem_free(bits);
    if (ok)
        return out;
    mem_free(out);
    return NULL;
}

/* scales: one per block of `cols` columns */
static double row_dot(const uint8_t *codes, const double *scales, size_t cols, const double *x,
                      size_t n)
{
    double acc = 0.0;
    for (size_t begin = 0; begin < n; begin += cols) {
        double block = 0.0;
        for (size_t i = begin; i < n && i < begin + cols; i++)
            block += (double)((int)codes[i] - 1) * x[i];
        acc += block * scales[begin / cols];
    }
    return acc;
}

/* y (n, rows) = W x (n, cols) */
static bool linear(const struct ref *r, const struct linear *w, const double *x, double *y,
                   struct bn_error *err)
{
    const size_t n_cols = w->source.n_cols, n_rows = w->source.n_rows;
    size_t cols;
    double *scales = scales_of(w, &cols, err);
    if (!scales || !ternary_decode(&w->source, 0, n_rows, r->codes, err)) {
        mem_free(scales);
        return false;
    }
    const size_t row_blocks = (n_cols + cols - 1) / cols;
    for (size_t t = 0; t < r->n; t++) {
        const double s = quantise(r, w, rotate(r, &w->rotation, x + t * n_cols, n_cols), n_cols);
        const double d = (double)w->extra_scale / s;
        for (size_t i = 0; i < n_rows; i++) {
            const double bias = w->bias.bytes ? f32_at(&w->bias, i) : 0.0;
            y[t * n_rows + i] =
                row_dot(r->codes + i * n_cols, scales + i * row_blocks, cols, r->row, n_cols) * d +
                bias;
        }
    }
    mem_free(scales);
    return true;
}

/* RMSNorm of each head of every position, in place. `th` counts the heads of all positions. */
static void head_norm(const struct ref *r, double *x, size_t n_heads, const struct tensor_ref *w)
{
    const size_t n = r->m->hp.head_dim;
    for (size_t th = 0; w->bytes && th < r->n * n_heads; th++, x += n) {
        double ss = 0.0;
        for (size_t i = 0; i < n; i++)
            ss += x[i] * x[i];
        for (size_t i = 0; i < n; i++)
            x[i] = x[i] / sqrt(ss / (double)n + (double)r->m->hp.rms_eps) * f32_at(w, i);
    }
}

/* The frequency of pair i under YaRN, from the equations of docs/formats.md. */
static double yarn_freq(const struct hparams *hp, size_t i)
{
    const double pi = 3.14159265358979323846, n = (double)hp->n_rot, base = hp->rope_base;
    const double freq = pow(base, -2.0 * (double)i / n);
    const struct rope_yarn *y = &hp->yarn;
    if (y->factor == 0.0)
        return freq;
    double low = floor(n * log(y->original_ctx / (2 * pi * y->beta_fast)) / (2 * log(base)));
    double high = ceil(n * log(y->original_ctx / (2 * pi * y->beta_slow)) / (2 * log(base)));
    low = low < 0 ? 0 : low;
    high = high > n - 1 ? n - 1 : high;
    const double width = high - low < 0.001 ? 0.001 : high - low;
    double fast = 1 - ((double)i - low) / width;
    fast = (fast < 0 ? 0 : fast > 1 ? 1 : fast) * y->ext_factor;
    return freq * fast + freq / y->factor * (1 - fast);
}

/* Rotate the heads of every position in place. */
static void rope(const struct ref *r, double *x, size_t n_heads)
{
    const struct hparams *hp = &r->m->hp;
    const bool neox = r->m->arch->rope == ROPE_NEOX;
    for (size_t th = 0; th < r->n * n_heads; th++, x += hp->head_dim) {
        const double pos = (double)(th / n_heads) * hp->rope_scale;
        for (size_t i = 0; i < hp->n_rot / 2; i++) {
            double angle = pos * yarn_freq(hp, i);
            if (r->m->rope_freqs.bytes)
                angle /= f32_at(&r->m->rope_freqs, i);
            double *a = neox ? x + i : x + 2 * i;
            double *b = neox ? a + hp->n_rot / 2 : a + 1;
            const double c = cos(angle) * hp->rope_magnitude, s = sin(angle) * hp->rope_magnitude;
            const double old = *a;
            *a = old * c - *b * s;
            *b = old * s + *b * c;
        }
    }
}

/* Round to the nearest F16, ties to even, saturating, like the KV cache. F16 has 10 bits after the
 * point, exponents from -14 on, and 65504 as its largest number. */
static void round_f16(const struct ref *r, double *x, size_t n)
{
    for (size_t i = 0; i < n && !r->o->plain_kv; i++) {
        const int e = x[i] == 0.0 ? -14 : ilogb(x[i]);
        const int unit = (e < -14 ? -14 : e) - 10;
        x[i] = fmax(-65504.0, fmin(65504.0, ldexp(rint(ldexp(x[i], -unit)), unit)));
    }
}

/* One query head of one position over the `window` last keys, its own included, or over all keys up
 * to it; o (head_dim). */
static void attend(const struct ref *r, size_t t, size_t head, size_t window, double *o)
{
    const struct hparams *hp = &r->m->hp;
    const size_t dim = hp->head_dim, kv_dim = hp->n_kv_heads * dim;
    const size_t kv0 = head / (hp->n_heads / hp->n_kv_heads) * dim;
    const double *q = r->q + (t * hp->n_heads + head) * dim;
    const size_t first = window > 0 && t + 1 > window ? t + 1 - window : 0;
    double most = -INFINITY, sum = 0.0;
    for (size_t p = first; p <= t; p++) {
        double z = 0.0;
        for (size_t i = 0; i < dim; i++)
            z += q[i] * r->k[p * kv_dim + kv0 + i];
        r->scores[p] = z / sqrt((double)dim);
        most = fmax(most, r->scores[p]);
    }
    for (size_t i = 0; i < dim; i++)
        o[i] = 0.0;
    for (size_t p = first; p <= t; p++) {
        const double w = exp(r->scores[p] - most);
        sum += w;
        for (size_t i = 0; i < dim; i++)
            o[i] += w * r->v[p * kv_dim + kv0 + i];
    }
    for (size_t i = 0; i < dim; i++)
        o[i] /= sum;
}

static void add_residual(const struct ref *r)
{
    for (size_t i = 0; i < r->n * r->m->hp.n_embd; i++)
        r->h[i] += r->out[i];
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Move the gates of all heads from r->q, where query and gate of a head alternate, to the end of
 * r->q. */
static bool split_gates(const struct ref *r, struct bn_error *err)
{
    const size_t dim = r->m->hp.head_dim, n = r->n * r->m->hp.n_heads;
    double *all = doubles(2 * n, dim);
    if (!all)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu heads", n);
    memcpy(all, r->q, 2 * n * dim * sizeof(*all));
    for (size_t th = 0; th < n; th++)
        for (size_t i = 0; i < dim; i++) {
            r->q[th * dim + i] = all[2 * th * dim + i];
            r->q[(n + th) * dim + i] = all[(2 * th + 1) * dim + i];
        }
    mem_free(all);
    return true;
}

/* The result of attention, r->a, times its gates. */
static void apply_gates(const struct ref *r)
{
    const size_t n = r->n * r->m->hp.n_heads * r->m->hp.head_dim;
    for (size_t i = 0; i < n; i++)
        r->a[i] *= sigmoid(r->q[n + i]);
}

/* Row `row` of a small matrix times x. */
static double small_dot(const struct ref *r, const struct tensor_ref *t, size_t row,
                        const double *x)
{
    double z = 0.0;
    table_decode(t->type, t->bytes + row * (t->n_bytes / t->n_rows), t->n_cols, r->row);
    for (size_t i = 0; i < t->n_cols; i++)
        z += r->row[i] * x[i];
    return z;
}

/* x (n, channels) becomes the convolution of its last four rows, then SiLU. */
static void convolve(const struct ref *r, const struct tensor_ref *w, double *x)
{
    const size_t n = w->n_rows;
    for (size_t t = r->n; t-- > 0;)
        for (size_t c = 0; c < n; c++) {
            double y = 0.0;
            for (size_t tap = 0; tap < 4; tap++)
                if (t + tap >= 3)
                    y += f32_at(w, 4 * c + tap) * x[(t + tap - 3) * n + c];
            x[t * n + c] = y * sigmoid(y);
        }
}

static void unit_length(double *x, size_t n, double eps)
{
    double ss = 0.0;
    for (size_t i = 0; i < n; i++)
        ss += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= fmax(sqrt(ss), eps);
}

/* One token of value head h: s (dim, dim) by key and value, `in` the normed input of the token. */
static void delta_step(const struct ref *r, const struct layer *l, size_t h, size_t t,
                       const double *in, double *s)
{
    const struct delta_shape *d = &r->m->hp.delta;
    const size_t dim = d->dim, key_head = h % d->n_key_heads;
    const double *q = r->q + t * delta_channels(d) + key_head * dim;
    const double *k = q + d->n_key_heads * dim;
    const double *v = r->q + t * delta_channels(d) + (2 * d->n_key_heads + h) * dim;
    const double beta = sigmoid(small_dot(r, &l->delta.beta, h, in));
    const double z = small_dot(r, &l->delta.alpha, h, in) + f32_at(&l->delta.dt_bias, h);
    const double decay = exp(f32_at(&l->delta.a, h) * (z > 30.0 ? z : log1p(exp(z))));
    double *o = r->a + t * delta_width(d) + h * dim;
    for (size_t j = 0; j < dim; j++) {
        double recalled = 0.0;
        o[j] = 0.0;
        for (size_t i = 0; i < dim; i++) {
            s[i * dim + j] *= decay;
            recalled += s[i * dim + j] * k[i];
        }
        for (size_t i = 0; i < dim; i++) {
            s[i * dim + j] += k[i] * beta * (v[j] - recalled);
            o[j] += s[i * dim + j] * q[i] / sqrt((double)dim);
        }
    }
}

/* RMSNorm of o (dim), then the gate z. */
static void gated_norm(const struct ref *r, const struct tensor_ref *w, const double *z, double *o)
{
    const size_t n = w->n_cols;
    double ss = 0.0;
    for (size_t i = 0; i < n; i++)
        ss += o[i] * o[i];
    for (size_t i = 0; i < n; i++)
        o[i] = o[i] / sqrt(ss / (double)n + (double)r->m->hp.rms_eps) * f32_at(w, i) * z[i] *
               sigmoid(z[i]);
}

/* r->q holds queries, keys and values of all tokens, r->k the gates z. */
static void delta_states(const struct ref *r, const struct layer *l, const double *normed,
                         double *state)
{
    const struct delta_shape *d = &r->m->hp.delta;
    const size_t dim = d->dim, width = delta_width(d), channels = delta_channels(d);
    convolve(r, &l->delta.conv, r->q);
    for (size_t t = 0; t < r->n; t++)
        for (size_t h = 0; h < 2 * d->n_key_heads; h++)
            unit_length(r->q + t * channels + h * dim, dim, (double)r->m->hp.rms_eps);
    for (size_t h = 0; h < d->n_value_heads; h++) {
        memset(state, 0, dim * dim * sizeof(*state));
        for (size_t t = 0; t < r->n; t++) {
            delta_step(r, l, h, t, normed + t * r->m->hp.n_embd, state);
            gated_norm(r, &l->delta.norm, r->k + t * width + h * dim, r->a + t * width + h * dim);
        }
    }
}

static bool delta_part(const struct ref *r, size_t at, struct bn_error *err)
{
    const struct hparams *hp = &r->m->hp;
    const struct layer *l = &r->m->layers[at];
    double *normed = doubles(r->n, hp->n_embd);
    double *state = doubles(hp->delta.dim, hp->delta.dim);
    bool ok = (normed && state) || bn_fail(err, BN_ENOMEM, "no memory for a delta net");
    if (ok) {
        rms_norm(r, r->h, &l->attn_norm, normed);
        ok = linear(r, &l->q, normed, r->q, err) && linear(r, &l->k, normed, r->k, err);
    }
    if (ok) {
        delta_states(r, l, normed, state);
        ok = linear(r, &l->o, r->a, r->out, err);
    }
    if (ok)
        add_residual(r);
    mem_free(state);
    mem_free(normed);
    return ok;
}

static bool attention_part(const struct ref *r, size_t at, struct bn_error *err)
{
    const struct hparams *hp = &r->m->hp;
    const struct layer *l = &r->m->layers[at];
    const size_t q_dim = hp->n_heads * hp->head_dim, kv_dim = hp->n_kv_heads * hp->head_dim;
    rms_norm(r, r->h, &l->attn_norm, r->a);
    trace(r, "attn_norm", at, r->a, hp->n_embd);
    if (!linear(r, &l->q, r->a, r->q, err) || !linear(r, &l->k, r->a, r->k, err) ||
        !linear(r, &l->v, r->a, r->v, err))
        return false;
    if (r->m->arch->delta_nets && !split_gates(r, err))
        return false;
    head_norm(r, r->q, hp->n_heads, &l->q_norm);
    head_norm(r, r->k, hp->n_kv_heads, &l->k_norm);
    if (l->traits.has_rope) {
        rope(r, r->q, hp->n_heads);
        rope(r, r->k, hp->n_kv_heads);
    }
    trace(r, "q", at, r->q, q_dim);
    trace(r, "k", at, r->k, kv_dim);
    trace(r, "v", at, r->v, kv_dim);
    round_f16(r, r->k, r->n * kv_dim);
    round_f16(r, r->v, r->n * kv_dim);
    for (size_t th = 0; th < r->n * hp->n_heads; th++)
        attend(r, th / hp->n_heads, th % hp->n_heads, l->traits.n_visible_keys,
               r->a + th * hp->head_dim);
    if (r->m->arch->delta_nets)
        apply_gates(r);
    trace(r, "attn", at, r->a, q_dim);
    if (l->attn_sub_norm.bytes)
        rms_norm(r, r->a, &l->attn_sub_norm, r->a);
    trace(r, "attn_sub_norm", at, r->a, q_dim);
    if (!linear(r, &l->o, r->a, r->out, err))
        return false;
    add_residual(r);
    trace(r, "attn_out", at, r->h, hp->n_embd);
    return true;
}

static double activate(enum ffn_act act, double g)
{
    if (act == FFN_RELU2)
        return g > 0.0 ? g * g : 0.0;
    return g / (1.0 + exp(-g));
}

/* Expert number e of a matrix. Not for I2_S, whose scale is at the end of the tensor. */
static struct linear expert_of(const struct hparams *hp, const struct linear *all, size_t e)
{
    struct linear one = *all;
    one.source.n_rows /= hp->n_experts;
    one.source.n_bytes /= hp->n_experts;
    one.source.bytes += e * one.source.n_bytes;
    return one;
}

/* The weights of all experts for one token: 0 for those that are not chosen. */
static void route(const struct ref *r, const struct tensor_ref *router, const double *b,
                  double *weights)
{
    const struct hparams *hp = &r->m->hp;
    double most = -INFINITY, sum = 0.0, chosen = 0.0;
    for (size_t e = 0; e < hp->n_experts; e++) {
        weights[e] = 0.0;
        for (size_t i = 0; i < hp->n_embd; i++)
            weights[e] += f32_at(router, e * hp->n_embd + i) * b[i];
        most = fmax(most, weights[e]);
    }
    for (size_t e = 0; e < hp->n_experts; e++)
        sum += weights[e] = exp(weights[e] - most);
    for (size_t e = 0; e < hp->n_experts; e++)
        weights[e] /= sum;
    /* An expert stays if fewer than n_used_experts others are better, or equal with a lower index.
     */
    bool keep[MODEL_MAX_EXPERTS];
    for (size_t e = 0; e < hp->n_experts; e++) {
        size_t n_before = 0;
        for (size_t k = 0; k < hp->n_experts; k++)
            n_before += weights[k] > weights[e] || (weights[k] == weights[e] && k < e);
        keep[e] = n_before < hp->n_used_experts;
        chosen += keep[e] ? weights[e] : 0.0;
    }
    for (size_t e = 0; e < hp->n_experts; e++)
        weights[e] = keep[e] ? weights[e] / chosen : 0.0;
}

/* Computes every expert for every position. */
static bool experts_part(const struct ref *r, size_t at, struct bn_error *err)
{
    const struct hparams *hp = &r->m->hp;
    const struct layer *l = &r->m->layers[at];
    const double limit = (double)l->traits.clamp;
    double *weights = doubles(r->n, hp->n_experts);
    bool ok = weights || bn_fail(err, BN_ENOMEM, "no memory for the weights of experts");
    rms_norm(r, r->h, &l->ffn_norm, r->a);
    for (size_t t = 0; ok && t < r->n; t++)
        route(r, &l->router, r->a + t * hp->n_embd, weights + t * hp->n_experts);
    for (size_t e = 0; ok && e < hp->n_experts; e++) {
        const struct linear gate = expert_of(hp, &l->gate, e), up = expert_of(hp, &l->up, e);
        const struct linear down = expert_of(hp, &l->down, e);
        ok = linear(r, &gate, r->a, r->gate, err) && linear(r, &up, r->a, r->up, err);
        for (size_t i = 0; ok && i < r->n * hp->n_ff; i++)
            r->gate[i] =
                activate(FFN_SILU, fmin(r->gate[i], limit)) * fmax(-limit, fmin(limit, r->up[i]));
        ok = ok && linear(r, &down, r->gate, r->out, err);
        for (size_t i = 0; ok && i < r->n * hp->n_embd; i++)
            r->h[i] += weights[i / hp->n_embd * hp->n_experts + e] * r->out[i];
    }
    mem_free(weights);
    return ok;
}

static bool ffn_part(const struct ref *r, size_t at, struct bn_error *err)
{
    if (r->m->arch->experts)
        return experts_part(r, at, err);
    const struct hparams *hp = &r->m->hp;
    const struct layer *l = &r->m->layers[at];
    rms_norm(r, r->h, &l->ffn_norm, r->a);
    trace(r, "ffn_norm", at, r->a, hp->n_embd);
    if (!linear(r, &l->gate, r->a, r->gate, err) || !linear(r, &l->up, r->a, r->up, err))
        return false;
    trace(r, "gate", at, r->gate, hp->n_ff);
    trace(r, "up", at, r->up, hp->n_ff);
    for (size_t i = 0; i < r->n * hp->n_ff; i++)
        r->gate[i] = activate(hp->ffn_act, r->gate[i]) * r->up[i];
    trace(r, "act", at, r->gate, hp->n_ff);
    if (l->ffn_sub_norm.bytes)
        rms_norm(r, r->gate, &l->ffn_sub_norm, r->gate);
    trace(r, "ffn_sub_norm", at, r->gate, hp->n_ff);
    if (!linear(r, &l->down, r->gate, r->out, err))
        return false;
    add_residual(r);
    trace(r, "ffn_out", at, r->h, hp->n_embd);
    return true;
}

static const uint8_t *table_row(const struct tensor_ref *t, size_t row)
{
    return t->bytes + row * (t->n_bytes / t->n_rows);
}

/* A row of a rotated embedding: first the transform, then the signs. */
static void unrotate(const struct ref *r, double *h)
{
    const struct rotation *rotation = &r->m->embd_rotation;
    const size_t n = r->m->hp.n_embd;
    if (rotation->block == 0)
        return;
    transform(h, n, rotation->block, r->row);
    for (size_t i = 0; i < n; i++)
        h[i] = r->row[i] * (rotation->signs ? (double)rotation->signs[i] : 1.0);
}

static bool embed(const struct ref *r, const int32_t *ids, struct bn_error *err)
{
    const struct hparams *hp = &r->m->hp;
    for (size_t t = 0; t < r->n; t++) {
        if (ids[t] < 0 || (size_t)ids[t] >= hp->n_vocab)
            return bn_fail(err, BN_EARG, "token %d is not in a vocabulary of %zu", ids[t],
                           hp->n_vocab);
        double *h = r->h + t * hp->n_embd;
        if (!r->m->ternary_embd.bytes) {
            table_decode(r->m->embd.type, table_row(&r->m->embd, (size_t)ids[t]), hp->n_embd, h);
        } else {
            ternary_row_decode(&r->m->ternary_embd, (size_t)ids[t], r->values);
            for (size_t i = 0; i < hp->n_embd; i++)
                h[i] = (double)r->values[i];
        }
        unrotate(r, h);
    }
    return true;
}

static bool ternary_head(const struct ref *r, float *logits, struct bn_error *err)
{
    const size_t n = r->n * r->m->hp.n_vocab;
    double *y = doubles(n, 1);
    const bool ok = y ? linear(r, &r->m->head_linear, r->h, y, err)
                      : bn_fail(err, BN_ENOMEM, "no memory for %zu logits", n);
    for (size_t i = 0; ok && i < n; i++)
        logits[i] = (float)y[i];
    mem_free(y);
    return ok;
}

static bool head(const struct ref *r, float *logits, struct bn_error *err)
{
    const struct hparams *hp = &r->m->hp;
    rms_norm(r, r->h, &r->m->output_norm, r->h);
    trace(r, "output_norm", hp->n_layers, r->h, hp->n_embd);
    for (size_t t = 0; t < r->n && r->m->head_rotation.block; t++) {
        double *const h = r->h + t * hp->n_embd;
        memcpy(h, rotate(r, &r->m->head_rotation, h, hp->n_embd), hp->n_embd * sizeof(*h));
    }
    if (r->m->head_linear.source.bytes)
        return ternary_head(r, logits, err);
    for (size_t id = 0; id < hp->n_vocab; id++) {
        table_decode(r->m->head.type, table_row(&r->m->head, id), hp->n_embd, r->row);
        for (size_t t = 0; t < r->n; t++) {
            double z = 0.0;
            for (size_t i = 0; i < hp->n_embd; i++)
                z += r->row[i] * r->h[t * hp->n_embd + i];
            logits[t * hp->n_vocab + id] = (float)z;
        }
    }
    return true;
}

bool ref_forward(const struct model *m, const struct ref_options *options, const int32_t *ids,
                 size_t n_ids, float *logits, struct bn_error *err)
{
    const struct ref_options none = {0};
    struct ref r = {.m = m, .o = options ? options : &none, .n = n_ids};
    bool ok = ref_alloc(&r) || bn_fail(err, BN_ENOMEM, "no memory for %zu positions", n_ids);
    ok = ok && embed(&r, ids, err);
    for (size_t i = 0; ok && i < m->hp.n_layers; i++)
        ok = (m->layers[i].traits.is_delta_net ? delta_part(&r, i, err)
                                               : attention_part(&r, i, err)) &&
             ffn_part(&r, i, err);
    ok = ok && head(&r, logits, err);
    ref_free(&r);
    return ok;
}

double ref_rel_l2(const float *a, const float *b, size_t n)
{
    double diff = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        diff += d * d;
        norm += (double)b[i] * (double)b[i];
    }
    return norm > 0.0 ? sqrt(diff / norm) : sqrt(diff);
}
