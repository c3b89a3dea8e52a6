/*
 * The self-test of the kernels. CPUID is wrong on some hypervisors, so the kernels of each
 * instruction set run in a forked child process (cpu_caps_compare.c). The child reports the first
 * difference through a pipe. A signal in the child is also a test result.
 */
#define _GNU_SOURCE /* pipe2 */

#include "engine/cpu/cpu_caps_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 5 /* more than a thousand times the normal duration */
#define NAME_BYTES 64

/* Runs in the child process and ends that process. SIGILL, SIGSEGV and SIGALRM must end it too, so
 * the parent's handlers for them are removed. The child inherits the signal mask of the calling
 * thread, which may block SIGALRM. */
static void run_child(const struct cpu_kernels *k, int fd)
{
    sigset_t alarm_only;
    (void)signal(SIGILL, SIG_DFL);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGALRM, SIG_DFL);
    (void)sigemptyset(&alarm_only);
    (void)sigaddset(&alarm_only, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
    (void)alarm(CHILD_SECONDS);
    const char *name = cpu_caps_first_difference(k);
    if (name && write(fd, name, strlen(name)) < 0)
        _exit(2); /* _exit: no exit handler of the parent may run twice */
    _exit(name ? 1 : 0);
}

/* The status of the child, or -1: other code has reaped it, so the result is unknown. */
static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* Read the name that the child has written before it ended, and close fd. name holds NAME_BYTES and
 * is "" if there is none. Do not wait for the end of the file: another thread may have forked in
 * between, and its child process would hold the other end of the pipe open. */
static void read_name(int fd, char *name)
{
    const bool is_ready = fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
    const ssize_t n = is_ready ? read(fd, name, NAME_BYTES - 1) : 0;
    name[n > 0 ? n : 0] = '\0';
    (void)close(fd);
}

bool cpu_caps_try_kernels(const struct cpu_kernels *k, char *why, size_t why_bytes)
{
    int fds[2];
    char name[NAME_BYTES];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        (void)snprintf(why, why_bytes, "no pipe for the self-test: %s", strerror(errno));
        return false;
    }
    const pid_t pid = fork();
    if (pid == 0)
        run_child(k, fds[1]);
    const int fork_error = errno;
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        (void)snprintf(why, why_bytes, "no child process for the self-test: %s",
                       strerror(fork_error));
        return false;
    }
    const int status = wait_for(pid);
    read_name(fds[0], name);
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (status == -1)
        (void)snprintf(why, why_bytes, "the result of the self-test was lost (SIGCHLD ignored?)");
    else if (WIFSIGNALED(status))
        (void)snprintf(why, why_bytes, "signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(why, why_bytes, "%s differs from the reference",
                       name[0] ? name : "a kernel");
    return false;
}

void cpu_caps_self_test(struct cpu_caps *caps, char *why, size_t why_bytes)
{
    struct cpu_caps below = {.has[ISA_REF] = true, .is_amd = caps->is_amd};
    size_t used = 0;
    if (why && why_bytes > 0)
        why[0] = '\0';
    for (enum cpu_isa isa = ISA_REF + 1; isa < ISA_N; isa++) {
        struct cpu_kernels k;
        char text[160];
        if (!caps->has[isa])
            continue;
        below.has[isa] = true;
        cpu_kernels_init(&k, &below);
        if (cpu_caps_try_kernels(&k, text, sizeof text))
            continue;
        below.has[isa] = false;
        if (!why || used >= why_bytes)
            continue;
        const int n = snprintf(why + used, why_bytes - used, "%s%s is not used: %s",
                               used > 0 ? "\n" : "", cpu_isa_title(isa), text);
        used += n > 0 ? (size_t)n : 0;
    }
    *caps = below;
}
