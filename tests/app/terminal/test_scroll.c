/*
 * Text in rows: the scrolling transcript, the rows of the editor, and the keys that move them.
 */
#include "app/terminal/key_queue.h"
#include "app/terminal/line/input_rows.h"
#include "app/terminal/term_keys.h"
#include "app/terminal/text/scroll.h"
#include "engine/base/clock.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t n_bytes_measured;

/* The linker option --wrap calls this in place of term_text_width. */
size_t __real_term_text_width(struct bn_str s);
size_t __wrap_term_text_width(struct bn_str s);
size_t __wrap_term_text_width(struct bn_str s)
{
    n_bytes_measured += s.n_bytes;
    return __real_term_text_width(s);
}

static void expect_rows(struct scroll *s, const char *expected)
{
    struct strbuf rows = {0};
    for (size_t i = 0; i < s->n_rows; i++) {
        strbuf_addf(&rows, "%*s", (int)scroll_row_indent(s, i), "");
        strbuf_add_str(&rows, scroll_row(s, i));
        strbuf_add_char(&rows, '|');
    }
    assert_string_equal(strbuf_text(&rows), expected);
    strbuf_finish(&rows);
}

static void words_wrap_whole_at_every_width(void **state)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog, again and again.";
    (void)state;
    for (size_t columns = 7; columns < 80; columns++) {
        struct scroll s = {0};
        struct strbuf joined = {0};
        scroll_layout(&s, columns);
        scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(text));
        for (size_t i = 0; i < s.n_rows; i++) {
            const struct bn_str row = scroll_row(&s, i);
            assert_true(row.n_bytes < columns);
            assert_true(row.ptr[0] != ' ');
            strbuf_addf(&joined, "%s%.*s", i > 0 ? " " : "", (int)row.n_bytes, row.ptr);
        }
        assert_string_equal(strbuf_text(&joined), text);
        strbuf_finish(&joined);
        scroll_finish(&s);
    }
}

static void rows_of_items_and_quotes_begin_below_text(void **state)
{
    struct scroll s = {0};
    struct strbuf out = {0};
    (void)state;
    scroll_layout(&s, 10);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS,
               bn_str_of("- one two three\n  12) a *bc* d e\n"
                         "* \xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\nfour five\n"
                         "> one two three\n>four five six\n"));
    scroll_add(&s, SCROLL_THOUGHT, SCROLL_WORDS, bn_str_of("+ six seven eight\n"));
    scroll_add(&s, SCROLL_NOTE, SCROLL_WORDS, bn_str_of("- six seven eight\n"));
    scroll_add(&s, SCROLL_TABLE, SCROLL_WORDS, bn_str_of("n  12 34 56 78\n"));
    static const char rows[] = "- one two|  three|  12) a|     *bc*|     d e|"
                               "* \xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2|  \xe5\xad\x97|"
                               "four five|> one two|  three|>four| five six|"
                               "+ six|  seven|  eight|- six|seven|eight|n  12 34|  56 78|";
    expect_rows(&s, rows);
    (void)scroll_print(&s, (struct scroll_position){0, 0}, SIZE_MAX, &out);
    for (size_t i = 0; i < sizeof(rows) - 1; i++)
        assert_int_equal(out.ptr[i], rows[i] == '|' ? '\n' : rows[i]);
    strbuf_finish(&out);
    scroll_layout(&s, 4); /* room is left for text */
    assert_int_equal(scroll_row_indent(&s, 1), 1);
    scroll_layout(&s, 80);
    assert_int_equal(s.n_rows, 9);
    scroll_finish(&s);
}

/* The same cases as in test_flow.c: both painters give the same rows. */
static void expect_wrapped(const char *text, size_t columns, const char *rows)
{
    struct scroll s = {0};
    scroll_layout(&s, columns);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(text));
    expect_rows(&s, rows);
    scroll_finish(&s);
}

