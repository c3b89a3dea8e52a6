/*
 * The tables of rows for refusal.h, and the tests of the first bytes of a file. A row that the
 * program names must be in docs/models.md; a test compares them.
 */
#include "engine/gguf/refusal.h"

#include "engine/gguf/gguf_le.h"

#include <stdio.h>
#include <string.h>

const char *const refusal_rows[N_REFUSALS] = {
    [REFUSED_HUNYUAN] = "Hunyuan (STQ1_0)",
    [REFUSED_TILED] = "TL1 and TL2 files",
    [REFUSED_OLD_IK] = "Old ik_llama.cpp files",
    [REFUSED_DENSE] = "Models that are not ternary",
    [REFUSED_TABLE] = "Embeddings in other types",
    [REFUSED_SAFETENSORS] = "Safetensors and PyTorch files",
    [REFUSED_EMBEDDINGS] = "BitNet embeddings",
    [REFUSED_OTHER_GRAPH] = "Other architectures",
    [REFUSED_OTHER_GGUF] = "GGUF version 1 and big-endian files",
};

struct prefix_row {
    const char *prefix;
    enum refusal row;
};

/* The row of the first prefix that matches, `other` if none does. */
static enum refusal find_row(const struct prefix_row *rows, size_t n, struct bn_str name,
                             enum refusal other)
{
    for (size_t i = 0; i < n; i++) {
        if (bn_str_starts(name, bn_str_of(rows[i].prefix)))
            return rows[i].row;
    }
    return other;
}

bool refusal_append_row(struct bn_error *err, enum refusal row)
{
    static const char see[] = ": see models.md of the documentation, row '";
    char end[96]; /* the longest has 79 bytes */
    if (strstr(err->text, see))
        return false;
    (void)snprintf(end, sizeof(end), "%s%s'", see, refusal_rows[row]);
    const size_t most = sizeof(err->text) - 1 - strlen(end);
    memcpy(err->text + bn_str_shown(bn_str_of(err->text), most), end, strlen(end) + 1);
    return false;
}

bool refusal_fail(struct bn_error *err, enum refusal row, enum bn_errcode code, const char *fmt,
                  ...)
{
    va_list args;
    va_start(args, fmt);
    (void)bn_vfail(err, code, fmt, args);
    va_end(args);
    return refusal_append_row(err, row);
}

bool refusal_of_cut(struct bn_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)bn_vfail(err, BN_EFORMAT, fmt, args);
    va_end(args);
    return bn_fail_prefix(err, "the file is truncated or damaged, download it again");
}

enum refusal refusal_of_arch(struct bn_str arch)
{
    static const struct prefix_row rows[] = {{"hunyuan", REFUSED_HUNYUAN}};
    return find_row(rows, sizeof(rows) / sizeof(rows[0]), arch, REFUSED_OTHER_GRAPH);
}

enum refusal refusal_of_type(const char *type_name)
{
    static const struct prefix_row rows[] = {
        {"STQ1_0", REFUSED_HUNYUAN}, {"TL1", REFUSED_TILED},     {"TL2", REFUSED_TILED},
        {"IQ1_BN", REFUSED_OLD_IK},  {"IQ2_BN", REFUSED_OLD_IK}, {"IQ1_TN", REFUSED_OLD_IK},
        {"IQ2_TN", REFUSED_OLD_IK},
    };
    return find_row(rows, sizeof(rows) / sizeof(rows[0]), bn_str_of(type_name), REFUSED_DENSE);
}

enum refusal refusal_of_tensor(struct bn_str name)
{
    static const char part[] = "norm_in"; /* only BitNet embedding models have such tensors */
    for (size_t i = 0; i + sizeof(part) - 1 <= name.n_bytes; i++) {
        if (memcmp(name.ptr + i, part, sizeof(part) - 1) == 0)
            return REFUSED_EMBEDDINGS;
    }
    return REFUSED_OTHER_GRAPH;
}

static bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Whether the text begins with `word`, which is in lower case, in any case of letters. A byte-order
 * mark and blanks, together at most 64 bytes, may come first. */
static bool begins_with(const uint8_t *bytes, size_t n_bytes, const char *word)
{
    size_t i = bn_str_bom_bytes((struct bn_str){(const char *)bytes, n_bytes});
    while (i < n_bytes && i < 64 && is_space(bytes[i]))
        i++;
    for (; *word; i++, word++) {
        if (i >= n_bytes)
            return false;
        const uint8_t lower = bytes[i] >= 'A' && bytes[i] <= 'Z' ? bytes[i] + 32 : bytes[i];
        if (lower != (uint8_t)*word)
            return false;
    }
    return true;
}

/* The file begins with the length of a JSON header (u64) and the header. */
static bool is_safetensors(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes > 8 && le_u64(bytes) > 1 && le_u64(bytes) <= n_bytes - 8 && bytes[8] == '{';
}

/* pytorch_model.bin is a ZIP archive, or in old versions a pickle of protocol 2. */
static bool is_pytorch(const uint8_t *bytes, size_t n_bytes)
{
    return n_bytes >= 4 &&
           (memcmp(bytes, "PK\x03\x04", 4) == 0 || memcmp(bytes, "\x80\x02", 2) == 0);
}

/* The formats of GGML before GGUF begin with ggml, ggmf, ggjt or ggla as a little-endian word. */
static bool is_old_ggml(const uint8_t *bytes, size_t n_bytes)
{
    static const char *const magics[] = {"lmgg", "fmgg", "tjgg", "algg"};
    for (size_t i = 0; n_bytes >= 4 && i < sizeof(magics) / sizeof(magics[0]); i++) {
        if (memcmp(bytes, magics[i], 4) == 0)
            return true;
    }
    return false;
}

bool refusal_of_file(const uint8_t *bytes, size_t n_bytes, struct bn_error *err)
{
    if (begins_with(bytes, n_bytes, "version https://git-lfs"))
        return bn_fail(
            err, BN_EFORMAT,
            "not a GGUF file but a Git LFS pointer, a text of %zu bytes in its place: run "
            "'git lfs pull' in the repository, or download the file itself",
            n_bytes);
    if (begins_with(bytes, n_bytes, "<!doctype") || begins_with(bytes, n_bytes, "<html"))
        return bn_fail(
            err, BN_EFORMAT,
            "not a GGUF file but a web page (HTML): download the file itself; on Hugging "
            "Face its link contains /resolve/, not /blob/");
    if (is_safetensors(bytes, n_bytes)) {
        return refusal_fail(err, REFUSED_SAFETENSORS, BN_EUNSUPPORTED,
                            "not a GGUF file but a safetensors file");
    }
    if (is_pytorch(bytes, n_bytes)) {
        return refusal_fail(err, REFUSED_SAFETENSORS, BN_EUNSUPPORTED,
                            "not a GGUF file but an archive, such as PyTorch's");
    }
    if (is_old_ggml(bytes, n_bytes)) {
        return refusal_fail(err, REFUSED_OTHER_GGUF, BN_EUNSUPPORTED,
                            "not a GGUF file but its predecessor, a GGML file");
    }
    return bn_fail(err, BN_EFORMAT, "not a GGUF file: it does not begin with 'GGUF'");
}
