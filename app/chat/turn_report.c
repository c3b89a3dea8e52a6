/*
 * The text of the statistics line and of the notices about a turn: see turn_report.h.
 */
#include "app/chat/turn_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The fields of the statistics line in order. Where the line is too wide, fields are left out in
 * the order of stats_leaving. */
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
    char text[STATS_N][48]; /* with its separator; "" if the field is left out */
};

static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
    BN_PRINTF(3, 4);
static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(p->text[part], sizeof(p->text[part]), fmt, args); /* two numbers always fit */
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

void turn_speed_lines(const struct turn *turn, const struct bn_model_info *info,
                      const struct generator_peaks *peaks, struct strbuf *out)
{
    const struct answer_result *r = &turn->result;
    const double bytes = answer_decode_bytes(r), read_rate = bytes * answer_decode_rate(r);
    const double mac_rate = answer_prefill_rate(r) * (info ? info->macs_per_token : 0);
    if (read_rate > 0) {
        strbuf_addf(out, "reads       %.1f MB a token, %.1f GB/s", bytes / 1e6, read_rate / 1e9);
        add_share(out, read_rate, peaks->read_bytes_per_s, "GB/s");
    }
    if (mac_rate > 0) {
        strbuf_addf(out, "multiplies  %.1f GMAC/s in the prompt", mac_rate / 1e9);
        add_share(out, mac_rate, peaks->macs_per_s, "GMAC/s");
    }
}

const char *turn_end_notice(const struct turn *turn)
{
    static const char *const notices[FINISH_N] = {
        [FINISH_LENGTH] = "the answer has reached --max-tokens; /continue goes on",
        [FINISH_INTERRUPTED] = "stopped",
        [FINISH_CONTEXT] = "the context is full; /forget makes room, then /continue goes on",
        [FINISH_DEGENERATE] =
            "output degenerated (same token); try another seed, or the quantisation may not suit "
            "this CPU",
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