static void quotes_are_wrapped_as_on_the_ordinary_screen(void **state)
{
    (void)state;
    expect_wrapped(">>>>abcdefgh", 13, ">>>>abcdefgh|");
    expect_wrapped(">>>abcdefgh", 11, ">>>abcdefg|   h|");
    expect_wrapped(">https://example.org/a/b", 20, ">https://example.or| g/a/b|");
    expect_wrapped(">>>>>>>>https://example.org/a", 30, ">>>>>>>>https://example.org/a|");
    expect_wrapped(">>> a b c d", 10, ">>> a b c|d|");
    expect_wrapped("> - a b c d e", 13, "> - a b c d|    e|");
    expect_wrapped(">>>>>>>>>>>>>> a b c d e", 13, ">>>>>>>>>>>>|>> a b c d e|");
    expect_wrapped(">>>>>>>>>>>>>> a b c d e f", 13, ">>>>>>>>>>>>|>> a b c d e|f|");
    expect_wrapped("> > > > > > > one two three", 12, "> > > > > >|> one two|three|");
}

/* A message or a saved part of the answer may come within an item. */
static void an_interrupted_list_item_goes_on_below_its_text(void **state)
{
    struct scroll s = {0};
    struct scroll_paused paused;
    (void)state;
    scroll_layout(&s, 12);
    scroll_skip(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("- skipped"));
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(" text and more"));
    expect_rows(&s, "  text and|  more|");
    scroll_pause(&s, &paused);
    scroll_add(&s, SCROLL_PLAIN, SCROLL_WORDS, bn_str_of("note\n"));
    scroll_end(&s);
    scroll_resume(&s, &paused);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(" behind a note"));
    expect_rows(&s, "  text and|  more|note|  behind a|  note|");
    scroll_pause(&s, &paused);
    scroll_add(&s, SCROLL_PLAIN, SCROLL_WORDS, bn_str_of("note\n"));
    scroll_end(&s);
    scroll_resume(&s, &paused);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("\nb"));
    expect_rows(&s, "  text and|  more|note|  behind a|  note|note|b|");
    scroll_finish(&s);
}

/* A model may write such a line of any length. */
static void a_long_line_is_not_measured_for_each_character(void **state)
{
    static const struct {
        enum scroll_look look;
        const char *part; /* of the line */
    } cases[] = {
        {SCROLL_ANSWER, " "}, {SCROLL_ANSWER, "- "}, {SCROLL_THOUGHT, "\t"}, {SCROLL_TABLE, "x  "}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scroll s = {0};
        struct strbuf line = {0};
        for (size_t k = 0; k < 1000; k++)
            strbuf_add_text(&line, cases[i].part);
        n_bytes_measured = 0;
        scroll_layout(&s, 80);
        scroll_add(&s, cases[i].look, SCROLL_WORDS, strbuf_str(&line));
        assert_in_range(n_bytes_measured, 0, line.n_bytes);
        assert_int_equal(s.lines[0].text_columns, term_text_width(strbuf_str(&s.lines[0].text)));
        strbuf_finish(&line);
        scroll_finish(&s);
    }
}

static void blanks_beyond_the_width_are_left_out(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 8);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS,
               bn_str_of("four five       \n         six\nseven        "));
    expect_rows(&s, "four|five   |       |    six|seven  |");
    scroll_finish(&s);
}

static void pieces_give_the_rows_of_the_whole(void **state)
{
    static const char text[] =
        "a\xE6\xBC\xA2 b\tc\n\n```c\nint  x;   // long code\n```\ne\xCC\x81 end";
    (void)state;
    for (size_t cut = 0; cut < sizeof(text); cut++) {
        struct scroll s = {0};
        scroll_layout(&s, 10);
        scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, (struct bn_str){text, cut});
        scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS,
                   (struct bn_str){text + cut, sizeof(text) - 1 - cut});
        scroll_end(&s);
        expect_rows(&s, "a\xE6\xBC\xA2 b   c||```c|int  x;   |// long co|de|```|e\xCC\x81 end|");
        scroll_finish(&s);
    }
}

