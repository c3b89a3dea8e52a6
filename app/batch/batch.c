/*
 * Reads lines, decodes several sequences together, writes answers: see batch.h.
 *
 * A ring buffer holds the items from the oldest unwritten line on. Its length is ROUNDS times the
 * number of sequences, and stdin is read only while the ring is not full. So memory is bounded for
 * any number of lines.
 */
#include "app/batch/batch.h"

#include "app/batch/batch_out.h"
#include "app/chat/answer/generator.h"
#include "app/chat/chat_log.h"
#include "app/chat/conversation/thought_close.h"
#include "app/chat/turn_report.h"
#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/options/chat_options.h"
#include "app/options/model_args.h"
#include "app/terminal/signals.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Items in the ring buffer per sequence. While the oldest line has a long answer, the other
 * sequences can answer at least this many later lines each, on average, before they must wait. */
#define ROUNDS 4
#define BLOCK_BYTES 65536 /* of stdin in one read; the capacity of a pipe on Linux */

struct batch {
    const struct options *options;
    const struct open_model *model;
    struct bn_notes model_notes; /* about the weights */
    struct log_file log;         /* --log */
    struct prompt_maker maker;
    struct generator *g;
    struct bn_cancel cancel;
    struct bn_control control; /* of all evaluations: on_progress and `cancel` */
    int wake[2];               /* wake pipe, see signals_open */
    unsigned signals;        /* enum signal_flag: the signals received so far that end the batch */
    struct strbuf in;        /* bytes of stdin that no line has taken yet */
    bool at_end;             /* stdin has ended */
    bool read_failed;        /* stdin had an error; stdout is still usable */
    size_t n_searched;       /* bytes of `in` that are known to have no newline */
    size_t n_lines;          /* lines taken from `in`, blank lines included */
    struct strbuf system;    /* the text of --system */
    struct token_list close; /* tokens that close a thought */
    struct generator_seq *seqs[CHAT_BATCH_MAX]; /* (n_seqs) */
    struct batch_item *running[CHAT_BATCH_MAX]; /* (n_seqs) item of each sequence, or NULL */
    size_t n_seqs;
    struct batch_item *ring; /* (n_ring) */
    size_t n_ring;
    size_t n_begun; /* lines given to a sequence, without blank ones; <= out.n_written + n_ring */
    struct batch_out out;
    unsigned shown_warnings; /* of turn_prompt_warning */
    size_t n_tokens;         /* tokens of all answers so far */
    bool has_checked;        /* the sense check has begun */
    enum exit_code code;     /* of the first line that failed, else EXIT_DONE */
};

/* ---- signals ---- */

/* Take the signals that have arrived. If one of them ends the batch, cancel the engine call in
 * progress, too, and return true. */
static bool poll_stop_signals(struct batch *b)
{
    b->signals |= signals_fetch() & (SIGNAL_INTERRUPT | SIGNAL_TERMINATE | SIGNAL_HANGUP);
    if (b->signals)
        bn_cancel_request(&b->cancel);
    return b->signals != 0;
}

/* ---- progress ---- */

static bool shows_progress(const struct batch *b)
{
    return !options_flag(b->options, "quiet") && !options_flag(b->options, "plain");
}

/* The engine calls this while the model loads, and while it evaluates a prompt. */
static void on_progress(void *ud, size_t n_done, size_t n_total)
{
    struct batch *const b = ud;
    char label[64] = "loading";
    if (b->g) /* the model is loaded */
        (void)snprintf(label, sizeof(label), "line %zu: reading", b->n_lines); /* fits */
    if (shows_progress(b))
        report_progress_percent(label, n_done, n_total);
    (void)poll_stop_signals(b);
}

/* Show how many lines are answered. The number of all lines is known at the end of stdin. */
static void show_answered(const struct batch *b)
{
    size_t n_answered = b->out.n_written, n_running = 0;
    char total[32] = "";
    if (!shows_progress(b) || !report_progress_due())
        return;
    for (size_t i = b->out.n_written; i < b->n_begun; i++)
        n_answered += b->ring[i % b->n_ring].is_done;
    for (size_t i = 0; i < b->n_seqs; i++)
        n_running += b->running[i] != NULL;
    if (b->at_end && b->in.n_bytes == 0)
        (void)snprintf(total, sizeof(total), " of %zu", b->n_begun); /* fits */
    report_progress("%zu%s done, %zu running, %zu tokens", n_answered, total, n_running,
                    b->n_tokens);
}

