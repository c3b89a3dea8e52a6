/*
 * Starts turns: fits the conversation into the context, encodes the prompt and submits the job.
 * chat_events.c follows the turn to its end. Also describes the chat for painters and commands: the
 * status row, the use of the context, and what the next message will drop. See chat.h.
 *
 * A question enters the transcript when it is sent. If its turn cannot run, or is stopped before
 * its first token, the question is removed and its text returns to the line editor. A question that
 * has an answer already (/retry, /continue) stays.
 */
#include "app/chat/chat_private.h"

#include "app/chat/conversation/thought_close.h"
#include "app/chat/turn_report.h"
#include "app/common/timing/run_clock.h"
#include "app/options/chat_options.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#define RATE_SECONDS 2.0      /* the live rate is an average over this time */
#define RATE_MIN_SECONDS 0.25 /* no live rate over a shorter time */

void chat_finish(struct chat *c)
{
    turn_finish(&c->turn);
    thought_finish(&c->thought);
    transcript_finish(&c->transcript);
    attachments_finish(&c->attached);
}

bool chat_is_busy(const struct chat *c)
{
    return c->is_waiting || c->phase == CHAT_PREFILL || c->phase == CHAT_GENERATING;
}

size_t chat_n_ctx(const struct chat *c)
{
    return worker_n_ctx(c->worker);
}

/* Tokens per second in about RATE_SECONDS before the last token. 0 before the third token: one time
 * between two tokens alone varies too much. 0 also before RATE_MIN_SECONDS: speculative decoding
 * gives several tokens at once, and a rate over one such group would be far too high. */
static double live_rate(const struct chat *c)
{
    const size_t n = c->turn.n_tokens;
    if (n < 3)
        return 0;
    const double last = c->token_times[(n - 1) % CHAT_RATE_TOKENS];
    size_t n_back = 1;
    while (n_back + 1 < n && n_back + 1 < CHAT_RATE_TOKENS &&
           last - c->token_times[(n - 1 - n_back) % CHAT_RATE_TOKENS] < RATE_SECONDS)
        n_back++;
    const double span = last - c->token_times[(n - 1 - n_back) % CHAT_RATE_TOKENS];
    return span >= RATE_MIN_SECONDS ? (double)n_back / span : 0;
}

/* Tokens of the prompt that are read so far, those of earlier turns included. c->n_used counts them
 * only when the answer begins. 0 outside of prefill. */
static size_t n_read(const struct chat *c)
{
    const struct turn *turn = &c->turn;
    const bool is_reading = c->phase == CHAT_PREFILL && turn->prefill.n_total > 0;
    return is_reading ? turn->n_prompt - turn->prefill.n_total + turn->prefill.n_done : 0;
}

enum status_state chat_state(const struct chat *c)
{
    switch (c->phase) {
    case CHAT_IDLE:
        return STATUS_READY;
    case CHAT_PREFILL:
        return c->turn.is_stopping ? STATUS_STOPPING : STATUS_READING;
    case CHAT_GENERATING:
        return c->turn.is_stopping ? STATUS_STOPPING : STATUS_GENERATING;
    default: /* CHAT_LOADING, CHAT_BROKEN */
        return STATUS_LOADING;
    }
}

void chat_status(const struct chat *c, struct status *out)
{
    const struct turn *turn = &c->turn;
    out->state = chat_state(c);
    out->n_ctx = chat_n_ctx(c);
    /* If there are more tokens than the context has room for, the next message drops turns. */
    const size_t n_used = size_max(c->n_used, n_read(c));
    out->n_used = out->n_ctx > 0 ? size_min(n_used, out->n_ctx) : n_used;
    out->rate = 0;
    out->n_done = out->n_total = 0;
    out->unsaved = c->transcript.unsaved;
    switch (c->phase) {
    case CHAT_LOADING:
    case CHAT_BROKEN:
        out->n_done = c->n_loaded;
        out->n_total = c->n_to_load;
        break;
    case CHAT_IDLE:
        break;
    case CHAT_PREFILL:
        out->n_done = turn->prefill.n_done;
        out->n_total = turn->prefill.n_total;
        out->seconds_left = turn_seconds_left(turn, run_clock_seconds());
        break;
    case CHAT_GENERATING:
        out->n_done = turn->n_tokens;
        out->rate = live_rate(c);
        break;
    }
}

static enum prompt_overflow overflow_of(const struct chat *c, const struct options *o)
{
    /* The words of --overflow have the order of the enum. */
    return options_given(o, "overflow") ? (enum prompt_overflow)options_choice(o, "overflow")
                                        : c->overflow;
}

