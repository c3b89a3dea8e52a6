/*
 * Numbers of a turn as a line, a sentence, JSON, and a status row: see turn_report.h.
 */
#include "app/chat/turn_report.h"

#include "app/common/json_out.h"
#include "engine/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the line of numbers, in its order; each with how soon it is left out. */
enum stats_part {
    STATS_TOKENS,
    STATS_RATE,
    STATS_FIRST,
    STATS_PROMPT,
    STATS_PROMPT_RATE,
    STATS_KEPT,
    STATS_CONTEXT,
    STATS_SEED,
    STATS_N,
};
static const unsigned char stats_leaving[] = {STATS_KEPT,  STATS_PROMPT_RATE, STATS_PROMPT,
                                              STATS_FIRST, STATS_SEED,        STATS_RATE};

struct stats_parts {
    char text[STATS_N][48]; /* "": not there; with what goes before it */
};

static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
    BN_PRINTF(3, 4);
static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->text[part], sizeof(p->text[part]), fmt, args); /* two numbers: fits */
    va_end(args);
}

static size_t stats_width(const struct stats_parts *p)
{
    size_t n = 2; /* the brackets */
    for (size_t i = 0; i < STATS_N; i++)
        n += strlen(p->text[i]);
    return n;
}

void turn_stats_line(const struct turn *turn, const struct turn_room *room, struct strbuf *out)
{
    const struct answer_result *r = &turn->result;
    const double decode = answer_decode_rate(r), prefill = answer_prefill_rate(r);
    struct stats_parts p = {0};
    stats_part(&p, STATS_TOKENS, "%zu tok", r->n_tokens);
    if (r->n_tokens >= 3)
        stats_part(&p, STATS_RATE, ", %.1f tok/s", decode);
    if (r->n_tokens > 0)
        stats_part(&p, STATS_FIRST, ", first token %.2f s", r->first_token_s);
    stats_part(&p, STATS_PROMPT, ", prompt %zu tok", r->n_evaluated);
    if (prefill > 0)
        stats_part(&p, STATS_PROMPT_RATE, " %.0f tok/s", prefill);
    if (r->n_reused > 0)
        stats_part(&p, STATS_KEPT, ", %zu kept", r->n_reused);
    stats_part(&p, STATS_CONTEXT, ", ctx %zu/%zu", room->n_used, room->n_ctx);
    if (turn->sampler.temp > 0)
        stats_part(&p, STATS_SEED, ", seed %llu", (unsigned long long)turn->sampler.seed);
    for (size_t i = 0; i < sizeof(stats_leaving) && stats_width(&p) > room->columns; i++)
        p.text[stats_leaving[i]][0] = 0;
    strbuf_add_char(out, '[');
    for (size_t i = 0; i < STATS_N; i++)
        strbuf_add_text(out, p.text[i]);
    strbuf_add_char(out, ']');
}

static void add_share(struct strbuf *out, double rate, double peak, const char *unit)
{
    if (peak > 0)
        strbuf_addf(out, ", %.0f %% of the %.1f %s this device can do", 100 * rate / peak,
                    peak / 1e9, unit);
    strbuf_add_char(out, '\n');
}

void turn_speed_lines(const struct chat *c, struct strbuf *out)
{
    const struct answer_result *r = &c->turn.result;
    const struct bn_model_info *info = worker_info(c->worker);
    const double bytes = answer_decode_bytes(r), read_rate = bytes * answer_decode_rate(r);
    const double mac_rate = answer_prefill_rate(r) * (info ? info->macs_per_token : 0);
    if (read_rate > 0) {
        strbuf_addf(out, "reads       %.1f MB a token, %.1f GB/s", bytes / 1e6, read_rate / 1e9);
        add_share(out, read_rate, c->peaks.read_bytes_per_s, "GB/s");
    }
    if (mac_rate > 0) {
        strbuf_addf(out, "multiplies  %.1f GMAC/s in the prompt", mac_rate / 1e9);
        add_share(out, mac_rate, c->peaks.macs_per_s, "GMAC/s");
    }
}

const char *turn_end_notice(const struct turn *turn)
{
    static const char *const notices[FINISH_N] = {
        [FINISH_LENGTH] = "the answer has reached --max-tokens; /continue goes on",
        [FINISH_INTERRUPTED] = "stopped",
        [FINISH_CONTEXT] = "the context is full; /forget makes room, then /continue goes on",
        [FINISH_DEGENERATE] =
            "output degenerated (same token); try another seed, or the quantisation "
            "may not suit this CPU",
    };
    if (turn->mode == PROMPT_CONTINUE && turn->finish == FINISH_STOP && turn->n_tokens == 0)
        return "the model has nothing to add";
    return notices[turn->finish];
}

const char *turn_fail_notice(const struct bn_error *err, const char *kept_in)
{
    if (err->code == BN_ECONTEXT)
        return "/forget, /clear or a larger --ctx make room";
    if (err->code != BN_ELOST)
        return NULL;
    return kept_in[0] ? "what was said is kept: leave, then start again with --continue (or with "
                        "--device cpu)"
                      : "/save NAME keeps what was said: then leave, and start again with "
                        "--session NAME";
}

void turn_drop_notice(const struct turn *turn, struct strbuf *out)
{
    if (turn->n_dropped > 0)
        strbuf_addf(out, "context: dropped %zu oldest turn%s (%zu tok), re-reading %zu tok",
                    turn->n_dropped, turn->n_dropped == 1 ? "" : "s", turn->n_dropped_tokens,
                    turn->n_prompt);
}

/* A float as the decimal number it was given as: 0.7, not 0.699999988. */
static double as_given(float x)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.6g", (double)x); /* fits */
    return strtod(text, NULL);
}

