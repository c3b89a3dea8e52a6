/*
 * Checks of a model file: see model_check.h.
 *
 * model_open checks the structure. The engine's API does not expose weights and kernels, so this is
 * the only file of app/common that includes the engine's model and kernels.
 */
#include "app/common/check/model_check.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cpu/kernels.h"
#include "engine/file_gguf.h"
#include "engine/model/model.h"

#include <math.h>
#include <string.h>

#define N_LINEARS 7    /* matrices of a layer, in struct layer */
#define CODE_ROWS 64   /* rows of codes that are decoded at a time, to bound the memory */
#define SAMPLE_ROWS 8  /* rows of each tensor that kernels multiply; at most R16_ROWS, one group */
#define F16_ONE 0x3c00 /* 1.0 as F16 */

static const struct linear *linear_of(const struct layer *layer, size_t i)
{
    const struct linear *const all[N_LINEARS] = {&layer->q,    &layer->k,  &layer->v,   &layer->o,
                                                 &layer->gate, &layer->up, &layer->down};
    return all[i];
}

/* Ternary tensor i of the model: those of the layers, then the output head, then the embedding if
 * it is another tensor, both only if they are ternary. NULL if there are no more. The v of a delta
 * net is absent and has no rows. */
static const struct ternary_source *ternary_of(const struct model *m, size_t i)
{
    const struct ternary_source *const head = &m->head_linear.source;
    const struct ternary_source *const embd = &m->ternary_embd;
    const size_t n = m->hp.n_layers * N_LINEARS;
    if (i < n)
        return &linear_of(&m->layers[i / N_LINEARS], i % N_LINEARS)->source;
    const struct ternary_source *tables[2];
    size_t n_tables = 0;
    if (head->bytes)
        tables[n_tables++] = head;
    if (embd->bytes && embd->bytes != head->bytes)
        tables[n_tables++] = embd;
    return i - n < n_tables ? tables[i - n] : NULL;
}

/* Check a tensor and add its counts to `check`. codes: (CODE_ROWS, at least n_cols),
 * overwritten. */
static bool count_codes(const struct ternary_source *src, uint8_t *codes, struct model_check *check,
                        struct bn_error *err)
{
    struct ternary_scales scales;
    if (!ternary_scan(src, &scales, err))
        return false;
    /* With a scale per block, ternary_scan may stop at the row that settles the class of scales.
     * ternary_verify reads the scales of all rows. It accepts only the types with a scale per
     * block, which are the ternary types of tables. */
    if (tensor_geometries[src->type].is_table && tensor_geometries[src->type].is_ternary &&
        !ternary_verify(src, err))
        return false;
    for (size_t row = 0; row < src->n_rows; row += CODE_ROWS) {
        const size_t end = size_min(row + CODE_ROWS, src->n_rows);
        if (!ternary_decode(src, row, end, codes, err))
            return false;
        const size_t n = (end - row) * src->n_cols;
        for (size_t i = 0; i < n; i++)
            check->n_zero_codes += codes[i] == 1; /* the code of weight 0 */
        check->n_codes += n;
    }
    check->n_ternary_tensors++;
    check->n_binary_tensors += src->type == TENSOR_Q1_0;
    return true;
}

/* The number of columns of the widest ternary tensor. */
static size_t widest(const struct model *m)
{
    size_t n = 0;
    const struct ternary_source *src;
    for (size_t i = 0; (src = ternary_of(m, i)); i++)
        n = size_max(n, src->n_cols);
    return n;
}

static bool check_codes(const struct model *m, struct model_check *check, struct bn_error *err)
{
    uint8_t *codes = mem_alloc(widest(m), CODE_ROWS);
    bool ok = codes || bn_fail(err, BN_ENOMEM, "out of memory for rows of %zu codes", widest(m));
    const struct ternary_source *src;
    for (size_t i = 0; ok && (src = ternary_of(m, i)); i++)
        ok = src->n_rows == 0 || count_codes(src, codes, check, err);
    mem_free(codes);
    return ok;
}