enum prompt_overflow chat_overflow(const struct chat *c)
{
    return overflow_of(c, c->options);
}

struct prompt_window chat_window(const struct chat *c)
{
    return prompt_window_of(&c->transcript.now, chat_overflow(c));
}

/* `mode` is for a conversation with turns. */
static bool encode_as(const struct chat *c, enum prompt_mode mode, struct prompt *out,
                      struct bn_error *err)
{
    const struct transcript_state *s = &c->transcript.now;
    struct prompt_window w = chat_window(c);
    if (s->n > 0)
        w.mode = mode;
    if (prompt_encode(&c->maker, s, &w, out, err))
        return true;
    w.mode = PROMPT_START; /* the template may only lack a message of the user */
    return s->n == 0 && prompt_encode(&c->maker, s, &w, out, err);
}

bool chat_encode(const struct chat *c, struct prompt *out, struct bn_error *err)
{
    return encode_as(c, PROMPT_WHOLE, out, err);
}

bool chat_count_tokens(const struct chat *c, size_t *out, struct bn_error *err)
{
    struct prompt p;
    /* Without the text of the template behind the last answer, which the model has not read yet. So
     * the number is the one that on_done computes from the numbers of the turn. */
    if (!encode_as(c, PROMPT_CONTINUE, &p, err))
        return false;
    *out = p.ids.n;
    prompt_finish(&p);
    return true;
}

/* ---- starting a turn ---- */

static struct prompt_limits limits_of(const struct chat *c, const struct options *settings,
                                      const struct turn *turn)
{
    const size_t n_ctx = worker_n_ctx(c->worker);
    return (struct prompt_limits){.n_ctx = n_ctx,
                                  .n_reserve = turn_reserve(turn, n_ctx),
                                  .percent = (size_t)options_int(settings, "overflow-to"),
                                  .overflow = overflow_of(c, settings)};
}

static struct prompt_limits next_limits(const struct chat *c)
{
    /* Only max_tokens of the next turn affects the limits. */
    const struct turn next = {.max_tokens = (size_t)options_int(c->options, "max-tokens")};
    return limits_of(c, c->options, &next);
}

struct attachment_room chat_room(const struct chat *c)
{
    if (chat_n_ctx(c) == 0)
        return (struct attachment_room){SIZE_MAX, 0};
    const struct prompt_limits limits = next_limits(c);
    return (struct attachment_room){prompt_room(&c->maker, &c->transcript.now, &limits),
                                    limits.n_ctx};
}

bool chat_check_system(const struct chat *c, struct bn_str system, struct bn_error *err)
{
    if (chat_n_ctx(c) == 0)
        return true;
    const struct prompt_limits limits = next_limits(c);
    return prompt_check_system(&c->maker, system, &limits, err);
}

void chat_update_n_used(struct chat *c)
{
    struct bn_error ignored;
    if (!chat_count_tokens(c, &c->n_used, &ignored))
        c->n_used = 0;
}

size_t chat_next_drop(const struct chat *c)
{
    if (chat_n_ctx(c) == 0)
        return 0;
    const struct prompt_limits limits = next_limits(c);
    if (c->n_used <= limits.n_ctx - limits.n_reserve)
        return 0;
    return prompt_next_drop(&c->maker, &c->transcript.now, &limits);
}

void chat_show_next_drop(struct chat *c)
{
    const size_t n = c->store->is_script ? 0 : chat_next_drop(c);
    if (n > 0)
        ui_notice(c->ui, TONE_WARNING, "context: the next message will drop %zu oldest turn%s", n,
                  n == 1 ? "" : "s");
}

/* The maker with the settings of this turn: a /retry may have another --think than the chat. */
static struct prompt_maker maker_with(const struct chat *c, const struct options *settings)
{
    struct prompt_maker maker = c->maker;
    maker.options = settings;
    return maker;
}

