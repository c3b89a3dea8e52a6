/*
 * Ternary linear layers in R16: the counterpart of cpu_linear.c for weights with n_groups > 0. All
 * threads call linear_r16_input, _store, _add, _gate and _prefetch; each works on its part of the
 * tokens or rows. For a single token, every thread prepares the input itself.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_R16_H
#define ENGINE_CPU_CPU_LINEAR_R16_H

#include "engine/cpu/cpu_linear.h"

/* As linear_input, linear_store, linear_add and linear_gate. */
void linear_r16_input(struct cpu_thread *th, const struct weights *to, struct rows x,
                      const float *w);
void linear_r16_store(struct cpu_thread *th, const struct weights *w, struct rows y);
void linear_r16_add(struct cpu_thread *th, const struct weights *w, struct rows y);
void linear_r16_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act,
                     struct rows y);

/* linear_prefetch for a matrix in R16, in a pass of one token. */
void linear_r16_prefetch(const struct cpu_thread *th, const struct weights *w, size_t n_products);

/* ---- parts, for cpu_experts.c ---- */

/* Row groups begin .. end - 1 of one section, counted from its first one. */
struct group_range {
    const struct section *s;
    size_t begin, end;
};
/* The first row of a range, counted in its section, and the number of its rows without padding. */
static inline size_t linear_r16_first_row(const struct group_range *r)
{
    return r->begin * R16_ROWS;
}
static inline size_t linear_r16_count_rows(const struct group_range *r)
{
    const size_t end = r->end * R16_ROWS;
    return (end < r->s->n_rows ? end : r->s->n_rows) - linear_r16_first_row(r);
}

/* Quantise x (layer->n_cols) as token `token` of `in`, without norm and rotation. ACT_FLOAT only
 * copies x. */
void linear_r16_quantise_to(const struct cpu_thread *th, const struct weights *layer,
                            const float *x, const struct block_input *in, size_t token);

/* y = these rows times token `token` of `in`, with scales and bias. y has room for whole row
 * groups; elements of padding rows are undefined. */
void linear_r16_multiply_one(const struct cpu_thread *th, const struct weights *w,
                             const struct group_range *r, const struct block_input *in,
                             size_t token, float *y);

/* Whether n_tokens are multiplied one at a time: there are few, or they are not quantised. */
bool linear_r16_take_singly(const struct cpu_thread *th, size_t n_tokens);

/* At most R16_PANEL row groups, unpacked for several tokens. */
struct panel_range {
    struct group_range rows;
    const uint8_t *unpacked;
};
/* Unpack r, at most R16_PANEL row groups, to `to`: th->panel, or the second panel, which does not
 * overlap the first. */
struct panel_range linear_r16_unpack(const struct cpu_thread *th, const struct group_range *r,
                                     uint8_t *to);
uint8_t *linear_r16_second_panel(const struct cpu_thread *th);

/* y (n, R16_PANEL * R16_ROWS) = the panel times tokens token0 .. token0 + n - 1 of `in`, with
 * scales and bias; n <= R16_TOKENS. Rows past the panel's groups become 0. Not for ACT_FLOAT:
 * see linear_r16_take_singly. */
void linear_r16_multiply_panel(const struct cpu_thread *th, const struct weights *w,
                               const struct panel_range *r, const struct block_input *in,
                               size_t token0, size_t n, float *y);

/* ---- output head ---- */

/* As linear_r16_quantise_to, for the shared input scratch.blocks. The caller makes sure that no
 * other thread quantises the same token. */
void linear_r16_quantise(struct cpu_thread *th, const struct weights *layer, const float *x,
                         size_t token);

/* y (n_tokens, y.stride) = rows row0 .. row1 - 1 of W times the first n_tokens <= R16_TOKENS
 * tokens of the shared input, by this thread alone. y.at[0] is row row0. row0 is a multiple of
 * R16_ROWS; row1 is a multiple too, or the number of rows of W. W has one section. */
void linear_r16_multiply(struct cpu_thread *th, const struct weights *w, size_t row0, size_t row1,
                         size_t n_tokens, struct rows y);

#endif
