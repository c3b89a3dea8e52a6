/*
 * The text of the statistics line, the notices and the table of /probs: see turn_report.h.
 */
#include "app/chat/turn_report.h"

#include "app/chat/thinking.h"
#include "app/common/report.h"
#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The fields of the statistics line, from left to right. If the line is too wide, fields are left
 * out in the order of stats_optional. */
enum stats_part {
    STATS_TOKENS,
    STATS_THOUGHT,
    STATS_RATE,
    STATS_FIRST,
    STATS_PROMPT,
    STATS_PROMPT_RATE,
    STATS_KEPT,
    STATS_AGAIN,
    STATS_CONTEXT,
    STATS_SEED,
    STATS_N,
};
static const unsigned char stats_optional[] = {STATS_AGAIN,   STATS_KEPT,  STATS_PROMPT_RATE,
                                               STATS_PROMPT,  STATS_FIRST, STATS_SEED,
                                               STATS_THOUGHT, STATS_RATE};

struct stats_parts {
    char text[STATS_N][48]; /* with its separator; "" if the field is left out */
};

static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
    BN_PRINTF(3, 4);
static void stats_part(struct stats_parts *p, enum stats_part part, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    /* Fits, because no count has more than 16 digits. */
    (void)vsnprintf(p->text[part], sizeof(p->text[part]), fmt, args);
    va_end(args);
}

static size_t stats_width(const struct stats_parts *p)
{
    size_t n = 2; /* the brackets */
    for (size_t i = 0; i < STATS_N; i++)
        n += strlen(p->text[i]);
    return n;
}

void turn_stats_line(const struct turn *turn, const struct turn_space *space, struct strbuf *out)
{
    const struct answer_result *r = &turn->result;
    const double decode = answer_decode_rate(r), prefill = answer_prefill_rate(r);
    struct stats_parts p = {0};
    stats_part(&p, STATS_TOKENS, "%zu tok", r->n_tokens);
    if (r->n_thought > 0 || r->is_thought_cut)
        stats_part(&p, STATS_THOUGHT, ", thought %zu tok%s", r->n_thought,
                   r->is_thought_cut ? " (budget reached)" : "");
    if (decode > 0)
        stats_part(&p, STATS_RATE, ", %.1f tok/s", decode);
    if (r->n_tokens > 0)
        stats_part(&p, STATS_FIRST, ", first token %.2f s", r->first_token_s);
    stats_part(&p, STATS_PROMPT, ", prompt %zu tok", r->n_evaluated);
    if (prefill > 0)
        stats_part(&p, STATS_PROMPT_RATE, " %.0f tok/s", prefill);
    if (r->n_reused > 0)
        stats_part(&p, STATS_KEPT, ", %zu kept", r->n_reused);
    /* 1 is normal after /continue: the engine evaluates the last token even if the cache has it. */
    if (turn_reevaluated(turn) > 1)
        stats_part(&p, STATS_AGAIN, ", %zu again", turn_reevaluated(turn));
    stats_part(&p, STATS_CONTEXT, ", ctx %zu/%zu", space->n_used, space->n_ctx);
    if (turn->sampler.temp > 0) /* otherwise the seed has no effect */
        stats_part(&p, STATS_SEED, ", seed %llu", (unsigned long long)turn->sampler.seed);
    for (size_t i = 0; i < sizeof(stats_optional) && stats_width(&p) > space->columns; i++)
        p.text[stats_optional[i]][0] = 0;
    strbuf_add_char(out, '[');
    for (size_t i = 0; i < STATS_N; i++)
        strbuf_add_text(out, p.text[i]);
    strbuf_add_char(out, ']');
}

static void add_percentage(struct strbuf *out, double rate, double peak, const char *unit)
{
    if (peak > 0 && 100 * rate > REPORT_MAX_PERCENT * peak)
        strbuf_addf(out, ", disturbed: /stats peak measured only %.1f %s", peak / 1e9, unit);
    else if (peak > 0)
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
        add_percentage(out, read_rate, peaks->read_bytes_per_s, "GB/s");
    }
    if (mac_rate > 0) {
        strbuf_addf(out, "multiplies  %.1f GMAC/s in the prompt", mac_rate / 1e9);
        add_percentage(out, mac_rate, peaks->macs_per_s, "GMAC/s");
    }
}

const char *turn_prompt_warning(const struct open_model *m, const struct options *o,
                                const struct prompt *p, unsigned *shown)
{
    const char *const warnings[] = {
        p->lacks_question
            ? "the chat template leaves out your message, so the model does not see it"
            : NULL,
        p->lacks_system
            ? "the chat template leaves out the system message, so the model does not see it"
            : NULL,
        thinking_off_warning(m, o, p),
    };
    for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
        if (warnings[i] && !(*shown & 1u << i)) {
            *shown |= 1u << i;
            return warnings[i];
        }
    return NULL;
}

