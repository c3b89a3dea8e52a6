/*
 * termios and bracketed paste: see tty.h. The state has file scope because a signal handler uses
 * it.
 */
#include "app/terminal/tty.h"

#include "app/terminal/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Bracketed paste. Terminals without it ignore this. terminfo has no standard name for it. */
#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define N_PASTE (sizeof(PASTE_ON) - 1) /* bytes of PASTE_ON, and of PASTE_OFF */

static struct termios original; /* the mode before tty_acquire */
/* is_bracketed stays set after the terminal is released, for tty_reacquire. */
static volatile sig_atomic_t is_acquired, is_bracketed;
static size_t n_early; /* bytes typed before the terminal was acquired and not read since */
static char exit_sequence[101]; /* (n_exit_sequence) bytes of tty_set_exit_sequence */
static volatile sig_atomic_t n_exit_sequence;

void tty_enable_bracketed_paste(void)
{
    is_bracketed = 1;
    /* If this fails, pastes arrive as typed keys. `!`: gcc warns about an ignored result even after
     * a cast to void. */
    (void)!write(STDOUT_FILENO, PASTE_ON, N_PASTE);
}

/* Count the unread bytes that were typed before the mode changed, if that mode stored an LF for
 * each Enter (ICRNL without IGNCR); else return 0. The count distinguishes these LF from that of a
 * later Ctrl-J. Call it after the change: before it, FIONREAD would count complete lines only. */
static size_t count_early(void)
{
    int n = 0;
    const bool made_lf = (original.c_iflag & ICRNL) && !(original.c_iflag & IGNCR);
    return made_lf && ioctl(STDIN_FILENO, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* The call fails if this is not the terminal that controls the process, or if the terminal is gone.
 * Then the kernel does not stop the process either. */
bool tty_is_in_background(void)
{
    const pid_t foreground = tcgetpgrp(STDIN_FILENO);
    return foreground >= 0 && foreground != getpgrp();
}

bool tty_wait_for_foreground(struct bn_error *err)
{
    return signals_wait_for_foreground() ||
           bn_fail(err, BN_EIO, "a signal ends the program in the background");
}

bool tty_acquire(enum tty_paste paste, struct bn_error *err)
{
    struct termios raw;
    if (is_acquired)
        return true;
    /* Before the mode is read: in the background, it is that of the shell's own line editor. */
    if (!tty_wait_for_foreground(err))
        return false;
    if (tcgetattr(STDIN_FILENO, &original) != 0)
        return bn_fail(err, BN_EIO, "standard input is no terminal: %s", strerror(errno));
    raw = original;
    /* As tty.h describes; without ISTRIP, because UTF-8 needs all eight bits of a byte. */
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_cc[VMIN] = 1; /* a read returns after one byte */
    raw.c_cc[VTIME] = 0;
    int failed;
    while ((failed = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)) != 0 && errno == EINTR)
        ; /* a signal, such as a change of the window's size, has ended the wait for the output */
    if (failed)
        return bn_fail(err, BN_EIO, "cannot set the terminal: %s", strerror(errno));
    is_acquired = 1;
    n_early = count_early();
    is_bracketed = 0;
    if (paste == TTY_PASTE_BRACKETED)
        tty_enable_bracketed_paste();
    return true;
}

size_t tty_take_early(size_t n_bytes)
{
    const size_t n = n_bytes < n_early ? n_bytes : n_early;
    n_early -= n;
    return n;
}

bool tty_reacquire(struct bn_error *err)
{
    if (!tty_wait_for_foreground(err)) /* tty_release writes to the terminal */
        return false;
    tty_release(); /* tty_acquire does nothing while is_acquired is set */
    return tty_acquire(is_bracketed ? TTY_PASTE_BRACKETED : TTY_PASTE_PLAIN, err);
}

bool tty_restore_now(void)
{
    if (!is_acquired)
        return false;
    is_acquired = 0; /* first, so that a signal handler does not restore a second time */
    /* SIGSTOP stops the process before it can release the terminal. The shell has set its own mode
     * then, and in the background tcsetattr would stop a process that is about to end. */
    if (tty_is_in_background())
        return false;
    if (n_exit_sequence > 0)
        (void)!write(STDOUT_FILENO, exit_sequence, (size_t)n_exit_sequence);
    n_exit_sequence = 0;
    if (is_bracketed)
        (void)!write(STDOUT_FILENO, PASTE_OFF, N_PASTE);
    /* TCSANOW: a signal handler must not wait for output. An error means that the terminal is
     * gone. */
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &original);
    return true;
}

void tty_set_exit_sequence(const char *bytes)
{
    const size_t n =
        strlen(bytes) < sizeof(exit_sequence) ? strlen(bytes) : sizeof(exit_sequence) - 1;
    n_exit_sequence = 0; /* a handler that runs now must not see half a string */
    memcpy(exit_sequence, bytes, n);
    n_exit_sequence = (sig_atomic_t)n;
}

void tty_release(void)
{
    (void)tty_restore_now(); /* whether it was acquired does not matter */
}

/* EAGAIN is possible because another program may have made the terminal non-blocking. */
bool tty_write(const char *bytes, size_t n_bytes)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    for (size_t at = 0; at < n_bytes;) {
        const ssize_t n = write(STDOUT_FILENO, bytes + at, n_bytes - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            (void)poll(&out, 1, -1); /* if a signal ends the wait, write fails with EAGAIN again */
        else if (errno != EINTR)
            return false;
    }
    return true;
}

struct tty_size tty_size(int fd)
{
    struct winsize ws;
    if (ioctl(fd, TIOCGWINSZ, &ws) != 0 || ws.ws_col == 0 || ws.ws_row == 0)
        return (struct tty_size){80, 24};
    return (struct tty_size){ws.ws_col, ws.ws_row};
}

size_t tty_safe_columns(struct tty_size size)
{
    return size.columns > 1 ? size.columns - 1 : 1;
}
