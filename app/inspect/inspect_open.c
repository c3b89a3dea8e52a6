/*
 * Opening what a verb needs, evaluating ids for their logits, and putting bytes on stdout.
 */
#include "app/common/term_text.h"
#include "app/inspect/inspect.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <unistd.h>

#define ROWS_MAX_BYTES ((size_t)64 << 20) /* of logits that are held at once */

enum exit_code inspect_fail_load(const struct inspect *in, struct bn_error *err)
{
    (void)bn_fail_prefix(err, "%s", in->words[0]);
    return report_error(INSPECT, STAGE_LOAD, err);
}

enum exit_code inspect_open_file(struct inspect *in)
{
    struct bn_error err;
    /* Errors of this call name the path themselves. */
    return bn_file_open(in->words[0], &in->file, &err) ? EXIT_DONE
                                                       : report_error(INSPECT, STAGE_LOAD, &err);
}

enum exit_code inspect_open_tokenizer(struct inspect *in)
{
    struct bn_error err;
    return model_args_tokenizer(in->options, in->file, &in->notes, &in->tokenizer, &err)
               ? EXIT_DONE
               : inspect_fail_load(in, &err);
}

enum exit_code inspect_open_template(struct inspect *in)
{
    struct bn_error err;
    if (model_args_template(in->options, in->file, in->tokenizer, &in->notes, &in->template, &err))
        return EXIT_DONE;
    const bool is_users = options_given(in->options, "template");
    return report_error(INSPECT, is_users ? STAGE_RUN : STAGE_LOAD, &err);
}

enum exit_code inspect_open_model(struct inspect *in)
{
    struct bn_model_config cfg = {.notes = &in->notes};
    struct bn_error err;
    model_args_config(in->options, &cfg);
    return bn_model_open(in->file, &cfg, &in->model, &err) ? EXIT_DONE
                                                           : inspect_fail_load(in, &err);
}

enum exit_code inspect_open_session(struct inspect *in, size_t n_ctx)
{
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    struct bn_error err;
    return bn_session_open(in->model, &cfg, &in->session, &err) ? EXIT_DONE
                                                                : inspect_fail_load(in, &err);
}

void inspect_close(struct inspect *in)
{
    bn_session_close(in->session);
    bn_model_close(in->model);
    template_close(in->template);
    tokenizer_close(in->tokenizer);
    bn_file_close(in->file);
}

bool inspect_encode(const struct inspect *in, enum segment_kind kind, struct bn_str text,
                    struct token_list *out, struct bn_error *err)
{
    const struct segment segment = {.kind = kind, .text = text, .message = SEGMENT_NO_MESSAGE};
    return tokenizer_encode(in->tokenizer, &segment, 1, TOKENIZER_BOS_NEVER, out, err);
}

void inspect_put(struct bn_str text)
{
    if (!isatty(STDOUT_FILENO)) {
        fwrite(text.ptr, 1, text.n_bytes, stdout);
        return;
    }
    struct strbuf clean = {0};
    term_text_clean(text, TERM_KEEP_LINES, &clean);
    fwrite(strbuf_text(&clean), 1, clean.n_bytes, stdout);
    strbuf_finish(&clean);
}

void inspect_put_ids(const int32_t *ids, size_t n_ids)
{
    for (size_t i = 0; i < n_ids; i++)
        printf("%s%d", i ? " " : "", (int)ids[i]);
    putchar('\n');
}

/* Memory for the rows of one call. */
struct row_room {
    struct head_row *rows;   /* (n_rows) */
    struct head_cand *cands; /* (n_rows, n_vocab) */
    float *logits;           /* (n_vocab) */
    size_t n_rows, n_vocab;
};

static bool room_open(struct row_room *room, size_t n_rows, size_t n_vocab, struct bn_error *err)
{
    size_t n_cands;
    *room = (struct row_room){.n_rows = n_rows, .n_vocab = n_vocab};
    if (size_mul(&n_cands, n_rows, n_vocab)) {
        room->rows = mem_alloc(n_rows, sizeof(*room->rows));
        room->cands = mem_alloc(n_cands, sizeof(*room->cands));
        room->logits = mem_alloc(n_vocab, sizeof(*room->logits));
    }
    if (!room->rows || !room->cands || !room->logits)
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu rows of %zu logits", n_rows, n_vocab);
    for (size_t i = 0; i < n_rows; i++)
        room->rows[i] = (struct head_row){.cands = room->cands + i * n_vocab, .cap = n_vocab};
    return true;
}

static void room_close(struct row_room *room)
{
    mem_free(room->rows);
    mem_free(room->cands);
    mem_free(room->logits);
}

static bool eval_piece(struct inspect *in, const int32_t *ids, size_t n_ids, struct row_room *room,
                       const struct inspect_rows *rows, struct bn_error *err)
{
    const struct head_request head = {.kind = HEAD_ALL};
    size_t n_before;
    (void)bn_session_ids(in->session, &n_before);
    if (!bn_session_eval(in->session, ids, n_ids, &head, room->rows, n_ids, NULL, err))
        return false;
    for (size_t i = 0; i < n_ids; i++) {
        for (size_t k = 0; k < room->n_vocab; k++)
            room->logits[k] = room->rows[i].cands[k].logit;
        if (!rows->row(rows->ud, n_before + i, room->logits, err))
            return false;
    }
    return true;
}

bool inspect_eval(struct inspect *in, const int32_t *ids, size_t n_ids,
                  const struct inspect_rows *rows, struct bn_error *err)
{
    const size_t n_vocab = bn_model_info(in->model)->n_vocab;
    const size_t n_fit = size_max(ROWS_MAX_BYTES / sizeof(struct head_cand) / n_vocab, 1);
    const size_t n_ubatch = (size_t)options_int(in->options, "ubatch");
    const size_t n_piece = size_min(size_min(n_fit, n_ubatch), size_max(n_ids, 1));
    struct row_room room;
    bool ok = room_open(&room, n_piece, n_vocab, err);
    for (size_t i = 0; ok && i < n_ids; i += n_piece)
        ok = eval_piece(in, ids + i, size_min(n_piece, n_ids - i), &room, rows, err);
    room_close(&room);
    return ok;
}

double inspect_loss(const float *logits, size_t n_vocab, int32_t id)
{
    double best = logits[0], sum = 0;
    for (size_t i = 1; i < n_vocab; i++)
        best = logits[i] > best ? logits[i] : best;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp(logits[i] - best);
    return log(sum) + best - logits[id];
}
