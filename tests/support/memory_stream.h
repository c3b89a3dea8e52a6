/*
 * Both directions of a struct bn_stream in memory, for tests that save a session and load it. A
 * failed allocation ends the test program.
 *
 *     struct memory_stream saved = {0};
 *     const struct bn_stream out = memory_stream_writer(&saved), in = memory_stream_reader(&saved);
 *     ... save with `out`, then load with `in`; to load again, set saved.at to 0 ...
 *     mem_free(saved.bytes);
 */
#ifndef TESTS_SUPPORT_MEMORY_STREAM_H
#define TESTS_SUPPORT_MEMORY_STREAM_H

#include "engine/base/memory.h"
#include "engine/settings.h"

#include <stdlib.h>
#include <string.h>

struct memory_stream {
    uint8_t *bytes; /* free with mem_free */
    size_t n_bytes, cap;
    size_t at; /* offset of the next byte to read */
};

static inline bool memory_stream_write(void *ud, void *bytes, size_t n_bytes)
{
    struct memory_stream *m = ud;
    if (!mem_grow(&m->bytes, &m->cap, m->n_bytes + n_bytes, 1))
        abort();
    memcpy(m->bytes + m->n_bytes, bytes, n_bytes);
    m->n_bytes += n_bytes;
    return true;
}

/* Fails at the end: fewer than n_bytes are left. */
static inline bool memory_stream_read(void *ud, void *bytes, size_t n_bytes)
{
    struct memory_stream *m = ud;
    if (n_bytes > m->n_bytes - m->at)
        return false;
    memcpy(bytes, m->bytes + m->at, n_bytes);
    m->at += n_bytes;
    return true;
}

/* Appends to the bytes of *m. */
static inline struct bn_stream memory_stream_writer(struct memory_stream *m)
{
    return (struct bn_stream){memory_stream_write, m};
}

static inline struct bn_stream memory_stream_reader(struct memory_stream *m)
{
    return (struct bn_stream){memory_stream_read, m};
}

#endif