/* ---- answers ---- */

static void fail_item(struct batch *b, struct batch_item *item, const struct bn_error *err)
{
    item->err = *err;
    item->is_done = true;
    report_line(PROGRAM, "line %zu: %s", item->line, err->text);
    log_file_line(&b->log, err->text);
    if (b->code == EXIT_DONE)
        b->code = report_code(STAGE_RUN, err);
}

/* The item of the oldest unwritten line, or NULL. */
static struct batch_item *oldest(struct batch *b)
{
    return b->out.n_written < b->n_begun ? &b->ring[b->out.n_written % b->n_ring] : NULL;
}

/* Write the new output of the oldest line. If the line is done, continue with the next one. */
static bool write_output(struct batch *b, struct bn_error *err)
{
    for (struct batch_item *item; (item = oldest(b)) != NULL;) {
        const size_t n_written = b->out.n_written;
        if (!batch_out_line(&b->out, item, err))
            return false;
        if (b->out.n_written == n_written)
            break;
    }
    return batch_out_flush(err);
}

/* ---- lines ---- */

static bool has_running(const struct batch *b)
{
    for (size_t i = 0; i < b->n_seqs; i++)
        if (b->running[i])
            return true;
    return false;
}

/* Read more of stdin. Waits for input or a signal only if no sequence is running. Call it while
 * `in` has no complete line. True also if there was nothing to read. */
static bool read_more(struct batch *b, struct bn_error *err)
{
    char block[BLOCK_BYTES];
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = b->wake[0], .events = POLLIN}};
    if (!has_running(b))
        report_progress_erase(); /* nothing happens until there is input */
    if (poll(fds, 2, has_running(b) ? 0 : -1) <= 0)
        return true;
    if (fds[1].revents)
        signals_drain(b->wake[0]);
    if (!fds[0].revents)
        return true;
    b->n_searched = b->in.n_bytes;
    const ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    b->read_failed = n < 0 && errno != EINTR && errno != EAGAIN;
    if (b->read_failed)
        return bn_fail(err, BN_EIO, "cannot read standard input: %s", strerror(errno));
    if (n == 0)
        b->at_end = true;
    if (n > 0)
        input_add_block(&b->in, block, (size_t)n);
    return !b->in.failed || bn_fail(err, BN_ENOMEM, "out of memory for standard input");
}

/* Take a line from `in`, without its line end. False: `in` has no complete line. At the end of
 * stdin the last line needs no line end. If memory runs out, line->failed is set. */
static bool next_line(struct batch *b, struct strbuf *line)
{
    const size_t n_left = b->in.n_bytes - b->n_searched;
    const char *end = n_left > 0 ? memchr(b->in.ptr + b->n_searched, '\n', n_left) : NULL;
    if (!end && (!b->at_end || b->in.n_bytes == 0))
        return false;
    const size_t n = end ? (size_t)(end - b->in.ptr) : b->in.n_bytes;
    strbuf_cut(line, 0);
    strbuf_add(line, b->in.ptr, n);
    strbuf_drop(&b->in, end ? n + 1 : n);
    b->n_searched = 0;
    if (line->n_bytes > 0 && line->ptr[line->n_bytes - 1] == '\r')
        strbuf_cut(line, line->n_bytes - 1);
    b->n_lines++;
    return true;
}

/* The end of a longer line is missing: see input_add_block. */
static bool check_length(struct bn_str line, struct bn_error *err)
{
    return line.n_bytes <= INPUT_MAX_BYTES ||
           bn_fail(err, BN_EARG, "longer than %zu bytes", INPUT_MAX_BYTES);
}

/* Parse the line of an item. Invalid UTF-8 in it is a warning. */
static bool parse(const struct batch *b, struct batch_item *item, struct bn_str line,
                  struct bn_error *err)
{
    char name[40]; /* fits */
    size_t bad_at = SIZE_MAX;
    const bool is_valid = check_length(line, err) && batch_item_parse(item, line, &bad_at, err);
    (void)snprintf(name, sizeof(name), "line %zu", item->line);
    if (bad_at != SIZE_MAX && !options_flag(b->options, "quiet"))
        report_line(PROGRAM, "warning: " INPUT_UTF8_NOTICE, name, bad_at);
    return is_valid;
}

