/*
 * Checks a model file for faults: its structure, its weights, and the kernels of this machine on
 * these weights. Prints nothing. Call it on the thread that calls the engine.
 */
#ifndef APP_MODEL_CHECK_H
#define APP_MODEL_CHECK_H

#include "engine/engine.h"

/* In the order in which they run. */
enum model_check_step {
    CHECK_STRUCTURE, /* every tensor exists, with the right shape and type */
    CHECK_CODES,     /* every code of every ternary tensor is 0, 1 or 2; scales are finite */
    CHECK_NUMBERS,   /* norms, biases, routers, tensors of delta nets and tables that are not of a
                        ternary type are finite */
    CHECK_ISA,       /* self-test of the instruction sets, on synthetic numbers in a child process;
                        one that fails is not used, which is a warning and no fault */
    CHECK_KERNELS    /* kernels against plain loops, on a few rows of each ternary tensor */
};

struct model_check {
    /* Called after each step without a fault, with the results so far (a step may take seconds).
     * May be NULL. */
    void (*done)(void *ud, enum model_check_step step, const struct model_check *check);
    void *ud;
    /* Results; texts are static. */
    size_t n_keys, n_tensors, n_layers, n_ternary_tensors;
    const char *arch;
    uint64_t n_codes, n_zero_codes; /* ternary weights, and those that are 0 */
    size_t n_binary_tensors;        /* those of n_ternary_tensors with the type Q1_0 */
    uint64_t n_numbers;             /* numbers that CHECK_NUMBERS has checked */
    const char *isa;                /* instruction set in use: "AVX2" */
    /* A line for each instruction set that failed the self-test and is not used, or "". A longer
     * text is cut. */
    char isa_warning[400];
};

/* Run the steps up to the first fault. On entry `check` is 0 except for `done` and `ud`. Of `cfg`,
 * which is not NULL, only isa, i2s_layout, no_repair, the ignored tensors and notes are used.
 * BN_EFORMAT, BN_EUNSUPPORTED: a fault of the file. BN_EUNSUPPORTED also: this machine does not
 * have the instruction set of cfg->isa. BN_EARG: cfg->isa is not a name of an instruction set.
 * BN_EDEVICE: a kernel computes wrong results. BN_ENOMEM. After an error the results of the steps
 * that passed are set, and those of the failed step in part. */
bool model_check_file(const struct bn_file *file, const struct bn_model_config *cfg,
                      struct model_check *check, struct bn_error *err);

#endif
