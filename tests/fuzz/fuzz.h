/*
 * The function that each fuzz target defines. It processes one input and returns 0. A crash, a leak
 * or a very long run is a failure.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

#endif
