/*
 * One conversation with one model: the transcript, the running turn, and the use of the context.
 *
 * This module encodes the prompt of a turn and submits it to the worker. The event loop passes the
 * events of the worker to chat_event, which informs the painter. A turn that starts before the
 * model is loaded waits. Main thread only.
 *
 * chat.c starts turns and describes the chat. chat_events.c has chat_event, both chat_stop
 * functions, and those that return messages to the editor (chat_edit_again, chat_detach_returned).
 * chat_files.c has the functions from chat_save on.
 */
#ifndef APP_CHAT_H
#define APP_CHAT_H

#include "app/chat/answer/worker.h"
#include "app/chat/attachments.h"
#include "app/chat/conversation/prompt_fit.h"
#include "app/chat/conversation/store.h"
#include "app/chat/conversation/thought.h"
#include "app/chat/conversation/transcript.h"
#include "app/chat/open_model.h"
#include "app/chat/turn.h"
#include "app/chat/ui.h"
#include "app/common/file/paths.h"
#include "app/terminal/text/status.h"

enum chat_phase {
    CHAT_LOADING, /* a turn may wait: is_waiting */
    CHAT_IDLE,
    CHAT_PREFILL,    /* evaluating the prompt */
    CHAT_GENERATING, /* decoding the answer */
    CHAT_BROKEN,     /* the model could not be loaded */
};

/* Sums over the turns since the program started, without those for which the worker reported an
 * error and those that were stopped while they waited for the model. */
struct chat_totals {
    size_t n_turns;
    size_t n_evaluated;   /* prompt tokens evaluated */
    size_t n_reevaluated; /* part of n_evaluated: see turn_reevaluated */
    size_t n_generated;
    size_t n_decoded; /* part of n_generated: see answer_n_decoded */
    double prefill_s, decode_s;
};

/* The rate in the status row is an average over about two seconds (RATE_SECONDS in chat.c), but at
 * most over this many tokens: above 1024 tokens per second the time is shorter. Above 8192 it is so
 * short that there is no rate. */
#define CHAT_RATE_TOKENS 2048

struct chat {
    /* The objects of the pointers up to `ui` belong to struct app. They live longer than the chat.
     */
    const struct open_model *model;
    struct prompt_maker maker;
    struct store *store; /* the files of this chat */
    const struct options *options;
    struct worker *worker;
    struct ui *ui;
    enum prompt_overflow overflow; /* default of --overflow: drop with a user, else stop */
    size_t n_alts;                 /* alternatives to report with each token; 0: none. From
                                      --logprobs, and /probs changes it. */
    char snapshot[PATH_BYTES];     /* file to load before the next answer; "" for none */

    enum chat_phase phase;
    bool is_waiting;            /* a turn waits for the model to load */
    bool is_at_end;             /* chat_stop_at_end was called */
    bool is_closing;            /* chat_close_files was called */
    size_t n_loaded, n_to_load; /* bytes */
    struct transcript transcript;
    struct attachment_list attached; /* files for the next message */
    struct turn turn;                /* the running turn, or the last one */
    struct thought_splitter thought; /* splits the answer of the running turn */
    struct chat_totals totals;
    struct generator_peaks peaks; /* zero until /stats peak has measured them */
    unsigned shown_warnings;      /* of turn_prompt_warning */
    size_t n_used;                /* tokens of the conversation in the context; 0 also if unknown */
    /* ring buffer: time of token i, as in its event, at index i % CHAT_RATE_TOKENS */
    double token_times[CHAT_RATE_TOKENS];
};

void chat_finish(struct chat *c); /* frees the conversation; the worker and the painter stay */

struct question {
    struct bn_str text;  /* the whole message */
    struct bn_str typed; /* the end of `text` that the user typed; empty: all of `text` */
    struct bn_str files; /* canonical paths of files from --file and /file, each followed by a
                            newline. Files of @paths are not among them: `typed` has the @paths */
};
/* Send a message. The chat must not be busy. The turn starts, or waits for the model; if it then
 * cannot start, the painter's turn_failed gets the error. Errors of prompt_fit, thought_close_ids
 * and worker_answer, BN_ENOMEM, and BN_EARG: an unknown id in --logit-bias. On failure the message
 * is not in the conversation. */
bool chat_send(struct chat *c, const struct question *q, struct bn_error *err);
/* Put what the user typed as a message back into the editor, and its files back into the list of
 * attachments. Returns whether the text is in the editor. If it is not (see ui_ops.edit), the user
 * sends another message next, so the files are not attached. Shows which files are attached again
 * and which are not; a file that is in the list already is not shown. */
bool chat_edit_again(struct chat *c, const struct exchange *e);
/* Call this after undo or redo. Removes the files that chat_edit_again has attached for a message
 * that is part of the conversation again. */
void chat_detach_returned(struct chat *c);
/* Check that the context has space for a message after this system message. BN_ECONTEXT: it has
 * none. True while the model loads. */
