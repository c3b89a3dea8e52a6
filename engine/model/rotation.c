/*
 * Reads the keys of rotated files. An unknown key or value is refused, because a model with wrong
 * inputs still writes text, and the user would not see the cause.
 *
 * The memory for signs is bounded: each sign is an item of an array in the file.
 */
#include "engine/model/rotation.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/gguf_le.h"
#include "engine/model/model.h"

#include <stdio.h>

#define PREFIX "prism.hadamard."
#define SHOWN_BYTES 80 /* most bytes of a string from the file in a message */

static const char *const known_keys[] = {
    "version",     "block_size",    "transform",
    "axis",        "sign_mode",     "sign_widths",
    "sign_values", "weight_names",  "inverse_weight_names",
    "tied_output", "gdn_v_grouped",
};

/* `key` begins with PREFIX. */
static bool is_known(struct bn_str key)
{
    const size_t n = strlen(PREFIX);
    for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++)
        if (bn_str_is((struct bn_str){key.ptr + n, key.n_bytes - n}, known_keys[i]))
            return true;
    return false;
}

static bool check_known(const struct gguf *g, struct bn_error *err)
{
    for (size_t i = 0; i < g->n_kvs; i++) {
        const struct bn_str key = g->kvs[i].key;
        if (bn_str_starts(key, bn_str_of(PREFIX)) && !is_known(key))
            return bn_fail(err, BN_EUNSUPPORTED, "the key %.*s of a rotated file is not known",
                           bn_str_shown(key, SHOWN_BYTES), key.ptr);
    }
    return true;
}

/* The key must be a string with this value. */
static bool check_text(const struct gguf *g, const char *key, const char *value,
                       struct bn_error *err)
{
    struct bn_str text;
    if (!gguf_get_str(g, key, &text))
        return bn_fail(err, BN_EFORMAT, "the file has no string %s", key);
    return bn_str_is(text, value) ||
           bn_fail(err, BN_EUNSUPPORTED, "%s is '%.*s', only '%s' is supported", key,
                   bn_str_shown(text, SHOWN_BYTES), text.ptr, value);
}

/* Read a bool; *out is false if the key is absent. */
static bool read_flag(const struct gguf *g, const char *key, bool *out, struct bn_error *err)
{
    *out = false;
    return !gguf_find_kv(g, key) || gguf_get_bool(g, key, out) ||
           bn_fail(err, BN_EFORMAT, "%s is not a bool", key);
}

/* Find an array of strings, or of numbers. *out is NULL if the key is absent. */
static bool find_array(const struct gguf *g, const char *key, bool of_strings,
                       const struct gguf_kv **out, struct bn_error *err)
{
    *out = gguf_find_kv(g, key);
    return !*out || ((*out)->kind == GGUF_ARRAY && ((*out)->item_kind == GGUF_STR) == of_strings) ||
           bn_fail(err, BN_EFORMAT, "%s is not an array of %s", key,
                   of_strings ? "strings" : "numbers");
}

static bool read_scalars(const struct gguf *g, struct file_rotation *r, struct bn_error *err)
{
    uint64_t version, block;
    if (!gguf_get_u64(g, PREFIX "version", &version))
        return bn_fail(err, BN_EFORMAT, "the file has no number " PREFIX "version");
    if (version < 1 || version > 2)
        return bn_fail(err, BN_EUNSUPPORTED, PREFIX "version is %llu, only 1 and 2 are supported",
                       (unsigned long long)version);
    if (!gguf_get_u64(g, PREFIX "block_size", &block))
        return bn_fail(err, BN_EFORMAT, "the file has no number " PREFIX "block_size");
    if (block < ROTATION_MIN || block > ROTATION_MAX || (block & (block - 1)) != 0)
        return bn_fail(err, BN_EUNSUPPORTED,
                       PREFIX "block_size is %llu, not a power of two from %d to %d",
                       (unsigned long long)block, ROTATION_MIN, ROTATION_MAX);
    r->version = (unsigned)version;
    r->block = (size_t)block;
    if (!check_text(g, PREFIX "transform", "normalized-sylvester-walsh-hadamard", err) ||
        !check_text(g, PREFIX "axis", "input-last-dimension", err) ||
        !read_flag(g, PREFIX "tied_output", &r->tied_output, err) ||
        !read_flag(g, PREFIX "gdn_v_grouped", &r->groups_values, err))
        return false;
    return r->tied_output == (version == 2) ||
           bn_fail(err, BN_EUNSUPPORTED, PREFIX "tied_output must be %s in a file of version %u",
                   version == 2 ? "true" : "absent or false", r->version);
}

