/*
 * Sessions: the list of token ids in a KV cache, and the calls that extend, replace or cut it.
 *
 * The ids and the sequence of the backend change together, one micro-batch at a time. This file
 * checks every argument of the public calls, so the backends do not check them again.
 */
#include "engine/engine_internal.h"
#include "engine/model/rope.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <string.h>

struct bn_session {
    struct bn_model *model;
    struct seq *seq;
    size_t n_ctx;
    struct mem_map map; /* memory of ids; the system provides a page at the first write to it */
    int32_t *ids;       /* (n_ctx), the first n_ids are in the KV cache */
    size_t n_ids;
};

bool bn_session_open(struct bn_model *model, const struct bn_session_config *cfg,
                     struct bn_session **out, struct bn_error *err)
{
    const size_t n_ctx = cfg && cfg->n_ctx > 0 ? cfg->n_ctx : model->info.n_ctx_default;
    size_t id_bytes;
    struct bn_session *s = mem_alloc(1, sizeof *s);
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a session");
    s->model = model;
    s->n_ctx = n_ctx;
    if (n_ctx > INT32_MAX || !size_mul(&id_bytes, n_ctx, sizeof(int32_t))) {
        bn_fail(err, BN_EARG, "a context of %zu tokens is too large", n_ctx);
        goto fail;
    }
    if (!mem_map_open(&s->map, id_bytes, MEM_PAGES_NORMAL)) {
        bn_fail(err, BN_ENOMEM, "no memory for a context of %zu tokens", n_ctx);
        goto fail;
    }
    s->ids = s->map.ptr;
    if (!model->ops->seq_open(model->backend, n_ctx, &s->seq, err))
        goto fail;
    *out = s;
    return true;
fail:
    bn_session_close(s);
    return false;
}

void bn_session_close(struct bn_session *s)
{
    if (!s)
        return;
    s->model->ops->seq_close(s->seq);
    mem_map_close(&s->map);
    mem_free(s);
}

size_t bn_session_n_ctx(const struct bn_session *s)
{
    return s->n_ctx;
}

const int32_t *bn_session_ids(const struct bn_session *s, size_t *n_ids)
{
    *n_ids = s->n_ids;
    return s->ids;
}

void bn_session_truncate(struct bn_session *s, size_t n_keep)
{
    s->n_ids = size_min(s->n_ids, n_keep);
    s->model->ops->truncate(s->seq, s->n_ids);
}

/* ---- checks ---- */

static bool check_ids(const struct bn_model *model, const int32_t *ids, size_t n_ids,
                      const char *label, struct bn_error *err)
{
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= model->info.n_vocab)
            return bn_fail(err, BN_EARG, "%s %zu: unknown token id %d, expected 0 to %zu", label, i,
                           (int)ids[i], model->info.n_vocab - 1);
    return true;
}

/* Fewest candidates that the request can return. HEAD_TOP with a gap or ids may return more. */
static size_t min_candidates(const struct bn_model *model, const struct head_request *head)
{
    if (head->kind == HEAD_ALL)
        return model->info.n_vocab;
    return head->kind == HEAD_TOP ? size_min(head->k, model->info.n_vocab) : 1;
}

static bool check_head(const struct bn_model *model, const struct head_request *head,
                       const struct head_row *rows, size_t n_rows, struct bn_error *err)
{
    if (n_rows == 0 || head->kind == HEAD_NONE)
        return true;
    if (head->kind > HEAD_GUMBEL)
        return bn_fail(err, BN_EARG, "unknown kind %d of a logits request", (int)head->kind);
    if (head->kind == HEAD_TOP && (head->k < 1 || !(head->gap >= 0.0f)))
        return bn_fail(err, BN_EARG,
                       "a request for the top logits needs k >= 1 and gap >= 0, not k %zu, gap %g",
                       head->k, (double)head->gap);
    if (head->kind == HEAD_GUMBEL && !(head->temp > 0.0f && isfinite(head->temp)))
        return bn_fail(err, BN_EARG, "temperature %g is not a finite number above 0",
                       (double)head->temp);
    if (head->kind == HEAD_TOP && !check_ids(model, head->ids, head->n_ids, "logit", err))
        return false;
    if (!rows)
        return bn_fail(err, BN_EARG, "a logits request needs rows for its results");
    const size_t n_min = min_candidates(model, head);
    for (size_t i = 0; i < n_rows; i++)
        if (!rows[i].cands || rows[i].cap < n_min)
            return bn_fail(err, BN_EARG,
                           "row %zu has a capacity of %zu candidates, but the request needs %zu", i,
                           rows[i].cap, n_min);
    return true;
}

