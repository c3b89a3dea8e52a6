/*
 * Settings and memory of a turn: see turn.h.
 */
#include "app/chat/turn.h"

#include "app/options/chat_options.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void turn_finish(struct turn *turn)
{
    strbuf_finish(&turn->text);
    strbuf_finish(&turn->shown);
    strbuf_finish(&turn->thought);
    token_list_finish(&turn->ids);
    mem_free(turn->alts);
    *turn = (struct turn){0};
}

static uint64_t draw_seed(void)
{
    uint32_t seed = 0; /* 32 bits, so that a user can copy it by hand */
    FILE *f = fopen("/dev/urandom", "rb");
    if (!f || fread(&seed, sizeof(seed), 1, f) != 1)
        /* The low 32 bits. A direct conversion is undefined if the value needs more than 32. */
        seed = (uint32_t)(uint64_t)(clock_seconds() * 1e6);
    if (f)
        (void)fclose(f); /* opened for reading: nothing can be lost */
    return seed;
}

void turn_settings(struct turn *turn, const struct options *o)
{
    chat_options_sampler(o, &turn->sampler);
    if (!options_given(o, "seed"))
        turn->sampler.seed = draw_seed();
    turn->max_tokens = (size_t)options_int(o, "max-tokens");
    turn->think_budget = chat_options_think_budget(o);
}

/* A micro-batch with fewer tokens than the largest, divided by this number, counts together with
 * its neighbours: a token of a small one costs far more. The engine ends micro-batches early where
 * it saves a state. */
#define SMALL_PASS 4

void turn_prefilled(struct turn *turn, const struct answer_prefill *report)
{
    struct prefill_sums *s = &turn->prefill_sums;
    const double n_all = (double)report->n_evaluated;
    if (n_all - s->n > SMALL_PASS * s->n_largest)
        *s = (struct prefill_sums){.n_largest = n_all}; /* the passes so far are small */
    const double n = n_all - s->n;
    if (n > 0 && n * SMALL_PASS >= s->n_largest) {
        const double m = n_all - n / 2, t = report->evaluated_at - report->begun - s->t;
        s->n_passes++;
        s->n += n;
        s->nm += n * m;
        s->nmm += n * m * m;
        s->t += t;
        s->tm += t * m;
        s->tt += t * t / n;
        s->n_largest = fmax(s->n_largest, n);
    }
    turn->prefill = *report;
}

/* The growth of the cost of a token per token before it: the least-squares fit to the seconds per
 * token of the passes, weighted by their tokens, less three standard errors. A long prompt
 * multiplies an error of this number by hundreds, and only errors upwards have an effect, because
 * costs do not fall. With fewer than eight passes even the standard error is too rough: 0. */
static double sure_growth(const struct prefill_sums *s)
{
    if (s->n_passes < 8)
        return 0;
    /* Sums of squares and products around the means. */
    const double mm = s->nmm - s->nm * s->nm / s->n, my = s->tm - s->nm * s->t / s->n;
    const double yy = s->tt - s->t * s->t / s->n;
    const double residual = fmax(yy - my * my / mm, 0);
    return fmax(my / mm - 3 * sqrt(residual / ((double)(s->n_passes - 2) * mm)), 0);
}

/* Seconds for the tokens that were not done at the last report. Attention reads all earlier
 * positions, so token m costs a + b * m; neither is negative. A part of a micro-batch is not in the
 * fit, because its time varies more. But before the first micro-batch has ended, the mean cost of
 * its part is all that is known. */
static double seconds_of_rest(const struct turn *turn)
{
    const struct prefill_sums *s = &turn->prefill_sums;
    const struct answer_prefill *p = &turn->prefill;
    const double done = (double)p->n_done, all = (double)p->n_total;
    if (p->n_evaluated == 0)
        return (p->done_at - p->begun) / done * (all - done);
    double b = sure_growth(s);
    const double a = fmax((s->t - b * s->nm) / s->n, 0);
    if (a == 0)
        b = s->tm / s->nmm;
    /* A machine that gets slower for a moment looks like growing costs. Growth alone is a factor of
     * four when a third of the prompt is done. */
    return fmin(a * (all - done) + b * (all * all - done * done) / 2,
                4 * s->t / s->n * (all - done));
}

double turn_seconds_left(const struct turn *turn, double now)
{
    const struct answer_prefill *p = &turn->prefill;
    if (p->n_done == 0 || p->n_total <= p->n_done || p->done_at - p->begun < 0.5)
        return 0;
    /* The time falls between two reports. The rest may take longer than the estimate; until it
     * ends, a second is left. */
    return fmax(seconds_of_rest(turn) - (now - p->done_at), 1);
}

size_t turn_reevaluated(const struct turn *turn)
{
    const struct answer_result *r = &turn->result;
    /* An interrupted prefill has evaluated only a part of the earlier turns. */
    const size_t n = size_min(size_min(turn->n_earlier, r->n_held), r->n_reused + r->n_evaluated);
    /* With saved states, n_reevaluated is larger if the cache also held the question itself, as
     * after /retry. It is 0 for models that need no saved states. */
    return size_max(n > r->n_reused ? n - r->n_reused : 0, r->n_reevaluated);
}

size_t turn_reserve(const struct turn *turn, size_t n_ctx)
{
    return turn->max_tokens > 0 ? size_min(turn->max_tokens, n_ctx / 8) : n_ctx / 8;
}

bool turn_added_nothing(const struct turn *turn)
{
    return turn->mode == PROMPT_CONTINUE && turn->finish == FINISH_STOP && turn->n_tokens == 0;
}

bool turn_is_complete(const struct turn *turn)
{
    return !turn->lost_token && turn->n_failed_before == strbuf_n_failed();
}

void turn_add_part(struct turn *turn, enum answer_part part, struct bn_str text)
{
    strbuf_add_str(part == PART_THOUGHT ? &turn->thought : &turn->shown, text);
}

const struct generator_alt *turn_alts(const struct turn *turn, size_t i)
{
    return turn->alts + i * (turn->n_alts + 1);
}

bool turn_add_alts(struct turn *turn, const struct generator_alt *row)
{
    const size_t n_row = turn->n_alts + 1;
    if (turn->n_alts == 0)
        return true;
    if (!mem_grow(&turn->alts, &turn->cap_alts, (turn->n_alt_tokens + 1) * n_row,
                  sizeof(*turn->alts)))
        return false;
    memcpy(turn->alts + turn->n_alt_tokens * n_row, row, n_row * sizeof(*row));
    turn->n_alt_tokens++;
    return true;
}
