/*
 * The builder of raw_gguf.h. It uses the asserts of cmocka.
 */
#include "tests/support/raw_gguf.h"

#include "tests/support/le_put.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void raw_bytes(struct raw_gguf *r, const void *bytes, size_t n_bytes)
{
    assert_true(n_bytes <= sizeof(r->bytes) - r->n_bytes);
    if (n_bytes > 0)
        memcpy(r->bytes + r->n_bytes, bytes, n_bytes);
    r->n_bytes += n_bytes;
}

void raw_u8(struct raw_gguf *r, uint8_t v)
{
    raw_bytes(r, &v, 1);
}

void raw_u32(struct raw_gguf *r, uint32_t v)
{
    uint8_t b[4];
    le_put_u32(b, v);
    raw_bytes(r, b, sizeof(b));
}

void raw_u64(struct raw_gguf *r, uint64_t v)
{
    uint8_t b[8];
    le_put_u64(b, v);
    raw_bytes(r, b, sizeof(b));
}

void raw_str(struct raw_gguf *r, const char *text)
{
    raw_u64(r, strlen(text));
    raw_bytes(r, text, strlen(text));
}

void raw_head(struct raw_gguf *r, uint32_t version, uint64_t n_tensors, uint64_t n_kvs)
{
    raw_bytes(r, "GGUF", 4);
    raw_u32(r, version);
    raw_u64(r, n_tensors);
    raw_u64(r, n_kvs);
}

void raw_key(struct raw_gguf *r, const char *key, uint32_t kind)
{
    raw_str(r, key);
    raw_u32(r, kind);
}

void raw_info(struct raw_gguf *r, const char *name, uint64_t n_cols, uint64_t n_rows,
              uint32_t type_id, uint64_t offset)
{
    raw_str(r, name);
    raw_u32(r, n_rows == 1 ? 1 : 2);
    raw_u64(r, n_cols);
    if (n_rows != 1)
        raw_u64(r, n_rows);
    raw_u32(r, type_id);
    raw_u64(r, offset);
}

void raw_data(struct raw_gguf *r, size_t n_bytes)
{
    while (r->n_bytes % 32 != 0)
        raw_u8(r, 0);
    for (size_t i = 0; i < n_bytes; i++)
        raw_u8(r, 0);
}

void raw_refused(const struct raw_gguf *r, enum bn_errcode code, const char *words)
{
    struct gguf *const untouched = (struct gguf *)1;
    struct gguf *g = untouched;
    struct bn_error err = {0};
    assert_false(gguf_parse(r->bytes, r->n_bytes, &g, &err));
    assert_ptr_equal(g, untouched);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
    assert_int_equal(err.code, code);
}

struct gguf *raw_parsed(const struct raw_gguf *r)
{
    struct gguf *g = NULL;
    struct bn_error err = {0};
    if (!gguf_parse(r->bytes, r->n_bytes, &g, &err))
        fail_msg("%s", err.text);
    return g;
}