/* Check that all numbers of a table are finite. row: (n_cols), overwritten. */
static bool check_rows(const struct tensor_ref *t, const struct cpu_kernels *k, float *row,
                       uint64_t *n_checked, struct bn_error *err)
{
    const size_t row_bytes = t->n_rows ? t->n_bytes / t->n_rows : 0;
    const row_decode_fn decode = k->row_decode[t->type];
    if (!decode)
        return true; /* a ternary table, which count_codes has checked */
    for (size_t r = 0; r < t->n_rows; r++) {
        decode(t->bytes + r * row_bytes, t->n_cols, row);
        for (size_t i = 0; i < t->n_cols; i++)
            if (!isfinite(row[i]))
                return bn_fail(err, BN_EFORMAT,
                               "tensor '%.*s': element %zu of row %zu is not a finite number",
                               (int)size_min(t->name.n_bytes, 100), t->name.ptr, i, r);
    }
    *n_checked += (uint64_t)t->n_rows * t->n_cols;
    return true;
}

/* Choose the kernels of this machine, at most those of `isa` (NULL: no limit). Writes a line to
 * `why` (may be NULL) for each instruction set that fails its self-test. */
static bool open_kernels(const char *isa, char *why, size_t why_bytes, struct cpu_kernels *out,
                         struct bn_error *err)
{
    struct cpu_caps caps;
    cpu_caps_detect(&caps);
    if (!cpu_caps_limit(&caps, isa, err))
        return false;
    cpu_caps_self_test(&caps, why, why_bytes);
    cpu_kernels_init(out, &caps);
    return true;
}

/* Check the tables. model_open has checked the other numbers. */
static bool check_numbers(const struct model *m, struct model_check *check, struct bn_error *err)
{
    struct cpu_kernels k; /* only to decode numbers, which is exact in all instruction sets */
    if (!open_kernels(NULL, NULL, 0, &k, err))
        return false;
    float *row = mem_alloc(m->hp.n_embd, sizeof(*row));
    if (!row)
        return bn_fail(err, BN_ENOMEM, "out of memory for a row of %zu numbers", m->hp.n_embd);
    check->n_numbers = m->n_finite;
    const bool ok = check_rows(&m->embd, &k, row, &check->n_numbers, err) &&
                    (m->tied || check_rows(&m->head, &k, row, &check->n_numbers, err));
    mem_free(row);
    return ok;
}

/* A few rows of a tensor, activations, and their product. The shapes of the buffers of a
 * struct ternary_gemm (packed, gathered, panel) are explained in engine/cpu/kernels.h. */
struct sample {
    uint8_t *codes; /* (SAMPLE_ROWS, n_cols) */
    uint8_t *lines; /* (SAMPLE_ROWS, n_lines, LINE_BYTES) the codes as R1-256 */
    uint8_t *group; /* (n_lines * LINE_COLS / R16_LINE_COLS, LINE_BYTES) as R16 */
    int8_t *q; /* (PACK_TOKENS, n_lines * LINE_COLS) activations; only those of token 0 are set */
    int8_t *packed;   /* (PACK_TOKENS, n_lines * LINE_COLS) */
    int8_t *gathered; /* (PACK_TOKENS, n_lines * LINE_COLS) */
    uint8_t *panel;   /* (PANEL_ALIGN, n_lines * LINE_COLS); for R16 (R16_ROWS, the same) */
    float *units;     /* (n_lines * LINE_COLS / MIN_BLOCK_COLS) scales of the blocks, all 1 */
    int32_t *q_sums;  /* the same shape: sums of q in each block */
    int32_t q_sum;    /* sum of q of token 0 */
    int32_t expected[SAMPLE_ROWS], got[SAMPLE_ROWS]; /* products: plain loop, kernel */
};

