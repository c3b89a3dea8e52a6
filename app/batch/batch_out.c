/*
 * Formats and writes the answers of a batch: see batch_out.h.
 */
#include "app/batch/batch_out.h"

#include "app/chat/chat_log.h"
#include "app/chat/turn_json.h"
#include "app/common/json_out.h"
#include "app/common/report.h"
#include "app/options/chat_options.h"

#include <errno.h>
#include <stdio.h>

void batch_out_init(struct batch_out *out, const struct options *options,
                    const struct tokenizer *tokenizer, struct log_file *log)
{
    *out = (struct batch_out){.options = options, .tokenizer = tokenizer, .log = log};
    out->kind = options_flag(options, "jsonl")  ? BATCH_JSONL
                : options_flag(options, "json") ? BATCH_JSON
                                                : BATCH_TEXT;
}

/* ---- objects ---- */

static void put_line(json_t **o, const struct batch_item *item)
{
    json_out_put(o, "line", json_integer((json_int_t)item->line));
}

static void add_event(struct batch_item *item, const char *event, const char *key,
                      struct bn_str text)
{
    json_t *o = json_pack("{s:s}", "event", event);
    put_line(&o, item);
    if (key)
        json_out_put(&o, key, json_out_text(text));
    json_out_line_with(o, "id", item->id, &item->events);
}

static json_t *end_json(const struct batch_out *out, const struct batch_item *item)
{
    json_t *o = item->err.code ? json_object() : turn_json(out->tokenizer, out->model, &item->turn);
    put_line(&o, item);
    if (item->err.code)
        json_out_put(&o, "error", json_out_text(bn_str_of(item->err.text)));
    if (out->kind == BATCH_JSONL)
        json_out_put(&o, "event", json_string("end"));
    return o;
}

void batch_out_begin(const struct batch_out *out, struct batch_item *item)
{
    item->has_events = out->kind == BATCH_JSONL;
    if (item->has_events)
        add_event(item, "start", NULL, (struct bn_str){0});
}

void batch_out_text(void *ud, enum answer_part part, struct bn_str text)
{
    struct batch_item *item = ud;
    turn_add_part(&item->turn, part, text);
    if (item->has_events)
        add_event(item, "token", part == PART_THOUGHT ? "thought" : "text", text);
}

/* ---- lines ---- */

static bool put(struct bn_str text, struct bn_error *err)
{
    if (text.n_bytes == 0)
        return true;
    report_progress_erase();
    return fwrite(text.ptr, 1, text.n_bytes, stdout) == text.n_bytes ||
           bn_fail(err, BN_EIO, "cannot write to standard output: %s", strerror(errno));
}

static void report_degenerate(const struct batch_item *item)
{
    if (item->turn.finish == FINISH_DEGENERATE)
        report_line(PROGRAM, "warning: line %zu: %s", item->line, turn_end_notice(&item->turn));
}

static void report_stats(const struct batch_out *out, const struct batch_item *item)
{
    struct strbuf text = {0};
    if (item->err.code)
        return;
    const struct turn_space space = {item->answer.ids.n, out->n_ctx, SIZE_MAX}; /* any width */
    chat_log_answer(out->log, &item->turn, &space);
    if (!options_flag(out->options, "stats") || options_flag(out->options, "quiet"))
        return;
    turn_stats_line(&item->turn, &space, &text);
    report_progress_erase();
    fprintf(stderr, "line %zu: %s\n", item->line, strbuf_text(&text));
    strbuf_finish(&text);
}

/* Text has an empty line between two answers, as with --lines. A failed answer is an empty one, so
 * that every line of the input has its answer; with --lines it is left out. */
static bool put_end(const struct batch_out *out, struct batch_item *item, struct bn_error *err)
{
    if (out->kind == BATCH_TEXT)
        return (out->n_written == 0 || put(bn_str_of("\n"), err)) &&
               put(strbuf_str(&item->turn.shown), err) && put(bn_str_of("\n"), err);
    struct strbuf line = {0};
    json_out_line_with(end_json(out, item), "id", item->id, &line);
    const bool ok = line.failed ? bn_fail(err, BN_ENOMEM, "out of memory for JSON output")
                                : put(strbuf_str(&line), err);
    strbuf_finish(&line);
    return ok;
}

bool batch_out_line(struct batch_out *out, struct batch_item *item, struct bn_error *err)
{
    if (item->events.failed)
        return bn_fail(err, BN_ENOMEM, "out of memory for the events of line %zu", item->line);
    if (!put(strbuf_str(&item->events), err))
        return false;
    strbuf_cut(&item->events, 0);
    if (!item->is_done)
        return true;
    if (!put_end(out, item, err))
        return false;
    if (!options_flag(out->options, "quiet"))
        report_degenerate(item);
    report_stats(out, item);
    batch_item_finish(item);
    out->n_written++;
    return true;
}

bool batch_out_flush(struct bn_error *err)
{
    return fflush(stdout) == 0 ||
           bn_fail(err, BN_EIO, "cannot write to standard output: %s", strerror(errno));
}

/* ---- lines without an answer ---- */

/* Append the range of lines to the text, such as ", 5 to 7". */
static void add_range(struct batch_unanswered *u)
{
    if (u->first == 0)
        return;
    strbuf_addf(&u->text, "%s%zu", u->text.n_bytes > 0 ? ", " : "", u->first);
    if (u->last > u->first)
        strbuf_addf(&u->text, " to %zu", u->last);
}

void batch_unanswered_add(struct batch_unanswered *u, size_t line)
{
    if (u->first > 0 && line == u->last + 1) {
        u->last = line;
        return;
    }
    add_range(u);
    u->first = u->last = line;
}

void batch_unanswered_report(struct batch_unanswered *u, size_t n_lines, bool more)
{
    struct strbuf text = {0};
    add_range(u);
    if (u->text.n_bytes > 0)
        /* A space in the text means more than one line. */
        strbuf_addf(&text, "line%s %s", strchr(strbuf_text(&u->text), ' ') ? "s" : "",
                    strbuf_text(&u->text));
    if (more && n_lines == 0)
        strbuf_add_text(&text, "any line");
    else if (more)
        strbuf_addf(&text, "%sthe lines after line %zu", text.n_bytes > 0 ? " and to " : "",
                    n_lines);
    if (text.n_bytes > 0)
        report_line(PROGRAM, "stopped: no answer to %s", strbuf_text(&text));
    strbuf_finish(&text);
    strbuf_finish(&u->text);
    *u = (struct batch_unanswered){0};
}
