/*
 * One line of a batch: see batch_item.h.
 */
#include "app/batch/batch_item.h"

#include "app/batch/batch_out.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdio.h>

void batch_item_finish(struct batch_item *item)
{
    json_decref(item->id);
    strbuf_finish(&item->prompt);
    strbuf_finish(&item->system);
    strbuf_finish(&item->events);
    turn_finish(&item->turn);
    thought_finish(&item->thought);
    answer_state_finish(&item->answer);
    *item = (struct batch_item){0};
}

/* ---- the request ---- */

/* get_text and get_number leave *out unchanged if the object has no such member. */
static bool get_text(const json_t *o, const char *key, struct strbuf *out, struct bn_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return true;
    if (!json_is_string(v))
        return bn_fail(err, BN_EARG, "\"%s\" is not a string", key);
    strbuf_cut(out, 0);
    strbuf_add(out, json_string_value(v), json_string_length(v));
    return true;
}

static bool get_number(const json_t *o, const char *key, double max, double *out,
                       struct bn_error *err)
{
    const json_t *v = json_object_get(o, key);
    if (!v)
        return true;
    if (!json_is_number(v) || !(json_number_value(v) >= 0) || json_number_value(v) > max)
        return bn_fail(err, BN_EARG, "\"%s\" is not a number from 0 to %.0f", key, max);
    *out = json_number_value(v);
    return true;
}

static bool get_whole(const json_t *o, const char *key, double max, double *out,
                      struct bn_error *err)
{
    if (!get_number(o, key, max, out, err))
        return false;
    return trunc(*out) == *out || bn_fail(err, BN_EARG, "\"%s\" is not a whole number", key);
}

static bool check_keys(json_t *o, struct bn_error *err)
{
    static const char *const known[] = {"id",   "prompt", "system", "max_tokens", "think_budget",
                                        "seed", "temp",   "top_k",  "top_p",      "min_p"};
    const size_t n_known = sizeof(known) / sizeof(known[0]);
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        size_t i = 0;
        while (i < n_known && strcmp(key, known[i]) != 0)
            i++;
        if (i == n_known)
            return bn_fail(err, BN_EARG,
                           "unknown member \"%.20s\"; the members are id prompt system max_tokens "
                           "think_budget seed temp top_k top_p min_p",
                           key);
    }
    return true;
}

static bool read_object(struct batch_item *item, json_t *o, struct bn_error *err)
{
    struct sampler_params *p = &item->turn.sampler;
    const bool has_budget = json_object_get(o, "think_budget") != NULL;
    double max_tokens = (double)item->turn.max_tokens, think_budget = 0, seed = (double)p->seed,
           temp = p->temp, top_k = p->top_k, top_p = p->top_p, min_p = p->min_p;
    item->id = json_incref(json_object_get(o, "id")); /* first: an error is reported with the id */
    /* The largest values are those of the options, except for think_budget and seed. A top_p of 0
     * is an error of batch_item_begin. */
    if (!check_keys(o, err) || !get_text(o, "prompt", &item->prompt, err) ||
        !get_text(o, "system", &item->system, err) ||
        !get_whole(o, "max_tokens", INT32_MAX, &max_tokens, err) ||
        !get_whole(o, "think_budget", INT32_MAX, &think_budget, err) ||
        !get_whole(o, "seed", 9007199254740992.0, &seed, err) || /* 2^53: exact in a double */
        !get_number(o, "temp", 100, &temp, err) || !get_whole(o, "top_k", 1000000, &top_k, err) ||
        !get_number(o, "top_p", 1, &top_p, err) || !get_number(o, "min_p", 1, &min_p, err))
        return false;
    if (strspn(strbuf_text(&item->prompt), " \t\r\n") == item->prompt.n_bytes)
        return bn_fail(err, BN_EARG, "the object has no \"prompt\", or an empty one");
    item->turn.max_tokens = (size_t)max_tokens;
    /* A double may not hold the values that the options gave these two, so they change only if the
     * object has the member. */
    if (has_budget)
        item->turn.think_budget = (size_t)think_budget;
    if (json_object_get(o, "seed"))
        p->seed = (uint64_t)seed;
    p->temp = (float)temp;
    p->top_k = (int32_t)top_k;
    p->top_p = (float)top_p;
    p->min_p = (float)min_p;
    return true;
}

bool batch_item_parse(struct batch_item *item, struct bn_str line, size_t *bad_at,
                      struct bn_error *err)
{
    struct strbuf clean = {0};
    json_error_t where;
    *bad_at = SIZE_MAX;
    if (!input_clean("the line", line, &clean, bad_at, err)) {
        strbuf_finish(&clean);
        return false;
    }
    const char *text = strbuf_text(&clean);
    if (text[strspn(text, " \t")] != '{') {
        item->prompt = clean;
        return true;
    }
    json_t *o = json_loadb(clean.ptr, clean.n_bytes, JSON_REJECT_DUPLICATES, &where);
    strbuf_finish(&clean);
    if (!o) {
        json_correct_error(&where);
        return bn_fail(err, BN_EARG, "not JSON, column %d: %s", where.column, where.text);
    }
    const bool ok = read_object(item, o, err);
    json_decref(o);
    return ok;
}

/* ---- the answer ---- */

