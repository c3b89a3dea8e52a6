/*
 * The engine behind generator.h. The chat uses one sequence of the generator, a struct
 * generator_seq like each sequence of a batch.
 */
#include "app/chat/answer/generator.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>

/* A session and its sampler. */
struct generator_seq {
    struct bn_session *session;
    struct sampler *sampler;
    size_t n_alts; /* number of alternatives that generator_seq_alts returns */
    /* Candidates of the last step without speculation, owned by the sampler; NULL at first. */
    struct head_row *row;
    int32_t chosen; /* id that this step chose, or that of generator_seq_replace */
};

struct generator {
    struct bn_model *model;
    struct generator_seq *seq; /* the sequence of the chat */
    struct spec *spec;         /* for seq; sequences of a batch do not speculate */
    size_t state_memory;       /* most bytes of saved states; 0: the model needs none */
};

/* ---- sequences ---- */

static bool open_seq(struct bn_model *model, const struct bn_session_config *cfg,
                     struct generator_seq **out, struct bn_error *err)
{
    struct generator_seq *seq = mem_alloc(1, sizeof(*seq));
    if (!seq)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_session_open(model, cfg, &seq->session, err) ||
        !sampler_open(bn_model_info(model)->n_vocab, &seq->sampler, err)) {
        generator_seq_close(seq);
        return false;
    }
    *out = seq;
    return true;
}

bool generator_seq_open(struct generator *g, size_t n_seqs, struct generator_seq **out,
                        struct bn_error *err)
{
    /* At least 1 byte, because 0 selects the default. */
    const struct bn_session_config cfg = {.n_ctx = generator_n_ctx(g),
                                          .state_memory = size_max(g->state_memory / n_seqs, 1)};
    return open_seq(g->model, &cfg, out, err);
}

size_t generator_batch_width(const struct generator *g)
{
    return bn_model_batch_width(g->model, generator_n_ctx(g));
}

void generator_seq_close(struct generator_seq *seq)
{
    if (!seq)
        return;
    sampler_close(seq->sampler);
    bn_session_close(seq->session);
    mem_free(seq);
}

bool generator_seq_set(struct generator_seq *seq, const struct sampler_params *params,
                       size_t n_alts, struct bn_error *err)
{
    if (!sampler_set(seq->sampler, params, err))
        return false;
    seq->n_alts = n_alts < GENERATOR_MAX_ALTS ? n_alts : GENERATOR_MAX_ALTS;
    return true;
}

/* The logits to compute: all if alternatives are reported, otherwise those that the sampler needs.
 * Sets seq->row, which receives them. */
static struct head_request request(struct generator_seq *seq, const int32_t *ids, size_t n_ids)
{
    struct head_request head;
    sampler_request(seq->sampler, ids, n_ids, &head, &seq->row);
    return seq->n_alts > 0 ? (struct head_request){.kind = HEAD_ALL} : head;
}

static int32_t choose(struct generator_seq *seq, const int32_t *ids, size_t n_ids)
{
    seq->chosen = sampler_pick(seq->sampler, seq->row, ids, n_ids);
    return seq->chosen;
}

bool generator_seq_step(struct generator_seq *seq, const int32_t *ids, size_t n_ids,
                        const struct bn_control *control, struct bn_sync_stats *stats,
                        int32_t *next, struct bn_error *err)
{
    const struct head_request head = request(seq, ids, n_ids);
    if (!bn_session_sync(seq->session, ids, n_ids, &head, seq->row, control, stats, err))
        return false;
    *next = choose(seq, ids, n_ids);
    return true;
}

bool generator_step_all(struct generator_item *items, size_t n_items,
                        const struct bn_control *control, struct bn_error *err)
{
    struct bn_batch_item eval[CHAT_BATCH_MAX];
    for (size_t i = 0; i < n_items; i++) {
        const struct generator_item *s = &items[i];
        eval[i] = (struct bn_batch_item){.session = s->seq->session,
                                         .ids = s->ids + s->n_ids - 1,
                                         .n_ids = 1,
                                         .n_rows = 1,
                                         .head = request(s->seq, s->ids, s->n_ids)};
        eval[i].rows = s->seq->row; /* which request() has set */
    }
    if (!bn_batch_eval(eval, n_items, control, err))
        return false;
    for (size_t i = 0; i < n_items; i++)
        items[i].next = choose(items[i].seq, items[i].ids, items[i].n_ids);
    return true;
}

struct bn_state_stats generator_seq_states(const struct generator_seq *seq)
{
    return bn_session_states(seq->session);
}

/* ---- alternatives ---- */

/* log(sum of exp(logit)). The largest logit is subtracted first, against overflow. */
static double log_total(const struct head_row *row)
{
    double best = -INFINITY, sum = 0;
    for (size_t i = 0; i < row->n; i++)
        best = fmax(best, (double)row->cands[i].logit);
    for (size_t i = 0; i < row->n; i++)
        sum += exp((double)row->cands[i].logit - best);
    return best + log(sum);
}

/* Insert a candidate into the sorted list of the n best so far, and drop the worst of the n + 1.
 * Candidates come in ascending order of ids, so among equal logits the lower id stays first. */
static void insert_best(struct head_cand *best, size_t n, struct head_cand c)
{
    for (size_t i = n; i > 0 && c.logit > best[i - 1].logit; i--) {
        if (i < n)
            best[i] = best[i - 1];
        best[i - 1] = c;
    }
}