static void warn_of_prompt(struct batch *b, const struct batch_item *item)
{
    if (options_flag(b->options, "quiet"))
        return;
    for (const char *text; (text = turn_prompt_warning(b->model, b->options, &item->prompt_facts,
                                                       &b->shown_warnings)) != NULL;)
        report_line(PROGRAM, "warning: line %zu: %s", item->line, text);
}

/* Start to answer a line with seqs[seq]. If the line is invalid, its prompt is too long or the
 * template rejects it, only its item fails. False: the whole batch must end. */
static bool begin(struct batch *b, size_t seq, struct bn_str line, struct bn_error *err)
{
    struct batch_item *item = &b->ring[b->n_begun % b->n_ring];
    const size_t n_ctx = generator_n_ctx(b->g);
    *item = (struct batch_item){.line = b->n_lines, .seq = b->seqs[seq], .close = &b->close};
    item->turn.n_alts = (size_t)options_int(b->options, "logprobs");
    turn_settings(&item->turn, b->options);
    strbuf_add_str(&item->system, strbuf_str(&b->system));
    b->n_begun++; /* also after a failure below the item must be written and freed */
    struct bias_list biases;
    if (!chat_options_biases(b->options, b->model->tokenizer, &biases, err))
        return false;
    item->turn.sampler.biases = biases.items;
    item->turn.sampler.n_biases = biases.n;
    const bool is_valid = parse(b, item, line, err);
    batch_out_begin(&b->out, item); /* after parsing: the event "start" has the id */
    const bool ok = is_valid && batch_item_begin(item, &b->maker, n_ctx, &b->control, err) &&
                    batch_item_add(item, err);
    if (ok)
        warn_of_prompt(b, item);
    mem_free(biases.items); /* batch_item_begin has copied them to the sampler */
    item->turn.sampler.biases = NULL;
    item->turn.sampler.n_biases = 0;
    if (!ok && err->code != BN_EARG && err->code != BN_ECONTEXT && err->code != BN_EFORMAT)
        return false;
    if (!ok)
        fail_item(b, item, err);
    b->running[seq] = item->is_done ? NULL : item;
    return true;
}

/* Start to answer a line with each idle sequence, while there are lines and free items. */
static bool fill_seqs(struct batch *b, struct bn_error *err)
{
    struct strbuf line = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < b->n_seqs; i++) {
        while (ok && !b->running[i] && b->n_begun - b->out.n_written < b->n_ring &&
               !poll_stop_signals(b)) {
            if (next_line(b, &line))
                ok = line.failed
                         ? bn_fail(err, BN_ENOMEM, "out of memory for line %zu", b->n_lines)
                         : input_is_blank(strbuf_str(&line)) || begin(b, i, strbuf_str(&line), err);
            else if (b->at_end)
                break;
            else {
                const size_t n_before = b->in.n_bytes;
                /* batch_item_begin chooses the first token, so an answer can be complete here. It
                 * must be written before read_more waits. */
                ok = write_output(b, err) && read_more(b, err);
                if (b->in.n_bytes == n_before && !b->at_end && has_running(b))
                    break; /* no input yet: do not wait, so that the running sequences continue */
            }
        }
        ok = ok && write_output(b, err);
    }
    strbuf_finish(&line);
    return ok;
}

/* ---- one token for all sequences ---- */

static bool step(struct batch *b, struct bn_error *err)
{
    struct generator_item steps[CHAT_BATCH_MAX];
    size_t seqs[CHAT_BATCH_MAX], n = 0; /* seqs[i]: index of the sequence of steps[i] */
    for (size_t i = 0; i < b->n_seqs; i++) {
        if (!b->running[i])
            continue;
        seqs[n] = i;
        steps[n++] = (struct generator_item){.seq = b->seqs[i],
                                             .ids = b->running[i]->answer.ids.ids,
                                             .n_ids = b->running[i]->answer.ids.n};
    }
    if (n == 0)
        return true;
    b->n_tokens += n;
    show_answered(b);
    if (!generator_step_all(steps, n, &b->control, err))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct batch_item *item = b->running[seqs[i]];
        item->next = steps[i].next;
        if (!batch_item_add(item, err))
            return false;
        if (item->is_done)
            b->running[seqs[i]] = NULL;
    }
    return true;
}

