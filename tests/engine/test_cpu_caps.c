/*
 * The set of instruction sets, the kernel table that it fills, and the self-test: unknown names,
 * limited sets, and tables with a kernel that computes wrong results or cannot run.
 */
#define _GNU_SOURCE /* sched_setaffinity, nftw */
#include "engine/cpu/cpu_caps.h"
#include "engine/cpu/cpu_strategy.h"
#include "engine/cpu/cpu_threads.h"
#include "engine/cpu/kernels.h"

#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct cpu_caps ref_only = {.has[ISA_REF] = true};

static void detects_at_least_the_reference(void **state)
{
    (void)state;
    struct cpu_caps caps;
    cpu_caps_detect(&caps);
    assert_true(caps.has[ISA_REF]);
    if (caps.has[ISA_AVXVNNI] || caps.has[ISA_AVX512VNNI])
        assert_true(caps.has[ISA_AVX2]);
    if (caps.has[ISA_AMX])
        assert_true(caps.has[ISA_AVX512VNNI]);
    assert_false(caps.has[ISA_AVX2] && caps.has[ISA_NEON]);
}

static void accepts_the_name_of_every_isa(void **state)
{
    (void)state;
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        struct cpu_caps caps = {.has[ISA_REF] = true};
        struct bn_error err;
        caps.has[isa] = true;
        assert_true(cpu_caps_limit(&caps, cpu_isa_name(isa), &err));
        assert_true(caps.has[isa]);
        assert_true(strlen(cpu_isa_title(isa)) > 0);
    }
}

static void refuses_an_unknown_name(void **state)
{
    (void)state;
    struct cpu_caps caps = ref_only;
    struct bn_error err;
    assert_false(cpu_caps_limit(&caps, "sse9", &err));
    assert_int_equal(err.code, BN_EARG);
    assert_non_null(strstr(err.text, "sse9"));
}

static void refuses_an_isa_that_is_missing(void **state)
{
    (void)state;
    struct cpu_caps caps = ref_only;
    struct bn_error err;
    assert_false(cpu_caps_limit(&caps, "avx512vnni", &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "VNNI"));
    assert_memory_equal(&caps, &ref_only, sizeof caps);
}

static void limits_to_the_named_isa(void **state)
{
    (void)state;
    struct cpu_caps caps = {
        .has = {
            [ISA_REF] = true, [ISA_AVX2] = true, [ISA_AVXVNNI] = true, [ISA_AVX512VNNI] = true}};
    struct bn_error err;
    assert_true(cpu_caps_limit(&caps, NULL, &err));
    assert_true(caps.has[ISA_AVX512VNNI]);
    assert_true(cpu_caps_limit(&caps, "avxvnni", &err));
    assert_false(caps.has[ISA_AVX512VNNI]);
    assert_true(caps.has[ISA_AVXVNNI] && caps.has[ISA_AVX2]);
    assert_true(cpu_caps_limit(&caps, "ref", &err));
    assert_memory_equal(&caps, &ref_only, sizeof caps);
}

static void table_is_a_function_of_the_set(void **state)
{
    (void)state;
    struct cpu_caps caps;
    struct cpu_kernels a, b, ref;
    cpu_caps_detect(&caps);
    cpu_kernels_init(&a, &caps);
    cpu_kernels_init(&b, &caps);
    cpu_kernels_init(&ref, &ref_only);
    assert_true(a.ternary_matvec == b.ternary_matvec && a.isa == b.isa);
    assert_int_equal(ref.isa, ISA_REF);
    if (caps.has[ISA_AVX2])
        assert_true(a.ternary_matvec != ref.ternary_matvec);
    for (enum tensor_type type = 0; type < TENSOR_N_TYPES; type++)
        assert_int_equal(a.row_decode[type] != NULL, ref.row_decode[type] != NULL);
}

/* On every instruction set, mac_peak and fma_peak report twice the operations for twice the rounds.
 * The upper limit is far above any real number of operations in three rounds. */
static void every_isa_measures_a_peak(void **state)
{
    (void)state;
    struct cpu_caps here, caps;
    cpu_caps_detect(&here);
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        struct cpu_kernels k;
        struct bn_error err;
        caps = here;
        if (!here.has[isa] || !cpu_caps_limit(&caps, cpu_isa_name(isa), &err))
            continue;
        cpu_kernels_init(&k, &caps);
        const size_t n = k.mac_peak(3);
        assert_in_range(n, 3, 1000000);
        assert_int_equal(k.mac_peak(6), 2 * n);
        const size_t n_f32 = k.fma_peak(3);
        assert_in_range(n_f32, 3, 1000000);
        assert_int_equal(k.fma_peak(6), 2 * n_f32);
    }
}