static struct generator_alt alt_of(struct head_cand c, double total)
{
    return (struct generator_alt){c.id, (float)((double)c.logit - total)};
}

void generator_seq_alts(const struct generator_seq *seq, struct generator_alt *out)
{
    struct head_cand best[GENERATOR_MAX_ALTS];
    const double total = log_total(seq->row);
    for (size_t i = 0; i < seq->n_alts; i++)
        best[i] = (struct head_cand){-1, -INFINITY};
    for (size_t i = 0; i < seq->row->n; i++) {
        insert_best(best, seq->n_alts, seq->row->cands[i]);
        if (seq->row->cands[i].id == seq->chosen)
            out[seq->n_alts] = alt_of(seq->row->cands[i], total);
    }
    for (size_t i = 0; i < seq->n_alts; i++)
        out[i] = alt_of(best[i], total);
}

void generator_seq_replace(struct generator_seq *seq, int32_t id)
{
    seq->chosen = id;
}

/* ---- the generator and the sequence of the chat ---- */

/* Open the sequence of the chat, and keep the limit of saved states for later sequences. */
static bool open_chat_seq(struct generator *g, const struct bn_session_config *session,
                          struct bn_error *err)
{
    struct bn_session_config cfg = *session;
    if (cfg.state_memory == 0)
        cfg.state_memory = bn_model_state_memory(g->model);
    if (bn_model_info(g->model)->state_bytes > 0)
        g->state_memory = cfg.state_memory;
    return open_seq(g->model, &cfg, &g->seq, err);
}

/* If the reason is the file, put its path before the text of the error. */
static void name_file(const struct bn_file *file, struct bn_error *err)
{
    if (bn_file_path(file)[0] && (err->code == BN_EFORMAT || err->code == BN_EUNSUPPORTED))
        (void)bn_fail_prefix(err, "%s", bn_file_path(file));
}

bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg,
                    const struct bn_session_config *session, struct generator **out,
                    struct bn_error *err)
{
    struct generator *g = mem_alloc(1, sizeof(*g));
    if (!g)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_model_open(file, cfg, &g->model, err) || !open_chat_seq(g, session, err) ||
        !spec_open(&(struct spec_config){.session = g->seq->session,
                                         .sampler = g->seq->sampler,
                                         .n_vocab = bn_model_info(g->model)->n_vocab,
                                         .n_ubatch = bn_model_info(g->model)->n_ubatch},
                   &g->spec, err)) {
        name_file(file, err);
        generator_close(g);
        return false;
    }
    *out = g;
    return true;
}

void generator_close(struct generator *g)
{
    if (!g)
        return;
    spec_close(g->spec);
    generator_seq_close(g->seq);
    bn_model_close(g->model);
    mem_free(g);
}

const struct bn_model_info *generator_info(const struct generator *g)
{
    return bn_model_info(g->model);
}

size_t generator_n_ctx(const struct generator *g)
{
    return bn_session_n_ctx(g->seq->session);
}

size_t generator_state_memory(const struct generator *g)
{
    return g->state_memory;
}

size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes)
{
    return bn_model_explain(g->model, n_sequences, n_tokens, text, text_bytes);
}

uint64_t generator_bytes_read(const struct generator *g)
{
    return bn_model_bytes_read(g->model);
}

struct generator_peaks generator_measure(struct generator *g)
{
    return (struct generator_peaks){bn_model_bandwidth(g->model),
                                    bn_model_mac_peak(g->model, BN_MAC_INT8)};
}

bool generator_check(struct generator *g, const struct bn_file *file, const struct tokenizer *t,
                     struct bn_cancel *cancel, struct sense_result *out, struct bn_error *err)
{
    return sense_check(g->model, file, t, cancel, out, err);
}

bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err)
{
    spec_forget(g->spec);
    return generator_seq_set(g->seq, params, n_alts, err);
}

void generator_speculate(struct generator *g, enum spec_mode mode)
{
    if (mode != spec_mode_of(g->spec))
        spec_reset(g->spec, mode);
}

struct spec_stats generator_spec_stats(const struct generator *g)
{
    return spec_stats_of(g->spec);
}

bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err)
{
    if (g->seq->n_alts > 0 || spec_mode_of(g->spec) == SPEC_OFF)
        return generator_seq_step(g->seq, ids, n_ids, control, stats, next, err);
    return spec_step(g->spec, ids, n_ids, control, stats, next, err);
}

void generator_alts(const struct generator *g, struct generator_alt *out)
{
    generator_seq_alts(g->seq, out);
}

void generator_replace(struct generator *g, int32_t id)
{
    generator_seq_replace(g->seq, id);
}

const int32_t *generator_ids(const struct generator *g, size_t *n_ids)
{
    return bn_session_ids(g->seq->session, n_ids);
}

const char *generator_kv_version(const struct generator *g)
{
    return bn_session_kv_version(g->seq->session);
}

bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err)
{
    return bn_session_save(g->seq->session, out, err);
}

size_t generator_save_bytes(const struct generator *g)
{
    return bn_session_save_bytes(g->seq->session);
}

bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err)
{
    spec_forget(g->spec);
    return bn_session_load(g->seq->session, in, err);
}

size_t generator_truncate(struct generator *g, size_t n_keep)
{
    spec_forget(g->spec);
    return bn_session_truncate(g->seq->session, n_keep);
}

struct bn_state_stats generator_states(const struct generator *g)
{
    return generator_seq_states(g->seq);
}
