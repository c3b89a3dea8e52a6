/*
 * The turn after its start: the events of the worker, and the stop by the user. Also returns a
 * message that is edited or was not answered to the line editor, with its attached files. See
 * chat.h.
 */
#include "app/chat/chat_private.h"

#include "app/chat/turn_report.h"
#include "app/common/slash.h"

#include <string.h>

static void on_part(void *ud, enum answer_part part, struct bn_str text)
{
    struct chat *c = ud;
    turn_add_part(&c->turn, part, text);
    c->ui->ops->answer(c->ui, part, text);
}

static void on_token(struct chat *c, const struct worker_event *event)
{
    struct turn *turn = &c->turn;
    struct bn_error err;
    c->phase = CHAT_GENERATING;
    if (event->id != TOKEN_NONE) {
        c->token_times[turn->n_tokens % CHAT_RATE_TOKENS] = event->time;
        turn->n_tokens++;
        c->n_used = turn->n_prompt + turn->n_tokens;
        if (!token_list_push(&turn->ids, event->id, &err) || !turn_add_alts(turn, event->alts))
            turn->lost_token = true;
    }
    strbuf_add_str(&turn->text, event->text);
    thought_feed(&c->thought, event->text, on_part, c);
    c->ui->ops->token(c->ui, turn);
    if (!turn_is_complete(turn))
        worker_cancel(c->worker); /* on_done reports the failure */
}

static bool store_answer(struct chat *c)
{
    struct turn *turn = &c->turn;
    struct answer a = {.text = strbuf_str(&turn->text),
                       .ids = turn->ids.ids,
                       .n_ids = turn_is_complete(turn) ? turn->ids.n : 0,
                       .finish = turn->finish,
                       .starts_in_thought = turn->starts_in_thought};
    const struct exchange *last = transcript_last(&c->transcript);
    prompt_trim_ids(c->maker.tokenizer, &a); /* a stop string may have cut the text */
    /* /retry replaces an answer that the user may want back. */
    if (turn->mode == PROMPT_ANSWER && last->answer.finish != FINISH_NONE)
        return transcript_retry(&c->transcript, &a, turn->n_skipped_before);
    return transcript_answer(&c->transcript, &a);
}

/* `serial` is that of the message. */
static void attach_again(struct chat *c, const char *path, size_t serial)
{
    const struct attachment_room room = chat_room(c);
    enum attachment_added added;
    struct bn_error err;
    if (!attachments_add(&c->attached, c->model->tokenizer, path, &room, &added, &err))
        ui_notice(c->ui, TONE_WARNING, "not attached again: %s", err.text);
    else if (added == ATTACHMENT_ADDED) {
        struct attachment *a = &c->attached.items[c->attached.n - 1];
        a->is_returned = true;
        a->serial = serial;
        ui_notice(c->ui, TONE_NOTE, "%s is attached again", path);
    }
}

static bool has_exchange(const struct transcript_state *s, size_t serial)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i]->serial == serial)
            return true;
    return false;
}

void chat_detach_returned(struct chat *c)
{
    for (size_t i = c->attached.n; i-- > 0;) {
        const struct attachment *a = &c->attached.items[i];
        if (!a->is_returned || !has_exchange(&c->transcript.now, a->serial))
            continue;
        ui_notice(c->ui, TONE_NOTE, "%s is no longer attached: its message is back", a->path);
        attachments_remove(&c->attached, i);
    }
}

/* Put a message into the editor so that Enter sends it and does not run it as a command.
 * slash_parse removes the first slash of "//...". If it would change or run this text, add that
 * slash again. Returns the result of ui_ops.edit. */
static bool edit_message(struct chat *c, struct bn_str text)
{
    struct strbuf with_slash = {0};
    const struct slash s = slash_parse(text);
    const bool needs_slash = bn_str_starts(text, bn_str_of("/")) &&
                             (s.kind != SLASH_MESSAGE || s.text.n_bytes != text.n_bytes);
    if (needs_slash)
        strbuf_add_char(&with_slash, '/');
    strbuf_add_str(&with_slash, text);
    const bool is_in_editor =
        c->ui->ops->edit(c->ui, with_slash.failed ? text : strbuf_str(&with_slash));
    strbuf_finish(&with_slash);
    return is_in_editor;
}

