/*
 * Builds valid and invalid GGUF files byte by byte, for tests of the parser. All other tests use
 * gguf_write.h. This builder shares nothing with it, so that a mistake of the writer about the
 * format is found when its files are parsed. The buffer has a fixed size, which is asserted.
 *
 *     struct raw_gguf r = {0};
 *     raw_head(&r, 3, 0, 1);
 *     raw_key(&r, "general.alignment", GGUF_U32);
 *     raw_u32(&r, 48);
 *     raw_refused(&r, BN_EFORMAT, "power of two");
 */
#ifndef TESTS_SUPPORT_RAW_GGUF_H
#define TESTS_SUPPORT_RAW_GGUF_H

#include "engine/base/error.h"
#include "engine/gguf/gguf.h"

struct raw_gguf {
    uint8_t bytes[16384];
    size_t n_bytes;
};

void raw_bytes(struct raw_gguf *r, const void *bytes, size_t n_bytes);
void raw_u8(struct raw_gguf *r, uint8_t v);
void raw_u32(struct raw_gguf *r, uint32_t v);
void raw_u64(struct raw_gguf *r, uint64_t v);
void raw_str(struct raw_gguf *r, const char *text);
void raw_head(struct raw_gguf *r, uint32_t version, uint64_t n_tensors, uint64_t n_kvs);
void raw_key(struct raw_gguf *r, const char *key, uint32_t kind);
/* Add the info of a matrix, or of a vector if n_rows is 1. */
void raw_info(struct raw_gguf *r, const char *name, uint64_t n_cols, uint64_t n_rows,
              uint32_t type_id, uint64_t offset);
/* Add zeros up to the next multiple of 32, then n_bytes more. */
void raw_data(struct raw_gguf *r, size_t n_bytes);

/* Parsing must fail with this code and these words in the message, and not change the output. */
void raw_refused(const struct raw_gguf *r, enum bn_errcode code, const char *words);
/* Parsing must succeed. */
struct gguf *raw_parsed(const struct raw_gguf *r);

#endif