/* Read the widths and return their sum in *n_signs. */
static bool read_widths(const struct gguf_kv *kv, struct file_rotation *r, size_t *n_signs,
                        struct bn_error *err)
{
    *n_signs = 0;
    if (kv->n_items < 1 || kv->n_items > ROTATION_MAX_WIDTHS)
        return bn_fail(err, BN_EFORMAT, PREFIX "sign_widths has %llu numbers, not 1 to %d",
                       (unsigned long long)kv->n_items, ROTATION_MAX_WIDTHS);
    for (size_t i = 0; i < kv->n_items; i++) {
        uint64_t width;
        if (!gguf_item_u64(kv, i, &width) || width == 0 || width > MODEL_MAX_WIDTH)
            return bn_fail(err, BN_EFORMAT,
                           PREFIX "sign_widths: number %zu is not an integer from 1 to %zu", i,
                           MODEL_MAX_WIDTH);
        for (size_t k = 0; k < i; k++)
            if (r->widths[k] == width)
                return bn_fail(err, BN_EFORMAT, PREFIX "sign_widths has %zu twice", (size_t)width);
        r->widths[r->n_widths++] = (size_t)width;
        *n_signs += (size_t)width;
    }
    return true;
}

static bool read_values(const struct gguf_kv *kv, size_t n, struct file_rotation *r,
                        struct bn_error *err)
{
    if (kv->n_items != n)
        return bn_fail(err, BN_EFORMAT, PREFIX "sign_values has %llu numbers, the widths need %zu",
                       (unsigned long long)kv->n_items, n);
    r->signs = mem_alloc(n, sizeof(*r->signs));
    if (!r->signs)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu signs", n);
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (!gguf_item_i64(kv, i, &v) || (v != 1 && v != -1))
            return bn_fail(err, BN_EFORMAT, PREFIX "sign_values: number %zu is neither 1 nor -1",
                           i);
        r->signs[i] = (float)v;
    }
    return true;
}

static bool read_signs(const struct gguf *g, struct file_rotation *r, struct bn_error *err)
{
    const struct gguf_kv *widths, *values;
    struct bn_str mode;
    size_t n;
    if (!gguf_get_str(g, PREFIX "sign_mode", &mode))
        return bn_fail(err, BN_EFORMAT, "the file has no string " PREFIX "sign_mode");
    const bool is_explicit = bn_str_is(mode, "explicit");
    if (!is_explicit && !bn_str_is(mode, "identity"))
        return bn_fail(err, BN_EUNSUPPORTED,
                       PREFIX "sign_mode is '%.*s', only 'explicit' and 'identity' are supported",
                       bn_str_shown(mode, SHOWN_BYTES), mode.ptr);
    if (!find_array(g, PREFIX "sign_widths", false, &widths, err) ||
        !find_array(g, PREFIX "sign_values", false, &values, err))
        return false;
    if (!is_explicit)
        return !values || values->n_items == 0 ||
               bn_fail(err, BN_EUNSUPPORTED,
                       PREFIX "sign_values exists, but " PREFIX "sign_mode is 'identity'");
    if (!widths || !values)
        return bn_fail(err, BN_EFORMAT, "the file has no " PREFIX "%s",
                       widths ? "sign_values" : "sign_widths");
    return read_widths(widths, r, &n, err) && read_values(values, n, r, err);
}