static const struct ternary_gemm *gemm_for(const struct cpu_kernels *k, size_t n_tokens)
{
    return strategy_gemm(k, strategy_linear(k, n_tokens));
}

/* With AMX: up to 4 tokens the kernels of AVX-512, from 5 and from 17 on (more than a tile of 16)
 * those of AMX. The kernels are not run, so this machine need not have AMX. */
static void amx_is_used_for_many_tokens_only(void **state)
{
    (void)state;
    struct cpu_caps caps;
    struct cpu_kernels k, below;
    cpu_caps_detect(&caps);
    caps.has[ISA_AMX] = false;
    cpu_kernels_init(&below, &caps);
    assert_true(gemm_for(&below, 1)->matmul == below.few.matmul);
    assert_true(gemm_for(&below, 512)->matmul == below.many.matmul);
    if (!caps.has[ISA_AVX2])
        return; /* probably another processor family, whose build has no AMX kernels */
    caps.has[ISA_AMX] = true;
    cpu_kernels_init(&k, &caps);
    assert_int_equal(k.isa, ISA_AMX);
    assert_true(gemm_for(&k, 1)->matmul == below.few.matmul);
    assert_true(gemm_for(&k, 4)->matmul == below.few.matmul);
    assert_true(gemm_for(&k, 5)->matmul == k.medium.matmul);
    assert_true(gemm_for(&k, 16)->matmul == k.medium.matmul);
    assert_true(gemm_for(&k, 17)->matmul == k.many.matmul);
    assert_true(k.medium.matmul != k.few.matmul && k.many.matmul != k.medium.matmul);
    assert_true(below.many.matmul != k.medium.matmul && below.many.matmul != k.many.matmul);
    assert_true(k.ternary_matvec == below.ternary_matvec);
}

static void every_isa_here_passes_its_self_test(void **state)
{
    (void)state;
    struct cpu_caps caps, before;
    char why[500];
    cpu_caps_detect(&caps);
    before = caps;
    cpu_caps_self_test(&caps, why, sizeof why);
    assert_string_equal(why, "");
    assert_memory_equal(&caps, &before, sizeof caps);
    cpu_caps_self_test(&caps, NULL, 0);
    assert_memory_equal(&caps, &before, sizeof caps);
}

/* Kernels that the self-test must reject. */

static void add_off_by_one_bit(float *h, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h[i] = h[i] + y[i];
    h[n - 1] *= 1.0000001f;
}

static void add_that_cannot_run(float *h, const float *y, size_t n)
{
    (void)h, (void)y, (void)n;
    (void)raise(SIGILL);
}

static void quantise_without_sum(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    struct cpu_kernels ref;
    cpu_kernels_init(&ref, &ref_only);
    ref.quantise(in, q, out);
    out->q_sum = 0;
}

static void accepts_the_reference(void **state)
{
    (void)state;
    struct cpu_kernels k;
    char why[100] = "";
    cpu_kernels_init(&k, &ref_only);
    assert_true(cpu_caps_try_kernels(&k, why, sizeof why));
}

static void names_the_kernel_that_differs(void **state)
{
    (void)state;
    struct cpu_kernels k;
    char why[100];
    cpu_kernels_init(&k, &ref_only);
    k.add = add_off_by_one_bit;
    assert_false(cpu_caps_try_kernels(&k, why, sizeof why));
    assert_string_equal(why, "add differs from the reference");
    cpu_kernels_init(&k, &ref_only);
    k.quantise = quantise_without_sum;
    assert_false(cpu_caps_try_kernels(&k, why, sizeof why));
    assert_string_equal(why, "quantise differs from the reference");
}

static void survives_an_illegal_instruction(void **state)
{
    (void)state;
    struct cpu_kernels k;
    char why[100];
    cpu_kernels_init(&k, &ref_only);
    k.add = add_that_cannot_run;
    assert_false(cpu_caps_try_kernels(&k, why, sizeof why));
    assert_non_null(strstr(why, "signal 4"));
}

/* Takes longer than the self-test allows, but ends, so that a self-test without a limit fails this
 * test instead of blocking it. */
static void add_that_hangs(float *h, const float *y, size_t n)
{
    (void)h, (void)y, (void)n;
    (void)sleep(12);
}

