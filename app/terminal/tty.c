/*
 * termios and bracketed paste: see tty.h. State is file-scope because a signal handler needs it.
 */
#include "app/terminal/tty.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* xterm's bracketed paste, understood or ignored everywhere; terminfo has no standard name for it.
 */
#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define N_PASTE (sizeof(PASTE_ON) - 1)

static struct termios original;
static volatile sig_atomic_t is_taken, is_marked;
static char leave[101];
static volatile sig_atomic_t n_leave;

void tty_mark_pastes(void)
{
    is_marked = 1;
    (void)!write(STDOUT_FILENO, PASTE_ON, N_PASTE); /* without it pastes are just typed fast */
}

bool tty_take(enum tty_paste paste, struct bn_error *err)
{
    struct termios raw;
    if (is_taken)
        return true;
    if (tcgetattr(STDIN_FILENO, &original) != 0)
        return bn_fail(err, BN_EIO, "standard input is no terminal: %s", strerror(errno));
    raw = original;
    raw.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
        return bn_fail(err, BN_EIO, "cannot set the terminal: %s", strerror(errno));
    is_taken = 1;
    is_marked = 0;
    if (paste == TTY_PASTE_MARKED)
        tty_mark_pastes();
    return true;
}

bool tty_take_again(struct bn_error *err)
{
    tty_give_back(); /* who had it may have set it otherwise */
    return tty_take(is_marked ? TTY_PASTE_MARKED : TTY_PASTE_PLAIN, err);
}

void tty_restore_now(void)
{
    if (!is_taken)
        return;
    is_taken = 0;
    if (n_leave > 0)
        (void)!write(STDOUT_FILENO, leave, (size_t)n_leave);
    n_leave = 0;
    if (is_marked)
        (void)!write(STDOUT_FILENO, PASTE_OFF, N_PASTE);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &original); /* a terminal that is gone needs nothing */
}

void tty_set_leave(const char *bytes)
{
    const size_t n = strlen(bytes) < sizeof(leave) ? strlen(bytes) : sizeof(leave) - 1;
    n_leave = 0; /* a handler that comes now finds nothing half written */
    memcpy(leave, bytes, n);
    n_leave = (sig_atomic_t)n;
}

void tty_give_back(void)
{
    tty_restore_now();
}

/* Another program of the same terminal may have made it one that does not wait. */
bool tty_write(const char *bytes, size_t n_bytes)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    for (size_t at = 0; at < n_bytes;) {
        const ssize_t n = write(STDOUT_FILENO, bytes + at, n_bytes - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            (void)poll(&out, 1, -1); /* a signal: write says EAGAIN again */
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