/* Run the sense check once, after the first line is written, so that the check does not delay the
 * first answer. (A line that failed counts as written.) */
static void check_sense(struct batch *b)
{
    struct sense_result r = {0};
    struct bn_error err = {0}; /* a failed check is written to the log only */
    if (b->has_checked || b->out.n_written == 0 || options_flag(b->options, "quiet") ||
        !options_flag(b->options, "check"))
        return;
    b->has_checked = true;
    const double begun = clock_seconds();
    const bool ok =
        generator_check(b->g, b->model->file, b->model->tokenizer, &b->cancel, &r, &err);
    chat_log_check(&b->log, &r, clock_seconds() - begun, &err);
    if (ok && r.is_nonsense)
        report_line(PROGRAM, "warning: " SENSE_NOTICE, r.loss, r.bound);
}

/* Warn once about a failed write of the log. The answers do not need it, so the batch continues. */
static void watch_log(struct batch *b)
{
    const int error = log_file_new_error(&b->log);
    if (error != 0 && !options_flag(b->options, "quiet"))
        report_line(PROGRAM, "warning: " LOG_NOTICE, options_text(b->options, "log"),
                    strerror(error));
}

static bool answer_all(struct batch *b, struct bn_error *err)
{
    for (;;) {
        if (!fill_seqs(b, err))
            return false;
        if (poll_stop_signals(b))
            return bn_fail(err, BN_ECANCELLED, "stopped");
        if (!has_running(b) && b->at_end && b->in.n_bytes == 0) {
            const bool ok = write_output(b, err);
            check_sense(b);
            watch_log(b);
            return ok;
        }
        if (!step(b, err) || !write_output(b, err))
            return false;
        check_sense(b);
        watch_log(b);
    }
}

/* The batch ends early because of a signal or the error `why`: write the finished answers. JSON
 * also has the unfinished ones, marked as interrupted or with the error. Text cannot mark them: an
 * unfinished answer before a finished one is empty, and unfinished answers after the last finished
 * one are left out. */
static void write_rest(struct batch *b, const struct bn_error *why)
{
    struct batch_unanswered unanswered = {0};
    struct bn_error ignored; /* the caller has reported the first error */
    /* Items up to here are written; the loop raises it for text. */
    size_t n_end = b->out.kind == BATCH_TEXT ? b->out.n_written : b->n_begun;
    for (size_t i = b->out.n_written; i < b->n_begun; i++) {
        struct batch_item *item = &b->ring[i % b->n_ring];
        if (item->is_done) {
            n_end = size_max(n_end, i + 1);
            continue;
        }
        batch_unanswered_add(&unanswered, item->line);
        if (b->signals)
            batch_item_stop(item);
        else
            item->err = *why;
        item->is_done = true;
        if (b->out.kind == BATCH_TEXT)
            strbuf_cut(&item->turn.shown, 0);
    }
    while (b->out.n_written < n_end && batch_out_line(&b->out, oldest(b), &ignored))
        ;
    (void)batch_out_flush(&ignored);
    batch_unanswered_report(&unanswered, b->n_lines, !b->at_end || b->in.n_bytes > 0);
}

/* --batch (the options have checked it), but at most --ubatch: a pass has one token of each
 * sequence. */
static size_t choose_n_seqs(const struct batch *b)
{
    const struct options *o = b->options;
    const char *text = options_text(o, "batch");
    const size_t n =
        strcmp(text, "auto") == 0 ? generator_batch_width(b->g) : (size_t)strtol(text, NULL, 10);
    return size_min(n, (size_t)options_int(o, "ubatch"));
}

static bool open_seqs(struct batch *b, struct bn_error *err)
{
    b->n_seqs = choose_n_seqs(b);
    if (options_flag(b->options, "verbose"))
        report_line(PROGRAM, "decoding %zu prompt%s together", b->n_seqs,
                    b->n_seqs == 1 ? "" : "s");
    b->n_ring = ROUNDS * b->n_seqs;
    b->ring = mem_alloc(b->n_ring, sizeof(*b->ring));
    if (!b->ring)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    for (size_t i = 0; i < b->n_seqs; i++)
        if (!generator_seq_open(b->g, b->n_seqs, &b->seqs[i], err))
            return false;
    return true;
}

