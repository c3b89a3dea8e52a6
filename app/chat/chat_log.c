/*
 * Formats the lines of --log: see chat_log.h.
 */
#include "app/chat/chat_log.h"

#include "app/common/report.h"

/* Write the line and free its text. */
static void put(struct log_file *log, struct strbuf *line)
{
    log_file_line(log, strbuf_text(line));
    strbuf_finish(line);
}

void chat_log_loaded(struct log_file *log, const char *name, const struct bn_model_info *info,
                     size_t n_ctx, const struct bn_notes *notes)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "%s %s: loaded %s, %s, on %s, context %zu, in %.2f s", PROGRAM,
                report_version(), name, info->quantisation, info->device, n_ctx,
                info->load_seconds);
    put(log, &line);
    if (info->skip_reason[0])
        log_file_line(log, info->skip_reason);
    for (size_t i = 0; i < notes->n; i++)
        log_file_line(log, notes->items[i].text);
}

void chat_log_answer(struct log_file *log, const struct turn *turn, const struct turn_space *space)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "answer: %s ", finish_reason_name(turn->finish));
    turn_stats_line(turn, space, &line);
    put(log, &line);
}

void chat_log_check(struct log_file *log, const struct sense_result *r, double seconds,
                    const struct bn_error *err)
{
    struct strbuf line = {0};
    if (err->code)
        strbuf_addf(&line, "sense check: %s", err->text);
    else if (r->why)
        strbuf_addf(&line, "sense check: no verdict, because %s", r->why);
    else
        strbuf_addf(&line, "sense check: %s, loss %.2f, bound %.2f nats per token, in %.3f s",
                    r->is_nonsense ? "nonsense" : "passed", r->loss, r->bound, seconds);
    put(log, &line);
}