bool chat_check_system(const struct chat *c, struct bn_str system, struct bn_error *err);
/* The space that the next message and its files have in the context. */
struct attachment_room chat_room(const struct chat *c);
/* Answer the last question again, or continue its answer. The chat must not be busy. BN_EARG: there
 * is no question or answer, or `settings` are given while the model loads; otherwise the errors of
 * chat_send. `settings` apply to this answer only; NULL: the settings of the chat. The pointer is
 * not kept after the call. */
bool chat_retry(struct chat *c, const struct options *settings, struct bn_error *err);
bool chat_continue(struct chat *c, struct bn_error *err);
/* Stop the turn that runs or waits, if there is one. A running turn ends later, with the event
 * WORKER_DONE or WORKER_FAILED; a waiting one ends at once. A question without a part of an answer
 * is removed and returns to the editor. */
void chat_stop(struct chat *c);
/* As chat_stop, at the end of the program: such a question stays, so it is in the saved chat. */
void chat_stop_at_end(struct chat *c);
bool chat_is_busy(const struct chat *c); /* a turn runs or waits for the model */

/* Handle an event of the worker and free it. */
void chat_event(struct chat *c, struct worker_event *event);

/* How a full context is handled: --overflow, or the default. */
enum prompt_overflow chat_overflow(const struct chat *c);
/* The part of the conversation that is in the context. */
struct prompt_window chat_window(const struct chat *c);
/* Encode this part. If there are no turns and the template does not accept that, encode what comes
 * before the first message. Free `out` with prompt_finish. Errors of prompt_encode. */
bool chat_encode(const struct chat *c, struct prompt *out, struct bn_error *err);
/* The number of ids of this part up to the end of the last answer. Errors of prompt_encode. */
bool chat_count_tokens(const struct chat *c, size_t *out, struct bn_error *err);
/* Append the thought and the answer of a stored answer: thought_split. */
void chat_split_answer(const struct chat *c, const struct exchange *e, struct strbuf *thought,
                       struct strbuf *answer);
size_t chat_n_ctx(const struct chat *c); /* 0 before the model is loaded */
/* After a change of the conversation: set n_used to chat_count_tokens, or to 0 if that fails. */
void chat_update_n_used(struct chat *c);
/* The number of turns that the next message will drop, however short it is. Uses n_used. */
size_t chat_next_drop(const struct chat *c);
/* After chat_update_n_used: show chat_next_drop, unless it is 0. Does nothing in a script, which
 * learns it when the message is sent. */
void chat_show_next_drop(struct chat *c);
/* The state that the status row shows. */
enum status_state chat_state(const struct chat *c);
/* Set state and numbers of the status row. Does not change the texts of `out`, and changes
 * seconds_left only while a prompt is evaluated. */
void chat_status(const struct chat *c, struct status *out);

/* Write the conversation to the files that this chat has: its named chat and its last conversation.
 * False: a file could not be written. Of each of the two files only the first failure is shown. */
bool chat_save(struct chat *c);
/* Whether the conversation stays if the program ends now: write it to the named chat or, if there
 * is none or this fails, to last.json. Also true if the chat has neither file, as with --private,
 * or if there is no turn that could be lost. False: *err says why the named chat, one that
 * chat_pause_named has left, or last.json could not be written, and nothing was shown. */
bool chat_is_kept(struct chat *c, struct bn_error *err);
/* Detach the named chat: later turns are not written to it. Its journal becomes part of its file.
 * Call chat_save first, if the conversation has changed since. False: the file could not be
 * written, so the journal stays. */
bool chat_close_named(struct chat *c);
/* Call this before another chat becomes the present one (transcript_state.chat_number). It does
 * what chat_close_named does, and remembers the named chat for chat_resume_named. */
bool chat_pause_named(struct chat *c);
/* Call this after an earlier chat has become the present one. If chat_pause_named has remembered
 * a file of this chat, the chat is saved there again, or a notice says why that is not possible. */
void chat_resume_named(struct chat *c);
/* If store_open has set aside a journal without a chat, call `show` with a warning. */
void chat_show_set_aside(const struct chat *c, const struct store_file *f, ui_show_fn show);
/* Call `show` with what the user should know of the file `path` that was read: answers that are
 * tokenised again, and a journal that was not used, or only in part. `show` is not called if all
 * ids and all lines of the journal are used. */
void chat_show_reading(const struct chat *c, const char *path, const struct store_reading *reading,
                       ui_show_fn show);
/* At the end of the program: chat_close_named, whose result is *is_named_chat_written, and the same
 * for last.json. False: one of the two could not be written. If both have failed, only the failure
 * of the named chat is shown. */
bool chat_close_files(struct chat *c, bool *is_named_chat_written);
/* Before the next answer, load the snapshot of the saved chat with the path `saved`, if it exists.
 * This replaces the choice of an earlier call. */
void chat_use_snapshot(struct chat *c, const char *saved);
/* With --snapshot: write the KV cache as the snapshot of this saved chat. The worker writes it, and
 * reports its size and the result as WORKER_REMARKs. Does nothing with --private, for the path "",
 * before the model is loaded, and if totals.n_turns is 0. A failure is shown. */
void chat_write_snapshot(struct chat *c, const char *saved);

#endif
