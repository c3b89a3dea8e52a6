/*
 * Speculation: several tokens for one pass over the weights, where the text repeats itself. PUBLIC.
 *
 * A draft is what followed the last tokens earlier in the context. It is evaluated together with
 * the last token, and accepted for as long as the sampler, with the random numbers of each
 * position, chooses the very token of the draft; the first choice that differs is kept and the rest
 * of the draft forgotten. So the ids are those without speculation, at any temperature and with any
 * penalties. Which steps draft is decided by spec_policy.h.
 *
 * The caller goes on as if there were none: each step it hands over all ids and gets the next. A
 * token that is known already costs nothing. Between steps the session may hold ids beyond those
 * the caller knows. Engine's thread only.
 */
#ifndef ENGINE_SPEC_H
#define ENGINE_SPEC_H

#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/spec_policy.h"

struct spec;

/* Drafts of another origin, for tests: as spec_draft. */
typedef size_t (*spec_draft_fn)(void *ud, const int32_t *ids, size_t n_ids, int32_t *out, size_t n);

struct spec_config {
    struct bn_session *session; /* both outlive the spec */
    struct sampler *sampler;
    size_t n_vocab;
    size_t n_ubatch; /* of the model */
    enum spec_mode mode;
    spec_draft_fn draft; /* NULL: the text itself */
    void *draft_ud;
    double (*now)(void); /* NULL: clock_seconds */
};
bool spec_open(const struct spec_config *cfg, struct spec **out,
               struct bn_error *err); /* BN_ENOMEM */
void spec_close(struct spec *sp);     /* NULL is fine */

/* Whenever the sampler's parameters change: what is known already was chosen with the old ones. */
void spec_forget(struct spec *sp);
/* The same, another mode, and nothing learned. */
void spec_reset(struct spec *sp, enum spec_mode mode);
enum spec_mode spec_mode_of(const struct spec *sp);

/* Make the session hold ids (n_ids >= 1), maybe more, and choose what follows them. Errors and
 * stats of bn_session_sync. */
bool spec_step(struct spec *sp, const int32_t *ids, size_t n_ids, const struct bn_control *control,
               struct bn_sync_stats *stats, int32_t *next, struct bn_error *err);

/* The row that the last step chose from. */
const struct head_row *spec_row(const struct spec *sp);

struct spec_stats {
    size_t n_drafted, n_accepted; /* tokens, since spec_open */
};
struct spec_stats spec_stats_of(const struct spec *sp);

#endif
