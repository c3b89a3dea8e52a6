/*
 * Signal handlers: see signals.h. The state has file scope because handlers get no argument.
 */
#include "app/terminal/signals.h"

#include "app/common/file/mapped_file.h"
#include "app/common/timing/run_clock.h"
#include "app/terminal/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static volatile sig_atomic_t interrupt_ends; /* see signals_arm_interrupt */
static int wake = -1;                        /* write end of the wake pipe */

/* watched[i] raises flag 1 << i. */
static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};
#define N_WATCHED (sizeof(watched) / sizeof(watched[0]))
static volatile sig_atomic_t raised[N_WATCHED]; /* one object per flag, so no lock is needed */
/* SIGTERM or SIGHUP has arrived. It stays set after signals_fetch: the program ends in any case. */
static volatile sig_atomic_t is_ending;

/* Faults of a thread, SIGABRT, and SIGQUIT (Ctrl-\). No thread blocks them. With
 * SIGNALS_TERMINAL on_fatal handles all of them, even if they were ignored at the start. */
static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT};
#define N_FATAL (sizeof(fatal) / sizeof(fatal[0]))

/* Other signals that end a process by default; without SIGKILL, which cannot be handled, and
 * SIGXFSZ, which signals_ignore_size_limit ignores. The worker blocks them, so the main thread runs
 * the handler. */
static const int ending[] = {
    SIGPIPE,   SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGTRAP, SIGSYS, SIGPOLL,
#ifdef SIGSTKFLT
    SIGSTKFLT,
#endif
#ifdef SIGPWR
    SIGPWR,
#endif
};
#define N_ENDING (sizeof(ending) / sizeof(ending[0]))

/* Restore the terminal of a program that ends in a signal handler. The cursor may be on the status
 * row, so what the shell writes next begins below it. */
static void leave_terminal(void)
{
    if (tty_restore_now())
        (void)!write(STDOUT_FILENO, "\r\n", 2);
}

static void on_signal(int number)
{
    const int saved = errno;
    if (number == SIGINT && interrupt_ends) {
        leave_terminal();
        _exit(130);
    }
    for (size_t i = 0; i < N_WATCHED; i++)
        if (watched[i] == number)
            raised[i] = 1;
    if (number == SIGTERM || number == SIGHUP)
        is_ending = 1;
    /* A full pipe wakes the main thread, too. `!`: gcc warns about an ignored result even after a
     * cast to void. */
    (void)!write(wake, "s", 1);
    errno = saved;
}

/* The handler of `fatal`, `ending` and the real-time signals. */
static void on_fatal(int number)
{
    leave_terminal();
    if (number == SIGBUS)
        mapped_file_report();
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* ends the process when this handler returns: `number` is blocked in it */
}

static bool install(int number, void (*handler)(int), struct bn_error *err)
{
    struct sigaction action = {.sa_handler = handler}; /* no SA_RESTART: a signal must end a read */
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0 ||
           bn_fail(err, BN_EIO, "cannot handle signal %d: %s", number, strerror(errno));
}

/* Handle a signal that ends a process by default. If the program was started with another action,
 * such as SIG_IGN by a shell, or if the action is unknown, keep that action. */
static bool install_ending(int number, struct bn_error *err)
{
    struct sigaction before;
    if (sigaction(number, NULL, &before) != 0 || before.sa_handler != SIG_DFL)
        return true;
    return install(number, on_fatal, err);
}

static bool install_all_ending(struct bn_error *err)
{
    for (size_t i = 0; i < N_ENDING; i++)
        if (!install_ending(ending[i], err))
            return false;
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        if (!install_ending(number, err))
            return false;
    return true;
}

static bool open_wake_pipe(int pipe_fds[2], struct bn_error *err)
{
    if (pipe(pipe_fds) != 0)
        return bn_fail(err, BN_EIO, "cannot make a pipe: %s", strerror(errno));
    for (size_t i = 0; i < 2; i++)
        if (fcntl(pipe_fds[i], F_SETFL, O_NONBLOCK) != 0 ||
            fcntl(pipe_fds[i], F_SETFD, FD_CLOEXEC) != 0)
            return bn_fail(err, BN_EIO, "cannot set up a pipe: %s", strerror(errno));
    return true;
}

void signals_ignore_size_limit(void)
{
    /* Without the signal, write returns EFBIG. The call cannot fail with these arguments. */
    (void)signal(SIGXFSZ, SIG_IGN);
}