const char *turn_end_notice(const struct turn *turn)
{
    static const char *const notices[FINISH_N] = {
        [FINISH_LENGTH] = "the answer has reached --max-tokens; /continue extends it",
        [FINISH_STOP_STRING] = "a text of --stop has ended the answer; /set stop shows these texts",
        [FINISH_INTERRUPTED] = "stopped",
        [FINISH_CONTEXT] = "the context is full; use /forget, then /continue",
        [FINISH_DEGENERATE] =
            "output degenerated (same token); try another seed, or the quantisation may not suit "
            "this CPU",
    };
    if (turn_added_nothing(turn))
        return "the model has nothing to add";
    if (turn->finish == FINISH_CONTEXT && turn->n_turns == 1)
        return "the context is full of this turn alone; a larger --ctx gives longer answers";
    if (turn->finish == FINISH_CONTEXT && turn->overflow != OVERFLOW_STOP)
        return "the context is full; /continue drops the oldest turns and extends the answer";
    return notices[turn->finish];
}

const char *turn_fail_notice(const struct turn *turn, const struct bn_error *err,
                             const char *saved_in)
{
    if (err->code == BN_ECONTEXT && turn->is_system_too_long)
        return "shorten the system message (/system off removes it), or start with a larger --ctx";
    if (err->code == BN_ECONTEXT && turn->is_too_long)
        return "shorten the message, or start with a larger --ctx";
    if (err->code == BN_ECONTEXT)
        return "/forget, /clear or a larger --ctx free space in the context";
    if (err->code != BN_ELOST)
        return NULL;
    return saved_in[0]
               ? "the conversation is saved: leave, then start again with --continue "
                 "(or with --device cpu)"
               : "save the conversation with /save NAME, leave, start again with --session NAME";
}

void turn_drop_notice(const struct turn *turn, struct strbuf *out)
{
    if (turn->n_dropped > 0)
        strbuf_addf(out, "context: dropped %zu oldest turn%s (%zu tok), re-reading %zu tok",
                    turn->n_dropped, turn->n_dropped == 1 ? "" : "s", turn->n_dropped_tokens,
                    turn->n_changed);
}

/* ---- /probs ---- */

#define PIECE_COLUMNS 16  /* a longer token is cut */
#define PERCENT_COLUMNS 5 /* "100% " */
#define GAP "  "

/* The token in quotes, because many tokens begin with a blank. Returns its width in columns. */
static size_t quoted(const struct tokenizer *t, int32_t id, struct strbuf *out)
{
    strbuf_cut(out, 0);
    strbuf_add_char(out, '"');
    term_text_brief(tokenizer_token_text(t, id), PIECE_COLUMNS, out);
    strbuf_add_char(out, '"');
    return term_text_width(strbuf_str(out));
}

static void add_cell(const struct tokenizer *t, struct generator_alt alt, size_t width,
                     struct strbuf *out)
{
    struct strbuf piece = {0};
    const size_t n = quoted(t, alt.id, &piece);
    strbuf_addf(out, "%3.0f%% %s%*s", 100 * exp((double)alt.logprob), strbuf_text(&piece),
                n < width ? (int)(width - n) : 0, "");
    strbuf_finish(&piece);
}

/* Width in columns of the widest chosen token and of the widest alternative. */
static void measure(const struct tokenizer *t, const struct turn *turn, size_t *chosen,
                    size_t *others)
{
    struct strbuf piece = {0};
    *chosen = *others = 0;
    for (size_t i = 0; i < turn->n_alt_tokens; i++) {
        const struct generator_alt *row = turn_alts(turn, i);
        for (size_t k = 0; k <= turn->n_alts; k++) {
            size_t *widest = k == turn->n_alts ? chosen : others;
            if (row[k].id >= 0)
                *widest = size_max(*widest, quoted(t, row[k].id, &piece));
        }
    }
    strbuf_finish(&piece);
}

void turn_probs_table(const struct tokenizer *t, const struct turn *turn, size_t columns,
                      struct strbuf *out)
{
    size_t chosen, others;
    measure(t, turn, &chosen, &others);
    const size_t indent = PERCENT_COLUMNS + chosen;
    const size_t step = strlen(GAP) + PERCENT_COLUMNS + others;
    for (size_t i = 0; i < turn->n_alt_tokens; i++) {
        const struct generator_alt *row = turn_alts(turn, i);
        size_t column = indent;
        add_cell(t, row[turn->n_alts], chosen, out);
        for (size_t k = 0; k < turn->n_alts; k++) {
            if (row[k].id < 0)
                continue;
            if (column + step > columns && column > indent) {
                strbuf_addf(out, "\n%*s", (int)indent, "");
                column = indent;
            }
            strbuf_add_text(out, GAP);
            add_cell(t, row[k], others, out);
            column += step;
        }
        strbuf_add_char(out, '\n');
    }
}