static void a_new_width_keeps_every_row_of_code(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 20);
    scroll_add(&s, SCROLL_PLAIN, SCROLL_COLUMNS, bn_str_of("0123456789\nab"));
    scroll_end(&s);
    expect_rows(&s, "0123456789|ab|");
    scroll_layout(&s, 4);
    expect_rows(&s, "0123|4567|89|ab|");
    assert_int_equal(scroll_line_of(&s, 2), 0);
    assert_int_equal(scroll_line_of(&s, 3), 1);
    scroll_layout(&s, 1);
    assert_int_equal(s.n_rows, 12);
    scroll_truncate(&s, 1);
    assert_int_equal(s.n_rows, 10);
    scroll_finish(&s);
}

static void controls_and_broken_bytes_are_replaced(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 20);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("\x1b[2J\xE6\xBC"));
    scroll_add(&s, SCROLL_NOTE, SCROLL_WORDS, bn_str_of("note\n"));
    expect_rows(&s, "\xEF\xBF\xBD[2J\xEF\xBF\xBD\xEF\xBF\xBD|note|");
    scroll_finish(&s);
}

static void printing_gives_the_last_rows_and_counts_the_others(void **state)
{
    struct scroll s = {0};
    struct strbuf out = {0};
    (void)state;
    scroll_layout(&s, 10);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("one\ntwo words here\nthree\n"));
    scroll_add(&s, SCROLL_PLAIN, SCROLL_COLUMNS, bn_str_of("0123456789ab\n"));
    assert_int_equal(scroll_print(&s, (struct scroll_position){0}, 100, &out), 0);
    assert_string_equal(strbuf_text(&out), "one\ntwo words\nhere\nthree\n0123456789ab\n");
    strbuf_cut(&out, 0);
    assert_int_equal(scroll_print(&s, (struct scroll_position){1, 0}, 3, &out), 2);
    assert_string_equal(strbuf_text(&out), "three\n0123456789ab\n");
    strbuf_finish(&out);
    scroll_finish(&s);
}

static void expect_input(const char *text, size_t point, size_t columns, const char *rows,
                         const size_t at[2])
{
    struct input_rows r = {0};
    struct strbuf all = {0};
    input_rows_make(&r, "\001\033[1m\002> \001\033[m\002", bn_str_of(text), point, columns);
    for (size_t i = 0; i < r.n; i++) {
        strbuf_add_str(&all, input_rows_row(&r, i));
        strbuf_add_char(&all, '|');
    }
    assert_string_equal(strbuf_text(&all), rows);
    assert_int_equal(r.cursor_row, at[0]);
    assert_int_equal(r.cursor_column, at[1]);
    strbuf_finish(&all);
    input_rows_finish(&r);
}

static void the_cursor_is_at_its_byte(void **state)
{
    (void)state;
    expect_input("", 0, 20, "> |", (const size_t[]){0, 2});
    expect_input("abc", 1, 20, "> abc|", (const size_t[]){0, 3});
    expect_input("a\xE6\xBC\xA2z", 4, 20, "> a\xE6\xBC\xA2z|", (const size_t[]){0, 5});
    expect_input("e\xCC\x81z", 3, 20, "> e\xCC\x81z|", (const size_t[]){0, 3});
    expect_input("a\nb", 3, 20, "> a|... b|", (const size_t[]){1, 5});
    expect_input("a\n\xEF\xB8\x8F", 5, 20, "> a|... \xEF\xB8\x8F|", (const size_t[]){1, 4});
    expect_input("\x01\x7f", 2, 20, "> ^A^?|", (const size_t[]){0, 6});
    expect_input("abcdef", 6, 4, "> ab|cdef||", (const size_t[]){2, 0});
    expect_input("abcdef", 2, 4, "> ab|cdef|", (const size_t[]){1, 0});
    expect_input("a\xE6\xBC\xA2z", 4, 4, "> a|\xE6\xBC\xA2z|", (const size_t[]){1, 2});
}

/* `r` has the rows of ten lines, the digits 0 to 9, of which n_shown were kept. Each digit is in
 * its place or counted by a mark, and the cursor is in the row of its digit. */
