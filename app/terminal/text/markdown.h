/*
 * How each character of an answer looks, Markdown being what models write: headings, bold, inline
 * code, fenced code, marks of lists. Pure.
 *
 * Characters go in one by one and come out unchanged and in order, each with its look. What stands
 * on the screen is never looked at again, so a mark whose meaning the next character decides is
 * held back: at most MARKDOWN_HELD characters, ASCII all of them. The looks do not depend on how a
 * stream was cut. What is open at the end of a line (bold, inline code) ends there; only fences go
 * on.
 */
#ifndef APP_MARKDOWN_H
#define APP_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKDOWN_HELD 32

enum text_look {
    TEXT_PLAIN,
    TEXT_HEADING, /* the whole line */
    TEXT_BOLD,    /* marks included, here and below */
    TEXT_CODE,
    TEXT_BLOCK, /* lines between fences */
    TEXT_FENCE, /* the fences themselves */
    TEXT_MARK,  /* what begins an item of a list */
    TEXT_DIM,   /* thoughts; never given by this module */
    TEXT_LOOKS
};

struct markdown {
    enum { MD_START, MD_LINE, MD_FENCE, MD_BLOCK_START, MD_BLOCK_LINE, MD_BLOCK_END } place;
    char held[MARKDOWN_HELD]; /* (n_held) a mark that is not decided yet */
    size_t n_held;
    size_t n_code; /* inline code runs until so many backticks; 0: none */
    bool is_bold, is_heading, is_escaped;
    char fence;       /* its character ... */
    size_t n_fence;   /* ... and how many of it */
    uint32_t before;  /* the last character that came out; 0 or newline: at a line's start */
    uint32_t literal; /* a run of this that was too long to be a mark */
};

struct markdown_char {
    uint32_t code;
    enum text_look look;
};
#define MARKDOWN_OUT (MARKDOWN_HELD + 1)

/* One more character; gives how many are decided now, into out. Zero-initialise `m` before. */
size_t markdown_take(struct markdown *m, uint32_t code, struct markdown_char out[MARKDOWN_OUT]);
/* What is held back, as if a blank followed; more may be taken after it. */
size_t markdown_flush(struct markdown *m, struct markdown_char out[MARKDOWN_OUT]);
/* Lines of this look keep their blanks and are not broken between words. */
static inline bool markdown_is_block(enum text_look look)
{
    return look == TEXT_BLOCK || look == TEXT_FENCE;
}

#endif
