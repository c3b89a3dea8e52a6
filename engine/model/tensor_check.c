/*
 * Checks of a tensor of the graph, see tensor_check.h.
 *
 * A message about an unusable type has advice or lists the usable types. Where an explanation in
 * docs/models.md applies, the message names its row.
 */
#include "engine/model/tensor_check.h"

#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

static bool is_usable(enum tensor_type type, enum tensor_use use)
{
    if (use == USE_F32)
        return type == TENSOR_F32;
    if (use == USE_FLOAT)
        return tensor_geometries[type].is_float;
    return use == USE_LINEAR ? tensor_is_linear(type) : tensor_geometries[type].is_table;
}

static bool has_ternary(const struct gguf *g)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (tensor_geometries[g->tensors[i].type].is_ternary)
            return true;
    return false;
}

/* If other tensors are ternary, the type of the table is a fault of the conversion. If not, it
 * shows what kind of model the file has. */
static bool refuse_table(const struct gguf *g, const struct gguf_tensor *t, const char *type,
                         struct bn_error *err)
{
    const enum refusal row = has_ternary(g) ? REFUSED_TABLE : refusal_of_type(type);
    char names[200] = "";
    for (size_t i = 0; i < TENSOR_N_TYPES; i++) {
        if (tensor_geometries[i].is_table)
            str_list_add(names, sizeof(names), tensor_geometries[i].name);
    }
    return refusal_fail(err, row, BN_EUNSUPPORTED,
                        "tensor '%.*s' is %s, but embeddings and output heads must be one of %s",
                        STR_ARG(t->name), type, names);
}

/* Write the error for a type that `use` does not permit. Returns false. */
static bool refuse_type(const struct gguf *g, const struct gguf_tensor *t, enum tensor_use use,
                        struct bn_error *err)
{
    const struct unusable_type v =
        tensor_type_unusable(t->type_id, t->n_cols, t->n_rows, t->n_bytes, g->alignment);
    if (!v.name)
        return refusal_fail(err, REFUSED_DENSE, BN_EUNSUPPORTED,
                            "tensor '%.*s' has the unknown type %u: %s", STR_ARG(t->name),
                            t->type_id, v.advice);
    if (use == USE_F32)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%.*s' is %s, but this program needs it as F32", STR_ARG(t->name),
                       v.name);
    if (use == USE_FLOAT)
        return bn_fail(err, BN_EUNSUPPORTED, "tensor '%.*s' is %s, not F32, F16 or BF16",
                       STR_ARG(t->name), v.name);
    if (use == USE_TABLE)
        return refuse_table(g, t, v.name, err);
    return refusal_fail(err, refusal_of_type(v.name), BN_EUNSUPPORTED,
                        "tensor '%.*s' is %s, not ternary: %s", STR_ARG(t->name), v.name, v.advice);
}

bool tensor_check_type(const struct gguf *g, const struct gguf_tensor *t, enum tensor_use use,
                       struct bn_error *err)
{
    return is_usable(t->type, use) || refuse_type(g, t, use, err);
}

bool tensor_check_shape(const struct gguf_tensor *t, const struct tensor_shape *want,
                        struct bn_error *err)
{
    const uint64_t *const dims = t->dims;
    if (dims[0] == want->n_cols && dims[1] == want->n_rows && dims[2] == want->n_matrices &&
        dims[3] == 1)
        return true;
    if (want->n_matrices == 1 && dims[2] == 1 && dims[3] == 1)
        return bn_fail(
            err, BN_EFORMAT,
            "tensor '%.*s' is %zu x %zu, the model needs %zu x %zu (its data begins at byte %zu)",
            STR_ARG(t->name), t->n_rows, t->n_cols, want->n_rows, want->n_cols, t->offset);
    return bn_fail(err, BN_EFORMAT,
                   "tensor '%.*s' is %llu x %llu x %llu x %llu, the model needs %zu x %zu x %zu "
                   "(inputs, outputs, %s)",
                   STR_ARG(t->name), (unsigned long long)dims[0], (unsigned long long)dims[1],
                   (unsigned long long)dims[2], (unsigned long long)dims[3], want->n_cols,
                   want->n_rows, want->n_matrices, want->n_matrices > 1 ? "experts" : "matrices");
}

/* A float that is not finite has only ones in its exponent. */
bool tensor_check_finite(const struct gguf_tensor *t, struct bn_error *err)
{
    const uint32_t exponent = t->type == TENSOR_F32   ? 0x7f800000
                              : t->type == TENSOR_F16 ? 0x7c00
                                                      : 0x7f80; /* BF16 */
    const size_t n = t->n_rows * t->n_cols;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits =
            t->type == TENSOR_F32 ? le_u32(t->bytes + 4 * i) : le_u16(t->bytes + 2 * i);
        if ((bits & exponent) == exponent)
            return bn_fail(err, BN_EFORMAT,
                           "tensor '%.*s': element %zu of row %zu is not a finite number",
                           STR_ARG(t->name), i % t->n_cols, i / t->n_cols);
    }
    return true;
}