static json_t *settings_json(const struct turn *turn)
{
    const struct sampler_params *p = &turn->sampler;
    json_t *o = json_object();
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"temp", as_given(p->temp)},
        {"top_k", p->top_k},
        {"top_p", as_given(p->top_p)},
        {"min_p", as_given(p->min_p)},
        {"typical", as_given(p->typical)},
        {"repeat_penalty", as_given(p->repeat_penalty)},
        {"presence_penalty", as_given(p->presence_penalty)},
        {"frequency_penalty", as_given(p->frequency_penalty)},
        {"repeat_last_n", p->repeat_last_n},
        {"max_tokens", (double)turn->max_tokens},
    };
    bool ok = o != NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const json_int_t whole = (json_int_t)rows[i].value;
        ok = ok && json_out_add(o, rows[i].name,
                                (double)whole == rows[i].value ? json_integer(whole)
                                                               : json_real(rows[i].value));
    }
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *alt_json(const struct tokenizer *t, struct generator_alt alt)
{
    json_t *o = json_object();
    if (o && json_out_add(o, "id", json_integer(alt.id)) &&
        json_out_add(o, "text", json_out_text(tokenizer_token_text(t, alt.id))) &&
        json_out_add(o, "logprob", json_real((double)alt.logprob)))
        return o;
    json_decref(o);
    return NULL;
}

/* One entry a token: the chosen one, and "top", the best alternatives. */
static json_t *logprobs_json(const struct tokenizer *t, const struct turn *turn)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < turn->n_alt_tokens; i++) {
        const struct generator_alt *alts = turn->alts + i * turn->n_alts;
        json_t *entry = alt_json(t, alts[turn->n_alts - 1]);
        json_t *top = json_array();
        for (size_t k = 0; top && k + 1 < turn->n_alts; k++)
            if (alts[k].id >= 0)
                (void)json_array_append_new(top, alt_json(t, alts[k]));
        if (!entry || !json_out_add(entry, "top", top) || json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *turn_json_of(const struct tokenizer *t, const char *model, const struct turn *turn)
{
    const struct answer_result *r = &turn->result;
    json_t *o = json_object();
    bool ok = o && json_out_add(o, "model", json_out_text(bn_str_of(model))) &&
              json_out_add(o, "text", json_out_text(strbuf_str(&turn->shown))) &&
              json_out_add(o, "thought",
                           turn->thought.n_bytes > 0 ? json_out_text(strbuf_str(&turn->thought))
                                                     : json_null()) &&
              json_out_add(o, "finish", json_string(finish_name(turn->finish))) &&
              json_out_add(o, "seed", json_integer((json_int_t)turn->sampler.seed)) &&
              json_out_add(o, "settings", settings_json(turn)) &&
              json_out_add(o, "prompt_tokens", json_integer((json_int_t)r->n_prompt)) &&
              json_out_add(o, "reused_tokens", json_integer((json_int_t)r->n_reused)) &&
              json_out_add(o, "evaluated_tokens", json_integer((json_int_t)r->n_evaluated)) &&
              json_out_add(o, "completion_tokens", json_integer((json_int_t)r->n_tokens)) &&
              json_out_add(o, "drafted_tokens", json_integer((json_int_t)r->n_drafted)) &&
              json_out_add(o, "accepted_tokens", json_integer((json_int_t)r->n_accepted)) &&
              json_out_add(o, "prefill_s", json_real(r->prefill_s)) &&
              json_out_add(o, "decode_s", json_real(r->decode_s)) &&
              json_out_add(o, "prefill_tokens_per_s", json_real(answer_prefill_rate(r))) &&
              json_out_add(o, "decode_tokens_per_s", json_real(answer_decode_rate(r))) &&
              json_out_add(o, "first_token_s", json_real(r->first_token_s)) &&
              json_out_add(o, "dropped_turns", json_integer((json_int_t)turn->n_dropped));
    if (ok && turn->n_alts > 0)
        ok = json_out_add(o, "logprobs", logprobs_json(t, turn));
    if (ok)
        return o;
    json_decref(o);
    return NULL;
}

json_t *turn_json(const struct chat *c, const struct turn *turn)
{
    const struct bn_model_info *info = worker_info(c->worker);
    return turn_json_of(c->maker.tokenizer, info ? info->name : "", turn);
}

/* Seconds left at the pace so far, once there is a pace. */
static double seconds_left(const struct turn *turn)
{
    const double spent = clock_seconds() - turn->begun_reading;
    if (turn->n_read == 0 || turn->n_to_read <= turn->n_read || spent < 0.5)
        return 0;
    return spent / (double)turn->n_read * (double)(turn->n_to_read - turn->n_read);
}

void turn_status(const struct chat *c, struct status *out)
{
    const struct turn *turn = &c->turn;
    out->n_ctx = chat_n_ctx(c);
    out->n_used = c->n_used;
    out->rate = 0;
    out->n_done = out->n_total = 0;
    out->unsaved = c->transcript.unsaved;
    switch (c->phase) {
    case CHAT_LOADING:
    case CHAT_BROKEN:
        out->state = STATUS_LOADING;
        out->n_done = c->n_loaded;
        out->n_total = c->n_to_load;
        break;
    case CHAT_IDLE:
        out->state = STATUS_READY;
        break;
    case CHAT_READING:
        out->state = turn->is_stopping ? STATUS_STOPPING : STATUS_READING;
        out->n_done = turn->n_read;
        out->n_total = turn->n_to_read;
        out->seconds_left = seconds_left(turn);
        break;
    case CHAT_GENERATING:
        out->state = turn->is_stopping ? STATUS_STOPPING : STATUS_GENERATING;
        out->n_done = turn->n_tokens;
        out->rate = chat_live_rate(c);
        break;
    }
}
