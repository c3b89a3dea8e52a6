/*
 * check, the parts about bytes and kernels: codes, numbers, and the rung in use against ref.
 */
#include "app/inspect/inspect_check.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cpu/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define N_LINEARS 7 /* of a layer */
#define PIECE_ROWS 64
#define SAMPLE_ROWS 8 /* of each tensor that kernels are compared on */

static const struct linear *linear_of(const struct layer *layer, size_t i)
{
    const struct linear *const all[N_LINEARS] = {&layer->q,    &layer->k,  &layer->v,   &layer->o,
                                                 &layer->gate, &layer->up, &layer->down};
    return all[i];
}

/* ---- codes ---- */

struct code_count {
    uint64_t n_codes, n_zeros; /* weights, and those that are 0 */
    uint8_t *codes;            /* (PIECE_ROWS, widest tensor) */
};

static bool count_codes(const struct ternary_source *src, struct code_count *c,
                        struct bn_error *err)
{
    float scale;
    if (!ternary_scale(src, &scale, err))
        return false;
    for (size_t row = 0; row < src->n_rows; row += PIECE_ROWS) {
        const size_t end = size_min(row + PIECE_ROWS, src->n_rows);
        if (!ternary_decode(src, row, end, c->codes, err))
            return false;
        const size_t n = (end - row) * src->n_cols;
        for (size_t i = 0; i < n; i++)
            c->n_zeros += c->codes[i] == 1;
        c->n_codes += n;
    }
    return true;
}

static size_t widest(const struct model *m)
{
    size_t n = 0;
    for (size_t l = 0; l < m->hp.n_layers; l++)
        for (size_t i = 0; i < N_LINEARS; i++)
            n = size_max(n, linear_of(&m->layers[l], i)->source.n_cols);
    return n;
}

bool check_codes(const struct model *m, struct bn_error *err)
{
    struct code_count c = {.codes = mem_alloc(widest(m), PIECE_ROWS)};
    bool ok = c.codes || bn_fail(err, BN_ENOMEM, "out of memory for rows of %zu codes", widest(m));
    for (size_t l = 0; ok && l < m->hp.n_layers; l++)
        for (size_t i = 0; ok && i < N_LINEARS; i++)
            ok = count_codes(&linear_of(&m->layers[l], i)->source, &c, err);
    mem_free(c.codes);
    if (ok)
        check_say(CHECK_OK, "codes",
                  "%zu ternary tensors, %" PRIu64 " weights, %.1f %% of them zero",
                  m->hp.n_layers * N_LINEARS, c.n_codes,
                  c.n_codes ? 100.0 * (double)c.n_zeros / (double)c.n_codes : 0);
    return ok;
}

/* ---- numbers ---- */

static bool check_rows(const struct tensor_ref *t, const struct cpu_kernels *k, float *row,
                       uint64_t *n_checked, struct bn_error *err)
{
    const size_t row_bytes = t->n_rows ? t->n_bytes / t->n_rows : 0;
    const row_decode_fn decode = k->row_decode[t->type];
    if (!t->bytes || !decode)
        return true; /* absent, or a type that model_open would not have let pass */
    for (size_t r = 0; r < t->n_rows; r++) {
        decode(t->bytes + r * row_bytes, t->n_cols, row);
        for (size_t i = 0; i < t->n_cols; i++)
            if (!isfinite(row[i]))
                return bn_fail(err, BN_EFORMAT,
                               "tensor '%.*s': element %zu of row %zu is no finite number",
                               (int)size_min(t->name.n_bytes, 100), t->name.ptr, i, r);
    }
    *n_checked += (uint64_t)t->n_rows * t->n_cols;
    return true;
}

bool check_numbers(const struct model *m, struct bn_error *err)
{
    struct cpu_caps caps;
    struct cpu_kernels k;
    cpu_caps_detect(&caps);
    cpu_caps_self_test(&caps, NULL, 0);
    cpu_kernels_init(&k, &caps);
    const size_t n = size_max(size_max(m->hp.n_embd, m->hp.n_ff), m->hp.n_heads * m->hp.head_dim);
    float *row = mem_alloc(n, sizeof(*row));
    uint64_t n_checked = 0;
    if (!row)
        return bn_fail(err, BN_ENOMEM, "out of memory for a row of %zu numbers", n);
    bool ok = check_rows(&m->embd, &k, row, &n_checked, err) &&
              (m->tied || check_rows(&m->head, &k, row, &n_checked, err)) &&
              check_rows(&m->output_norm, &k, row, &n_checked, err);
    for (size_t l = 0; ok && l < m->hp.n_layers; l++) {
        const struct layer *layer = &m->layers[l];
        ok = check_rows(&layer->attn_norm, &k, row, &n_checked, err) &&
             check_rows(&layer->attn_sub_norm, &k, row, &n_checked, err) &&
             check_rows(&layer->ffn_norm, &k, row, &n_checked, err) &&
             check_rows(&layer->ffn_sub_norm, &k, row, &n_checked, err);
    }
    mem_free(row);
    if (ok)
        check_say(CHECK_OK, "numbers", "%" PRIu64 " numbers of tables and norms, all finite",
                  n_checked);
    return ok;
}

/* ---- kernels ---- */

/* A few rows as the kernels want them, and activations to multiply them with. */
struct sample {
    uint8_t *codes; /* (SAMPLE_ROWS, n_cols) */
    uint8_t *lines; /* (SAMPLE_ROWS, n_lines, LINE_BYTES) */
    int8_t *q;      /* (n_lines * LINE_COLS) */
    int8_t *packed; /* (PACK_TOKENS, n_lines * LINE_COLS) the same, for several tokens */
    int8_t *own;    /* (PACK_TOKENS, n_lines * LINE_COLS) gathered */
    uint8_t *panel; /* (PANEL_ALIGN, n_lines * LINE_COLS) */
    int32_t q_sum;
    int32_t wanted[SAMPLE_ROWS], got[SAMPLE_ROWS];
};

