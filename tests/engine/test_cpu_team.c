/*
 * Threads and their barrier. Every active thread runs once, and the calling thread has index 0. No
 * thread passes a barrier early, also if there are more threads than processors and each wait ends
 * in sleep.
 */
#include "engine/cpu/cpu_barrier.h"
#include "engine/cpu/cpu_team.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define N_THREADS 8
#define N_ROUNDS 300

struct meeting {
    struct cpu_barrier barrier;
    atomic_size_t n_came[N_ROUNDS]; /* threads that have reached the barrier of each round */
    atomic_size_t n_early;          /* threads that have left a barrier before all had reached it */
    atomic_size_t n_active, n_ran[N_THREADS]; /* n_ran: how often each index ran */
    atomic_size_t caller_index;               /* of the thread that has called team_run */
    bool is_slow;                             /* one thread comes late to some barriers */
};

static _Thread_local bool is_caller; /* true in the main thread, which calls team_run */

static void meet(void *ud, size_t index, size_t n_active)
{
    struct meeting *c = ud;
    atomic_store(&c->n_active, n_active);
    atomic_fetch_add(&c->n_ran[index], 1);
    if (is_caller)
        atomic_store(&c->caller_index, index);
    for (size_t i = 0; i < N_ROUNDS; i++) {
        const struct timespec pause = {.tv_nsec = 300000};
        if (c->is_slow && index == i % n_active && i % 8 == 0)
            (void)nanosleep(&pause, NULL);
        atomic_fetch_add(&c->n_came[i], 1);
        cpu_barrier_wait(&c->barrier, n_active);
        if (atomic_load(&c->n_came[i]) != n_active)
            atomic_fetch_add(&c->n_early, 1);
    }
}

static void check_meeting(size_t n_threads, size_t n_active, bool is_slow)
{
    struct meeting c = {.is_slow = is_slow, .caller_index = SIZE_MAX};
    is_caller = true;
    team_run(n_threads, n_active, meet, &c);
    const size_t n = atomic_load(&c.n_active);
    assert_int_equal(atomic_load(&c.caller_index), 0);
    assert_in_range(n, 1, n_active);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(atomic_load(&c.n_ran[i]), i < n ? 1 : 0);
    assert_int_equal(atomic_load(&c.n_early), 0);
    assert_int_equal(atomic_load(&c.barrier.n_asleep), 0);
}

static void every_thread_runs_and_waits_for_all(void **state)
{
    (void)state;
    const size_t n = team_start(N_THREADS);
    check_meeting(n, n, false);
}

static void late_threads_wake_the_others(void **state)
{
    (void)state;
    const size_t n = team_start(N_THREADS);
    check_meeting(n, n, true);
}

static void only_the_active_threads_run(void **state)
{
    (void)state;
    const size_t n = team_start(N_THREADS);
    check_meeting(n, n / 2 + 1, false);
}

static void one_active_thread_is_the_caller(void **state)
{
    (void)state;
    check_meeting(N_THREADS, 1, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_and_waits_for_all),
        cmocka_unit_test(late_threads_wake_the_others),
        cmocka_unit_test(only_the_active_threads_run),
        cmocka_unit_test(one_active_thread_is_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