static void expect_limited(const struct input_rows *r, size_t n_shown, char digit)
{
    const size_t last = r->n - 1;
    size_t n_above = 0, n_below = 0;
    assert_int_equal(r->n, n_shown < 10 ? n_shown : 10);
    assert_true(r->cursor_row < r->n);
    assert_false(input_rows_is_mark(r, r->cursor_row));
    assert_int_equal(input_rows_row(r, r->cursor_row).ptr[0], digit);
    assert_ptr_equal(input_rows_before(r).ptr, input_rows_row(r, r->cursor_row).ptr);
    if (input_rows_is_mark(r, 0))
        assert_int_equal(sscanf(input_rows_row(r, 0).ptr, "(%zu rows above)", &n_above), 1);
    if (input_rows_is_mark(r, last))
        assert_int_equal(sscanf(input_rows_row(r, last).ptr, "(%zu rows below)", &n_below), 1);
    const size_t first = n_above > 0, end = last + 1 - (n_below > 0);
    for (size_t i = first; i < end; i++)
        assert_int_equal(input_rows_row(r, i).ptr[0],
                         n_shown < 3 ? digit - r->cursor_row + i : '0' + n_above + i - first);
    if (n_shown >= 3)
        assert_int_equal(n_above + (end - first) + n_below, 10);
}

static void the_pane_shows_the_cursors_row_and_counts_the_others(void **state)
{
    struct input_rows r = {0};
    (void)state;
    for (size_t point = 0; point <= 19; point++)
        for (size_t n = 1; n < 12; n++) {
            input_rows_make(&r, "", bn_str_of("0\n1\n2\n3\n4\n5\n6\n7\n8\n9"), point, 5);
            input_rows_limit(&r, n, 80);
            expect_limited(&r, n, (char)('0' + point / 2));
        }
    input_rows_finish(&r);
}

static void marks_of_hidden_rows_fit_the_columns(void **state)
{
    struct input_rows r = {0};
    (void)state;
    input_rows_make(&r, "> ", bn_str_of("a\nb\nc\nd\ne\nf"), 7, 6);
    input_rows_limit(&r, 4, 6);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.n_prompt, 0);
    assert_memory_equal(strbuf_text(&r.text), "(2 rowcd(2 row", 15);
    assert_int_equal(r.cursor_row, 2);
    input_rows_make(&r, "> ", bn_str_of("a\nb\nc\nd\ne\nf"), 1, 6);
    input_rows_limit(&r, 4, 20);
    assert_int_equal(r.n_prompt, 2);
    assert_string_equal(strbuf_text(&r.text), "> abc(3 rows below)");
    input_rows_finish(&r);
}

/* One letter per look, in the order of enum text_look. */
static void expect_looks(const struct scroll *s, size_t row, const char *expected)
{
    const struct bn_str part = scroll_row(s, row);
    const char *looks = scroll_row_looks(&s->lines[scroll_line_of(s, row)], part);
    char letters[80] = "";
    for (size_t i = 0; looks && i < part.n_bytes; i++)
        letters[i] = ".HBCKFM"[(size_t)looks[i]];
    assert_string_equal(letters, expected);
}

static void only_answers_have_looks(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 12);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("- a **bold wo"));
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("rd** b\n```\na long line of code"));
    scroll_add(&s, SCROLL_NOTE, SCROLL_WORDS, bn_str_of("**a** note"));
    expect_rows(&s, "- a **bold|  word** b|```|a long line |of code|**a** note|");
    expect_looks(&s, 0, "M...BBBBBB");
    expect_looks(&s, 1, "BBBBBB..");
    expect_looks(&s, 2, "FFF");
    expect_looks(&s, 4, "KKKKKKK");
    expect_looks(&s, 5, "");
    scroll_finish(&s);
}

