/*
 * Commands that show something: /history /context /stats /info /tokens /dump, and /probs, which
 * selects what is shown after each answer.
 */
#include "app/commands/commands.h"

#include "app/chat/model_sheet.h"
#include "app/chat/turn_report.h"
#include "app/common/term_text.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

/* Show the text, and free it. */
static void show(struct command_host *host, enum ui_tone tone, struct strbuf *text)
{
    host->ui->ops->notice(host->ui, tone, strbuf_str(text));
    strbuf_finish(text);
}

/* Whether the turn with index i is no longer in the context. */
static bool is_left_out(const struct command_host *host, size_t i)
{
    const struct prompt_window w = chat_window(host->chat);
    return i >= w.n_first && i < w.n_skipped;
}

/* The message as it was typed. Instead of the text of attached files, their number of bytes. */
static void add_message(const struct exchange *e, struct strbuf *text)
{
    const struct bn_str typed = exchange_typed(e);
    if (e->typed.n_bytes > 0)
        strbuf_addf(text, "[attached files: %zu bytes] ", e->user.n_bytes - typed.n_bytes);
    strbuf_add_str(text, typed);
}

/* The answer without its thought, which can be much longer. */
static void add_answer(struct command_host *host, const struct exchange *e, struct strbuf *text)
{
    struct strbuf thought = {0}, answer = {0};
    chat_split_answer(host->chat, e, &thought, &answer);
    if (thought.n_bytes > 0)
        strbuf_addf(text, "[thought: %zu bytes] ", thought.n_bytes);
    strbuf_add_str(text, strbuf_str(&answer));
    strbuf_finish(&thought);
    strbuf_finish(&answer);
}

bool cmd_history(struct command_host *host, struct bn_str args)
{
    const struct transcript_state *s = &host->chat->transcript.now;
    size_t n;
    if (s->n == 0) {
        ui_notice(host->ui, TONE_PLAIN, "nothing was said yet");
        return true;
    }
    if (!command_number(host, args, s->n, SIZE_MAX / 100, &n)) /* the largest allowed max */
        return false;
    for (size_t i = s->n > n ? s->n - n : 0; i < s->n; i++) {
        struct strbuf message = {0}, answer = {0};
        strbuf_addf(&message, "%zu%s> ", i + 1,
                    is_left_out(host, i) ? " (no longer in the context)" : "");
        add_message(s->items[i], &message);
        show(host, TONE_USER, &message);
        add_answer(host, s->items[i], &answer);
        show(host, TONE_PLAIN, &answer);
    }
    return true;
}

/* Append how a full context is handled, and which turn is dropped next. */
static void add_overflow(struct command_host *host, struct strbuf *text)
{
    const struct transcript_state *s = &host->chat->transcript.now;
    const enum prompt_overflow overflow = chat_overflow(host->chat);
    const struct prompt_window w = chat_window(host->chat);
    const size_t n_next = chat_next_drop(host->chat);
    const size_t n_first = overflow == OVERFLOW_KEEP_FIRST, n_out = w.n_skipped - w.n_first;
    const size_t next = w.n_skipped > n_first ? w.n_skipped : n_first;
    if (overflow == OVERFLOW_STOP)
        strbuf_add_text(text, "\nwhen it is full: stop (/set overflow drop)");
    else
        strbuf_addf(text,
                    "\nwhen it is full: the oldest turns%s are dropped until %lld %% are in use"
                    " (/set overflow-to)",
                    n_first ? " except the first" : "",
                    (long long)options_int(host->options, "overflow-to"));
    if (n_out > 0)
        strbuf_addf(text, "\ndropped so far: %zu", n_out);
    if (n_next > 0)
        strbuf_addf(text, "\nthe next message will drop: %zu", n_next);
    if (overflow != OVERFLOW_STOP && s->n > next + 1) { /* the last turn is never dropped */
        strbuf_add_text(text, "\nnext to go: ");
        term_text_brief(exchange_typed(s->items[next]), COMMAND_BRIEF_COLUMNS, text);
    }
}

/* The number that the status row shows (chat.n_used), if it is known. Unlike chat_count_tokens, it
 * includes tokens behind a stop string, which are in the context but not in the conversation. While
 * an answer runs, it includes this answer, too; then chat_count_tokens is used. */
static bool count_context(const struct command_host *host, size_t *out, struct bn_error *err)
{
    const struct chat *c = host->chat;
    if (chat_is_busy(c) || c->transcript.now.n == 0 || c->n_used == 0)
        return chat_count_tokens(c, out, err);
    *out = c->n_used;
    return true;
}

