/*
 * Finds the look of each character of an answer in Markdown: headings, bold, inline code, fenced
 * code and list marks. Does no I/O.
 *
 * Characters come out unchanged and in order. Text on the screen is never changed, so a mark is
 * held back until a later character decides its meaning: at most MARKDOWN_MAX_PENDING characters,
 * all ASCII. The result does not depend on how the stream is cut into pieces. Bold and inline code
 * end at the end of a line; only fenced code continues.
 */
#ifndef APP_MARKDOWN_H
#define APP_MARKDOWN_H

#include "app/common/strbuf.h"
#include "app/common/term_text.h"

#define MARKDOWN_MAX_PENDING 32

enum text_look {
    TEXT_PLAIN,
    TEXT_HEADING, /* the whole line */
    TEXT_BOLD,    /* including the marks, as for the looks below */
    TEXT_CODE,
    TEXT_BLOCK, /* lines between fences */
    TEXT_FENCE, /* the fences themselves */
    TEXT_MARK,  /* the mark of a list item */
    TEXT_DIM,   /* thoughts; not used by this module */
    TEXT_LOOKS
};

/* Zero-initialise, free with markdown_finish. */
struct markdown {
    bool is_plain;       /* set by the caller: not Markdown, all characters are TEXT_PLAIN */
    struct strbuf bytes; /* an incomplete UTF-8 character */
    enum { MD_START, MD_LINE, MD_FENCE, MD_BLOCK_START, MD_BLOCK_LINE, MD_BLOCK_END } place;
    char pending[MARKDOWN_MAX_PENDING]; /* (n_pending) an undecided mark */
    size_t n_pending;
    size_t n_code; /* number of backticks that end the inline code; 0: no code */
    bool is_bold, is_heading, is_escaped;
    char fence;       /* the fence character ... */
    size_t n_fence;   /* ... and the length of the fence */
    uint32_t before;  /* the last decided character; 0 or newline: start of a line */
    uint32_t literal; /* the character of a run that was too long to be a mark */
};
void markdown_finish(struct markdown *m);

/* Receives the decided characters, cleaned as by term_text_next. */
struct markdown_sink {
    void (*put)(void *ud, const struct term_char *c, enum text_look look);
    void *ud;
};
/* Add a piece of the text, of any bytes. */
void markdown_add(struct markdown *m, struct bn_str text, const struct markdown_sink *sink);
/* Decide a pending mark as if a blank followed. More text may be added. */
void markdown_flush(struct markdown *m, const struct markdown_sink *sink);
/* As markdown_flush, and an incomplete character is put as U+FFFD. */
void markdown_end(struct markdown *m, const struct markdown_sink *sink);

/* Lines with this look keep their blanks and are not broken between words. */
static inline bool markdown_is_block(enum text_look look)
{
    return look == TEXT_BLOCK || look == TEXT_FENCE;
}

#endif