static bool sample_open(struct sample *s, size_t n_cols, struct bn_error *err)
{
    const size_t n_lines = (n_cols + LINE_COLS - 1) / LINE_COLS;
    s->codes = mem_alloc(n_cols, SAMPLE_ROWS);
    s->lines = mem_alloc(n_lines, SAMPLE_ROWS * LINE_BYTES);
    s->group = mem_alloc(n_lines, LINE_COLS / R16_LINE_COLS * LINE_BYTES);
    s->q = mem_alloc(n_lines, PACK_TOKENS * LINE_COLS);
    s->packed = mem_alloc(n_lines, PACK_TOKENS * LINE_COLS);
    s->gathered = mem_alloc(n_lines, PACK_TOKENS * LINE_COLS);
    s->panel = mem_alloc(n_lines, size_max(PANEL_ALIGN, R16_ROWS) * LINE_COLS);
    s->units = mem_alloc(n_lines, LINE_COLS / MIN_BLOCK_COLS * sizeof(*s->units));
    s->q_sums = mem_alloc(n_lines, LINE_COLS / MIN_BLOCK_COLS * sizeof(*s->q_sums));
    return (s->codes && s->lines && s->group && s->q && s->packed && s->gathered && s->panel &&
            s->units && s->q_sums) ||
           bn_fail(err, BN_ENOMEM, "out of memory for rows of %zu codes", n_cols);
}

static void sample_close(struct sample *s)
{
    mem_free(s->codes);
    mem_free(s->lines);
    mem_free(s->group);
    mem_free(s->q);
    mem_free(s->packed);
    mem_free(s->gathered);
    mem_free(s->panel);
    mem_free(s->units);
    mem_free(s->q_sums);
}

/* Make all results wrong, so that a kernel that stores nothing is noticed. */
static void spoil(struct sample *s)
{
    for (size_t r = 0; r < SAMPLE_ROWS; r++)
        s->got[r] = ~s->expected[r];
}

static bool is_expected(const struct sample *s, size_t n_rows)
{
    return memcmp(s->got, s->expected, n_rows * sizeof(s->got[0])) == 0;
}

/* Multiply the rows with one token, s->q, with the four functions of `g`. */
static bool gemm_is_right(const struct ternary_gemm *g, const struct ternary_mat *mat,
                          struct sample *s)
{
    spoil(s);
    g->pack(s->q, mat->n_lines, 0, s->packed);
    g->unpack(mat, 0, mat->n_rows, s->panel);
    const int8_t *q = g->gather(s->packed, mat->n_lines, 1, s->gathered);
    g->matmul(mat, 0, mat->n_rows,
              &(struct ternary_batch){.q = q,
                                      .q_sums = &s->q_sum,
                                      .panel = s->panel,
                                      .n_tokens = 1,
                                      .acc = s->got,
                                      .acc_stride = SAMPLE_ROWS});
    return is_expected(s, mat->n_rows);
}

/* Write a row in the layout R1-256 of docs/kernels.md, one code at a time. The engine's packing is
 * not used, so that a fault of it can neither hide nor imitate a fault of a kernel. */
static void pack_row(const uint8_t *codes, size_t n_cols, size_t n_lines, uint8_t *lines)
{
    memset(lines, 0x55, n_lines * LINE_BYTES); /* code 1 everywhere: weight zero */
    for (size_t c = 0; c < n_cols; c++) {
        uint8_t *byte = lines + c / LINE_COLS * LINE_BYTES + c % LINE_BYTES;
        const unsigned shift = (unsigned)(c % LINE_COLS / LINE_BYTES) * 2;
        *byte = (uint8_t)((*byte & ~(3u << shift)) | (unsigned)codes[c] << shift);
    }
}

/* The same as row r of a row group in the layout R16 (engine/layout/r16_pack.h). The caller has
 * set the code 1 everywhere in the group. */