/* Encode the prompt of the turn, and note in the turn how many older turns were left out of it. */
static bool fit(struct chat *c, const struct options *settings, struct prompt *out,
                struct bn_error *err)
{
    const struct prompt_maker maker = maker_with(c, settings);
    struct turn *turn = &c->turn;
    struct prompt_fitted fitted;
    const struct prompt_limits limits = limits_of(c, settings, turn);
    turn->overflow = limits.overflow;
    turn->n_skipped_before = c->transcript.now.n_skipped;
    if (!prompt_fit(&maker, &c->transcript.now, turn->mode, &limits, &fitted, &turn->is_too_long,
                    err)) {
        /* If the system message is the reason, the error is about it. */
        turn->is_system_too_long =
            turn->is_too_long &&
            !prompt_check_system(&maker, c->transcript.now.system, &limits, err);
        return false;
    }
    turn->n_turns = c->transcript.now.n - c->transcript.now.n_skipped;
    if (limits.overflow == OVERFLOW_KEEP_FIRST && c->transcript.now.n_skipped > 0)
        turn->n_turns++; /* the first one, which n_skipped counts too */
    turn->n_dropped = fitted.n_dropped;
    turn->n_dropped_tokens = fitted.n_dropped_tokens;
    turn->n_changed = fitted.n_changed;
    *out = fitted.prompt;
    return true;
}

void chat_split_answer(const struct chat *c, const struct exchange *e, struct strbuf *thought,
                       struct strbuf *answer)
{
    thought_split(e->answer.text, prompt_answer_mode(&c->maker, &e->answer), thought, answer);
}

static bool add_ids(struct token_list *list, const int32_t *ids, size_t n, struct bn_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!token_list_push(list, ids[i], err))
            return false;
    return true;
}

static void on_earlier_part(void *ud, enum answer_part part, struct bn_str text)
{
    turn_add_part(ud, part, text);
}

/* With /continue, the turn starts with the last answer so far, which may end inside its thought. */
static bool begin_with_earlier_answer(struct chat *c, struct bn_error *err)
{
    const struct answer *a = &transcript_last(&c->transcript)->answer;
    if (c->turn.mode != PROMPT_CONTINUE)
        return true;
    strbuf_add_str(&c->turn.text, a->text);
    thought_feed(&c->thought, a->text, on_earlier_part, &c->turn);
    c->turn.n_shown_before = c->turn.shown.n_bytes;
    c->turn.n_thought_before = c->turn.thought.n_bytes;
    return add_ids(&c->turn.ids, a->ids, a->n_ids, err);
}

/* The limit of the thought. With a budget, `close` receives the tokens that close a thought; *out
 * points to them, and the caller frees them. */
static bool limit_thought(const struct chat *c, const struct options *settings,
                          struct token_list *close, struct think_limit *out, struct bn_error *err)
{
    const struct turn *turn = &c->turn;
    const struct prompt_maker maker = maker_with(c, settings);
    /* If the thought is still open, all tokens of the answer so far belong to it. */
    const bool is_inside = c->thought.state == THOUGHT_INSIDE;
    if (turn->think_budget != THINK_NO_BUDGET && !thought_close_ids(&maker, close, err))
        return false;
    *out = (struct think_limit){.mode = thought_mode_now(&c->thought),
                                .n_before = is_inside ? turn->ids.n : 0,
                                .n_budget = turn->think_budget,
                                .close = close->ids,
                                .n_close = close->n};
    return true;
}

/* For bn_control.n_stable: the number of ids of the prompt that the next prompt will have too. 0 if
 * the model needs no saved states, with /continue, if the number is unknown, or if the next
 * prompt has all of these ids. With 0 the session usually saves a state before the last id. */
static size_t n_stable(const struct chat *c, const struct options *settings, const struct prompt *p)
{
    const struct prompt_maker maker = maker_with(c, settings);
    if (worker_info(c->worker)->state_bytes == 0 || c->turn.mode != PROMPT_ANSWER)
        return 0;
    const size_t n = thought_n_unstable(&maker);
    return n > 0 && n < p->ids.n ? p->ids.n - n : 0;
}

/* Give the worker the job, which it copies. A snapshot is loaded only once. */
static bool submit(struct chat *c, const struct options *settings, const struct prompt *p,
                   struct bn_error *err)
{
    struct bias_list biases;
    struct token_list close = {0};
    c->turn.n_alts = c->n_alts; /* not earlier: the turn may have waited for the model */
    struct answer_job job = {.prompt = p->ids.ids,
                             .n_prompt = p->ids.n,
                             .max_tokens = c->turn.max_tokens,
                             .n_alts = c->n_alts,
                             .at_start = c->turn.text.n_bytes == 0,
                             .sampler = c->turn.sampler,
                             .spec = (enum spec_mode)options_choice(settings, "spec"),
                             .snapshot = c->snapshot[0] ? c->snapshot : NULL,
                             .n_stable = n_stable(c, settings, p)};
    job.stops = options_list(settings, "stop", &job.n_stops);
    if (!limit_thought(c, settings, &close, &job.think, err) ||
        !chat_options_biases(settings, c->maker.tokenizer, &biases, err)) {
        token_list_finish(&close);
        return false;
    }
    job.sampler.biases = biases.items;
    job.sampler.n_biases = biases.n;
    const bool ok = worker_answer(c->worker, &job, err);
    if (ok)
        c->snapshot[0] = 0;
    mem_free(biases.items);
    token_list_finish(&close);
    return ok;
}

