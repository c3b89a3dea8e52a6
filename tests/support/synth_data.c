/*
 * The random bytes of synthetic tensors. A number depends only on the seed, the name of the tensor
 * and its position (noise_mix of a counter), so any range of a tensor can be computed separately.
 */
#include "tests/support/synth_plan.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "tests/support/table_encode.h"
#include "tests/support/ternary_encode.h"

#include <math.h>

#define CHUNK_ROWS 64     /* rows of a dense tensor that are written at once */
#define MIN_SCALE_COLS 64 /* the fewest columns that may share a scale */

static uint64_t stream_of(const struct synth_spec *spec, const char *name)
{
    uint64_t h = noise_mix(spec->seed);
    for (const char *c = name; *c; c++)
        h = noise_mix(h ^ (uint8_t)*c);
    return h;
}

/* Fill in ternary codes: 0, 1 and 2 stand for the weights -1, 0 and +1. 29 % of the weights are -1,
 * 42 % are 0 and 29 % are +1, as in trained models: a random byte per weight is compared with the
 * limits 74 and 182 of 256. */
static void fill_codes(uint64_t stream, uint8_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t r = noise_mix(stream + i / 8);
        uint8_t eight[8];
        for (size_t k = 0; k < 8; k++) {
            const unsigned b = r >> 8 * k & 255;
            eight[k] = (uint8_t)((b >= 74) + (b >= 182));
        }
        memcpy(codes + i, eight, size_min(8, n - i));
    }
}

/* Binary weights have no zero: neighbouring zeros become -1 and +1. */
static void make_binary(uint8_t *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (codes[i] == 1)
            codes[i] = (uint8_t)(i % 2 * 2);
}

/* Nearly normal with variance 1: the sum of four uniform 16-bit numbers, whose variance is 4 / 12.
 */
static float normal_at(uint64_t stream, uint64_t i)
{
    const uint64_t r = noise_mix(stream + i);
    const uint32_t sum =
        (uint32_t)((r & 65535) + (r >> 16 & 65535) + (r >> 32 & 65535) + (r >> 48));
    return ((float)sum - 131070.0f) * (1.7320508f / 65536.0f);
}

/* The magnitude of a weight; a random one for each group of columns that share a scale, and 0 for
 * some groups. It has 8 bits of mantissa, so that F32, F16 and BF16 hold it exactly. */
static float scale_at(const struct synth_spec *spec, const struct synth_tensor *t, size_t row,
                      size_t col)
{
    if (spec->scale_cols == 0)
        return t->scale;
    const uint64_t r =
        noise_mix(noise_mix(stream_of(spec, t->name) + row) + col / spec->scale_cols);
    const float scale = t->scale * (0.5f + (float)(r & 255) / 256.0f);
    return (r >> 8) % 32 == 0 ? 0.0f : f32_from_bits(f32_bits(scale) & 0xffff0000);
}

int synth_sign(const struct synth_spec *spec, size_t width, size_t i)
{
    const uint64_t r = noise_mix(noise_mix(spec->seed + width) + i);
    return spec->no_signs || (r & 1) ? 1 : -1;
}

/* Keep one weight of each run of columns and make it -1 or +1. In a rotated file the run becomes a
 * column of the transform: its elements are 1 or -1, because one input contributes to each. */
static void make_sparse(const struct synth_spec *spec, const struct synth_tensor *t, uint8_t *codes)
{
    const size_t block = spec->sparse_block, n = t->n_cols * t->n_rows;
    const uint64_t stream = stream_of(spec, t->name) ^ 1;
    for (size_t at = 0; at < n; at += block) {
        const uint64_t r = noise_mix(stream + at / block);
        const size_t col = (size_t)(r >> 8) % block;
        const bool is_rotated = spec->rotated_block > 0;
        int value = r & 1 ? 1 : -1;
        if (is_rotated)
            value *= synth_sign(spec, t->n_cols, at % t->n_cols + col);
        for (size_t i = 0; i < block; i++) {
            const int sign = __builtin_parityll(i & col) ? -1 : 1; /* of the Hadamard matrix */
            codes[at + i] = (uint8_t)(1 + (is_rotated ? value * sign : i == col ? value : 0));
        }
    }
}

static bool put_scales(const struct synth_spec *spec, const struct synth_tensor *t, uint8_t *bytes,
                       struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[t->type];
    if (spec->scale_cols == 0)
        return true;
    const bool per_row = g->row_scale_bytes > 0;
    if (t->type == TENSOR_I2_S || spec->scale_cols < (per_row ? t->n_cols : g->block_cols))
        return bn_fail(err, BN_EARG, "'%s': %s cannot hold these scales", t->name, g->name);
    for (size_t row = 0; per_row && row < t->n_rows; row++)
        ternary_put_row_scale(t->type, bytes, t->n_cols, row, scale_at(spec, t, row, 0));
    const size_t row_blocks = per_row ? 0 : t->n_cols / g->block_cols;
    for (size_t i = 0; i < row_blocks * t->n_rows; i++) {
        const float scale = scale_at(spec, t, i / row_blocks, i % row_blocks * g->block_cols);
        ternary_put_scale(t->type, bytes, i, f32_to_f16(scale));
    }
    return true;
}

