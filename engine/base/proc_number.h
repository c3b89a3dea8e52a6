/*
 * Numbers in the small text files by which Linux tells of processes, memory and control groups.
 */
#ifndef ENGINE_BASE_PROC_NUMBER_H
#define ENGINE_BASE_PROC_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* The number behind `key` in the first line that begins with it and has one ("" for a file of one
 * number). False: no such file, line or number. */
bool proc_number(const char *path, const char *key, uint64_t *out);

#endif