static bool check_item(const struct bn_item *item, struct bn_error *err)
{
    const struct bn_session *s = item->session;
    if (item->n_ids > s->n_ctx - s->n_ids)
        return bn_fail(err, BN_ECONTEXT,
                       "%zu more tokens do not fit: %zu of %zu tokens of the context are used",
                       item->n_ids, s->n_ids, s->n_ctx);
    if (item->n_rows > item->n_ids)
        return bn_fail(err, BN_EARG, "%zu rows of logits requested for %zu tokens", item->n_rows,
                       item->n_ids);
    return check_ids(s->model, item->ids, item->n_ids, "token", err) &&
           check_head(s->model, &item->head, item->rows, item->n_rows, err);
}

static bool check_items(const struct bn_item *items, size_t n_items, struct bn_error *err)
{
    const struct bn_model *model = items[0].session->model;
    size_t n_tokens = 0;
    for (size_t i = 0; i < n_items; i++) {
        if (items[i].session->model != model)
            return bn_fail(err, BN_EARG, "session %zu of a batch belongs to another model", i);
        for (size_t j = 0; j < i; j++)
            if (items[j].session == items[i].session)
                return bn_fail(err, BN_EARG, "sessions %zu and %zu of a batch are the same", j, i);
        if (!check_item(&items[i], err))
            return false;
        if (items[i].n_ids < 1 || items[i].n_ids > model->info.n_ubatch - n_tokens)
            return bn_fail(err, BN_EARG,
                           "a batch needs at least 1 token per session and at most %zu in total",
                           model->info.n_ubatch);
        n_tokens += items[i].n_ids;
    }
    return true;
}

/* ---- evaluation ---- */

static struct eval_item eval_item_of(const struct bn_item *item)
{
    return (struct eval_item){
        .seq = item->session->seq,
        .ids = item->ids,
        .n_ids = item->n_ids,
        .n_rows = item->head.kind == HEAD_NONE ? 0 : item->n_rows,
        .head = item->head,
        .rows = item->rows,
    };
}

/* Evaluate checked items of one model in one pass over the weights. */
static bool eval_pass(struct eval_item *batch, const struct bn_item *items, size_t n_items,
                      const struct bn_control *control, struct bn_error *err)
{
    struct bn_model *model = items[0].session->model;
    const struct backend_control backend_control = {
        .cancel = control && control->cancel ? &control->cancel->requested : NULL};
    uint64_t n_bytes = 0;
    if (!model->ops->eval(model->backend, batch, n_items, &backend_control, &n_bytes, err))
        return false;
    model->bytes_read += n_bytes;
    for (size_t i = 0; i < n_items; i++) {
        struct bn_session *s = items[i].session;
        memcpy(s->ids + s->n_ids, batch[i].ids, batch[i].n_ids * sizeof *s->ids);
        s->n_ids += batch[i].n_ids;
    }
    return true;
}

/* Evaluate a checked item of any length, one micro-batch after another. */
static bool eval_micro_batches(const struct bn_item *item, const struct bn_control *control,
                               struct bn_error *err)
{
    const size_t n_ubatch = item->session->model->info.n_ubatch;
    const struct eval_item whole = eval_item_of(item);
    const size_t row0 = whole.n_ids - whole.n_rows; /* index of the id of rows[0] */
    for (size_t i = 0; i < whole.n_ids;) {
        struct eval_item batch = whole;
        batch.ids = whole.ids + i;
        batch.n_ids = size_min(whole.n_ids - i, n_ubatch);
        const size_t end = i + batch.n_ids, first = size_max(i, row0);
        batch.n_rows = first < end ? end - first : 0;
        batch.rows = batch.n_rows > 0 ? whole.rows + (first - row0) : NULL;
        if (!eval_pass(&batch, item, 1, control, err))
            return false;
        i = end;
        if (control && control->progress.report)
            control->progress.report(control->progress.ud, i, whole.n_ids);
    }
    return true;
}

bool bn_session_eval(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *rows, size_t n_rows,
                     const struct bn_control *control, struct bn_error *err)
{
    struct bn_item item = {.session = s, .ids = ids, .n_ids = n_ids, .rows = rows};
    if (head) {
        item.head = *head;
        item.n_rows = n_rows;
    }
    return check_item(&item, err) && eval_micro_batches(&item, control, err);
}