/* A whole tensor of a ternary type. */
static bool packed_bytes(const struct synth_spec *spec, const struct synth_tensor *t,
                         const uint8_t *codes, struct gguf_buffer *out, struct bn_error *err)
{
    if (!tensor_bytes(t->type, t->n_cols, t->n_rows, &out->n_bytes))
        return bn_fail(err, BN_EARG, "'%s' does not fit its type", t->name);
    out->bytes = mem_alloc(out->n_bytes, 1);
    if (!out->bytes)
        return bn_fail(err, BN_ENOMEM, "no memory for '%s'", t->name);
    return ternary_encode(t->type, spec->layout, codes, t->n_cols, t->n_rows, t->scale, out->bytes,
                          err) &&
           put_scales(spec, t, out->bytes, err);
}

/* The same values as floats, written a row at a time. */
static bool write_floats(const struct synth_spec *spec, const struct synth_tensor *t,
                         const uint8_t *codes, struct gguf_writer *w, const struct gguf_sink *sink,
                         struct bn_error *err)
{
    const size_t row_bytes = t->n_cols * tensor_geometries[t->type].block_bytes;
    float *x = mem_alloc(t->n_cols, sizeof(*x));
    uint8_t *bytes = mem_alloc(row_bytes, 1);
    bool ok = (x && bytes) || bn_fail(err, BN_ENOMEM, "no memory for rows of %zu", t->n_cols);
    for (size_t row = 0; ok && row < t->n_rows; row++, codes += t->n_cols) {
        float scale = 0.0f;
        for (size_t k = 0; k < t->n_cols; k++) {
            if (k % MIN_SCALE_COLS == 0)
                scale = scale_at(spec, t, row, k);
            x[k] = (float)((int)codes[k] - 1) * scale;
        }
        table_encode(t->type, x, t->n_cols, bytes);
        ok = gguf_write_data(w, sink, bytes, row_bytes, err);
    }
    mem_free(bytes);
    mem_free(x);
    return ok;
}

static bool write_ternary(const struct synth_spec *spec, const struct synth_tensor *t,
                          struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err)
{
    const size_t n = t->n_cols * t->n_rows;
    struct gguf_buffer packed = {0};
    bool ok = false;
    uint8_t *codes = mem_alloc(n, 1);
    if (!codes) {
        (void)bn_fail(err, BN_ENOMEM, "no memory for %zu weights", n);
        goto done;
    }
    fill_codes(stream_of(spec, t->name), codes, n);
    struct synth_tensor scaled = *t;
    if (t->type == TENSOR_Q1_0)
        make_binary(codes, n);
    if (spec->sparse_block)
        make_sparse(spec, t, codes);
    /* A run has one weight that is not 0 here, and sparse_block of them in the rotated file. The
     * rows must have the same L2 norm in both. */
    if (spec->sparse_block && !spec->rotated_block)
        scaled.scale *= sqrtf((float)spec->sparse_block);
    if (!tensor_geometries[t->type].is_ternary)
        ok = write_floats(spec, &scaled, codes, w, sink, err);
    else
        ok = packed_bytes(spec, &scaled, codes, &packed, err) &&
             gguf_write_data(w, sink, packed.bytes, packed.n_bytes, err);
done:
    mem_free(packed.bytes);
    mem_free(codes);
    return ok;
}

/* Element i of a tensor that is not ternary. Embeddings are small and norms near 1, as in trained
 * models. */
static float dense_at(const struct synth_tensor *t, uint64_t stream, size_t i)
{
    switch (t->role) {
    case ROLE_SCALE:
        return t->scale;
    case ROLE_FREQS:
        return 1.0f + (t->scale - 1.0f) * (float)i / (float)size_max(t->n_cols - 1, 1);
    case ROLE_NORM:
        return 1.0f + 0.1f * normal_at(stream, i);
    case ROLE_ROUTER:
        return 0.2f * normal_at(stream, i);
    case ROLE_TAPS:
        return 0.5f * normal_at(stream, i);
    case ROLE_DECAY: /* from nearly nothing to nearly everything is forgotten */
        return -0.01f * (float)(1 + 37 * i % 300);
    case ROLE_BIAS:
        return 0.1f * normal_at(stream, i);
    default:
        return 0.05f * normal_at(stream, i);
    }
}

static bool write_dense(const struct synth_spec *spec, const struct synth_tensor *t,
                        struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err)
{
    const uint64_t stream = stream_of(spec, t->name);
    size_t row_bytes = 0;
    (void)tensor_bytes(t->type, t->n_cols, 1, &row_bytes); /* checked when it was declared */
    float *x = mem_alloc(t->n_cols, sizeof(*x));
    uint8_t *rows = mem_alloc(CHUNK_ROWS, row_bytes);
    bool ok = x && rows;
    if (!ok)
        (void)bn_fail(err, BN_ENOMEM, "no memory for rows of %zu", t->n_cols);
    for (size_t r = 0; ok && r < t->n_rows; r += CHUNK_ROWS) {
        const size_t n_here = size_min(CHUNK_ROWS, t->n_rows - r);
        for (size_t k = 0; k < n_here; k++) {
            for (size_t i = 0; i < t->n_cols; i++)
                x[i] = dense_at(t, stream, (r + k) * t->n_cols + i);
            table_encode(t->type, x, t->n_cols, rows + k * row_bytes);
        }
        ok = gguf_write_data(w, sink, rows, n_here * row_bytes, err);
    }
    mem_free(rows);
    mem_free(x);
    return ok;
}

bool synth_write_tensor(const struct synth_spec *spec, const struct synth_tensor *t,
                        struct gguf_writer *w, const struct gguf_sink *sink, struct bn_error *err)
{
    if (t->role == ROLE_TERNARY)
        return write_ternary(spec, t, w, sink, err);
    return write_dense(spec, t, w, sink, err);
}