bool chat_edit_again(struct chat *c, const struct exchange *e)
{
    struct strbuf files = {0};
    const bool is_in_editor = edit_message(c, exchange_typed(e));
    strbuf_add_str(&files, e->files); /* a copy, because strtok_r writes into it */
    for (char *rest = files.ptr, *path; rest && (path = strtok_r(rest, "\n", &rest)) != NULL;) {
        if (is_in_editor)
            attach_again(c, path, e->serial);
        else if (!attachments_has(&c->attached, path)) /* it would be sent with another message */
            ui_notice(c->ui, TONE_NOTE, "%s is not attached; /file attaches it", path);
    }
    strbuf_finish(&files);
    return is_in_editor;
}

/* Remove the last question, which has no stored answer. The caller passes it to edit_question. */
static struct exchange *take_question(struct chat *c)
{
    struct transcript_state *s = &c->transcript.now;
    struct exchange *e = s->items[s->n - 1];
    e->n_refs++; /* it is needed after the removal */
    transcript_remove_last(&c->transcript);
    return e;
}

/* Return a question that take_question has removed to the line editor, as chat_edit_again. */
static bool edit_question(struct chat *c, struct exchange *e)
{
    const bool is_in_editor = chat_edit_again(c, e);
    exchange_release(e);
    return is_in_editor;
}

/* After a failure in the middle of an answer, store the part as an interrupted answer. But if the
 * turn was a /retry of a question with an answer, the earlier answer stays instead. */
static void store_partial_answer(struct chat *c)
{
    const struct exchange *last = transcript_last(&c->transcript);
    thought_end(&c->thought, on_part, c);
    c->turn.finish = FINISH_INTERRUPTED;
    if (last && (last->answer.finish == FINISH_NONE || c->turn.mode == PROMPT_CONTINUE))
        (void)store_answer(c); /* the caller reports that the turn failed */
}

static void on_failed(struct chat *c, const struct bn_error *err)
{
    const bool is_load = c->phase == CHAT_LOADING;
    c->phase = is_load ? CHAT_BROKEN : CHAT_IDLE;
    c->is_waiting = false;
    if (is_load)
        return; /* the event loop reports it and ends the program */
    if (c->turn.n_tokens > 0)
        store_partial_answer(c);
    const struct exchange *last = transcript_last(&c->transcript);
    c->ui->ops->turn_failed(c->ui, err);
    struct exchange *question =
        last && last->answer.finish == FINISH_NONE ? take_question(c) : NULL;
    chat_update_n_used(c); /* on_token has counted the tokens of the failed turn */
    if (question && edit_question(c, question))
        ui_note_returned(c->ui);
}

/* Files may be attached while the model loads, when the size of the context is not known. Remove
 * those that do not fit. */
static void check_attached(struct chat *c)
{
    struct bn_error err;
    size_t n_tokens = 0;
    if (c->attached.n == 0)
        return;
    const struct attachment_room room = chat_room(c);
    for (size_t i = 0; i < c->attached.n;) {
        if (attachments_check(&c->attached.items[i], n_tokens, &room, &err)) {
            n_tokens += c->attached.items[i++].n_tokens;
        } else {
            ui_notice(c->ui, TONE_ERROR, "%s", err.text);
            attachments_remove(&c->attached, i);
        }
    }
}

static void add_to_totals(struct chat *c)
{
    const struct answer_result *r = &c->turn.result;
    c->n_used = r->n_prompt + r->n_tokens;
    c->totals.n_turns++;
    c->totals.n_evaluated += r->n_evaluated;
    c->totals.n_reevaluated += turn_reevaluated(&c->turn);
    c->totals.n_generated += r->n_tokens;
    c->totals.n_decoded += answer_n_decoded(r);
    c->totals.prefill_s += r->prefill_s;
    c->totals.decode_s += r->decode_s;
}