static void emoji_style_makes_a_character_wide(void **state)
{
    struct scroll s = {0};
    struct input_rows r = {0};
    (void)state;
    scroll_layout(&s, 4);
    scroll_add(&s, SCROLL_PLAIN, SCROLL_COLUMNS,
               bn_str_of("ab\xE2\x9D\xA4\xEF\xB8\x8F"
                         "c\xE2\x9D\xA4\xEF\xB8\x8F"));
    expect_rows(&s, "ab\xE2\x9D\xA4\xEF\xB8\x8F|c\xE2\x9D\xA4\xEF\xB8\x8F|");
    scroll_truncate(&s, 0);
    scroll_add(&s, SCROLL_PLAIN, SCROLL_COLUMNS, bn_str_of("abc\xE2\x9D\xA4\xEF\xB8\x8F"));
    expect_rows(&s, "abc|\xE2\x9D\xA4\xEF\xB8\x8F|");
    scroll_finish(&s);
    input_rows_make(&r, "", bn_str_of("\xE2\x9D\xA4\xEF\xB8\x8Fx"), 6, 10);
    assert_int_equal(r.cursor_column, 2);
    input_rows_finish(&r);
}

static void printing_begins_at_a_position(void **state)
{
    struct scroll s = {0};
    struct strbuf out = {0};
    (void)state;
    scroll_layout(&s, 20);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("said before\nhalf a"));
    const struct scroll_position here = scroll_end_position(&s);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(" line that goes on\nend"));
    scroll_end(&s);
    assert_int_equal(scroll_print(&s, here, 100, &out), 0);
    assert_string_equal(strbuf_text(&out), "line that goes on\nend\n");
    strbuf_cut(&out, 0);
    scroll_truncate(&s, 1);
    assert_int_equal(scroll_print(&s, here, 100, &out), 0);
    assert_string_equal(strbuf_text(&out), "");
    strbuf_finish(&out);
    scroll_finish(&s);
}

/* A number or a dash at the beginning of a line may become a Markdown mark, so it waits. */
static void a_pending_mark_that_begins_a_line_has_a_row(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 20);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("first line\nsecond line\n1"));
    (void)scroll_end_position(&s);
    expect_rows(&s, "first line|second line|1|");
    scroll_finish(&s);
}

static void keys_are_found_outside_of_pastes(void **state)
{
    static const char typed[] = "ab\033[200~\033[5~\033[201~c\033[6~d";
    (void)state;
    struct term_key_hit hit = term_keys_find(typed, sizeof(typed) - 1, TERM_KEY_NONE);
    assert_int_equal(hit.key, TERM_KEY_PAGE_DOWN);
    assert_int_equal(hit.at, strlen(typed) - 5);
    assert_int_equal(hit.n_bytes, 4);
    hit = term_keys_find(typed, 14, TERM_KEY_NONE); /* the paste has no end yet */
    assert_int_equal(hit.key, TERM_KEY_NONE);
    assert_int_equal(hit.at, 14);
    assert_int_equal(term_keys_find("\033OQ", 3, TERM_KEY_NONE).key, TERM_KEY_F2);
    assert_int_equal(term_keys_find("\033[1;5H", 6, TERM_KEY_NONE).key, TERM_KEY_FIRST);
    assert_int_equal(term_keys_find("\033[A", 3, TERM_KEY_NONE).key, TERM_KEY_NONE);
}