bool signals_open(enum signal_user user, int pipe_fds[2], struct bn_error *err)
{
    if (!open_wake_pipe(pipe_fds, err))
        return false;
    wake = pipe_fds[1];
    for (size_t i = 0; i < N_WATCHED; i++) {
        const int number = watched[i];
        struct sigaction before;
        /* A pipe needs no redraw, and the signal would interrupt a write to a slow reader. */
        if (user == SIGNALS_PIPE && (number == SIGTSTP || number == SIGCONT || number == SIGWINCH))
            continue;
        /* nohup ignores SIGHUP, and background jobs of a shell ignore SIGINT: keep them ignored. At
         * a terminal, Ctrl-C must always work. */
        if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN &&
            (number == SIGHUP || (number == SIGINT && user == SIGNALS_PIPE)))
            continue;
        if (!install(number, on_signal, err))
            return false;
    }
    for (size_t i = 0; i < N_FATAL; i++)
        if (user == SIGNALS_TERMINAL && !install(fatal[i], on_fatal, err))
            return false;
    return user == SIGNALS_PIPE || install_all_ending(err);
}

unsigned signals_raised(void)
{
    unsigned flags = 0;
    for (size_t i = 0; i < N_WATCHED; i++)
        flags |= raised[i] ? 1u << i : 0;
    return flags;
}

enum exit_code signals_exit_code(unsigned flags)
{
    return flags & SIGNAL_TERMINATE   ? EXIT_TERMINATED
           : flags & SIGNAL_HANGUP    ? EXIT_HUNG_UP
           : flags & SIGNAL_INTERRUPT ? EXIT_INTERRUPT
                                      : EXIT_DONE;
}

unsigned signals_fetch(void)
{
    unsigned flags = 0;
    for (size_t i = 0; i < N_WATCHED; i++) {
        if (raised[i]) {
            raised[i] = 0;
            flags |= 1u << i;
        }
    }
    return flags;
}

void signals_forget_keys(void)
{
    for (size_t i = 0; i < N_WATCHED; i++)
        if (watched[i] == SIGINT || watched[i] == SIGTSTP || watched[i] == SIGCONT)
            raised[i] = 0;
}

void signals_drain(int wake_fd)
{
    char bytes[256];
    while (read(wake_fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
        ; /* a shorter read has emptied the pipe */
}

void signals_arm_interrupt(void)
{
    interrupt_ends = 1;
}

void signals_disarm_interrupt(void)
{
    interrupt_ends = 0;
}

void signals_set_non_fatal(sigset_t *set)
{
    sigfillset(set);
    for (size_t i = 0; i < N_FATAL; i++)
        sigdelset(set, fatal[i]);
}

void signals_reset_child(void)
{
    sigset_t none;
    /* Until exec, our handlers would write to the wake pipe of the parent. */
    for (size_t i = 0; i < N_WATCHED; i++)
        (void)signal(watched[i], SIG_DFL);
    /* exec resets handlers but keeps SIG_IGN: ours of SIGXFSZ, and inherited ones. */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void signals_stop_self(void)
{
    struct sigaction ours, standard = {.sa_handler = SIG_DFL};
    sigset_t only, before;
    sigemptyset(&standard.sa_mask);
    sigemptyset(&only);
    sigaddset(&only, SIGTSTP);
    (void)sigaction(SIGTSTP, &standard, &ours); /* cannot fail for a valid signal */
    (void)sigprocmask(SIG_UNBLOCK, &only, &before);
    run_clock_stop();
    (void)raise(SIGTSTP);
    run_clock_continue();
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)sigaction(SIGTSTP, &ours, NULL);
}

/* tcdrain, which changes nothing. In the background, the kernel sends SIGTTOU, which stops the
 * process. When SIGCONT continues it, its handler ends the call with EINTR. In the foreground, the
 * call waits for a slow terminal, and answers go on meanwhile. */
static int drain_or_stop(void)
{
    const bool stops = tty_is_in_background();
    if (stops)
        run_clock_stop();
    const int result = tcdrain(STDIN_FILENO);
    if (stops) {
        const int reason = errno;
        run_clock_continue();
        errno = reason;
    }
    return result;
}

bool signals_wait_for_foreground(void)
{
    do {
        for (size_t i = 0; i < N_WATCHED; i++)
            if (watched[i] == SIGCONT)
                raised[i] = 0;
        if (is_ending && tty_is_in_background())
            return false;
    } while (drain_or_stop() != 0 && errno == EINTR);
    return true;
}