/* Set is_named of each tensor that weight_names lists. The list must not be empty. */
static bool mark_names(const struct gguf *g, uint8_t *is_named, struct bn_error *err)
{
    const struct gguf_kv *kv;
    if (!find_array(g, PREFIX "weight_names", true, &kv, err))
        return false;
    if (!kv || kv->n_items == 0)
        return bn_fail(err, BN_EFORMAT, "the file has no names in " PREFIX "weight_names");
    const uint8_t *at = kv->value;
    for (uint64_t i = 0; i < kv->n_items; i++) {
        const struct bn_str name = gguf_next_str(&at);
        const struct gguf_tensor *t = gguf_find_tensor_str(g, name);
        if (!t)
            return bn_fail(err, BN_EFORMAT, PREFIX "weight_names: the file has no tensor '%.*s'",
                           bn_str_shown(name, SHOWN_BYTES), name.ptr);
        if (is_named[t - g->tensors]) /* this also limits the length of the loop */
            return bn_fail(err, BN_EFORMAT, PREFIX "weight_names has '%.*s' twice",
                           bn_str_shown(name, SHOWN_BYTES), name.ptr);
        is_named[t - g->tensors] = 1;
    }
    return true;
}

/* Only the embedding can have an inverse transform. */
static bool read_inverse(const struct gguf *g, struct file_rotation *r, struct bn_error *err)
{
    const struct gguf_kv *kv;
    if (!find_array(g, PREFIX "inverse_weight_names", true, &kv, err))
        return false;
    const uint8_t *at = kv ? kv->value : NULL;
    for (uint64_t i = 0; kv && i < kv->n_items; i++) {
        const struct bn_str name = gguf_next_str(&at);
        if (!bn_str_is(name, "token_embd.weight") || r->has_embd)
            return bn_fail(err, BN_EUNSUPPORTED,
                           PREFIX "inverse_weight_names has '%.*s'%s, only one "
                                  "'token_embd.weight' is supported",
                           bn_str_shown(name, SHOWN_BYTES), name.ptr, r->has_embd ? " too" : "");
        r->has_embd = true;
    }
    return r->has_embd || !r->tied_output ||
           bn_fail(err, BN_EUNSUPPORTED,
                   PREFIX "tied_output needs 'token_embd.weight' in " PREFIX
                          "inverse_weight_names");
}

bool file_rotation_init(struct file_rotation *out, const struct gguf *g, uint8_t *is_named,
                        struct bn_error *err)
{
    bool is_rotated = false;
    *out = (struct file_rotation){0};
    for (size_t i = 0; i < g->n_kvs; i++)
        is_rotated |= bn_str_starts(g->kvs[i].key, bn_str_of(PREFIX));
    if (!is_rotated)
        return true;
    if (check_known(g, err) && read_scalars(g, out, err) && read_signs(g, out, err) &&
        mark_names(g, is_named, err) && read_inverse(g, out, err))
        return true;
    file_rotation_finish(out);
    return false;
}

void file_rotation_finish(struct file_rotation *r)
{
    mem_free(r->signs);
    *r = (struct file_rotation){0};
}

bool file_rotation_of(const struct file_rotation *r, const char *name, size_t n_cols,
                      struct rotation *out, struct bn_error *err)
{
    *out = (struct rotation){.block = r->block};
    if (n_cols % r->block != 0)
        return bn_fail(err, BN_EFORMAT,
                       "tensor '%s' has %zu columns, not a multiple of " PREFIX
                       "block_size, which is %zu",
                       name, n_cols, r->block);
    if (!r->signs)
        return true;
    const float *signs = r->signs;
    for (size_t i = 0; i < r->n_widths; signs += r->widths[i++])
        if (r->widths[i] == n_cols)
            out->signs = signs;
    return out->signs ||
           bn_fail(err, BN_EFORMAT,
                   "tensor '%s' has %zu columns, but " PREFIX "sign_widths has no such width", name,
                   n_cols);
}

size_t file_rotation_signs(const struct file_rotation *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_widths; i++)
        n += r->widths[i];
    return n;
}

void file_rotation_describe(const struct file_rotation *r, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "blocks of %zu, %s, version %u", r->block,
                   r->signs ? "explicit signs" : "no signs", r->version);
}
