/*
 * Ternary linear layers of a pass, for every form of struct weights (cpu_weights.h). All threads
 * call every function except linear_prepare; each works on its part of the tokens or rows. For a
 * single token, every thread prepares the input itself. An input x must be complete before
 * linear_input, so a barrier comes first.
 *
 * linear_store, linear_add and linear_gate multiply w, which has n rows (those of all its
 * sections), with all tokens of the input q that linear_input has prepared. Results include scales
 * and biases. Each thread computes some rows; other threads may read y only after a barrier.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_H
#define ENGINE_CPU_CPU_LINEAR_H

#include "engine/base/relax.h"
#include "engine/cpu/cpu_state.h"

#define INPUT_TOKENS 8 /* tokens in a work item when several tokens are quantised */

/* Rows of F32: one per token, or per pair in cpu_experts.h. */
struct rows {
    float *at; /* (number of rows, stride) */
    size_t stride;
};

/* Prepare the input q of the layer `to` from x (n_tokens, to->n_cols): RMSNorm with w unless w is
 * NULL, then the rotation of `to`, then quantise. Afterwards every thread may read q, which the
 * next linear_store, linear_add or linear_gate with `to` multiplies. */
void linear_input(struct cpu_thread *th, const struct weights *to, struct rows x, const float *w);

/* The norm and the rotation of linear_input, by this thread alone for one token x (to->n_cols).
 * Returns x itself if there is neither, else th->norm. w must be NULL if the rotation reorders
 * heads (n_outer). */
const float *linear_prepare(const struct cpu_thread *th, const struct weights *to, const float *x,
                            const float *w);

/* Reorder q (n_lines * LINE_COLS) of a token in place: from ascending columns to the order in which
 * I2_S lines of layout A hold columns. For this file and its test. */
void linear_acts_to_file_order(int8_t *q, size_t n_lines);

/* y (n_tokens, n) = W q */
void linear_store(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y (n_tokens, n) = y + W q */
void linear_add(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y (n_tokens, n / 2) = act(W_gate q) * (W_up q). The first half of w's rows is gate, the second
 * half is up. */
void linear_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act, struct rows y);

/* In a pass of one token, prefetch the first lines of w that this thread multiplies next; in other
 * passes do nothing. w is not packed by columns. Call it before the barrier and the norm that
 * precede the product. n_products is 2 for gate and up, whose rows are divided over the threads
 * separately, and 1 for any other layer. */
void linear_prefetch(const struct cpu_thread *th, const struct weights *w, size_t n_products);

/* Used by the implementations for R1-256 and R16: prefetch the starts of the streams in which a
 * kernel reads n_units rows or row groups of unit_bytes each. The product itself prefetches
 * mat.ahead bytes ahead of the line that it reads, so it never prefetches the start of a stream.
 * The number of streams is that of the x86 kernels of R1-256 and of AVX-512. The other kernels of
 * R16 read two, and two of the four prefetches come too early. */
#define MATVEC_STREAMS 4
#define PREFETCH_START_BYTES 2560
static inline void prefetch_stream_starts(const uint8_t *at, size_t n_units, size_t unit_bytes)
{
    const size_t apart = n_units / MATVEC_STREAMS * unit_bytes;
    /* If apart is smaller, the prefetched parts of the streams would overlap. */
    for (size_t i = 0; apart >= PREFETCH_START_BYTES && i < PREFETCH_START_BYTES; i += LINE_BYTES)
        for (size_t k = 0; k < MATVEC_STREAMS; k++)
            cpu_prefetch(at + k * apart + i);
}

#endif