static void the_tail_is_an_unfinished_sequence(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {{"", 0},         {"abc", 0},     {"a\033", 1},  {"a\033[", 2},  {"\033O", 2},
                 {"\033[1;5", 5}, {"\033[5~", 0}, {"\033[[", 3}, {"\033x", 0},   {"\033[A", 0},
                 {"\033[200", 5}, {"\033O2", 3},  {"\033OP", 0}, {"\033[[A", 0}, {"\033[?1:2$", 7}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(term_keys_tail(cases[i].bytes, strlen(cases[i].bytes)), cases[i].n);
}

/* Whether Esc was among the keys, if no further key came for a while. */
static bool filtered(const char *typed, const char *expected)
{
    struct key_queue q = {.read_at = clock_seconds() - 1};
    strbuf_add_text(&q.bytes, typed);
    const bool stops = key_queue_filter(&q);
    assert_string_equal(strbuf_text(&q.bytes), expected);
    strbuf_finish(&q.bytes);
    return stops;
}

static void the_filter_removes_control_d_and_escapes_but_keeps_pastes(void **state)
{
    (void)state;
    assert_true(filtered("a\rb\004c\033", "a\rbc"));
    assert_true(filtered("a\033\033", "a"));
    assert_false(filtered("a\rb\004", "a\rb"));
    assert_false(
        filtered("x\033[200~1\r2\004\033[201~\033\r", "x\033[200~1\r2\004\033[201~\033\r"));
    assert_false(filtered("\033[200~1\r2\033", "\033[200~1\r2\033")); /* no end yet */
}

#define FAMILY "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"

static void the_cursor_is_never_within_an_emoji(void **state)
{
    struct input_rows r = {0};
    const struct bn_str text = bn_str_of("a" FAMILY "b");
    (void)state;
    for (size_t point = 1; point <= strlen("a" FAMILY); point++) {
        input_rows_make(&r, "", text, point, 20);
        assert_int_equal(r.cursor_byte, point < strlen("a" FAMILY) ? 1 : strlen("a" FAMILY));
    }
    assert_int_equal(input_rows_width(text), 4);
    assert_int_equal(input_rows_width(bn_str_of("\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD")),
                     2); /* a skin tone */
    input_rows_finish(&r);
}

static void a_line_is_replaced_by_several(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 10);
    scroll_add(&s, SCROLL_USER, SCROLL_WORDS, bn_str_of("one\ntwo\n"));
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("three"));
    assert_int_equal(scroll_replace(&s, 0, bn_str_of("first second\nthird")), 2);
    expect_rows(&s, "first|second|third|two|three|");
    assert_int_equal(s.lines[1].look, SCROLL_USER);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of(" 4")); /* the open line is still open */
    expect_rows(&s, "first|second|third|two|three 4|");
    assert_int_equal(scroll_replace(&s, 1, bn_str_of("3")), 1);
    expect_rows(&s, "first|second|3|two|three 4|");
    scroll_finish(&s);
}

static void the_row_of_a_position_is_known(void **state)
{
    struct scroll s = {0};
    (void)state;
    scroll_layout(&s, 8);
    scroll_add(&s, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("one\n- two three four\n\nfive"));
    expect_rows(&s, "one|- two|  three|  four||five|");
    static const size_t rows[][3] = {{0, 0, 0},  {1, 0, 1},  {1, 5, 1}, {1, 6, 2},
                                     {1, 12, 3}, {1, 15, 3}, {2, 0, 4}, {3, 3, 5}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(scroll_row_of(&s, (struct scroll_position){rows[i][0], rows[i][1]}),
                         rows[i][2]);
    scroll_finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_replaced_by_several),
        cmocka_unit_test(the_row_of_a_position_is_known),
        cmocka_unit_test(words_wrap_whole_at_every_width),
        cmocka_unit_test(rows_of_items_and_quotes_begin_below_text),
        cmocka_unit_test(quotes_are_wrapped_as_on_the_ordinary_screen),
        cmocka_unit_test(an_interrupted_list_item_goes_on_below_its_text),
        cmocka_unit_test(a_long_line_is_not_measured_for_each_character),
        cmocka_unit_test(blanks_beyond_the_width_are_left_out),
        cmocka_unit_test(pieces_give_the_rows_of_the_whole),
        cmocka_unit_test(a_new_width_keeps_every_row_of_code),
        cmocka_unit_test(controls_and_broken_bytes_are_replaced),
        cmocka_unit_test(printing_gives_the_last_rows_and_counts_the_others),
        cmocka_unit_test(only_answers_have_looks),
        cmocka_unit_test(emoji_style_makes_a_character_wide),
        cmocka_unit_test(a_pending_mark_that_begins_a_line_has_a_row),
        cmocka_unit_test(printing_begins_at_a_position),
        cmocka_unit_test(the_cursor_is_at_its_byte),
        cmocka_unit_test(the_pane_shows_the_cursors_row_and_counts_the_others),
        cmocka_unit_test(marks_of_hidden_rows_fit_the_columns),
        cmocka_unit_test(keys_are_found_outside_of_pastes),
        cmocka_unit_test(the_tail_is_an_unfinished_sequence),
        cmocka_unit_test(the_filter_removes_control_d_and_escapes_but_keeps_pastes),
        cmocka_unit_test(the_cursor_is_never_within_an_emoji),
    };
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
