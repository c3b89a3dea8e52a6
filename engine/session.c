/*
 * Sessions: the list of ids that the KV cache holds, and how it is brought to another list.
 *
 * The ids and the backend's sequence change together, a micro-batch at a time. Everything a caller
 * may get wrong is checked here, once for all backends.
 */
#include "engine/session.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <string.h>

struct bn_session {
    const struct session_host *host;
    struct seq *seq;
    size_t n_ctx;
    struct mem_map map; /* of ids: pages as they fill */
    int32_t *ids;       /* (n_ctx), the first n_ids are in the KV cache */
    size_t n_ids;
};

bool bn_session_open(struct bn_model *model, const struct bn_session_config *cfg,
                     struct bn_session **out, struct bn_error *err)
{
    const struct session_host *host = session_host_of(model);
    const size_t n_ctx = cfg && cfg->n_ctx > 0 ? cfg->n_ctx : host->n_ctx_train;
    size_t id_bytes;
    struct bn_session *s = mem_alloc(1, sizeof *s);
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a session");
    s->host = host;
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
    if (!host->ops->seq_open(host->backend, n_ctx, &s->seq, err))
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
    s->host->ops->seq_close(s->seq);
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
    s->host->ops->truncate(s->seq, s->n_ids);
}

static bool check_ids(const struct session_host *host, const int32_t *ids, size_t n_ids,
                      const char *what, struct bn_error *err)
{
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= host->n_vocab)
            return bn_fail(err, BN_EARG, "%s %zu is %d, the vocabulary has ids 0 to %zu", what, i,
                           (int)ids[i], host->n_vocab - 1);
    return true;
}

/* Least room that a request needs in any case; TOP with a gap may need more. */
static size_t least_room(const struct session_host *host, const struct head_request *head)
{
    if (head->kind == HEAD_ALL)
        return host->n_vocab;
    return head->kind == HEAD_TOP ? size_min(head->k, host->n_vocab) : 1;
}

static bool check_head(const struct session_host *host, const struct head_request *head,
                       const struct head_row *rows, size_t n_rows, struct bn_error *err)
{
    if (n_rows == 0 || head->kind == HEAD_NONE)
        return true;
    if (head->kind > HEAD_GUMBEL)
        return bn_fail(err, BN_EARG, "no head request has number %d", (int)head->kind);
    if (head->kind == HEAD_TOP && (head->k < 1 || !(head->gap >= 0.0f)))
        return bn_fail(err, BN_EARG, "a head request of the %zu best within %g", head->k,
                       (double)head->gap);
    if (head->kind == HEAD_GUMBEL && !(head->temp > 0.0f && isfinite(head->temp)))
        return bn_fail(err, BN_EARG, "a draw at temperature %g", (double)head->temp);
    if (head->kind == HEAD_TOP && !check_ids(host, head->ids, head->n_ids, "wanted logit", err))
        return false;
    if (!rows)
        return bn_fail(err, BN_EARG, "a head request without a row for its answer");
    const size_t room = least_room(host, head);
    for (size_t i = 0; i < n_rows; i++)
        if (!rows[i].cands || rows[i].cap < room)
            return bn_fail(err, BN_EARG, "row %zu has room for %zu candidates of %zu", i,
                           rows[i].cap, room);
    return true;
}

static bool check_item(const struct bn_item *item, struct bn_error *err)
{
    const struct bn_session *s = item->session;
    if (item->n_ids > s->n_ctx - s->n_ids)
        return bn_fail(err, BN_ECONTEXT, "%zu tokens and %zu more do not fit in a context of %zu",
                       s->n_ids, item->n_ids, s->n_ctx);
    if (item->n_rows > item->n_ids)
        return bn_fail(err, BN_EARG, "%zu rows of %zu tokens", item->n_rows, item->n_ids);
    return check_ids(s->host, item->ids, item->n_ids, "token", err) &&
           check_head(s->host, &item->head, item->rows, item->n_rows, err);
}

static struct backend_control backend_control_of(const struct bn_control *control)
{
    return (struct backend_control){
        .cancel = control && control->cancel ? &control->cancel->requested : NULL,
    };
}

static void append_ids(struct bn_session *s, const int32_t *ids, size_t n_ids)
{
    if (n_ids > 0)
        memcpy(s->ids + s->n_ids, ids, n_ids * sizeof *ids);
    s->n_ids += n_ids;
}

