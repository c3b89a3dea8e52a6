/*
 * Sessions: the list of token ids in a KV cache, and the calls that extend, replace or cut it.
 *
 * The ids and the sequence of the backend change together, one micro-batch at a time. This file
 * checks the ids, lengths and requests of the public calls, so the backends can rely on them.
 *
 * A sequence with rings or recurrent states cannot be cut at every length. For such models the
 * session saves states and goes back to the nearest one: docs/architecture.md, "Saved states".
 */
#include "engine/engine_internal.h"
#include "engine/session_internal.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <string.h>

/* Least distance in tokens between the states that prepare_states plans for a prompt. A pass must
 * end where a state is saved. An additional pass takes about as long as evaluating this number of
 * tokens again, so a closer state would save no time. */
#define STATE_MIN_GAP 16
/* A pass that ends at least so many tokens after the newest state saves another one. So a return
 * evaluates less than STATE_INTERVAL + n_ubatch tokens again, unless states were dropped or could
 * not be saved. */
#define STATE_INTERVAL 2048

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
    /* Kernels of the GPU have positions of 32 bits. */
    if (n_ctx > INT32_MAX || !size_mul(&id_bytes, n_ctx, sizeof(int32_t))) {
        bn_fail(err, BN_EARG, "a context of %zu tokens is too large", n_ctx);
        goto fail;
    }
    if (!mem_map_open(&s->map, id_bytes, MEM_PAGES_NORMAL)) {
        bn_fail(err, BN_ENOMEM, "no memory for a context of %zu tokens", n_ctx);
        goto fail;
    }
    s->ids = s->map.ptr;
    const size_t budget =
        cfg && cfg->state_memory > 0 ? cfg->state_memory : bn_model_state_memory(model);
    if (!states_open(&s->states, model->info.state_bytes, budget, err) ||
        !model->ops->seq_open(model->backend, n_ctx, &s->seq, err))
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
    states_close(&s->states);
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

struct bn_state_stats bn_session_states(const struct bn_session *s)
{
    return (struct bn_state_stats){s->states.n, s->states.n * s->states.state_bytes};
}

/* ---- earlier lengths ---- */

/* Save the state of the present length, if it is not saved yet. A failure is no error: a later
 * return only has to evaluate more tokens again. */
static void save_state(struct bn_session *s)
{
    if (s->n_ids <= states_newest(&s->states))
        return;
    void *to = states_add(&s->states, s->n_ids);
    if (to && !s->model->ops->state_save(s->seq, to))
        states_cut(&s->states, s->n_ids - 1);
}

/* Cut the session to the largest reachable length that is at most n_keep: one that the backend
 * still holds, or that of a saved state. If the device fails, the session is empty. */
static void return_to_length(struct bn_session *s, size_t n_keep)
{
    const struct backend_ops *ops = s->model->ops;
    if (n_keep >= s->n_ids)
        return;
    const size_t near = ops->reachable(s->seq, n_keep);
    const struct saved_state *state = states_find(&s->states, n_keep);
    if (state && state->length > near) {
        s->n_ids = ops->state_load(s->seq, state->map.ptr, state->length) ? state->length : 0;
    } else {
        s->n_ids = near;
        ops->truncate(s->seq, near);
    }
    states_cut(&s->states, s->n_ids);
}

size_t bn_session_truncate(struct bn_session *s, size_t n_keep)
{
    return_to_length(s, n_keep);
    return s->n_ids;
}

/* ---- checks ---- */

bool session_check_ids(const struct bn_model *model, const int32_t *ids, size_t n_ids,
                       const char *label, struct bn_error *err)
{
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= model->info.n_vocab)
            return bn_fail(err, BN_EARG, "%s %zu: unknown token id %d, expected 0 to %zu", label, i,
                           (int)ids[i], model->info.n_vocab - 1);
    return true;
}

/* Lower limit of the number of results. HEAD_TOP returns more if `ids` has others than the k best,
 * or if more than k are within the gap. */
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
    const bool is_valid_list = head_is_list(head) && head->n_ids > 0 && head->gap == 0.0f;
    /* !(x >= 0) is true for a NaN too. */
    if (head->kind == HEAD_TOP && !is_valid_list && (head->k < 1 || !(head->gap >= 0.0f)))
        return bn_fail(err, BN_EARG,
                       "a request for the top logits needs k >= 1 and gap >= 0, not k %zu, gap %g",
                       head->k, (double)head->gap);
    if (head->kind == HEAD_GUMBEL && !(head->temp > 0.0f && isfinite(head->temp)))
        return bn_fail(err, BN_EARG, "temperature %g is not a finite number above 0",
                       (double)head->temp);
    if (head->kind == HEAD_TOP && !session_check_ids(model, head->ids, head->n_ids, "logit", err))
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