static void pack_group_row(const uint8_t *codes, size_t n_cols, size_t r, uint8_t *group)
{
    for (size_t c = 0; c < n_cols; c++) {
        uint8_t *byte = group + c / R16_LINE_COLS * LINE_BYTES + 4 * r + c % 4;
        const unsigned shift = (unsigned)(c % R16_LINE_COLS / 4) * 2;
        *byte = (uint8_t)((*byte & ~(3u << shift)) | (unsigned)codes[c] << shift);
    }
}

/* Whether the results of a kernel for R16 are the expected ones. They are floats, but exact in rows
 * of up to 132104 columns: a sum of so many products of at most 127 is at most 2^24. Published
 * models have shorter rows. Overwrites s->got. */
static bool floats_are_expected(struct sample *s, const float *y, size_t n_rows)
{
    for (size_t r = 0; r < n_rows; r++)
        s->got[r] = (int32_t)y[r];
    return is_expected(s, n_rows);
}

/* Multiply the rows in R16 with one token, in blocks of block_cols columns, with both kernels.
 * Scales and units are 1, so the results are those of R1-256. */
static bool group_is_right(const struct cpu_kernels *k, const struct r16_mat *mat, struct sample *s,
                           size_t block_cols, size_t n_rows)
{
    const size_t n_cols = mat->n_lines * R16_LINE_COLS;
    float y[R16_ROWS] = {0}, z[R16_ROWS] = {0};
    for (size_t b = 0; b < n_cols / block_cols; b++) {
        s->units[b] = 1.0f;
        s->q_sums[b] = 0;
        for (size_t c = 0; c < block_cols; c++)
            s->q_sums[b] += s->q[b * block_cols + c];
    }
    k->r16_matvec(mat, 0, 1, &(struct block_acts){s->q, s->units, s->q_sums, block_cols}, y);
    k->r16.unpack(mat, 0, 1, s->panel);
    k->r16.matmul(mat, 0, 1,
                  &(struct r16_batch){.q = s->q,
                                      .units = s->units,
                                      .q_sums = s->q_sums,
                                      .q_stride = n_cols,
                                      .block_stride = n_cols / block_cols,
                                      .block_cols = block_cols,
                                      .n_tokens = 1,
                                      .panel = s->panel,
                                      .y = z,
                                      .y_stride = R16_ROWS});
    return floats_are_expected(s, y, n_rows) && floats_are_expected(s, z, n_rows);
}

/* Whether the kernels for R16 give the expected products. */
static bool groups_are_right(const struct cpu_kernels *k, struct sample *s, size_t n_lines,
                             size_t n_rows)
{
    static const _Alignas(64) uint16_t ones[R16_ROWS] = {
        F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE,
        F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE, F16_ONE};
    /* scale_step is 0: the same 16 scales apply to all spans. */
    const struct r16_mat mat = {.lines = s->group,
                                .scales = ones,
                                .n_groups = 1,
                                .n_lines = n_lines * LINE_COLS / R16_LINE_COLS,
                                .span_cols = R16_PAD_COLS,
                                .ahead = k->stream_ahead};
    for (size_t block_cols = MIN_BLOCK_COLS; block_cols <= R16_PAD_COLS; block_cols *= 2)
        if (!group_is_right(k, &mat, s, block_cols, n_rows))
            return false;
    return true;
}

/* Multiply the first rows of a tensor with pseudo-random activations, by a plain loop and by the
 * kernels, and compare the results. The tensor is packed in both layouts: which of them a pass uses
 * depends on the model. */
