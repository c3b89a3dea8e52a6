/*
 * Finds the look (the appearance) of each character of an answer in Markdown: headings, bold,
 * inline code, fenced code and list marks. Does no I/O.
 *
 * No character is added, removed or moved; harmful ones become U+FFFD (term_text.h). A mark is a
 * run of characters with a meaning in Markdown, such as two asterisks. It is held back (pending)
 * until a later character decides its meaning, because text on the screen is never changed. At most
 * MARKDOWN_MAX_PENDING characters are held back, all of them ASCII. The result does not depend on
 * how the text is cut into pieces. Bold and inline code end at the end of a line; only fenced code
 * continues.
 */
#ifndef APP_MARKDOWN_H
#define APP_MARKDOWN_H

#include "app/common/strbuf.h"
#include "app/common/term_text.h"

#define MARKDOWN_MAX_PENDING 32 /* a run of so many is text; real marks are shorter */

enum text_look {
    TEXT_PLAIN,
    TEXT_HEADING, /* a heading from its first '#' on, except inline code */
    TEXT_BOLD,    /* with its asterisks */
    TEXT_CODE,    /* inline code, with its backticks */
    TEXT_BLOCK,   /* the lines of code between two fences */
    TEXT_FENCE,   /* a fence: the line of backticks or tildes before or after these lines */
    TEXT_MARK,    /* the bullet or number of a list item */
    TEXT_DIM,     /* thoughts; not used by this module */
    TEXT_LOOKS    /* number of looks */
};

/* Zero-initialise, free with markdown_finish. */
struct markdown {
    bool is_plain;       /* set by the caller: not Markdown, all characters are TEXT_PLAIN */
    struct strbuf bytes; /* an incomplete UTF-8 character */
    /* The place of the next character. The places from MD_FENCE on are in fenced code. */
    enum {
        MD_START,       /* before the first character that is no blank, '>' or list mark */
        MD_LINE,        /* later in a line */
        MD_FENCE,       /* after an opening fence, in its line */
        MD_BLOCK_START, /* in a line of code, which has only blanks or the '>' of a quote so far */
        MD_BLOCK_LINE,  /* later in a line of code */
        MD_BLOCK_END    /* after a closing fence, in its line */
    } place;
    char pending[MARKDOWN_MAX_PENDING]; /* (n_pending) an undecided mark */
    size_t n_pending;
    size_t n_code; /* number of backticks that end the inline code; 0: no code */
    bool is_bold, is_heading, is_escaped; /* is_escaped: a backslash precedes the next character */
    char fence;                           /* the character of the opening fence */
    size_t n_fence;                       /* its length */
    bool is_fence_quoted; /* the fence is in a block quote, so the code ends with the quote */
    bool is_quoted;       /* a '>' came before the text of this line */
    uint32_t before;      /* the last decided character; 0 or newline: start of a line */
    uint32_t literal;     /* in a run of this character too long for a mark; 0: no such run */
};
void markdown_finish(struct markdown *m);

/* Receives the decided characters, cleaned as by term_text_next. */
struct markdown_sink {
    void (*put)(void *ud, const struct term_char *c, enum text_look look);
    void *ud;
};
/* Add a piece of the text, of any bytes. If memory runs out, the piece is lost, with the bytes of
 * an incomplete character before it, and strbuf_n_failed counts it. */
void markdown_add(struct markdown *m, struct bn_str text, const struct markdown_sink *sink);
/* Decide a pending mark as if a blank followed it. More text may be added after this call. */
void markdown_flush(struct markdown *m, const struct markdown_sink *sink);
/* The same at the end of the text: the bytes of an incomplete character become U+FFFD. */
void markdown_end(struct markdown *m, const struct markdown_sink *sink);

/* The hanging indent of a line: its later rows begin in the column of its first text behind blanks,
 * list marks and the '>' of quotes, so that the rows of a list item, of a quote or of an indented
 * line are below each other. Only the first row of a quote has a '>'. Zeros: no text yet. In a
 * table they begin in the last column of the line. */
struct markdown_hang {
    size_t column;
    bool has_text; /* not in a table */
    bool is_quote; /* there is a '>' before the text */
    bool is_table;
};
/* The line has this character in this column. */
void markdown_hang_add(struct markdown_hang *h, uint32_t code, enum text_look look, size_t column);
/* A row of the line ends. If there was no text yet, no row of the line is indented. */
void markdown_hang_new_row(struct markdown_hang *h);
/* The number of blanks before a later row, of which `limit` columns may be used. At least a
 * third of the row is left for text. A quote whose text begins beyond a third of the row gets no
 * blanks, because a model may write any number of '>'. A table whose last column has less room, or
 * too little for most words, gets two blanks: between two columns, text would belong to neither. */
size_t markdown_hang_indent(const struct markdown_hang *h, size_t limit);

/* Lines with this look keep their blanks and are not broken between words. */
static inline bool markdown_is_block(enum text_look look)
{
    return look == TEXT_BLOCK || look == TEXT_FENCE;
}

#endif