static bool check_item(const struct bn_batch_item *item, struct bn_error *err)
{
    const struct bn_session *s = item->session;
    if (item->n_ids > s->n_ctx - s->n_ids)
        return bn_fail(err, BN_ECONTEXT,
                       "%zu more tokens do not fit: %zu of %zu tokens of the context are used",
                       item->n_ids, s->n_ids, s->n_ctx);
    if (item->n_rows > item->n_ids)
        return bn_fail(err, BN_EARG, "%zu rows of logits requested for %zu tokens", item->n_rows,
                       item->n_ids);
    return session_check_ids(s->model, item->ids, item->n_ids, "token", err) &&
           check_head(s->model, &item->head, item->rows, item->n_rows, err);
}

static bool check_items(const struct bn_batch_item *items, size_t n_items, struct bn_error *err)
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

static struct eval_item eval_item_of(const struct bn_batch_item *item)
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

static const atomic_bool *cancel_flag(const struct bn_control *control)
{
    return control && control->cancel ? &control->cancel->requested : NULL;
}

/* Evaluate checked items of one model in one pass over the weights. batch[i] holds the ids of
 * items[i] that this pass evaluates. */
static bool eval_pass(struct eval_item *batch, const struct bn_batch_item *items, size_t n_items,
                      const struct backend_control *control, struct bn_error *err)
{
    struct bn_model *model = items[0].session->model;
    uint64_t n_bytes = 0;
    if (!model->ops->eval(model->backend, batch, n_items, control, &n_bytes, err))
        return false;
    model->bytes_read += n_bytes;
    for (size_t i = 0; i < n_items; i++) {
        struct bn_session *s = items[i].session;
        memcpy(s->ids + s->n_ids, batch[i].ids, batch[i].n_ids * sizeof *s->ids);
        s->n_ids += batch[i].n_ids;
        if (s->n_ids - states_newest(&s->states) >= STATE_INTERVAL)
            save_state(s);
    }
    return true;
}

/* Lengths at which the evaluation of a prompt saves a state, so a micro-batch ends there; 0 for
 * none. */
struct save_points {
    size_t branch; /* end of the prefix that the prompt shares with the ids before it */
    size_t stable; /* end of the ids that the next prompt will probably repeat */
};

static bool is_save_point(const struct save_points *points, size_t length)
{
    return length == points->branch || length == points->stable;
}

/* Length after the micro-batch that begins at `length`, in a session that will have n_end ids. */
static size_t next_length(const struct save_points *points, size_t length, size_t n_ubatch,
                          size_t n_end)
{
    size_t next = size_min(n_end - length, n_ubatch) + length;
    if (points->branch > length)
        next = size_min(next, points->branch);
    if (points->stable > length)
        next = size_min(next, points->stable);
    return next;
}

/* Progress of a call that evaluates several micro-batches. */
struct prompt_progress {
    struct bn_progress to;    /* report may be NULL */
    size_t n_total;           /* ids of the call */
    size_t n_done, n_running; /* ids before the running micro-batch, and in it */
    size_t n_reported;
};

static void report_ids(struct prompt_progress *p, size_t n)
{
    if (p->to.report && n > p->n_reported) {
        p->n_reported = n;
        p->to.report(p->to.ud, n, p->n_total);
    }
}

/* backend_control.progress: the part of the layers that is done counts as a part of the ids. It is
 * less than all ids of the micro-batch, because the last layer is not reported. */
static void on_layer(void *ud, size_t n_done, size_t n_layers)
{
    struct prompt_progress *p = ud;
    report_ids(p, p->n_done + p->n_running * n_done / n_layers);
}

