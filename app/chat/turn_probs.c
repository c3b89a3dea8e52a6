/*
 * The table of /probs: see turn_probs.h. Tokens are printed in quotes, because many begin with a
 * blank.
 */
#include "app/chat/turn_probs.h"

#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <math.h>

#define PIECE_COLUMNS 16 /* a longer token is cut */
#define PERCENT_COLUMNS 5
#define GAP "  "

/* The token in quotes. Returns its width in columns. */
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
    for (size_t i = 0; i < turn->n_alt_tokens * turn->n_alts; i++) {
        size_t *widest = (i + 1) % turn->n_alts == 0 ? chosen : others;
        if (turn->alts[i].id >= 0)
            *widest = size_max(*widest, quoted(t, turn->alts[i].id, &piece));
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
        const struct generator_alt *alts = turn->alts + i * turn->n_alts;
        size_t column = indent;
        add_cell(t, alts[turn->n_alts - 1], chosen, out);
        for (size_t k = 0; k + 1 < turn->n_alts; k++) {
            if (alts[k].id < 0)
                continue;
            if (column + step > columns && column > indent) {
                strbuf_addf(out, "\n%*s", (int)indent, "");
                column = indent;
            }
            strbuf_add_text(out, GAP);
            add_cell(t, alts[k], others, out);
            column += step;
        }
        strbuf_add_char(out, '\n');
    }
}