/* The worker of the chat blocks SIGALRM, and a child process inherits that. */
static void ends_a_kernel_that_hangs_if_alarms_are_blocked(void **state)
{
    (void)state;
    struct cpu_kernels k;
    char why[100] = "", expected[20];
    sigset_t alarms, before;
    assert_int_equal(sigemptyset(&alarms), 0);
    assert_int_equal(sigaddset(&alarms, SIGALRM), 0);
    assert_int_equal(sigprocmask(SIG_BLOCK, &alarms, &before), 0);
    cpu_kernels_init(&k, &ref_only);
    k.add = add_that_hangs;
    const bool is_accepted = cpu_caps_try_kernels(&k, why, sizeof why);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_false(is_accepted);
    (void)snprintf(expected, sizeof expected, "signal %d ", SIGALRM);
    assert_non_null(strstr(why, expected));
}

static void threads_follow_the_affinity_mask(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const size_t n = cpu_default_threads();
    assert_true(n >= 1 && n <= (size_t)CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpu_default_threads(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* Write a file of a simulated system and create its folders. */
static void put(const char *root, const char *path, const char *text)
{
    char name[300];
    (void)snprintf(name, sizeof name, "%s%s", root, path);
    for (char *p = name + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(name, 0700); /* may exist */
        *p = '/';
    }
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void threads_follow_the_quota_of_the_group(void **state)
{
    (void)state;
    static const struct {
        const char *groups;      /* /proc/self/cgroup */
        const char *files[4][2]; /* path below /sys/fs/cgroup, content */
        size_t n_threads;        /* quota divided by period, rounded up */
    } cases[] = {
        /* cgroup v2: one file with quota and period in microseconds */
        {"0::/a/b\n", {{"/a/b/cpu.max", "max 100000\n"}}, SIZE_MAX},
        {"0::/a/b\n", {{"/a/b/cpu.max", "200000 100000\n"}}, 2},
        {"0::/a/b\n", {{"/a/b/cpu.max", "150000 100000\n"}}, 2},
        {"0::/a/b\n", {{"/a/b/cpu.max", "20000 100000\n"}}, 1},
        {"0::/a/b\n",
         {{"/a/b/cpu.max", "max 100000\n"}, {"/a/cpu.max", "300000 100000\n"}},
         3},                                                      /* limit of the parent group */
        {"0::/not/here\n", {{"/cpu.max", "400000 100000\n"}}, 4}, /* as in a container */
        {"0::/a\n", {{"/a/cpu.max", "nonsense\n"}}, SIZE_MAX},
        /* cgroup v1: two files in the folder of the controller "cpu" */
        {"7:memory:/a\n4:cpuacct,cpu:/a\n",
         {{"/cpu/a/cpu.cfs_quota_us", "250000\n"}, {"/cpu/a/cpu.cfs_period_us", "100000\n"}},
         3},
        {"4:cpu:/a\n",
         {{"/cpu/a/cpu.cfs_quota_us", "-1\n"}, {"/cpu/a/cpu.cfs_period_us", "100000\n"}},
         SIZE_MAX},
        {"4:cpuset:/a\n",
         {{"/cpu/a/cpu.cfs_quota_us", "100000\n"}, {"/cpu/a/cpu.cfs_period_us", "100000\n"}},
         SIZE_MAX},
        {"", {{"/cpu.max", "100000 100000\n"}}, SIZE_MAX}, /* the process is in no group */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char root[] = "/tmp/test_cpu_caps.XXXXXX", path[128];
        assert_non_null(mkdtemp(root));
        put(root, "/proc/self/cgroup", cases[i].groups);
        for (size_t k = 0; k < 4 && cases[i].files[k][0]; k++) {
            (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s", cases[i].files[k][0]);
            put(root, path, cases[i].files[k][1]);
        }
        if (cpu_quota_threads(root) != cases[i].n_threads)
            fail_msg("case %zu: %zu threads, not %zu", i, cpu_quota_threads(root),
                     cases[i].n_threads);
        assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
    assert_int_equal(cpu_quota_threads("/nothing/here"), SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detects_at_least_the_reference),
        cmocka_unit_test(accepts_the_name_of_every_isa),
        cmocka_unit_test(refuses_an_unknown_name),
        cmocka_unit_test(refuses_an_isa_that_is_missing),
        cmocka_unit_test(limits_to_the_named_isa),
        cmocka_unit_test(table_is_a_function_of_the_set),
        cmocka_unit_test(every_isa_measures_a_peak),
        cmocka_unit_test(amx_is_used_for_many_tokens_only),
        cmocka_unit_test(every_isa_here_passes_its_self_test),
        cmocka_unit_test(accepts_the_reference),
        cmocka_unit_test(names_the_kernel_that_differs),
        cmocka_unit_test(survives_an_illegal_instruction),
        cmocka_unit_test(ends_a_kernel_that_hangs_if_alarms_are_blocked),
        cmocka_unit_test(threads_follow_the_affinity_mask),
        cmocka_unit_test(threads_follow_the_quota_of_the_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