/* Evaluate a checked item of any length, one micro-batch after another. */
static bool eval_micro_batches(const struct bn_batch_item *item, const struct save_points *points,
                               const struct bn_control *control, struct bn_error *err)
{
    struct bn_session *s = item->session;
    const size_t n_ubatch = s->model->info.n_ubatch, n_end = s->n_ids + item->n_ids;
    const struct eval_item whole = eval_item_of(item);
    const size_t row0 = whole.n_ids - whole.n_rows; /* index of the id of rows[0] */
    struct prompt_progress progress = {.n_total = whole.n_ids};
    struct backend_control backend_control = {.cancel = cancel_flag(control)};
    if (control && control->progress.report) {
        progress.to = control->progress;
        backend_control.progress = on_layer;
        backend_control.ud = &progress;
        progress.to.report(progress.to.ud, 0, whole.n_ids);
    }
    for (size_t i = 0; i < whole.n_ids;) {
        struct eval_item batch = whole;
        batch.ids = whole.ids + i;
        batch.n_ids = next_length(points, s->n_ids, n_ubatch, n_end) - s->n_ids;
        const size_t end = i + batch.n_ids, first = size_max(i, row0);
        batch.n_rows = first < end ? end - first : 0;
        batch.rows = batch.n_rows > 0 ? whole.rows + (first - row0) : NULL;
        progress.n_done = i;
        progress.n_running = batch.n_ids;
        if (!eval_pass(&batch, item, 1, &backend_control, err))
            return false;
        if (is_save_point(points, s->n_ids))
            save_state(s);
        i = end;
        report_ids(&progress, i);
    }
    return true;
}

bool bn_session_eval(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *rows, size_t n_rows,
                     const struct bn_control *control, struct bn_error *err)
{
    struct bn_batch_item item = {.session = s, .ids = ids, .n_ids = n_ids, .rows = rows};
    if (head) {
        item.head = *head;
        item.n_rows = n_rows;
    }
    return check_item(&item, err) &&
           eval_micro_batches(&item, &(struct save_points){0}, control, err);
}

static size_t common_prefix(const struct bn_session *s, const int32_t *ids, size_t n_max)
{
    size_t n = 0;
    while (n < n_max && n < s->n_ids && s->ids[n] == ids[n])
        n++;
    return n;
}

/* Prepare for the evaluation of a prompt of n_ids ids: save a state at the present length, where
 * the new ids begin, and return the lengths at which to save states during the evaluation. n_shared
 * is the number of ids that the session had in common with the prompt; the session may have gone
 * back further.
 *
 * save_points.branch is n_shared, because a conversation often branches twice at the same place.
 * save_points.stable is n_stable if this length is inside the prompt. Otherwise it is the length
 * before the last id, because a retry evaluates that id again. A state that would be less than
 * STATE_MIN_GAP after the one before is left out; the states that the passes to come save because
 * of STATE_INTERVAL are not considered. */
static struct save_points prepare_states(struct bn_session *s, size_t n_shared, size_t n_ids,
                                         size_t n_stable)
{
    const size_t stable = n_stable > 0 && n_stable < n_ids ? n_stable : n_ids - 1;
    struct save_points points = {0};
    /* Length of the newest state, saved or planned. s->n_ids counts as one: there is a saved state
     * or the start of the sequence less than STATE_MIN_GAP before it, unless saving has failed. */
    size_t newest = s->n_ids;
    if (s->states.n_max == 0 || n_ids - s->n_ids <= 1) /* no states, or decode of one token */
        return points;
    if (s->n_ids - states_newest(&s->states) >= STATE_MIN_GAP)
        save_state(s);
    if (n_shared - newest >= STATE_MIN_GAP)
        newest = points.branch = n_shared;
    if (stable > newest && stable - newest >= STATE_MIN_GAP)
        points.stable = stable;
    return points;
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
    if (!session_check_ids(s->model, ids, n_ids, "token", err) ||
        (head && !check_head(s->model, head, row, 1, err)))
        return false;
    const size_t n_shared = common_prefix(s, ids, n_ids - 1);
    return_to_length(s, n_shared);
    const size_t n_keep = s->n_ids;
    struct bn_batch_item item = {
        .session = s, .ids = ids + n_keep, .n_ids = n_ids - n_keep, .rows = row};
    if (head) {
        item.head = *head;
        item.n_rows = 1;
    }
    const struct save_points points =
        prepare_states(s, n_shared, n_ids, control ? control->n_stable : 0);
    if (!eval_micro_batches(&item, &points, control, err))
        return false;
    if (stats)
        *stats = (struct bn_sync_stats){n_keep, item.n_ids, n_shared - n_keep};
    return true;
}

bool bn_batch_eval(struct bn_batch_item *items, size_t n_items, const struct bn_control *control,
                   struct bn_error *err)
{
    if (n_items == 0)
        return true;
    if (!check_items(items, n_items, err))
        return false;
    /* n_ubatch entries are enough, because check_items requires an id in each item. */
    struct eval_item *batch = items[0].session->model->batch;
    for (size_t i = 0; i < n_items; i++)
        batch[i] = eval_item_of(&items[i]);
    return eval_pass(batch, items, n_items,
                     &(struct backend_control){.cancel = cancel_flag(control)}, err);
}
