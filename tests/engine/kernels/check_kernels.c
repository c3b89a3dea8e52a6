/*
 * Compares every kernel of every instruction set of this machine with ref, byte for byte, on inputs
 * that are biased to extremes. --bench measures the speed of each kernel. The idea comes from
 * dav1d's checkasm.
 *
 *     check_kernels [--isa NAME] [--seed N] [--only KERNEL] [--thin N] [--slack]
 *     check_kernels --bench [KERNEL] [--isa NAME] [--threads N]
 */
#include "tests/engine/kernels/check_kernels.h"

#include "tests/engine/kernels/check_kernels_amx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    const char *isa, *filter; /* NULL: all */
    bool bench;
    uint64_t seed;
    size_t n_threads, thin;
};

static bool parse(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0) {
            a->bench = true;
            if (more && argv[i + 1][0] != '-')
                a->filter = argv[++i];
        } else if (strcmp(argv[i], "--slack") == 0) {
            guard_slack(512); /* more than the lanes that a mask can exclude */
        } else if (strcmp(argv[i], "--isa") == 0 && more) {
            a->isa = argv[++i];
        } else if (strcmp(argv[i], "--only") == 0 && more) {
            a->filter = argv[++i];
        } else if (strcmp(argv[i], "--thin") == 0 && more) {
            a->thin = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && more) {
            a->seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0 && more) {
            a->n_threads = strtoul(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return a->n_threads > 0 && a->thin > 0;
}

static void run_cases(struct check *c, const struct check_case *cases, const char *filter)
{
    for (; cases->name; cases++) {
        if (filter && !strstr(cases->name, filter))
            continue;
        c->kernel = cases->name;
        cases->run(c);
    }
}

/* Returns the number of failed comparisons for a table. */
static size_t check_table(const struct arguments *a, const struct cpu_kernels *k, const char *name)
{
    const struct cpu_caps ref_only = {.has[ISA_REF] = true};
    struct cpu_kernels ref;
    cpu_kernels_init(&ref, &ref_only);
    struct check c = {.k = k, .ref = &ref, .isa = name, .rng.state = a->seed, .thin = a->thin};
    run_cases(&c, vector_cases, a->filter);
    run_cases(&c, matrix_cases, a->filter);
    run_cases(&c, attn_cases, a->filter);
    run_cases(&c, r16_cases, a->filter);
    printf("%s: %zu comparisons, %zu differ\n", c.isa, c.n_calls, c.n_failed);
    return c.n_failed;
}

/* The same for the table of this instruction set. A processor that has AVX-512 but no AMX also
 * checks the AMX kernels, with emulated instructions. Those are slow, so there are fewer cases. */
static size_t check_isa(const struct arguments *a, enum cpu_isa isa, const struct cpu_caps *caps)
{
    struct cpu_kernels k;
    cpu_kernels_init(&k, caps);
    size_t n_failed = check_table(a, &k, cpu_isa_name(isa));
    if (isa == ISA_AVX512VNNI) {
        struct arguments fewer = *a;
        fewer.thin *= 20;
        use_emulated_amx(&k);
        n_failed += check_table(&fewer, &k, "amx, emulated");
    }
    return n_failed;
}

int main(int argc, char **argv)
{
    struct arguments a = {.seed = 1, .n_threads = 1, .thin = 1};
    struct cpu_caps caps;
    struct bn_error err;
    size_t n_failed = 0;
    if (!parse(&a, argc, argv)) {
        (void)fprintf(stderr,
                      "usage: check_kernels [--bench [KERNEL]] [--isa NAME] [--only KERNEL] "
                      "[--seed N] [--slack] [--thin N] [--threads N]\n");
        return 2;
    }
    cpu_caps_detect(&caps);
    if (!cpu_caps_limit(&caps, a.isa, &err)) {
        (void)fprintf(stderr, "%s\n", err.text);
        return err.code == BN_EUNSUPPORTED ? 77 : 2;
    }
    struct cpu_caps below = {.has[ISA_REF] = true};
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        if (!caps.has[isa])
            continue;
        below.has[isa] = true;
        if (a.bench) {
            struct cpu_kernels k;
            cpu_kernels_init(&k, &below);
            if (!a.isa || strcmp(a.isa, cpu_isa_name(isa)) == 0)
                bench_kernels(&k, a.filter, a.n_threads);
        } else { /* ref is compared with itself, to check its own reads and writes */
            n_failed += check_isa(&a, isa, &below);
        }
    }
    return n_failed > 0;
}