static size_t common_prefix(const struct bn_session *s, const int32_t *ids, size_t n_max)
{
    size_t n = 0;
    while (n < n_max && n < s->n_ids && s->ids[n] == ids[n])
        n++;
    return n;
}

bool bn_session_sync(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *row,
                     const struct bn_control *control, struct bn_sync_stats *stats,
                     struct bn_error *err)
{
    if (n_ids < 1)
        return bn_fail(err, BN_EARG, "no tokens to evaluate");
    if (n_ids > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%zu tokens do not fit in a context of %zu", n_ids,
                       s->n_ctx);
    if (!check_ids(s->model, ids, n_ids, "token", err) ||
        (head && !check_head(s->model, head, row, 1, err)))
        return false;
    const size_t n_keep = common_prefix(s, ids, n_ids - 1);
    struct bn_item item = {.session = s, .ids = ids + n_keep, .n_ids = n_ids - n_keep, .rows = row};
    if (head) {
        item.head = *head;
        item.n_rows = 1;
    }
    bn_session_truncate(s, n_keep);
    if (!eval_micro_batches(&item, control, err))
        return false;
    if (stats)
        *stats = (struct bn_sync_stats){n_keep, item.n_ids};
    return true;
}

bool bn_eval(struct bn_item *items, size_t n_items, const struct bn_control *control,
             struct bn_error *err)
{
    if (n_items == 0)
        return true;
    if (!check_items(items, n_items, err))
        return false;
    struct eval_item *batch = items[0].session->model->batch;
    for (size_t i = 0; i < n_items; i++)
        batch[i] = eval_item_of(&items[i]);
    return eval_pass(batch, items, n_items, control, err);
}

/* ---- saved KV caches ---- */

/* A saved KV cache is this header, then the ids, then the bytes of the backend. */
struct saved_kv_header {
    char version[32]; /* bn_session_kv_version, padded with zeros */
    uint64_t fingerprint;
    uint64_t n_ids;
};

static struct saved_kv_header header_of(const struct bn_session *s)
{
    struct saved_kv_header h = {.fingerprint = s->model->fingerprint, .n_ids = s->n_ids};
    if (rope_is_long(s->model->model, s->n_ctx)) /* keys of a short session have other angles */
        h.fingerprint = ~h.fingerprint;
    const char *version = bn_session_kv_version(s);
    memcpy(h.version, version, size_min(strlen(version), sizeof h.version - 1));
    return h;
}

bool bn_session_save(struct bn_session *s, const struct bn_stream *out, struct bn_error *err)
{
    struct saved_kv_header h = header_of(s);
    if (!out->move(out->ud, &h, sizeof h) ||
        (s->n_ids > 0 && !out->move(out->ud, s->ids, s->n_ids * sizeof *s->ids)))
        return bn_fail(err, BN_EIO, "cannot write the KV cache of %zu tokens", s->n_ids);
    return s->model->ops->seq_save(s->seq, out, err);
}

bool bn_session_load(struct bn_session *s, const struct bn_stream *in, struct bn_error *err)
{
    struct saved_kv_header h;
    const struct saved_kv_header own = header_of(s);
    if (!in->move(in->ud, &h, sizeof h))
        return bn_fail(err, BN_EIO, "the saved KV cache is incomplete");
    if (memcmp(h.version, own.version, sizeof h.version) != 0)
        return bn_fail(err, BN_EFORMAT,
                       "the saved KV cache has another type, device or version than %s",
                       own.version);
    if (h.fingerprint != own.fingerprint)
        return bn_fail(err, BN_EFORMAT,
                       "the saved KV cache belongs to another model, I2_S layout, kind of "
                       "activations or size of context");
    if (h.n_ids > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%llu saved tokens do not fit in a context of %zu",
                       (unsigned long long)h.n_ids, s->n_ctx);
    const size_t n_ids = (size_t)h.n_ids;
    bn_session_truncate(s, 0);
    if (n_ids > 0 && !in->move(in->ud, s->ids, n_ids * sizeof *s->ids))
        return bn_fail(err, BN_EIO, "the saved KV cache is incomplete");
    if (!check_ids(s->model, s->ids, n_ids, "saved token", err)) {
        err->code = BN_EFORMAT;
        return false;
    }
    if (!s->model->ops->seq_load(s->seq, n_ids, in, err))
        return false;
    s->n_ids = n_ids;
    return true;
}

const char *bn_session_kv_version(const struct bn_session *s)
{
    return s->model->ops->info(s->model->backend)->kv_version;
}
