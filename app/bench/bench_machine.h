/*
 * Measures the machine for a benchmark: the peak rates of memory and arithmetic, the memory of this
 * process, and the steal time (CPU time that the host gave to other virtual machines).
 *
 * Peak rates are measured again between the runs of a row, because other work on a shared machine
 * changes them.
 */
#ifndef APP_BENCH_MACHINE_H
#define APP_BENCH_MACHINE_H

#include "engine/engine.h"

#include <stdio.h>

enum bench_peak {
    PEAK_READ, /* bytes read per second */
    PEAK_INT8, /* multiply-adds of int8 values per second, with all values in registers */
    PEAK_F32,  /* the same for floats */
    BENCH_N_PEAKS
};

struct bench_ticks {      /* CPU time from /proc/stat in clock ticks, sums over all processors */
    uint64_t all, stolen; /* `all` has the idle time, too; `stolen` is the steal time in `all` */
};

struct bench_machine {
    struct bn_model *model;
    double now[BENCH_N_PEAKS];      /* the last measurement; 0: unknown */
    double best[BENCH_N_PEAKS];     /* the best of all measurements */
    double stale_at[BENCH_N_PEAKS]; /* clock_seconds when `now` becomes too old; 0 at first */
    /* memory of this process: largest values so far */
    size_t load_peak_bytes;    /* resident, until the model was loaded */
    size_t peak_bytes;         /* resident, while loading or after a run */
    size_t anon_bytes;         /* allocated pages, which belong to no file */
    size_t file_bytes;         /* pages of files; the system can reclaim them */
    struct bench_ticks before; /* at bench_machine_init */
    char processor[128];       /* its name: see bench_machine_read_name; "": unknown */
};

/* Read the name of the processor from the text of /proc/cpuinfo: "AMD EPYC 7763", or on ARM the
 * numbers of each kind of core, such as "ARM 0x41:0xd0c r3p1". A name that is too long is cut. "":
 * unknown. */
void bench_machine_read_name(FILE *cpuinfo, char *out, size_t out_bytes);
/* Set all members to 0, read the name of the processor and start the measurement of the steal
 * time. */
void bench_machine_init(struct bench_machine *m);
/* For struct bn_progress: update anon_bytes during loading, and show the progress row, which
 * bench_machine_loaded erases. `ud` is the struct bench_machine. */
void bench_machine_loading(void *ud, size_t n_done, size_t n_total);
/* Call it after opening the model and before evaluating or measuring anything, so that the peak of
 * the memory is that of loading. Sets m->model. */
void bench_machine_loaded(struct bench_machine *m, struct bn_model *model);
/* Raise the largest values to the memory in use now. The maximum that the system records cannot be
 * used, because it includes the buffer of the bandwidth measurement. */
void bench_machine_note_memory(struct bench_machine *m);

/* A peak rate per second; 0: unknown. It is measured again if the last measurement is older than 10
 * times its duration, so the measurements of a peak take at most a tenth of the time. Call it and
 * bench_machine_measure_all after bench_machine_loaded. */
double bench_machine_peak(struct bench_machine *m, enum bench_peak peak);
void bench_machine_measure_all(struct bench_machine *m); /* all peaks, now */

/* Steal time in percent of the CPU time, idle time included, since bench_machine_init; < 0:
 * unknown. */
double bench_machine_steal(const struct bench_machine *m);

#endif
