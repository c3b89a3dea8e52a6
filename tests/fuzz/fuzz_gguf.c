/*
 * Opens any bytes as a model file, reads the metadata with every function, and decodes scales and
 * codes of the first and last rows of each linear layer, and rows of a ternary embedding. A file
 * that opens must be safe to read.
 */
#include "engine/file_gguf.h"
#include "engine/model/model.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#define MAX_COLS 4096 /* wider rows take time and add no code paths */
#define ROWS 4

/* Read every byte of a string, so that a sanitizer checks its memory. */
static unsigned sum_of(struct bn_str s)
{
    unsigned sum = 0;
    for (size_t i = 0; i < s.n_bytes; i++)
        sum += (uint8_t)s.ptr[i];
    return sum;
}

static unsigned read_kv(const struct bn_file *file, const struct gguf_kv *kv)
{
    unsigned sum = sum_of(kv->key);
    uint64_t u;
    int64_t i;
    double d;
    for (uint64_t k = 0; k < kv->n_items && k < 1000; k++) {
        sum += gguf_item_u64(kv, k, &u) ? (unsigned)u : 0;
        sum += gguf_item_i64(kv, k, &i) ? (unsigned)i : 0;
        sum += gguf_item_f64(kv, k, &d) && d > 0.0;
    }
    char key[64];
    if (kv->key.n_bytes >= sizeof(key))
        return sum;
    memcpy(key, kv->key.ptr, kv->key.n_bytes);
    key[kv->key.n_bytes] = '\0';
    struct bn_str s;
    struct bn_str_walk walk;
    size_t n;
    if (bn_file_get_str(file, key, &s))
        sum += sum_of(s);
    if (bn_file_walk_strs(file, key, &walk, &n)) {
        while (bn_str_walk_next(&walk, &s))
            sum += sum_of(s);
    }
    return sum;
}

static unsigned decode_scales(const struct linear *w, size_t row0, size_t row1)
{
    static uint16_t bits[ROWS * (MAX_COLS / 64 + 1)];
    float of_rows[ROWS];
    struct bn_error err;
    if (w->scales.scaling == SCALE_BLOCK)
        return ternary_block_scales(&w->source, &w->scales, row0, row1, bits, &err) + bits[0];
    if (w->scales.scaling != SCALE_ROW)
        return 0;
    ternary_row_scales(&w->source, row0, row1, of_rows);
    return of_rows[0] > 0.0f;
}

/* The first and the last sign of a vector of n elements. */
static unsigned read_rotation(const struct rotation *r, size_t n)
{
    if (r->block > 0 && n % r->block != 0)
        abort(); /* the transform needs whole blocks */
    return r->signs ? (r->signs[0] > 0.0f) + (r->signs[n - 1] > 0.0f) : 0;
}

static unsigned decode_some(const struct linear *w)
{
    static uint8_t codes[ROWS * MAX_COLS];
    struct bn_error err;
    const size_t end = w->source.n_rows, n_rows = end < ROWS ? end : ROWS;
    if (w->source.n_cols > MAX_COLS)
        return 0;
    unsigned sum = read_rotation(&w->rotation, w->source.n_cols);
    sum += ternary_decode(&w->source, 0, n_rows, codes, &err);
    sum += ternary_decode(&w->source, end - n_rows, end, codes, &err);
    sum += decode_scales(w, 0, n_rows) + decode_scales(w, end - n_rows, end);
    for (size_t i = 0; w->bias.bytes && i < w->bias.n_bytes; i++)
        sum += w->bias.bytes[i];
    return sum + codes[0];
}

static unsigned decode_tables(const struct model *m)
{
    static float values[MAX_COLS];
    const struct ternary_source *embd = &m->ternary_embd;
    unsigned sum = m->head_linear.source.bytes ? decode_some(&m->head_linear) : 0;
    if (!embd->bytes || embd->n_cols > MAX_COLS)
        return sum;
    ternary_row_decode(embd, 0, values);
    sum += values[0] > 0.0f;
    ternary_row_decode(embd, embd->n_rows - 1, values);
    return sum + (values[embd->n_cols - 1] > 0.0f);
}

static unsigned read_model(const struct model *m)
{
    unsigned sum = m->embd.bytes[m->embd.n_bytes - 1] + m->head.bytes[m->head.n_bytes - 1];
    sum += decode_tables(m) + read_rotation(&m->embd_rotation, m->hp.n_embd) +
           read_rotation(&m->head_rotation, m->hp.n_embd);
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct layer *l = &m->layers[i];
        const struct linear *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            sum += decode_some(all[k]);
        sum += l->attn_norm.bytes[l->attn_norm.n_bytes - 1];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct bn_file *file = NULL;
    struct bn_error err;
    volatile unsigned sum = 0; /* prevents removal of the reads */
    if (!bn_file_open_memory(bytes, n_bytes, &file, &err))
        return 0;
    const struct gguf *g = bn_file_gguf(file);
    for (size_t i = 0; i < g->n_kvs; i++)
        sum += read_kv(file, &g->kvs[i]);
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        if (t->offset > n_bytes || t->n_bytes > n_bytes - t->offset)
            abort(); /* the parser accepts only tensors inside the file */
        sum += sum_of(t->name);
    }
    struct bn_notes notes = {0};
    const struct model_config cfg = {.i2s_layout = (enum bn_i2s_layout)(n_bytes % 3),
                                     .notes = &notes};
    struct model *m = NULL;
    if (model_open(g, &cfg, &m, &err))
        sum += read_model(m);
    model_close(m);
    bn_file_close(file);
    (void)sum; /* clang does not count += as a use */
    return 0;
}
