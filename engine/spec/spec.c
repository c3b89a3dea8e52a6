/*
 * Evaluates drafts, accepts the tokens that the sampler confirms, and returns them one per step.
 *
 * After a draft the session holds the accepted tokens, and the steps that return them evaluate
 * nothing. A session with recurrent states cannot drop only the wrong tokens of a draft: it returns
 * to the length before the pass. The next pass then evaluates the right tokens of that pass again,
 * together with the next token. This is cheaper than a separate pass for the right tokens, because
 * several tokens in a pass cost little more than one. The policy counts the time as lost by the
 * draft.
 */
#include "engine/spec/spec.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/spec/spec_policy.h"

#include <string.h>

#define N_ROWS (SPEC_MAX_DRAFT + 1)

struct spec {
    struct spec_config cfg;
    struct spec_policy policy;
    struct spec_stats stats;
    size_t n_ctx;
    struct mem_map map;           /* memory of rows and ids; the system provides pages when used */
    int32_t *ids;                 /* (n_ctx) ids of the last pass, followed by its draft */
    struct head_row rows[N_ROWS]; /* with n_vocab candidates each */
    int32_t chosen[N_ROWS];       /* chosen[i] is the choice after the first n_first + i of ids */
    size_t n_chosen, n_first;     /* entries of `chosen`; number of ids before chosen[0] */
    /* n_lost: right ids that the session lost after the last draft, because it could return only to
     * the length n_back. They are ids[n_back ..]. */
    size_t n_back, n_lost;
    size_t row; /* index of the row of the last step */
};

static size_t draft_from_text(void *ud, const int32_t *ids, size_t n_ids, int32_t *out, size_t n)
{
    (void)ud;
    return spec_policy_find(ids, n_ids, out, n);
}

bool spec_open(const struct spec_config *cfg, struct spec **out, struct bn_error *err)
{
    const size_t n_ctx = bn_session_n_ctx(cfg->session);
    size_t row_bytes, id_bytes, n_bytes;
    struct spec *sp = mem_alloc(1, sizeof(*sp));
    if (!sp)
        return bn_fail(err, BN_ENOMEM, "no memory for speculative decoding");
    if (!size_mul3(&row_bytes, cfg->n_vocab, sizeof(struct head_cand), N_ROWS) ||
        !size_mul(&id_bytes, n_ctx, sizeof(int32_t)) || !size_add(&n_bytes, row_bytes, id_bytes) ||
        !mem_map_open(&sp->map, n_bytes, MEM_PAGES_NORMAL)) {
        spec_close(sp);
        return bn_fail(err, BN_ENOMEM, "no memory to verify drafts of %d tokens", SPEC_MAX_DRAFT);
    }
    struct head_cand *cands = sp->map.ptr;
    for (size_t i = 0; i < N_ROWS; i++)
        sp->rows[i] = (struct head_row){.cands = cands + i * cfg->n_vocab, .cap = cfg->n_vocab};
    /* Aligned, because the members of head_cand have 4 bytes. */
    sp->ids = (int32_t *)(void *)(cands + N_ROWS * cfg->n_vocab);
    sp->cfg = *cfg;
    sp->n_ctx = n_ctx;
    if (!cfg->draft)
        sp->cfg.draft = draft_from_text;
    if (!cfg->now)
        sp->cfg.now = clock_seconds;
    spec_policy_init(&sp->policy, cfg->mode);
    *out = sp;
    return true;
}

void spec_close(struct spec *sp)
{
    if (!sp)
        return;
    mem_map_close(&sp->map);
    mem_free(sp);
}

void spec_forget(struct spec *sp)
{
    sp->n_chosen = 0;
}

void spec_reset(struct spec *sp, enum spec_mode mode)
{
    spec_forget(sp);
    /* step_plain then evaluates the lost ids. In step_pass they would count as a loss by drafts,
     * and the new policy cannot compute a loss before it knows the time of a pass of one token. */
    sp->n_lost = 0;
    spec_policy_init(&sp->policy, mode);
}

enum spec_mode spec_mode_of(const struct spec *sp)
{
    return sp->policy.mode;
}

const struct head_row *spec_row(const struct spec *sp)
{
    return &sp->rows[sp->row];
}

struct spec_stats spec_stats_of(const struct spec *sp)
{
    return sp->stats;
}

/* Set *next if an earlier step has already chosen the next id: the same step, or one whose draft
 * confirmed the last of `ids`. */
static bool find_chosen(struct spec *sp, const int32_t *ids, size_t n_ids, int32_t *next)
{
    if (n_ids < sp->n_first || n_ids - sp->n_first >= sp->n_chosen ||
        memcmp(sp->ids, ids, n_ids * sizeof(*ids)) != 0)
        return false;
    sp->row = n_ids - sp->n_first;
    *next = sp->chosen[sp->row];
    return true;
}

/* Number of ids at the end of `ids` that the session lacks: 1 in a step of decoding, n_lost more if
 * the last draft took the session back. 0 in all other cases, as for a new prompt. Call it before
 * sp->ids changes. */
static size_t count_pending(const struct spec *sp, const int32_t *ids, size_t n_ids)
{
    size_t n_held;
    const int32_t *held = bn_session_ids(sp->cfg.session, &n_held);
    if (n_ids > sp->n_ctx || n_held >= n_ids || memcmp(held, ids, n_held * sizeof(*ids)) != 0)
        return 0;
    const size_t n = n_ids - n_held;
    /* Many ids, or more than a micro-batch, are left to step_plain. */
    const bool is_back = sp->n_lost > 0 && n_held == sp->n_back && n == sp->n_lost + 1 &&
                         n <= N_ROWS && n <= sp->cfg.n_ubatch &&
                         memcmp(sp->ids + n_held, ids + n_held, sp->n_lost * sizeof(*ids)) == 0;
    return n == 1 || is_back ? n : 0;
}