bool cmd_context(struct command_host *host, struct bn_str args)
{
    const struct transcript_state *s = &host->chat->transcript.now;
    const size_t n_ctx = chat_n_ctx(host->chat);
    const size_t n_system = s->system.n_bytes > 0 ? command_count_tokens(host, s->system) : 0;
    size_t n_user = 0, n_answers = 0, n_all;
    struct strbuf text = {0};
    struct bn_error err;
    (void)args; /* no arguments */
    if (!count_context(host, &n_all, &err))
        return command_fail_error(host, &err);
    for (size_t i = 0; i < s->n; i++) {
        const struct answer *a = &s->items[i]->answer;
        if (is_left_out(host, i))
            continue;
        n_user += command_count_tokens(host, s->items[i]->user);
        n_answers += a->n_ids > 0 ? a->n_ids : command_count_tokens(host, a->text);
    }
    /* The sum of texts that are encoded one by one may be a little larger than n_all. */
    const size_t n_said = n_system + n_user + n_answers;
    strbuf_addf(&text,
                "system    %7zu tok\nyou       %7zu tok\nanswers   %7zu tok\ntemplate  %7zu tok\n"
                "in all    %7zu tok",
                n_system, n_user, n_answers, n_all > n_said ? n_all - n_said : 0, n_all);
    if (n_ctx > 0)
        strbuf_addf(&text, " of %zu, %zu free", n_ctx, n_ctx > n_all ? n_ctx - n_all : 0);
    for (size_t i = 0; i < host->chat->attached.n; i++)
        strbuf_addf(&text, "\nattached  %7zu tok  %s", host->chat->attached.items[i].n_tokens,
                    host->chat->attached.items[i].path);
    if (chat_is_busy(host->chat))
        strbuf_add_text(&text, "\nwithout the answer that is running");
    add_overflow(host, &text);
    show(host, TONE_TABLE, &text);
    return true;
}

static void add_rate(struct strbuf *text, double rate)
{
    if (rate > 0)
        strbuf_addf(text, ", %.1f tok/s", rate);
}

/* Measurement uses the whole device for a moment, so it never runs during an answer. */
static bool measure_peaks(struct command_host *host)
{
    struct bn_error err;
    if (chat_is_busy(host->chat))
        return command_fail(host, "this is not possible while an answer is generated");
    if (worker_measure(host->chat->worker, &err))
        return true;
    return command_fail_error(host, &err);
}

/* "states      4 kept in 76.0 MB; 210 tok evaluated again from position 1630" */
static void add_states(struct strbuf *text, const struct answer_result *r)
{
    strbuf_addf(text, "states      %zu kept in %.1f MB", r->states.n_states,
                (double)r->states.n_bytes / 1e6);
    if (r->n_reevaluated > 0)
        strbuf_addf(text, "; %zu tok evaluated again from position %zu", r->n_reevaluated,
                    r->n_reused);
    strbuf_add_char(text, '\n');
}

/* The lines about the last turn. */
static void add_turn(struct strbuf *text, const struct turn *turn, const struct bn_model_info *info,
                     const struct generator_peaks *peaks)
{
    const struct answer_result *r = &turn->result;
    strbuf_addf(text, "prompt      %zu tok: %zu reused, %zu evaluated in %.2f s", r->n_prompt,
                r->n_reused, r->n_evaluated, r->prefill_s);
    add_rate(text, answer_prefill_rate(r));
    strbuf_add_char(text, '\n');
    /* Without r->n_reevaluated, which add_states reports. */
    const size_t n_reevaluated =
        turn_reevaluated(turn) - size_min(turn_reevaluated(turn), r->n_reevaluated);
    if (n_reevaluated > 1) /* 1 is normal after /continue: the last token is always evaluated */
        strbuf_addf(text, "            %zu of these were evaluated before, but after other text\n",
                    n_reevaluated);
    if (info->state_bytes > 0)
        add_states(text, r);
    strbuf_addf(text, "generation  %zu tok in %.2f s", r->n_tokens, r->decode_s);
    add_rate(text, answer_decode_rate(r));
    strbuf_addf(text, ", first token after %.2f s\n", r->first_token_s);
    if (r->n_tokens >= 2)
        strbuf_addf(text, "gaps        between tokens: p50 %.2f ms, p95 %.2f ms, p99 %.2f ms\n",
                    1e3 * r->gaps.p50, 1e3 * r->gaps.p95, 1e3 * r->gaps.p99);
    if (r->n_thought > 0 || r->is_thought_cut)
        strbuf_addf(text, "thought     %zu tok%s\n", r->n_thought,
                    r->is_thought_cut ? ", ended because --think-budget was reached" : "");
    turn_speed_lines(turn, info, peaks, text);
    if (r->n_drafted > 0)
        strbuf_addf(text, "speculation %zu tok drafted, %zu of them accepted\n", r->n_drafted,
                    r->n_accepted);
    strbuf_addf(text, "finish      %s, seed %llu\n", finish_reason_name(turn->finish),
                (unsigned long long)turn->sampler.seed);
}

