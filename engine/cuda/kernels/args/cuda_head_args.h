/*
 * The arguments of the output head's kernels: requests, candidates, the coarse plane and its
 * queries. Part of cuda_args.h, which describes the conventions.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_HEAD_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_HEAD_ARGS_H

#include "engine/layout/coarse_code.h"

#include <stdint.h>

#define HEAD_ROWS 4    /* requested rows that share one load of the table or coarse plane */
#define DOT_ROWS 16    /* table rows per thread block of rows_dot: 128 threads, 8 for each row */
#define BEST_ROWS 16   /* table rows for which one best candidate is recorded: DOT_ROWS */
#define BOUND_ROWS 64  /* table rows per thread block of coarse_bound: 128 threads, 4 for 2 rows */
#define COARSE_SUMS 16 /* partial sums of a row of the coarse plane */
#define EMBED_COLS 512 /* columns per thread block of embed_rows, eight for each thread */
#define SCAN_THREADS 128
#define PICK_THREADS 512
#define COLLECT_THREADS 256
#define COLLECT_IDS 1024 /* table rows per thread block of pick_collect, four for each thread */
#define PICK_FIRST 256   /* candidates in cuda_found, which is copied to the host */

/* One requested row of logits: see head.h. */
struct cuda_request {
    uint64_t seed, position; /* seed and position for the Gumbel noise */
    double beta;             /* 1 / temp; 0: no Gumbel draw */
    float gap;               /* also candidates within this distance of the best; 0: off */
    uint32_t k;              /* the k best are wanted; 0 without a draw: no candidates */
    uint32_t token, spare;   /* token of the pass whose hidden state is used; padding */
};

struct cuda_cand {
    int32_t id;
    float logit; /* or its upper bound */
};

/* Candidates of one row, unordered: at least the k best and those within the gap, or all that can
 * win the draw. pick_args.cands has all of them; the first PICK_FIRST are also here. */
struct cuda_found {
    uint32_t n, not_finite; /* not_finite: 1 if a computed logit is infinite or NaN */
    uint32_t n_read, spare; /* n_read: table rows that pick_collect multiplied; padding */
    struct cuda_cand first[PICK_FIRST];
};

/* The floor of one row, which pick_floor computes for pick_collect. The other members are only for
 * bounds: head_norm writes them with the query. */
struct cuda_screen {
    double floor;
    float unit;        /* of the quantised hidden state */
    uint32_t screened; /* 0: the bounds are not valid for this hidden state */
};

/* The coarse plane of the output head, as struct coarse_mat of the CPU backend. */
struct coarse_plane {
    uint8_t *lines;  /* (n_vocab, n_blocks, LINE_BYTES) */
    uint16_t *steps; /* (n_vocab, step_stride) BF16, zeros past n_blocks */
    uint32_t n_blocks, step_stride;
};

/* Packs a table into its coarse plane. One warp per row. */
struct coarse_args {
    const uint8_t *table;
    struct coarse_plane plane;
    uint32_t *too_large; /* set to 1 if a weight cannot be packed */
    uint64_t row_bytes;
    uint32_t n, n_vocab, type; /* n: columns; type: enum tensor_type */
};

/* Queries: hidden states as two planes of bytes, with an error bound for each block of columns.
 * Shapes are for one request; the arrays of the requests follow each other. docs/kernels.md, "The
 * bound", has kappa and gamma; root is sqrt(n_blocks * COARSE_COLS). */
struct query_buffers {
    int8_t *x;      /* (n_blocks, 2, COARSE_COLS) high bytes, then twice the low ones */
    int32_t *fix;   /* (n_blocks, COARSE_SUMS) -15 x, summed over the columns of a partial sum */
    float *spread;  /* (step_stride) error bound of a block per step; zeros past n_blocks */
    double *errors; /* (n_blocks, COARSE_COLS) rounding errors */
    double *norms;  /* (n_blocks, 2) scratch: |h|^2 and |error|^2, then the terms of the bound */
    struct cuda_screen *screens;
    uint32_t n_blocks, step_stride; /* n_blocks 0: no screening */
    double kappa, gamma, root;
};

/* Final norm times a factor and, unless query.n_blocks is 0, the query made from the result. Also
 * clears `found`. Grid: requested rows. */
struct head_norm_args {
    const struct cuda_request *requests;
    const float *h, *w;
    float *x; /* (n_requests, stride) */
    struct cuda_found *found;
    struct query_buffers query;
    float eps, factor; /* factor of the normed elements */
    uint32_t n, h_stride, stride;
};

/* Logits or upper bounds (n_rows, z_stride) of requested rows, and the best candidate of each
 * BEST_ROWS table rows. */
struct logit_buffers {
    float *z;
    struct cuda_cand *bests; /* (n_rows, best_stride) */
    uint32_t n_vocab, z_stride, best_stride;
};

struct bound_args {
    struct coarse_plane plane;
    struct query_buffers query;
    struct logit_buffers out;
    uint32_t n_rows; /* requested rows */
};

/* out.z = table x for n_rows rows of x, n columns each. */
struct dot_args {
    const uint8_t *table;
    const float *x; /* (n_rows, x_stride) */
    struct logit_buffers out;
    struct cuda_found *found; /* (n_rows) */
    const int32_t *ids;       /* (out.n_vocab) table rows to multiply; only for rows_dot_listed */
    uint64_t row_bytes;
    uint32_t n, x_stride, n_rows, type;
};

struct pick_args {
    const struct cuda_request *requests;
    struct dot_args dot;         /* for exact logits */
    struct cuda_screen *screens; /* (n_requests) */
    struct cuda_cand *cands;     /* (n_requests, z_stride) */
    uint32_t is_exact;           /* z holds logits, not bounds */
};

#endif