static bool open_model(struct batch *b, struct bn_error *err)
{
    struct bn_model_config cfg = {0};
    b->control = (struct bn_control){.progress = {on_progress, b}, .cancel = &b->cancel};
    b->maker = (struct prompt_maker){.tokenizer = b->model->tokenizer,
                                     .template = b->model->template,
                                     .options = b->options,
                                     .now = time(NULL)};
    model_args_config(b->options, &cfg);
    const struct bn_session_config session = chat_options_session(b->options);
    cfg.notes = &b->model_notes;
    cfg.log = log_file_sink(&b->log);
    cfg.progress = b->control.progress;
    cfg.cancel = &b->cancel;
    return thought_close_ids(&b->maker, &b->close, err) &&
           signals_open(SIGNALS_PIPE, b->wake, err) &&
           generator_open(b->model->file, &cfg, &session, &b->g, err);
}

/* Print the warnings about the file, the weights and the context, and the line about the built-in
 * model. A chat shows the same. */
static void report_model(const struct batch *b)
{
    const struct bn_model_info *info = generator_info(b->g);
    if (options_flag(b->options, "quiet"))
        return;
    report_warnings(PROGRAM, &b->model->notes);
    report_warnings(PROGRAM, &b->model_notes);
    if (info->n_ctx_train > 0 && b->out.n_ctx > info->n_ctx_train)
        report_line(PROGRAM, "warning: " CONTEXT_NOTICE, b->out.n_ctx, info->n_ctx_train);
    if (b->model->is_demo)
        report_line(PROGRAM, DEMO_NOTICE, (double)info->n_params / 1e6);
}

/* The wake pipe stays open, because the signal handlers use it until the process ends. */
static void finish(struct batch *b)
{
    for (size_t i = 0; b->ring && i < b->n_ring; i++)
        batch_item_finish(&b->ring[i]);
    mem_free(b->ring);
    for (size_t i = 0; i < b->n_seqs; i++)
        generator_seq_close(b->seqs[i]);
    generator_close(b->g);
    report_progress_erase();
    strbuf_finish(&b->in);
    strbuf_finish(&b->system);
    token_list_finish(&b->close);
    log_file_close(&b->log);
}

static enum exit_code answer_lines(struct batch *b)
{
    struct bn_error err = {0};
    b->out.model = generator_info(b->g)->name;
    b->out.n_ctx = generator_n_ctx(b->g);
    chat_log_loaded(&b->log, b->model->name, generator_info(b->g), b->out.n_ctx, &b->model_notes);
    report_progress_erase();
    report_model(b);
    if (open_seqs(b, &err) && answer_all(b, &err))
        return b->n_begun > 0 ? b->code : report_fail(PROGRAM, EXIT_USAGE, "empty prompt");
    /* poll_stop_signals: a signal may have interrupted a write, which is then no error of the
     * output. */
    const enum exit_code code = poll_stop_signals(b) ? signals_exit_code(b->signals)
                                                     : report_error(PROGRAM, STAGE_RUN, &err);
    /* A BN_EIO that is not from stdin is from stdout, to which nothing can be written then. */
    if (b->read_failed || err.code != BN_EIO)
        write_rest(b, &err);
    else
        report_drop_output();
    return code;
}

enum exit_code batch_run(const struct options *options, const struct open_model *model)
{
    struct batch b = {.options = options, .model = model};
    const char *log = options_text(options, "log");
    struct bn_error err = {0};
    enum exit_code code;
    batch_out_init(&b.out, options, model->tokenizer, &b.log);
    if (log && !log_file_open(&b.log, log, &err)) {
        (void)report_error(PROGRAM, STAGE_RUN, &err);
        code = EXIT_FILE; /* for every error of the log, as in a chat */
    } else if (!chat_options_system(options, &b.system, &err))
        code = report_error(PROGRAM, STAGE_RUN, &err);
    else if (open_model(&b, &err))
        code = answer_lines(&b);
    else
        code = b.signals ? signals_exit_code(b.signals) : report_error(PROGRAM, STAGE_LOAD, &err);
    finish(&b);
    return code;
}
