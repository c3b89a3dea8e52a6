/*
 * The output of answers on a terminal. The first byte of an input selects the width and the wrap
 * mode, the rest is the text. Three checks: text in pieces gives the same bytes as the whole text;
 * the output without colour marks equals the output without colours; the scrolling transcript has
 * the same letters.
 */
#include "app/terminal/text/flow.h"
#include "app/terminal/text/scroll.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static const struct flow_looks marks = {
    {"\001n", "\001h", "\001b", "\001c", "\001k", "\001f", "\001m", "\001d"}};

static void check(bool true_for_all)
{
    if (!true_for_all)
        abort();
}

static void run(struct bn_str text, size_t piece, uint8_t kind, const struct flow_looks *looks,
                struct strbuf *out)
{
    struct flow f = {0};
    const enum flow_wrap wrap = kind & 1 ? FLOW_WRAP : FLOW_NO_WRAP;
    flow_init(&f, 1 + kind / 2, wrap, FLOW_ANSWER, looks);
    for (size_t at = 0; at < text.n_bytes; at += piece) {
        const size_t n = text.n_bytes - at < piece ? text.n_bytes - at : piece;
        flow_add(&f, (struct bn_str){text.ptr + at, n}, out);
        check(f.column <= f.columns || f.columns == 1);
        check(flow_n_pending(&f) <= text.n_bytes);
    }
    flow_flush(&f, out);
    flow_reset_look(&f, out);
    flow_finish(&f);
}

/* The text without colour marks (two bytes each, as in `marks`), blanks and newlines. */
static void add_letters(struct bn_str text, struct strbuf *out)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] == '\001')
            i++;
        else if (!strchr(" \n", text.ptr[i]))
            strbuf_add_char(out, text.ptr[i]);
    }
}

static void strip(struct bn_str text, struct strbuf *out)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] == '\001')
            i++;
        else
            strbuf_add_char(out, text.ptr[i]);
    }
}

static bool equal(const struct strbuf *a, const struct strbuf *b)
{
    return bn_str_equal(strbuf_str(a), strbuf_str(b));
}

static void check_scroll(struct bn_str text, uint8_t kind, const struct strbuf *letters)
{
    struct scroll s = {0};
    struct strbuf shown = {0};
    scroll_layout(&s, 1 + kind / 2);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, text);
    scroll_end(&s);
    for (size_t i = 0; i < s.n_rows; i++)
        add_letters(scroll_row(&s, i), &shown);
    check(equal(&shown, letters));
    strbuf_finish(&shown);
    scroll_finish(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct strbuf whole = {0}, cut = {0}, plain = {0}, stripped = {0}, letters = {0};
    if (n_bytes == 0)
        return 0;
    const struct bn_str text = {(const char *)bytes + 1, n_bytes - 1};
    run(text, n_bytes, bytes[0], &marks, &whole);
    run(text, 1 + bytes[0] % 7, bytes[0], &marks, &cut);
    run(text, n_bytes, bytes[0], NULL, &plain);
    strip(strbuf_str(&whole), &stripped);
    check(equal(&whole, &cut));
    check(equal(&stripped, &plain));
    add_letters(strbuf_str(&whole), &letters);
    check_scroll(text, bytes[0], &letters);
    strbuf_finish(&whole);
    strbuf_finish(&cut);
    strbuf_finish(&plain);
    strbuf_finish(&stripped);
    strbuf_finish(&letters);
    return 0;
}
