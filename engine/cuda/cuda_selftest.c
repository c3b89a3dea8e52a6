/*
 * Compares a small linear layer in R1-256 on the device with plain C, for both ways of multiplying
 * (dot products and tensor cores). A GPU, driver or compiler with other results than
 * docs/kernels.md specifies is rejected before a chat starts. The test needs milliseconds and 30 kB
 * of GPU memory.
 */
#include "engine/base/memory.h"
#include "engine/base/noise.h"
#include "engine/cuda/cuda_device.h"

#include <math.h>
#include <string.h>

/* Neither columns nor rows fill their last line or tile. */
enum { N_COLS = 500, N_LINES = 2, N_ROWS = 130, N_TOKENS = 3 };
#define EPS 1e-5f          /* of RMSNorm */
#define WEIGHT_SCALE 0.75f /* of the matrix */

/* Test data on the host. The device has buffers of the same sizes; the last three members are not
 * used on the host. */
struct selftest {
    float x[N_TOKENS * N_COLS], w[N_COLS];
    uint8_t lines[N_ROWS * N_LINES * LINE_BYTES];
    float y[N_TOKENS * N_ROWS]; /* computed by the device */
    float q_s[N_TOKENS];
    int32_t q_sum[N_TOKENS];
    int8_t q[N_TOKENS * N_LINES * LINE_COLS];
};

/* Reserves device memory. Kernels that load 16 bytes need aligned buffers. */
static CUdeviceptr reserve(CUdeviceptr *at, size_t n_bytes)
{
    const CUdeviceptr here = *at;
    *at += (n_bytes + DEVICE_ALIGN - 1) / DEVICE_ALIGN * DEVICE_ALIGN;
    return here;
}

/* x from -1 to 1, w from 0.5 to 1.5 (with 24 random bits each), and codes 0, 1 and 2. */
static void fill_inputs(struct selftest *t)
{
    for (size_t i = 0; i < N_TOKENS * N_COLS; i++)
        t->x[i] = (float)((double)(noise_bits(1, i) >> 40) / 8388608.0 - 1.0);
    for (size_t i = 0; i < N_COLS; i++)
        t->w[i] = (float)((double)(noise_bits(2, i) >> 40) / 16777216.0 + 0.5);
    for (size_t i = 0; i < sizeof t->lines; i++)
        for (unsigned shift = 0; shift < 8; shift += 2)
            t->lines[i] |= (uint8_t)(noise_bits(3, 4 * i + shift / 2) % 3 << shift);
}

/* RMSNorm and quantisation of one token as docs/kernels.md specifies. q has N_LINES * LINE_COLS
 * values; those past N_COLS must be zero on entry. The least maximum is 1e-5. Returns the scale. */