static void show_dropped(struct chat *c)
{
    struct strbuf notice = {0};
    turn_drop_notice(&c->turn, &notice);
    c->ui->ops->notice(c->ui, TONE_WARNING, strbuf_str(&notice));
    strbuf_finish(&notice);
}

static void show_prompt_warnings(struct chat *c, const struct options *settings,
                                 const struct prompt *p)
{
    for (const char *text;
         (text = turn_prompt_warning(c->model, settings, p, &c->shown_warnings)) != NULL;)
        ui_notice(c->ui, TONE_WARNING, "%s", text);
}

bool chat_start_turn(struct chat *c, const struct options *settings, struct bn_error *err)
{
    struct prompt p;
    turn_settings(&c->turn, settings);
    if (!fit(c, settings, &p, err))
        return false;
    const enum thought_mode mode = prompt_thought_mode(&c->maker, &p);
    thought_init(&c->thought, mode);
    c->turn.starts_in_thought = mode == THOUGHT_RUNNING;
    /* Write the question before its answer, so that it survives a crash. chat_save itself
     * shows the first failure; the write after the answer tries again. */
    (void)chat_save(c);
    const bool ok = begin_with_earlier_answer(c, err) && submit(c, settings, &p, err);
    c->turn.n_prompt = p.ids.n;
    c->turn.n_earlier = p.n_earlier;
    if (ok)
        show_prompt_warnings(c, settings, &p);
    prompt_finish(&p);
    if (!ok)
        return false;
    if (c->turn.n_dropped > 0)
        show_dropped(c);
    c->phase = CHAT_PREFILL;
    return true;
}

/* Start a turn, or let it wait for the model. `settings` as in chat_retry. */
static bool begin(struct chat *c, enum prompt_mode mode, const struct options *settings,
                  struct bn_error *err)
{
    turn_finish(&c->turn);
    c->turn = (struct turn){.mode = mode, .n_failed_before = strbuf_n_failed()};
    if (c->phase == CHAT_LOADING) {
        c->is_waiting = true;
        /* What a user has typed must not be lost. A script still has its prompt, and if the prompt
         * is refused later, no file must have been made for it. */
        if (!c->store->is_script)
            (void)chat_save(c); /* shows the first failure; the next write tries again */
    } else if (!chat_start_turn(c, settings ? settings : c->options, err)) {
        return false;
    }
    c->ui->ops->turn_begin(c->ui);
    return true;
}

/* The last question may have no answer, for example because the program was killed. Close its turn,
 * since templates expect that questions and answers alternate. False: out of memory. */
static bool close_last_turn(struct chat *c)
{
    const struct exchange *last = transcript_last(&c->transcript);
    const struct answer none = {.finish = FINISH_INTERRUPTED};
    return !last || last->answer.finish != FINISH_NONE || transcript_answer(&c->transcript, &none);
}

bool chat_send(struct chat *c, const struct question *q, struct bn_error *err)
{
    if (!close_last_turn(c) || !transcript_add_question(&c->transcript, q->text))
        return bn_fail(err, BN_ENOMEM, "out of memory for a message of %zu bytes", q->text.n_bytes);
    if (!transcript_set_typed(&c->transcript, q->typed, q->files))
        (void)bn_fail(err, BN_ENOMEM, "out of memory for the message");
    else if (begin(c, PROMPT_ANSWER, NULL, err))
        return true;
    transcript_remove_last(&c->transcript);
    (void)chat_save(c); /* shows the first failure */
    return false;
}

bool chat_retry(struct chat *c, const struct options *settings, struct bn_error *err)
{
    if (!transcript_last(&c->transcript))
        return bn_fail(err, BN_EARG, "nothing was asked yet");
    if (c->phase == CHAT_LOADING && settings)
        return bn_fail(err, BN_EARG, "the model is still loading");
    return begin(c, PROMPT_ANSWER, settings, err);
}

bool chat_continue(struct chat *c, struct bn_error *err)
{
    const struct exchange *last = transcript_last(&c->transcript);
    if (!last || last->answer.finish == FINISH_NONE)
        return bn_fail(err, BN_EARG, "there is no answer to continue");
    return begin(c, PROMPT_CONTINUE, NULL, err);
}
