/*
 * The machine under the rows of a benchmark: what it can do at all, measured again and again
 * between runs since a shared machine changes, and what the program holds of its memory.
 */
#ifndef APP_BENCH_MACHINE_H
#define APP_BENCH_MACHINE_H

#include "app/bench/bench_figures.h"

struct bench_ticks { /* of all processors */
    uint64_t all, stolen;
};

struct bench_machine {
    struct bn_model *model;
    struct bench_roofs now; /* the last measured */
    double stale_at[2];     /* by enum bench_test: clock_seconds; 0: not measured yet */
    struct bench_roofs best;
    size_t load_peak_bytes; /* resident at its highest while the model was loaded */
    size_t peak_bytes;      /* resident at its highest: loading, or after a run */
    size_t anon_bytes;      /* of this process alone, at its highest then */
    size_t file_bytes;      /* of files: the system may take these pages back */
    struct bench_ticks before;
};

/* Counts what the host takes from here on. */
void bench_machine_init(struct bench_machine *m);

/* From memory.h, now; the system's own high-water mark would count the buffer that bandwidth is
 * measured on. struct bench_machine *. */
void bench_machine_note(void *ud);
/* The program's own pages while a model loads: struct bn_progress. */
void bench_machine_loading(void *ud, size_t n_done, size_t n_total);
/* The model is open, and nothing was evaluated yet. */
void bench_machine_loaded(struct bench_machine *m, struct bn_model *model);

/* What bounds a test: bytes read a second for tg, multiply-adds for pp. Measured now, unless that
 * would take more than a tenth of the time. struct bench_machine *. */
double bench_machine_peak(void *ud, enum bench_test test);
/* All roofs, now; `best` is the best of all measurements. */
void bench_machine_measure(struct bench_machine *m);

/* Percent of the CPU time since init that the host gave to others; < 0: not known. */
double bench_machine_steal(const struct bench_machine *m);

#endif
