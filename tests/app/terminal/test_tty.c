/*
 * tty_write writes all bytes, even if another program has made the terminal non-blocking.
 */
#include "app/terminal/tty.h"
#include "engine/base/memory.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N_BYTES ((size_t)1 << 20) /* more than a pipe holds */

static void read_all(int from, size_t n_bytes)
{
    char bytes[4096];
    size_t n_read = 0;
    ssize_t n;
    while ((n = read(from, bytes, sizeof bytes)) > 0)
        n_read += (size_t)n;
    _exit(n_read == n_bytes ? 0 : 1);
}

/* Write to a pipe end that replaces standard output. */
static bool write_to(int fd, const char *bytes, size_t n_bytes)
{
    const int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
    const bool ok = tty_write(bytes, n_bytes);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    (void)close(saved);
    (void)close(fd);
    return ok;
}

static void waits_for_a_non_blocking_terminal(void **state)
{
    int ends[2], status;
    char *bytes = mem_alloc(N_BYTES, 1);
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'x', N_BYTES);
    assert_int_equal(pipe(ends), 0);
    const pid_t reader = fork();
    assert_true(reader >= 0);
    if (reader == 0) {
        (void)close(ends[1]);
        read_all(ends[0], N_BYTES);
    }
    (void)close(ends[0]);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_true(write_to(ends[1], bytes, N_BYTES));
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    mem_free(bytes);
}

static void reports_that_a_terminal_is_gone(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    (void)close(ends[0]);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_false(write_to(ends[1], "x", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_for_a_non_blocking_terminal),
        cmocka_unit_test(reports_that_a_terminal_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
