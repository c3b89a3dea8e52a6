/*
 * Rotated files: weights that were multiplied by signs and by a Walsh-Hadamard matrix. The inputs
 * of these weights need the same transform. Keys: docs/formats.md, "Rotated files"; arithmetic:
 * docs/kernels.md, "Rotated inputs".
 */
#ifndef ENGINE_MODEL_ROTATION_H
#define ENGINE_MODEL_ROTATION_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf;

#define ROTATION_MIN 4 /* least and most elements of a rotation block */
#define ROTATION_MAX 4096
#define ROTATION_MAX_WIDTHS 64 /* most vectors of signs in a file */

/* The transform of a vector of n elements, in this order: reorder heads (n_outer), multiply by
 * signs, apply a Walsh-Hadamard matrix, divided by sqrt(block), to each rotation block. For a row
 * of the embedding, the matrix comes before the signs. */
struct rotation {
    size_t block;       /* elements of a rotation block, divides n; 0: the vector is not rotated */
    const float *signs; /* (n) +1 or -1, owned by the model; NULL: all are +1 */
    /* Only for ssm_out of a delta net, else 0: the order of the value heads. The net computes them
     * in the order (n_outer, n_inner), where n_inner is the number of key heads and head h uses key
     * head h mod n_inner. The weights expect (n_inner, n_outer): all value heads of a key head next
     * to each other. */
    size_t n_outer, n_inner;
};

/* The keys prism.hadamard.* of a file. */
struct file_rotation {
    unsigned version; /* 1 or 2; 0: the file is not rotated */
    size_t block;
    size_t n_widths, widths[ROTATION_MAX_WIDTHS];
    float *signs;     /* (sum of widths) a vector for each width, in this order; NULL: all are +1 */
    bool tied_output; /* the embedding is the output head too */
    bool has_embd;    /* rows of the embedding are rotated */
    bool groups_values; /* ssm_out expects value heads grouped by key head (rotation.n_outer) */
};

/* Read and check the keys. A file without such keys is not rotated: *out is all 0, and the function
 * returns true. is_named (n_tensors of g) must be zero; the tensors whose inputs are rotated become
 * 1. BN_EFORMAT, BN_EUNSUPPORTED: a key is missing or unknown, or has a wrong value; the message
 * names it. BN_ENOMEM. After an error *out needs no call of file_rotation_finish. */
bool file_rotation_init(struct file_rotation *out, const struct gguf *g, uint8_t *is_named,
                        struct bn_error *err);
void file_rotation_finish(struct file_rotation *r); /* accepts a struct of zeros */

/* The rotation of vectors of n_cols elements: the inputs of a tensor that is_named marks, or rows
 * of the embedding. out->signs points into r. n_outer and n_inner become 0; the caller sets them
 * for ssm_out. The file must be rotated; `name` is for the message. BN_EFORMAT: n_cols is not a
 * multiple of the rotation block, or the file has no signs for this width. *out is undefined after
 * an error. */
bool file_rotation_of(const struct file_rotation *r, const char *name, size_t n_cols,
                      struct rotation *out, struct bn_error *err);

/* Number of signs of all widths, which is 0 if r->signs is NULL. */
size_t file_rotation_signs(const struct file_rotation *r);

/* For display, of a rotated file: "blocks of 1024, explicit signs, version 1". A longer text is cut
 * to text_bytes. */
void file_rotation_describe(const struct file_rotation *r, char *text, size_t text_bytes);

#endif