static void on_done(struct chat *c, const struct worker_event *event)
{
    struct turn *turn = &c->turn;
    struct bn_error err;
    turn->result = event->result;
    turn->finish = event->result.finish;
    thought_end(&c->thought, on_part, c);
    c->phase = CHAT_IDLE;
    if (event->result.n_prompt > 0) /* 0: the event is from chat_stop, no job has run */
        add_to_totals(c);
    const bool is_empty = turn->finish == FINISH_INTERRUPTED && turn->n_tokens == 0;
    const bool is_new = transcript_last(&c->transcript)->answer.finish == FINISH_NONE;
    if (!turn_is_complete(turn) || (!is_empty && !store_answer(c))) {
        (void)bn_fail(&err, BN_ENOMEM, "out of memory for an answer of %zu tokens", turn->n_tokens);
        on_failed(c, &err);
        return;
    }
    struct exchange *question = is_empty && is_new && !c->is_at_end ? take_question(c) : NULL;
    if (is_empty)
        chat_update_n_used(c); /* without the question, or with the earlier answer */
    c->ui->ops->turn_end(c->ui, turn);
    if (question)
        (void)edit_question(c, question); /* a notice says where it is, if not in the editor */
    /* Memory may have run out since the check above. The answer is stored already. */
    if (!turn_is_complete(turn)) {
        (void)bn_fail(&err, BN_ENOMEM, "out of memory: not all of the answer was shown");
        c->ui->ops->turn_failed(c->ui, &err);
    }
}

/* A saved chat is read before the size of the context is known. */
static void count_loaded(struct chat *c)
{
    const struct transcript_state *s = &c->transcript.now;
    if (s->n == 0 && s->system.n_bytes == 0)
        return;
    chat_update_n_used(c);
    chat_show_next_drop(c);
}

static void on_loaded(struct chat *c)
{
    struct bn_error err = {0};
    c->phase = CHAT_IDLE;
    check_attached(c);
    if (!c->is_waiting) {
        count_loaded(c);
        return;
    }
    c->is_waiting = false;
    if (!chat_start_turn(c, c->options, &err))
        on_failed(c, &err);
}

static void on_measured(struct chat *c, const struct worker_event *event)
{
    struct strbuf text = {0};
    c->peaks = event->peaks;
    turn_speed_lines(&c->turn, worker_info(c->worker), &c->peaks, &text);
    if (text.n_bytes == 0)
        strbuf_addf(&text,
                    "this device reads %.1f GB/s and computes %.1f GMAC/s; "
                    "there is no answer to compare yet\n",
                    c->peaks.read_bytes_per_s / 1e9, c->peaks.macs_per_s / 1e9);
    strbuf_cut(&text, text.n_bytes - 1); /* without the last newline */
    c->ui->ops->notice(c->ui, TONE_PLAIN, strbuf_str(&text));
    strbuf_finish(&text);
}

static void on_checked(struct chat *c, const struct worker_event *event)
{
    if (event->sense.is_nonsense) /* false also after a check that failed */
        ui_notice(c->ui, TONE_WARNING, SENSE_NOTICE, event->sense.loss, event->sense.bound);
}

void chat_event(struct chat *c, struct worker_event *event)
{
    switch (event->kind) {
    case WORKER_LOADING:
        c->n_loaded = event->n_done;
        c->n_to_load = event->n_total;
        break;
    case WORKER_LOADED:
        on_loaded(c);
        break;
    case WORKER_PREFILL:
        turn_prefilled(&c->turn, &event->prefill);
        break;
    case WORKER_TOKEN:
        on_token(c, event);
        break;
    case WORKER_REMARK:
        c->ui->ops->notice(c->ui, event->err.code ? TONE_WARNING : TONE_NOTE, event->text);
        break;
    case WORKER_MEASURED:
        on_measured(c, event);
        break;
    case WORKER_CHECKED:
        on_checked(c, event);
        break;
    case WORKER_DONE:
        on_done(c, event);
        break;
    case WORKER_FAILED:
        on_failed(c, &event->err);
        break;
    }
    worker_event_finish(event);
}

void chat_stop(struct chat *c)
{
    if (c->phase == CHAT_PREFILL || c->phase == CHAT_GENERATING) {
        c->turn.is_stopping = true;
        worker_cancel(c->worker);
    } else if (c->is_waiting) {
        struct answer_result none = {.finish = FINISH_INTERRUPTED};
        struct worker_event event = {.kind = WORKER_DONE, .result = none};
        c->is_waiting = false;
        chat_event(c, &event); /* sets CHAT_IDLE, but the model still loads */
        c->phase = CHAT_LOADING;
        (void)chat_save(c); /* without the returned question; shows the first failure */
    }
}

void chat_stop_at_end(struct chat *c)
{
    c->is_at_end = true;
    chat_stop(c);
}