/* A step without a draft: one token, or a whole prompt. */
static bool step_plain(struct spec *sp, const int32_t *ids, size_t n_ids,
                       const struct bn_control *control, struct bn_sync_stats *stats,
                       struct bn_error *err)
{
    struct head_request head;
    struct bn_sync_stats own;
    const double start = sp->cfg.now();
    sampler_request_draft(sp->cfg.sampler, ids, n_ids, 0, &head);
    if (!bn_session_sync(sp->cfg.session, ids, n_ids, &head, sp->rows, control, &own, err))
        return false;
    sp->chosen[0] = sampler_pick(sp->cfg.sampler, sp->rows, ids, n_ids);
    sp->n_chosen = 1;
    sp->n_first = n_ids;
    if (own.n_evaluated == 1) /* the policy needs the time of one token, not of prompts */
        spec_policy_pass(&sp->policy, 1, 0, 0, sp->cfg.now() - start);
    if (stats)
        *stats = own;
    return true;
}

/* The tokens of a pass: the last n_pending of the n_ids ids in sp->ids, and the n_draft draft
 * tokens behind them. */
struct spec_pass {
    size_t n_ids, n_pending, n_draft;
    size_t n_match; /* length of the match that the draft continues */
};

/* Evaluate the pass and remove the wrong draft tokens from the session. n_draft can be 0, if
 * several tokens are pending. */
static bool step_pass(struct spec *sp, const struct spec_pass *pass,
                      const struct bn_control *control, struct bn_sync_stats *stats,
                      struct bn_error *err)
{
    const size_t n_ids = pass->n_ids, n_draft = pass->n_draft, n_held = n_ids - pass->n_pending;
    struct head_request head;
    const double start = sp->cfg.now();
    size_t n = 0; /* number of chosen ids */
    sampler_request_draft(sp->cfg.sampler, sp->ids, n_ids + n_draft, n_draft, &head);
    if (!bn_session_eval(sp->cfg.session, sp->ids + n_held, pass->n_pending + n_draft, &head,
                         sp->rows, 1 + n_draft, control, err))
        return false;
    /* Row n follows n right draft tokens. The loop ends after the first wrong draft token, or after
     * the row behind the whole draft. Then n ids are chosen, and n - 1 draft tokens were right. */
    for (bool is_right = true; is_right && n <= n_draft; n++) {
        const int32_t id = sampler_pick(sp->cfg.sampler, &sp->rows[n], sp->ids, n_ids + n);
        is_right = n < n_draft && id == sp->ids[n_ids + n];
        sp->chosen[n] = id;
        if (n < n_draft)
            spec_policy_trial(&sp->policy, pass->n_match + n, is_right);
    }
    sp->n_chosen = n;
    sp->n_first = n_ids;
    sp->n_back = bn_session_truncate(sp->cfg.session, n_ids + n - 1);
    sp->n_lost = n_ids + n - 1 - sp->n_back;
    spec_policy_pass(&sp->policy, pass->n_pending, n_draft, n - 1, sp->cfg.now() - start);
    sp->stats.n_drafted += n_draft;
    sp->stats.n_accepted += n - 1;
    if (stats)
        *stats = (struct bn_sync_stats){.n_reused = n_held,
                                        .n_evaluated = pass->n_pending + n_draft,
                                        .n_reevaluated = pass->n_pending - 1};
    return true;
}

bool spec_step(struct spec *sp, const int32_t *ids, size_t n_ids, const struct bn_control *control,
               struct bn_sync_stats *stats, int32_t *next, struct bn_error *err)
{
    struct spec_pass pass = {.n_ids = n_ids};
    if (find_chosen(sp, ids, n_ids, next)) {
        if (stats)
            *stats = (struct bn_sync_stats){.n_reused = n_ids};
        return true;
    }
    pass.n_pending = count_pending(sp, ids, n_ids);
    spec_forget(sp);
    if (n_ids <= sp->n_ctx) /* otherwise bn_session_sync fails */
        memcpy(sp->ids, ids, n_ids * sizeof(*ids));
    if (pass.n_pending > 0 && sp->policy.mode != SPEC_OFF) {
        const size_t n_free = size_min(sp->n_ctx - n_ids, sp->cfg.n_ubatch - pass.n_pending);
        const size_t n_max = size_min(n_free, SPEC_MAX_DRAFT);
        pass.n_match = sp->cfg.draft(sp->cfg.draft_ud, ids, n_ids, sp->ids + n_ids, n_max);
        pass.n_draft = spec_policy_choose(&sp->policy, pass.n_match, n_max);
        pass.n_match = n_max > 0 ? pass.n_match : 0; /* no draft token to compare with */
    }
    const bool ok = pass.n_draft > 0 || pass.n_pending > 1
                        ? step_pass(sp, &pass, control, stats, err)
                        : step_plain(sp, ids, n_ids, control, stats, err);
    if (!ok)
        return false;
    if (pass.n_draft == 0)
        spec_policy_trial(&sp->policy, pass.n_match,
                          pass.n_match > 0 && sp->chosen[0] == sp->ids[n_ids]);
    sp->row = 0;
    *next = sp->chosen[0];
    return true;
}