/* Set item->answer.ids to the prompt, and prepare for thoughts in the answer. */
static bool encode(struct batch_item *item, const struct prompt_maker *m, struct bn_error *err)
{
    struct transcript t = {0};
    struct prompt p = {0};
    const struct prompt_window all = {.mode = PROMPT_ANSWER}; /* n_skipped is 0: all turns */
    bool ok =
        (transcript_add_question(&t, strbuf_str(&item->prompt)) &&
         (item->system.n_bytes == 0 || transcript_set_system(&t, strbuf_str(&item->system)))) ||
        bn_fail(err, BN_ENOMEM, "out of memory for a prompt");
    ok = ok && prompt_encode(m, &t.now, &all, &p, err);
    if (ok) {
        const struct think_limit limit = {.mode = prompt_thought_mode(m, &p),
                                          .n_budget = item->turn.think_budget,
                                          .close = item->close->ids,
                                          .n_close = item->close->n};
        thought_init(&item->thought, limit.mode);
        think_watch_init(&item->answer.think, &limit);
        item->answer.ids = p.ids; /* the item owns the list now */
        item->prompt_facts = p;
        item->prompt_facts.ids = (struct token_list){0};
    }
    transcript_finish(&t);
    return ok;
}

bool batch_item_begin(struct batch_item *item, const struct prompt_maker *maker, size_t n_ctx,
                      const struct bn_control *control, struct bn_error *err)
{
    struct turn *turn = &item->turn;
    struct detok_config detok = {.at_start = true};
    struct bn_sync_stats stats = {0};
    detok.stops = options_list(maker->options, "stop", &detok.n_stops);
    if (!encode(item, maker, err))
        return false;
    item->answer.tokenizer = maker->tokenizer;
    item->answer.max_tokens = turn->max_tokens;
    item->answer.n_ctx = n_ctx;
    const size_t reserve = turn_reserve(turn, n_ctx);
    if (item->answer.ids.n == 0)
        return bn_fail(err, BN_EARG, "the prompt is empty: no tokens");
    if (item->answer.ids.n > n_ctx - reserve)
        return prompt_fail_context("the prompt", item->answer.ids.n, reserve, n_ctx, err);
    if (!detok_open(maker->tokenizer, &detok, &item->answer.detok, err) ||
        !generator_seq_set(item->seq, &turn->sampler, item->turn.n_alts, err))
        return false;
    item->started = clock_seconds();
    turn->n_prompt = turn->result.n_prompt = item->answer.ids.n;
    if (!generator_seq_step(item->seq, item->answer.ids.ids, item->answer.ids.n, control, &stats,
                            &item->next, err))
        return false;
    turn->result.n_reused = stats.n_reused;
    turn->result.n_evaluated = stats.n_evaluated;
    turn->result.n_reevaluated = stats.n_reevaluated;
    turn->result.states = generator_seq_states(item->seq);
    turn->result.prefill_s = clock_seconds() - item->started;
    return true;
}

static void feed(struct batch_item *item, struct bn_str text)
{
    strbuf_add_str(&item->turn.text, text);
    thought_feed(&item->thought, text, batch_out_text, item);
}

static void add_alts(struct batch_item *item)
{
    struct generator_alt alts[GENERATOR_MAX_ALTS + 1]; /* the last one is the chosen id */
    if (item->turn.n_alts == 0)
        return;
    generator_seq_alts(item->seq, alts);
    item->turn.lost_token |= !turn_add_alts(&item->turn, alts);
}

/* End the answer with turn.finish as the reason. After a stop string detok holds back no text.
 * detok is NULL if batch_item_begin failed before it opened one, or was not called. */
static void end(struct batch_item *item)
{
    struct turn *turn = &item->turn;
    if (item->answer.detok)
        feed(item, detok_flush(item->answer.detok));
    thought_end(&item->thought, batch_out_text, item);
    turn->result.finish = turn->finish;
    turn->result.gaps = gap_times_percentiles(&item->gaps);
    turn->result.n_tokens = turn->n_tokens;
    turn->result.n_first = size_min(turn->n_tokens, 1); /* --batch does not speculate */
    turn->result.n_thought = item->answer.think.n_thought;
    turn->result.is_thought_cut = item->answer.think.is_cut;
    item->is_done = true;
}

bool batch_item_add(struct batch_item *item, struct bn_error *err)
{
    struct turn *turn = &item->turn;
    struct bn_str text;
    if (think_watch_next(&item->answer.think, &item->next))
        generator_seq_replace(item->seq, item->next);
    if (!answer_state_add(&item->answer, item->next, &text, err))
        return false;
    if (item->answer.n_tokens > turn->n_tokens) { /* not for an end token */
        turn->n_tokens++;
        add_alts(item);
        feed(item, text);
        const double now = clock_seconds() - item->started;
        if (turn->n_tokens == 1)
            turn->result.first_token_s = now;
        else
            gap_times_add(&item->gaps, now - turn->result.first_token_s - turn->result.decode_s);
        turn->result.decode_s = now - turn->result.first_token_s;
    }
    turn->finish = item->answer.finish;
    if (turn->finish != FINISH_NONE)
        end(item);
    /* turn->n_failed_before is 0, so this fails if any text of the program has run out of memory so
     * far, for example the prompt. */
    if (turn_is_complete(turn))
        return true;
    item->is_done = false; /* the caller reports the error with this answer */
    return bn_fail(err, BN_ENOMEM, "out of memory for the answer to line %zu", item->line);
}

void batch_item_stop(struct batch_item *item)
{
    item->turn.finish = FINISH_INTERRUPTED;
    end(item);
}