bool cmd_stats(struct command_host *host, struct bn_str args)
{
    const struct bn_model_info *info = worker_info(host->chat->worker);
    const struct turn *turn = &host->chat->turn;
    const struct chat_totals *t = &host->chat->totals;
    struct strbuf text = {0};
    if (!info) {
        ui_notice(host->ui, TONE_PLAIN, "the model is still loading");
        return true;
    }
    if (bn_str_is(args, "peak"))
        return measure_peaks(host);
    if (args.n_bytes > 0)
        return command_fail(host, "usage: /stats or /stats peak");
    const size_t resident = mem_resident_bytes(); /* before the texts are made, which need memory */
    strbuf_addf(&text,
                "load        %.2f s, weights %.1f MB\n"
                "memory      %.1f MB: private %.1f MB, mapped files %.1f MB; peak %.1f MB\n",
                info->load_seconds, (double)info->weight_bytes / 1e6, (double)resident / 1e6,
                (double)mem_anon_bytes() / 1e6, (double)mem_file_bytes() / 1e6,
                /* The counters are inexact, but a peak below the present size would look wrong. */
                (double)size_max(resident, mem_peak_bytes()) / 1e6);
    if (turn->finish != FINISH_NONE && turn->result.n_prompt > 0) /* 0: it waited for the model */
        add_turn(&text, turn, info, &host->chat->peaks);
    strbuf_addf(&text, "in all      %zu answer%s, prompts %zu tok, %.2f s", t->n_turns,
                t->n_turns == 1 ? "" : "s", t->n_evaluated, t->prefill_s);
    add_rate(&text, answer_rate(t->n_evaluated, t->prefill_s));
    if (t->n_reevaluated > 0)
        strbuf_addf(&text, ", %zu tok again", t->n_reevaluated);
    strbuf_addf(&text, ",\n            generation %zu tok, %.2f s", t->n_generated, t->decode_s);
    add_rate(&text, answer_rate(t->n_decoded, t->decode_s));
    strbuf_addf(&text, "\ncontext     %zu of %zu tok\ndevice      %s", host->chat->n_used,
                chat_n_ctx(host->chat), info->device);
    show(host, TONE_TABLE, &text);
    return true;
}

bool cmd_info(struct command_host *host, struct bn_str args)
{
    struct strbuf text = {0};
    (void)args; /* no arguments */
    model_sheet_lines(host->chat->model, host->chat->worker, host->options, &text);
    show(host, TONE_TABLE, &text);
    return true;
}

static void add_token(struct strbuf *text, const struct command_host *host, int32_t id)
{
    const struct bn_str piece = tokenizer_token_text(host->chat->model->tokenizer, id);
    strbuf_addf(text, "%8d  |", id); /* between bars, so that blanks are visible */
    term_text_escape(piece, text);
    strbuf_add_text(text, "|\n");
}

bool cmd_tokens(struct command_host *host, struct bn_str args)
{
    struct token_list ids = {0};
    struct bn_error err;
    struct strbuf text = {0};
    const struct segment s = {.kind = SEGMENT_MESSAGE, .text = args, .message = SEGMENT_NO_MESSAGE};
    if (args.n_bytes == 0)
        return command_fail(host, "usage: /tokens TEXT");
    if (!tokenizer_encode(host->chat->model->tokenizer, &s, 1, TOKENIZER_BOS_NEVER, &ids, &err)) {
        token_list_finish(&ids);
        return command_fail_error(host, &err);
    }
    for (size_t i = 0; i < ids.n; i++)
        add_token(&text, host, ids.ids[i]);
    strbuf_addf(&text, "%zu token%s", ids.n, ids.n == 1 ? "" : "s");
    token_list_finish(&ids);
    show(host, TONE_TABLE, &text);
    return true;
}

bool cmd_dump(struct command_host *host, struct bn_str args)
{
    struct prompt p;
    struct bn_error err;
    struct strbuf text = {0};
    if (!chat_encode(host->chat, &p, &err))
        return command_fail_error(host, &err);
    for (size_t i = 0; i < p.ids.n; i++)
        strbuf_add_str(&text, tokenizer_piece(host->chat->model->tokenizer, p.ids.ids[i],
                                              TOKENIZER_SPECIAL_SHOW));
    prompt_finish(&p);
    if (args.n_bytes == 0) {
        host->ui->ops->notice(host->ui, TONE_EXACT, strbuf_str(&text));
        strbuf_finish(&text);
        return true;
    }
    const bool ok = command_export_text(host, "dump", args, &text);
    strbuf_finish(&text);
    return ok;
}

bool cmd_probs(struct command_host *host, struct bn_str args)
{
    size_t n;
    if (bn_str_is(args, "off")) {
        host->chat->n_alts = 0;
        ui_notice(host->ui, TONE_PLAIN, "alternatives are no longer shown");
        return true;
    }
    if (!command_number(host, args, 3, GENERATOR_MAX_ALTS, &n))
        return false;
    host->chat->n_alts = n;
    ui_notice(host->ui, TONE_PLAIN,
              "after each answer its tokens are shown with their %zu likeliest alternatives", n);
    return true;
}
