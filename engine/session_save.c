/*
 * Saved sessions: the ids, the KV cache and the saved states as a stream of bytes.
 *
 * The stream is a struct saved_kv_header, the ids, and the bytes of the backend. If the model needs
 * saved states, a struct saved_states_header follows, and the length (uint64_t) and the bytes of
 * each state. If it needs none, the stream ends after the bytes of the backend. Numbers have the
 * byte order of the machine.
 */
#include "engine/engine_internal.h"
#include "engine/session_internal.h"

#include "engine/base/size.h"
#include "engine/model/rope.h"

#include <stdio.h>
#include <string.h>

struct saved_kv_header {
    char version[32]; /* bn_session_kv_version, padded with zeros */
    uint64_t kv_hash; /* of struct bn_model; its complement with the long factors of longrope */
    uint64_t n_ids;
};

static struct saved_kv_header header_of(const struct bn_session *s)
{
    struct saved_kv_header h = {.kv_hash = s->model->kv_hash, .n_ids = s->n_ids};
    /* Keys of a long context have other RoPE angles than those of a short one, so neither may load
     * the other's. The complement marks the long ones. */
    if (rope_is_long(s->model->model, s->n_ctx))
        h.kv_hash = ~h.kv_hash;
    const char *version = bn_session_kv_version(s);
    memcpy(h.version, version, size_min(strlen(version), sizeof h.version - 1));
    return h;
}

/* ---- saved states ---- */

#define STATES_VERSION 1

struct saved_states_header {
    uint32_t version, n_states;
    uint64_t state_bytes;
};

static bool save_states(const struct states *st, const struct bn_stream *out, struct bn_error *err)
{
    struct saved_states_header h = {STATES_VERSION, (uint32_t)st->n, st->state_bytes};
    bool ok = st->state_bytes == 0 || out->move(out->ud, &h, sizeof h);
    for (size_t i = 0; ok && i < st->n; i++) {
        uint64_t length = st->list[i].length;
        ok = out->move(out->ud, &length, sizeof length) &&
             out->move(out->ud, st->list[i].map.ptr, st->state_bytes);
    }
    return ok || bn_fail(err, BN_EIO, "cannot write %zu saved states", st->n);
}

/* Read n_bytes and drop them. */
static bool skip_bytes(const struct bn_stream *in, size_t n_bytes)
{
    char unused[4096];
    for (size_t n; n_bytes > 0; n_bytes -= n) {
        n = size_min(n_bytes, sizeof unused);
        if (!in->move(in->ud, unused, n))
            return false;
    }
    return true;
}

/* Read the states of a sequence of n_ids ids into an empty list. If they do not all fit into the
 * budget, states_add drops the least useful ones. A state for which there is no memory is
 * skipped. */
static bool load_states(struct states *st, size_t n_ids, const struct bn_stream *in,
                        struct bn_error *err)
{
    struct saved_states_header h;
    uint64_t last = 0, length;
    if (st->state_bytes == 0)
        return true;
    if (!in->move(in->ud, &h, sizeof h))
        return bn_fail(err, BN_EIO, "the saved states are incomplete");
    if (h.version != STATES_VERSION || h.state_bytes != st->state_bytes)
        return bn_fail(err, BN_EFORMAT, "the saved states have another version or size");
    for (uint32_t i = 0; i < h.n_states; i++, last = length) {
        if (!in->move(in->ud, &length, sizeof length))
            return bn_fail(err, BN_EIO, "the saved states are incomplete");
        if (length <= last || length > n_ids)
            return bn_fail(err, BN_EFORMAT, "a saved state has a wrong length");
        void *to = states_add(st, (size_t)length);
        if (!(to ? in->move(in->ud, to, st->state_bytes) : skip_bytes(in, st->state_bytes)))
            return bn_fail(err, BN_EIO, "the saved states are incomplete");
    }
    return true;
}

/* ---- saved sessions ---- */

bool bn_session_save(struct bn_session *s, const struct bn_stream *out, struct bn_error *err)
{
    struct saved_kv_header h = header_of(s);
    if (!out->move(out->ud, &h, sizeof h) ||
        (s->n_ids > 0 && !out->move(out->ud, s->ids, s->n_ids * sizeof *s->ids)))
        return bn_fail(err, BN_EIO, "cannot write the KV cache of %zu tokens", s->n_ids);
    return s->model->ops->seq_save(s->seq, out, err) && save_states(&s->states, out, err);
}

size_t bn_session_save_bytes(const struct bn_session *s)
{
    const struct states *st = &s->states;
    const size_t n_bytes = sizeof(struct saved_kv_header) + s->n_ids * sizeof *s->ids +
                           s->model->ops->seq_save_bytes(s->seq);
    if (st->state_bytes == 0)
        return n_bytes;
    return n_bytes + sizeof(struct saved_states_header) +
           st->n * (sizeof(uint64_t) + st->state_bytes);
}

bool bn_session_load(struct bn_session *s, const struct bn_stream *in, struct bn_error *err)
{
    struct saved_kv_header h;
    const struct saved_kv_header own = header_of(s);
    if (!in->move(in->ud, &h, sizeof h))
        return bn_fail(err, BN_EIO, "the saved KV cache is incomplete");
    if (memcmp(h.version, own.version, sizeof h.version) != 0)
        return bn_fail(err, BN_EFORMAT, "the saved KV cache has another type or version than %s",
                       own.version);
    if (h.kv_hash != own.kv_hash)
        return bn_fail(err, BN_EFORMAT,
                       "the saved KV cache belongs to another model, I2_S layout, kind of "
                       "activations, window rule or size of context");
    if (h.n_ids > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%llu saved tokens do not fit in a context of %zu",
                       (unsigned long long)h.n_ids, s->n_ctx);
    const size_t n_ids = (size_t)h.n_ids;
    bn_session_truncate(s, 0);
    if (n_ids > 0 && !in->move(in->ud, s->ids, n_ids * sizeof *s->ids))
        return bn_fail(err, BN_EIO, "the saved KV cache is incomplete");
    if (!session_check_ids(s->model, s->ids, n_ids, "saved token", err)) {
        err->code = BN_EFORMAT; /* not BN_EARG: the saved data is wrong */
        return false;
    }
    if (!s->model->ops->seq_load(s->seq, n_ids, in, err))
        return false;
    s->n_ids = n_ids;
    if (!load_states(&s->states, n_ids, in, err)) {
        bn_session_truncate(s, 0);
        return false;
    }
    return true;
}

const char *bn_session_kv_version(const struct bn_session *s)
{
    return s->model->ops->info(s->model->backend)->kv_version;
}
