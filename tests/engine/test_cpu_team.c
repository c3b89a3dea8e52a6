/*
 * Threads and their barrier. Every thread runs once, and no thread passes a barrier early, also if
 * there are more threads than processors and each wait ends in sleep.
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

struct count {
    struct cpu_barrier barrier;
    atomic_size_t n_came[N_ROUNDS];
    atomic_size_t n_early;
    atomic_size_t n_active, n_ran[N_THREADS];
    bool is_slow;
};

static void meet(void *ud, size_t index, size_t n_active)
{
    struct count *c = ud;
    atomic_store(&c->n_active, n_active);
    atomic_fetch_add(&c->n_ran[index], 1);
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
    struct count c = {.is_slow = is_slow};
    team_run(n_threads, n_active, meet, &c);
    const size_t n = atomic_load(&c.n_active);
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

static void fewer_active_threads_than_the_team(void **state)
{
    (void)state;
    const size_t n = team_start(N_THREADS);
    check_meeting(n, n / 2 + 1, false);
}

static void one_thread_is_the_caller(void **state)
{
    (void)state;
    check_meeting(N_THREADS, 1, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs_and_waits_for_all),
        cmocka_unit_test(late_threads_wake_the_others),
        cmocka_unit_test(fewer_active_threads_than_the_team),
        cmocka_unit_test(one_thread_is_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