/* A checked item in micro-batches, rows for the last n_rows ids. */
static bool eval_in_batches(const struct bn_item *item, const struct bn_control *control,
                            struct bn_error *err)
{
    struct bn_session *s = item->session;
    const struct session_host *host = s->host;
    const struct backend_control backend_control = backend_control_of(control);
    const size_t row0 = item->n_ids - item->n_rows; /* id that rows[0] belongs to */
    for (size_t i = 0; i < item->n_ids;) {
        const size_t n = size_min(item->n_ids - i, host->n_ubatch);
        const size_t first = size_max(i, row0);
        const size_t n_rows = first < i + n ? i + n - first : 0;
        struct eval_item batch = {
            .seq = s->seq,
            .ids = item->ids + i,
            .n_ids = n,
            .n_rows = n_rows,
            .head = item->head,
            .rows = n_rows > 0 ? item->rows + (first - row0) : NULL,
        };
        uint64_t batch_bytes = 0;
        if (!host->ops->eval(host->backend, &batch, 1, &backend_control, &batch_bytes, err))
            return false;
        append_ids(s, batch.ids, n);
        *host->bytes_read += batch_bytes;
        i += n;
        if (control && control->progress.report)
            control->progress.report(control->progress.ud, i, item->n_ids);
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
    return check_item(&item, err) && eval_in_batches(&item, control, err);
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
    if (!check_ids(s->host, ids, n_ids, "token", err) ||
        (head && !check_head(s->host, head, row, 1, err)))
        return false;
    const size_t n_keep = common_prefix(s, ids, n_ids - 1);
    struct bn_item item = {.session = s, .ids = ids + n_keep, .n_ids = n_ids - n_keep, .rows = row};
    if (head && head->kind != HEAD_NONE) {
        item.head = *head;
        item.n_rows = 1;
    }
    bn_session_truncate(s, n_keep);
    if (!eval_in_batches(&item, control, err))
        return false;
    if (stats)
        *stats = (struct bn_sync_stats){n_keep, item.n_ids};
    return true;
}

/* Checked items, all in one pass over the weights. batch (n_items). */
static bool eval_items(const struct session_host *host, const struct bn_item *items,
                       struct eval_item *batch, size_t n_items, const struct bn_control *control,
                       struct bn_error *err)
{
    const struct backend_control backend_control = backend_control_of(control);
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < n_items; i++)
        batch[i] = (struct eval_item){
            .seq = items[i].session->seq,
            .ids = items[i].ids,
            .n_ids = items[i].n_ids,
            .n_rows = items[i].head.kind == HEAD_NONE ? 0 : items[i].n_rows,
            .head = items[i].head,
            .rows = items[i].rows,
        };
    if (!host->ops->eval(host->backend, batch, n_items, &backend_control, &n_bytes, err))
        return false;
    *host->bytes_read += n_bytes;
    for (size_t i = 0; i < n_items; i++)
        append_ids(items[i].session, items[i].ids, items[i].n_ids);
    return true;
}

static bool check_items(const struct bn_item *items, size_t n_items, struct bn_error *err)
{
    const struct session_host *host = items[0].session->host;
    size_t n_tokens = 0;
    for (size_t i = 0; i < n_items; i++) {
        if (items[i].session->host != host)
            return bn_fail(err, BN_EARG, "session %zu of a batch belongs to another model", i);
        for (size_t j = 0; j < i; j++)
            if (items[j].session == items[i].session)
                return bn_fail(err, BN_EARG, "sessions %zu and %zu of a batch are the same", j, i);
        if (!check_item(&items[i], err))
            return false;
        if (items[i].n_ids < 1 || items[i].n_ids > host->n_ubatch - n_tokens)
            return bn_fail(err, BN_EARG, "a batch of %zu sessions: 1 to %zu tokens in all", n_items,
                           host->n_ubatch);
        n_tokens += items[i].n_ids;
    }
    return true;
}

bool bn_eval(struct bn_item *items, size_t n_items, const struct bn_control *control,
             struct bn_error *err)
{
    if (n_items == 0)
        return true;
    if (!check_items(items, n_items, err))
        return false;
    const struct session_host *host = items[0].session->host;
    return eval_items(host, items, host->batch, n_items, control, err);
}

/* A saved cache: this header, the ids, the backend's bytes. */
struct saved_header {
    char version[32]; /* of the backend's layout and numbers */
    uint64_t fingerprint;
    uint64_t n_ids;
};

static struct saved_header header_of(const struct bn_session *s)
{
    struct saved_header h = {.fingerprint = s->host->fingerprint, .n_ids = s->n_ids};
    const char *version = bn_session_kv_version(s);
    memcpy(h.version, version, size_min(strlen(version), sizeof h.version - 1));
    return h;
}

bool bn_session_save(struct bn_session *s, const struct bn_stream *out, struct bn_error *err)
{
    struct saved_header h = header_of(s);
    if (!out->move(out->ud, &h, sizeof h) ||
        (s->n_ids > 0 && !out->move(out->ud, s->ids, s->n_ids * sizeof *s->ids)))
        return bn_fail(err, BN_EIO, "the session of %zu tokens could not be written", s->n_ids);
    return s->host->ops->seq_save(s->seq, out, err);
}

bool bn_session_load(struct bn_session *s, const struct bn_stream *in, struct bn_error *err)
{
    struct saved_header h;
    const struct saved_header own = header_of(s);
    if (!in->move(in->ud, &h, sizeof h))
        return bn_fail(err, BN_EIO, "the saved session ends too early");
    if (memcmp(h.version, own.version, sizeof h.version) != 0)
        return bn_fail(err, BN_EFORMAT,
                       "the saved session's KV cache is of another type, device or version than %s",
                       own.version);
    if (h.fingerprint != own.fingerprint)
        return bn_fail(err, BN_EFORMAT, "the saved session belongs to another model or device");
    if (h.n_ids > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%llu saved tokens do not fit in a context of %zu",
                       (unsigned long long)h.n_ids, s->n_ctx);
    const size_t n_ids = (size_t)h.n_ids;
    bn_session_truncate(s, 0);
    if (n_ids > 0 && !in->move(in->ud, s->ids, n_ids * sizeof *s->ids))
        return bn_fail(err, BN_EIO, "the saved session ends too early");
    if (!check_ids(s->host, s->ids, n_ids, "saved token", err)) {
        err->code = BN_EFORMAT;
        return false;
    }
    if (!s->host->ops->seq_load(s->seq, n_ids, in, err))
        return false;
    s->n_ids = n_ids;
    return true;
}

const char *bn_session_kv_version(const struct bn_session *s)
{
    return s->host->ops->info(s->host->backend)->kv_version;
}
