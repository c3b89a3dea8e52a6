/*
 * The two forms of the output head that are made when the model opens: the coarse plane of the
 * screened head, and the copy at eight bits for --head q8.
 */
#ifndef ENGINE_CPU_CPU_HEAD_LOAD_H
#define ENGINE_CPU_CPU_HEAD_LOAD_H

#include "engine/cpu/cpu_state.h"

/* Type of the rows of an output head that is not in R16: Q8_0 with BN_HEAD_Q8 if the file has F32,
 * F16 or BF16, which makes a copy; else the type in the file. */
enum tensor_type head_type(const struct model *m, enum bn_head_mode head);
/* Bytes of this copy, 0 if there is none. False on overflow, or if a row is not whole blocks. */
bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
/* Make this copy in b->head_map and set b->head to it, if its size is not 0. `control` is not NULL;
 * no progress is reported. On failure cpu_close frees head_map. BN_ENOMEM. BN_ECANCELLED.
 * BN_EUNSUPPORTED: head_copy_bytes returns false. */
bool head_copy_open(struct backend *b, const struct backend_control *control, struct bn_error *err);

/* Make b->coarse if the model is screened (shape.n_coarse > 0). `control` is not NULL; progress is
 * reported from n_done to n_total bytes. If the magnitude of a weight is above COARSE_MAX, or a
 * weight is a NaN, there is no plane; this is not an error. BN_ENOMEM. BN_ECANCELLED. */
bool screen_open(struct backend *b, const struct backend_control *control, size_t n_done,
                 size_t n_total, struct bn_error *err);
void screen_close(struct backend *b); /* also if there is no plane */

#endif
