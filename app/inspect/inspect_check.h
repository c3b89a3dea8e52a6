/*
 * The parts of bitnet-inspect check, each printing one line of what it found.
 */
#ifndef APP_INSPECT_CHECK_H
#define APP_INSPECT_CHECK_H

#include "app/inspect/inspect.h"
#include "engine/model/model.h"

/* Every code of every ternary tensor is 0, 1 or 2; norms and table rows hold finite numbers. */
bool check_codes(const struct model *m, struct bn_error *err);
bool check_numbers(const struct model *m, struct bn_error *err);

/* Kernels of the rung in use against ref, on made-up numbers in a child process and on rows of `m`.
 * BN_EDEVICE: they differ. */
bool check_model_kernels(const struct model *m, const char *isa, struct bn_error *err);

/* "ok       TITLE   text" on stdout. */
enum check_result { CHECK_OK, CHECK_WARNING };
void check_say(enum check_result result, const char *title, const char *fmt, ...) BN_PRINTF(3, 4);

#endif