static float norm_and_quantise(const struct selftest *t, const float *x, int8_t *q)
{
    float sums[64] = {0}, m = 1e-5f;
    for (size_t i = 0; i < N_COLS; i++)
        sums[i % 64] = fmaf(x[i], x[i], sums[i % 64]);
    for (size_t half = 32; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            sums[l] = sums[l] + sums[l + half];
    const float r = 1.0f / sqrtf(sums[0] / (float)N_COLS + EPS);
    for (size_t i = 0; i < N_COLS; i++)
        m = fmaxf(m, fabsf((x[i] * r) * t->w[i]));
    for (size_t i = 0; i < N_COLS; i++)
        q[i] = (int8_t)rintf(((x[i] * r) * t->w[i]) * (127.0f / m));
    return 127.0f / m;
}

/* Row r of the matrix times q; the weight is code - 1. */
static int32_t multiply_row(const struct selftest *t, size_t r, const int8_t *q)
{
    int32_t sum = 0;
    for (size_t c = 0; c < N_COLS; c++) {
        const size_t line = c / LINE_COLS, field = c % LINE_COLS / 64;
        const uint8_t byte = t->lines[(r * N_LINES + line) * LINE_BYTES + c % 64];
        sum += ((byte >> (2 * field) & 3) - 1) * q[c];
    }
    return sum;
}

static bool is_right(const struct selftest *t)
{
    for (size_t token = 0; token < N_TOKENS; token++) {
        int8_t q[N_LINES * LINE_COLS] = {0};
        const float s = norm_and_quantise(t, t->x + token * N_COLS, q);
        for (size_t r = 0; r < N_ROWS; r++) {
            const float y = (float)multiply_row(t, r, q) * (WEIGHT_SCALE / s);
            if (memcmp(&y, &t->y[token * N_ROWS + r], sizeof y) != 0)
                return false;
        }
    }
    return true;
}

/* Multiplies with this kernel, and copies the results of all tokens to t->y. */
static bool run_kernel(struct cuda_device *dev, struct selftest *t, CUdeviceptr memory,
                       enum cuda_kernel kernel, struct bn_error *err)
{
    struct cuda_driver *d = &dev->driver;
    CUdeviceptr at = memory;
    const CUdeviceptr x = reserve(&at, sizeof t->x), w = reserve(&at, sizeof t->w);
    const CUdeviceptr lines = reserve(&at, sizeof t->lines), y = reserve(&at, sizeof t->y);
    const CUdeviceptr q_s = reserve(&at, sizeof t->q_s), q_sum = reserve(&at, sizeof t->q_sum);
    const CUdeviceptr q = reserve(&at, sizeof t->q);
    struct norm_args norm = {.x = (const float *)(uintptr_t)x,
                             .w = (const float *)(uintptr_t)w,
                             .q = (int8_t *)(uintptr_t)q,
                             .q_s = (float *)(uintptr_t)q_s,
                             .q_sum = (int32_t *)(uintptr_t)q_sum,
                             .eps = EPS,
                             .n = N_COLS,
                             .x_stride = N_COLS,
                             .q_stride = N_LINES * LINE_COLS};
    struct linear_args linear = {.lines = (const uint8_t *)(uintptr_t)lines,
                                 .q = norm.q,
                                 .q_s = norm.q_s,
                                 .q_sum = norm.q_sum,
                                 .y = (float *)(uintptr_t)y,
                                 .n_rows = N_ROWS,
                                 .n_lines = N_LINES,
                                 .n_tokens = N_TOKENS,
                                 .y_stride = N_ROWS,
                                 .row_end = {N_ROWS, N_ROWS},
                                 .scale = {WEIGHT_SCALE, 0.0f, 0.0f},
                                 .extra = {1.0f, 1.0f, 1.0f},
                                 .kind = LINEAR_STORE};
    if (!cuda_ok(d, d->cuMemcpyHtoD(x, t->x, sizeof t->x), "the self-test", err) ||
        !cuda_ok(d, d->cuMemcpyHtoD(w, t->w, sizeof t->w), "the self-test", err) ||
        !cuda_ok(d, d->cuMemcpyHtoD(lines, t->lines, sizeof t->lines), "the self-test", err) ||
        /* NaN, so that results of the other kernel cannot stand for those of this one */
        !cuda_ok(d, d->cuMemsetD8(y, 0xff, sizeof t->y), "the self-test", err))
        return false;
    if (kernel == KERNEL_linear_many) {
        cuda_launch(dev, KERNEL_norm_quantise, (struct cuda_grid){N_TOKENS, 1, 1, 0}, &norm);
        cuda_launch(dev, kernel, (struct cuda_grid){grid_blocks(N_ROWS, MANY_ROWS), 1, 1, 0},
                    &linear);
    }
    for (size_t i = 0; kernel == KERNEL_linear_one && i < N_TOKENS; i++) {
        /* token i tests 8, 16 or 32 lanes per two rows */
        struct norm_linear_args one = {.norm = norm, .linear = linear, .n_lanes = 8 << i};
        const size_t block_rows = 2 * ONE_THREADS / one.n_lanes;
        one.norm.x += i * N_COLS;
        one.linear.y += i * N_ROWS;
        cuda_launch(dev, kernel, (struct cuda_grid){grid_blocks(N_ROWS, block_rows), 1, 1, 0},
                    &one);
    }
    return cuda_finish(dev, err) &&
           cuda_ok(d, d->cuMemcpyDtoH(t->y, y, sizeof t->y), "the self-test", err);
}

static bool run_both(struct cuda_device *dev, struct selftest *t, struct bn_error *err)
{
    static const enum cuda_kernel kernels[] = {KERNEL_linear_one, KERNEL_linear_many};
    struct cuda_driver *d = &dev->driver;
    CUdeviceptr memory, end = 0;
    /* At least as many bytes as `run` reserves: it rounds up the size of each of seven buffers. */
    (void)reserve(&end, sizeof *t + 8 * (size_t)DEVICE_ALIGN);
    if (!cuda_ok(d, d->cuMemAlloc(&memory, (size_t)end), "memory for the self-test", err))
        return false;
    bool ok = cuda_ok(d, d->cuMemsetD8(memory, 0, (size_t)end), "the self-test", err);
    for (size_t i = 0; ok && i < sizeof kernels / sizeof kernels[0]; i++) {
        ok = run_kernel(dev, t, memory, kernels[i], err);
        if (ok && !is_right(t))
            ok = bn_fail(err, BN_EDEVICE, "%s computes wrong results and is not used", dev->name);
    }
    (void)d->cuMemFree(memory); /* an error changes no result */
    return ok;
}

bool cuda_selftest(struct cuda_device *dev, struct bn_error *err)
{
    struct selftest *t = mem_alloc(1, sizeof *t);
    if (!t)
        return bn_fail(err, BN_ENOMEM, "no memory for the self-test");
    fill_inputs(t);
    const bool ok = run_both(dev, t, err);
    mem_free(t);
    return ok;
}
