/*
 * Keys from a pipe at descriptor 0: which LF is the Enter key, and characters in two parts.
 */
#include "app/terminal/key_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int keyboard; /* the end of the pipe that is written to */

static int open_keyboard(void **state)
{
    (void)state;
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[0], STDIN_FILENO) != STDIN_FILENO)
        return -1;
    keyboard = ends[1];
    return close(ends[0]);
}

/* Writes each part and reads it, then compares the queue. */
static void expect(const char *const *parts, const char *keys)
{
    struct key_queue q = {0};
    for (; *parts; parts++) {
        size_t n_added;
        assert_int_equal(write(keyboard, *parts, strlen(*parts)), strlen(*parts));
        assert_true(key_queue_read(&q, &n_added));
    }
    assert_string_equal(strbuf_text(&q.bytes), keys);
    strbuf_finish(&q.bytes);
}
#define EXPECT(keys, ...) expect((const char *const[]){__VA_ARGS__, NULL}, keys)

static void the_lf_of_a_sent_line_is_enter(void **state)
{
    (void)state;
    EXPECT("hello\r", "hello\n");
    EXPECT("hello\r", "hello\r\n");
    EXPECT("a\nb\r", "a\nb\n");
}

static void other_lf_stay(void **state)
{
    (void)state;
    EXPECT("a\nb", "a", "\n", "b");
    EXPECT("a\033\n", "a\033\n"); /* Alt-Ctrl-J */
    EXPECT("\033[200~a\n", "\033[200~a\n");
}

static void a_part_of_a_character_changes_no_earlier_key(void **state)
{
    (void)state;
    EXPECT("a\n\xe4\xb8\xad", "a", "\n", "\xe4\xb8", "\xad");
    EXPECT("a\n", "a", "\n", "\xe4\xb8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lf_of_a_sent_line_is_enter),
        cmocka_unit_test(other_lf_stay),
        cmocka_unit_test(a_part_of_a_character_changes_no_earlier_key),
    };
    return cmocka_run_group_tests(tests, open_keyboard, NULL);
}