static bool compare_rows(const struct ternary_source *src, const struct cpu_kernels *k,
                         struct sample *s, struct bn_error *err)
{
    const size_t n_rows = size_min(SAMPLE_ROWS, src->n_rows);
    const size_t n_lines = (src->n_cols + LINE_COLS - 1) / LINE_COLS;
    if (!ternary_decode(src, 0, n_rows, s->codes, err))
        return false;
    /* State of the linear congruential generator that the C standard shows as an example. Its bits
     * 16 to 23 become activations from -127 to 127. */
    uint32_t x = 1;
    memset(s->q, 0, n_lines * LINE_COLS);
    memset(s->group, 0x55, n_lines * LINE_COLS / R16_LINE_COLS * LINE_BYTES); /* code 1 */
    s->q_sum = 0;
    for (size_t c = 0; c < src->n_cols; c++) {
        x = x * 1103515245u + 12345u;
        s->q[c] = (int8_t)((int)(x >> 16 & 255u) % 255 - 127);
        s->q_sum += s->q[c];
    }
    for (size_t r = 0; r < n_rows; r++) {
        const uint8_t *codes = s->codes + r * src->n_cols;
        pack_row(codes, src->n_cols, n_lines, s->lines + r * n_lines * LINE_BYTES);
        pack_group_row(codes, src->n_cols, r, s->group);
        s->expected[r] = 0;
        for (size_t c = 0; c < src->n_cols; c++)
            s->expected[r] += (codes[c] - 1) * s->q[c];
    }
    const struct ternary_mat mat = {s->lines, n_rows, n_lines, k->stream_ahead};
    spoil(s);
    k->ternary_matvec(&mat, 0, n_rows, s->q, s->q_sum, s->got);
    if (is_expected(s, n_rows) && groups_are_right(k, s, n_lines, n_rows) &&
        gemm_is_right(&k->few, &mat, s) && gemm_is_right(&k->medium, &mat, s) &&
        gemm_is_right(&k->many, &mat, s))
        return true;
    return bn_fail(err, BN_EDEVICE,
                   "the %s kernels compute wrong results on tensor '%s'; use another --isa",
                   cpu_isa_title(k->isa), src->name);
}

static bool check_kernels(const struct model *m, const struct cpu_kernels *k, struct bn_error *err)
{
    struct sample s = {0};
    bool ok = sample_open(&s, widest(m), err);
    const struct ternary_source *src;
    for (size_t i = 0; ok && (src = ternary_of(m, i)); i++)
        ok = src->n_rows == 0 || compare_rows(src, k, &s, err);
    sample_close(&s);
    return ok;
}

/* Call the callback. Returns true, for use in a chain of steps. */
static bool step_done(const struct model_check *check, enum model_check_step step)
{
    if (check->done)
        check->done(check->ud, step, check);
    return true;
}

/* Run the self-test and choose the kernels for CHECK_KERNELS. */
static bool check_isa(const char *isa, struct model_check *check, struct cpu_kernels *k,
                      struct bn_error *err)
{
    if (!open_kernels(isa, check->isa_warning, sizeof(check->isa_warning), k, err))
        return false;
    check->isa = cpu_isa_title(k->isa);
    return true;
}

bool model_check_file(const struct bn_file *file, const struct bn_model_config *cfg,
                      struct model_check *check, struct bn_error *err)
{
    const struct model_config model = {.i2s_layout = cfg->i2s_layout,
                                       .no_repair = cfg->no_repair,
                                       .ignored_tensors = cfg->ignored_tensors,
                                       .n_ignored_tensors = cfg->n_ignored_tensors,
                                       .notes = cfg->notes};
    struct cpu_kernels k;
    struct model *m;
    if (!model_open(bn_file_gguf(file), &model, &m, err))
        return false;
    check->n_keys = m->gguf->n_kvs;
    check->n_tensors = m->gguf->n_tensors;
    check->n_layers = m->hp.n_layers;
    check->arch = m->arch->name;
    const bool ok = step_done(check, CHECK_STRUCTURE) && check_codes(m, check, err) &&
                    step_done(check, CHECK_CODES) && check_numbers(m, check, err) &&
                    step_done(check, CHECK_NUMBERS) && check_isa(cfg->isa, check, &k, err) &&
                    step_done(check, CHECK_ISA) && check_kernels(m, &k, err) &&
                    step_done(check, CHECK_KERNELS);
    model_close(m);
    return ok;
}
