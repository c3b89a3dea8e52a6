/*
 * Measures the limits of this machine with the threads of an open backend. Both functions take some
 * tenths of a second, the bandwidth of a large model longer, and must not run during a pass.
 */
#ifndef ENGINE_CPU_CPU_MEASURE_H
#define ENGINE_CPU_CPU_MEASURE_H

#include "engine/backend/backend.h"

/* Bytes read per second by all threads, the best of many short loops; 0.0 if memory is short or the
 * clock does not advance. */
double cpu_measure_bandwidth(struct backend *b);

/* Multiply-adds of the type `kind` per second by all threads on data in registers, the best of many
 * short loops; 0.0 if the clock does not advance. */
double cpu_measure_mac_peak(struct backend *b, enum bn_mac kind);

#endif