static bool sample_open(struct sample *s, size_t n_cols, struct bn_error *err)
{
    const size_t n_lines = (n_cols + LINE_COLS - 1) / LINE_COLS;
    s->codes = mem_alloc(n_cols, SAMPLE_ROWS);
    s->lines = mem_alloc(n_lines, SAMPLE_ROWS * LINE_BYTES);
    s->q = mem_alloc(n_lines, LINE_COLS);
    s->packed = mem_alloc(n_lines, PACK_TOKENS * LINE_COLS);
    s->own = mem_alloc(n_lines, PACK_TOKENS * LINE_COLS);
    s->panel = mem_alloc(n_lines, PANEL_ALIGN * LINE_COLS);
    return (s->codes && s->lines && s->q && s->packed && s->own && s->panel) ||
           bn_fail(err, BN_ENOMEM, "out of memory for rows of %zu codes", n_cols);
}

static void sample_close(struct sample *s)
{
    mem_free(s->codes);
    mem_free(s->lines);
    mem_free(s->q);
    mem_free(s->packed);
    mem_free(s->own);
    mem_free(s->panel);
}

static bool as_wanted(const struct sample *s, size_t n_rows)
{
    return memcmp(s->got, s->wanted, n_rows * sizeof(s->got[0])) == 0;
}

static bool multiplies_well(const struct ternary_gemm *g, const struct ternary_mat *mat,
                            struct sample *s)
{
    g->pack(s->q, mat->n_lines, 0, s->packed);
    g->unpack(mat, 0, mat->n_rows, s->panel);
    const int8_t *q = g->gather(s->packed, mat->n_lines, 1, s->own);
    g->matmul(mat, 0, mat->n_rows,
              &(struct ternary_batch){.q = q,
                                      .q_sums = &s->q_sum,
                                      .panel = s->panel,
                                      .n_tokens = 1,
                                      .acc = s->got,
                                      .acc_stride = SAMPLE_ROWS});
    return as_wanted(s, mat->n_rows);
}

/* R1-256 of docs/kernels.md, one code at a time. */
static void pack_row(const uint8_t *codes, size_t n_cols, size_t n_lines, uint8_t *lines)
{
    memset(lines, 0x55, n_lines * LINE_BYTES); /* code 1 everywhere: weight zero */
    for (size_t c = 0; c < n_cols; c++) {
        uint8_t *byte = lines + c / LINE_COLS * LINE_BYTES + c % LINE_BYTES;
        const unsigned shift = (unsigned)(c % LINE_COLS / LINE_BYTES) * 2;
        *byte = (uint8_t)((*byte & ~(3u << shift)) | (unsigned)codes[c] << shift);
    }
}

static bool compare_rows(const struct ternary_source *src, const struct cpu_kernels *k,
                         struct sample *s, struct bn_error *err)
{
    const size_t n_rows = size_min(SAMPLE_ROWS, src->n_rows);
    const size_t n_lines = (src->n_cols + LINE_COLS - 1) / LINE_COLS;
    if (!ternary_decode(src, 0, n_rows, s->codes, err))
        return false;
    uint32_t x =
        1; /* a plain linear congruence: any activations will do, the extremes among them */
    memset(s->q, 0, n_lines * LINE_COLS);
    s->q_sum = 0;
    for (size_t c = 0; c < src->n_cols; c++) {
        x = x * 1103515245u + 12345u;
        s->q[c] = (int8_t)((int)(x >> 16 & 255u) % 255 - 127);
        s->q_sum += s->q[c];
    }
    for (size_t r = 0; r < n_rows; r++) {
        const uint8_t *codes = s->codes + r * src->n_cols;
        pack_row(codes, src->n_cols, n_lines, s->lines + r * n_lines * LINE_BYTES);
        s->wanted[r] = 0;
        for (size_t c = 0; c < src->n_cols; c++)
            s->wanted[r] += (codes[c] - 1) * s->q[c];
    }
    const struct ternary_mat mat = {s->lines, n_rows, n_lines};
    k->ternary_matvec(&mat, 0, n_rows, s->q, s->q_sum, s->got);
    if (as_wanted(s, n_rows) && multiplies_well(&k->few, &mat, s) &&
        multiplies_well(&k->medium, &mat, s) && multiplies_well(&k->many, &mat, s))
        return true;
    return bn_fail(err, BN_EDEVICE,
                   "the %s kernels are wrong on rows of tensor '%s': choose another --isa",
                   cpu_isa_title(k->isa), src->name);
}

bool check_model_kernels(const struct model *m, const char *isa, struct bn_error *err)
{
    struct cpu_caps caps;
    struct cpu_kernels k;
    char why[400];
    cpu_caps_detect(&caps);
    if (!cpu_caps_limit(&caps, isa, err))
        return false;
    cpu_caps_self_test(&caps, why, sizeof(why));
    cpu_kernels_init(&k, &caps);
    if (why[0])
        check_say(CHECK_WARNING, "kernels", "%s", why);
    struct sample s = {0};
    bool ok = sample_open(&s, widest(m), err);
    for (size_t l = 0; ok && l < m->hp.n_layers; l++)
        for (size_t i = 0; ok && i < N_LINEARS; i++)
            ok = compare_rows(&linear_of(&m->layers[l], i)->source, &k, &s, err);
    sample_close(&s);
    if (ok)
        check_say(CHECK_OK, "kernels", "%s agrees with the definition on %zu tensors of this file",
                  cpu_isa_title(k.isa), m->hp.n_layers * N_LINEARS);
    return ok;
}
