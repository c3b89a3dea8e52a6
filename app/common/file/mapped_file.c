/*
 * The message about a model file that was cut: see mapped_file.h. The line has file scope because
 * handlers get no argument.
 */
#include "app/common/file/mapped_file.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char line[120];
static atomic_flag is_reported = ATOMIC_FLAG_INIT;

void mapped_file_report(void)
{
    /* Several threads read the file. The first one prints the line and ends the process; the others
     * must not end it before. */
    while (atomic_flag_test_and_set(&is_reported))
        (void)pause();
    (void)!write(STDERR_FILENO, line, strlen(line)); /* "!": gcc warns even after a cast to void */
}

static void on_bus_error(int number)
{
    mapped_file_report();
    (void)signal(number, SIG_DFL);
    (void)raise(number); /* ends the process when this handler returns: `number` is blocked in it */
}

void mapped_file_watch(const char *program)
{
    struct sigaction action = {.sa_handler = on_bus_error};
    sigemptyset(&action.sa_mask);
    (void)snprintf(line, sizeof(line),
                   "%s: the model file was cut short, or its disk failed, while it was in use\n",
                   program);                /* fits */
    (void)sigaction(SIGBUS, &action, NULL); /* cannot fail with these arguments */
}
