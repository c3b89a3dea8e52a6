/*
 * Speculative decoding: evaluates several tokens per pass where the text repeats. Public header.
 *
 * A draft is the text that followed an earlier occurrence of the last tokens. spec_step evaluates
 * the draft together with the last token, and the sampler chooses the token of each position with
 * the random numbers of that position. Draft tokens are accepted up to the first one that differs
 * from the sampler's choice. So the ids are the same as without speculation, at every temperature
 * and with every penalty.
 *
 * The caller passes all ids at each step and receives the next one, as without speculation. If the
 * sampler has already chosen the next token while it checked an earlier draft, the step evaluates
 * nothing. After a step the session may hold more ids than the caller passed: accepted draft tokens
 * that later steps will return. With recurrent states or rings it may hold fewer, because it could
 * return only to an earlier length.
 *
 * All calls must come from the thread of the engine, see engine.h.
 */
#ifndef ENGINE_SPEC_H
#define ENGINE_SPEC_H

#include "engine/engine.h"
#include "engine/sampler/sampler.h"

struct spec;

enum spec_mode {
    SPEC_OFF,
    SPEC_ON,  /* draft after every match of two tokens or more, even if that is slower, as soon as
                 the time of a single token was measured */
    SPEC_AUTO /* draft if the expected gain is above 10 %, and limit the time that drafts lose */
};

/* Source of drafts. Writes to out the n ids that probably follow the n_ids ids. Returns the number
 * of last ids that matched an earlier place, or 0 for no draft; then out may stay unwritten. n may
 * be 0. */
typedef size_t (*spec_draft_fn)(void *ud, const int32_t *ids, size_t n_ids, int32_t *out, size_t n);

struct spec_config {
    struct bn_session *session; /* session and sampler must outlive struct spec */
    struct sampler *sampler;
    size_t n_vocab;
    size_t n_ubatch; /* bn_model_info.n_ubatch */
    enum spec_mode mode;
    spec_draft_fn draft; /* for tests; NULL: drafts come from the text itself */
    void *draft_ud;
    double (*now)(void); /* current time in seconds, for tests; NULL: the monotonic clock */
};

/* *cfg is copied. BN_ENOMEM. */
bool spec_open(const struct spec_config *cfg, struct spec **out, struct bn_error *err);
void spec_close(struct spec *sp); /* sp may be NULL */

/* Drop the tokens that the sampler has chosen in advance while it checked a draft. Call this after
 * every change of the sampler's parameters, because those tokens were chosen with the old ones. */
void spec_forget(struct spec *sp);

/* Call spec_forget, drop all measured times and success rates, and set the mode. */
void spec_reset(struct spec *sp, enum spec_mode mode);
enum spec_mode spec_mode_of(const struct spec *sp);

/* Extend or cut the session for `ids` (n_ids >= 1) and write the id that follows them to *next.
 * stats may be NULL. Errors are those of bn_session_sync; after an error the caller may repeat the
 * step. */
bool spec_step(struct spec *sp, const int32_t *ids, size_t n_ids, const struct bn_control *control,
               struct bn_sync_stats *stats, int32_t *next, struct bn_error *err);

/* The candidates from which the last successful spec_step chose; none before the first. Valid until
 * the next spec_step. */
const struct head_row *spec_row(const struct spec *sp);

struct spec_stats {
    size_t n_drafted, n_accepted; /* tokens since spec_open */
};
struct spec_stats spec_stats_of(const struct spec *sp);

#endif
