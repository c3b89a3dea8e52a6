/*
 * Attention for the training of the demo model (model.py), forward and backward, in float. model.py
 * compiles and calls this file. Vectors have 16 elements with AVX-512, otherwise 8.
 *
 * A row of training holds several conversations. A token attends to the tokens from the beginning
 * of its conversation to itself, so most elements of the full matrix of scores would be thrown
 * away. These functions handle BLOCK queries together, and only the keys from the first one that
 * these queries need, rounded down to a multiple of LANES, to the last query.
 */
#include <math.h>
#include <stdint.h>

enum {
    DIM = 64,     /* elements of an attention head */
    BLOCK = 32,   /* queries that are handled together */
    TOKENS = 512, /* most tokens in a row of training */
    /* Floats between rows of a scratch matrix. With a power of two, the elements of a column would
     * share a few sets of the cache. */
    STRIDE = TOKENS + 16,
#ifdef __AVX512F__
    LANES = 16,
    ROWS = 8 /* rows of a register tile of 2 vectors: a block of queries is 4 whole tiles */
#else
    LANES = 8,
    ROWS = 6 /* 12 registers of sums, 2 of b, 1 of a */
#endif
};

typedef float vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t integers __attribute__((vector_size(LANES * sizeof(int32_t))));

static inline vector load(const float *x)
{
    vector v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
}

static inline void store(float *x, vector v)
{
    __builtin_memcpy(x, &v, sizeof v);
}

/*
 * The arguments from Python. The functions split the pairs of a batch row and a KV head among the
 * OpenMP threads. `tokens` is a multiple of BLOCK and at most TOKENS, and heads a multiple of
 * kv_heads.
 */
struct attention {
    const float *q, *k, *v; /* (batch, heads, tokens, DIM); k and v with kv_heads */
    const int32_t *first;   /* (batch, tokens): first token to which a token attends, ascending */
    /* Outputs of attend, which attend_backward reads. */
    float *o;    /* like q */
    float *norm; /* (batch, heads, tokens): what `softmax` returns */
    /* Only for attend_backward: the gradient of o, and the outputs, of which dk and dv must be zero
     * before. Shapes as o, q, k and v. */
    const float *d_o;
    float *dq, *dk, *dv;
    int64_t batch, heads, kv_heads, tokens;
    float scale; /* factor of the products of queries and keys, above 0 */
};

/* c (m, n) = a (m, inner) b (inner, n), or c += a b. Element (i, j) of a is a[i * a_row + j *
 * a_col]. The elements of a row of b or c are contiguous; b_row and c_row are the floats from one
 * row to the next. n is a multiple of LANES. */
struct product {
    const float *a;
    long a_row, a_col;
    const float *b;
    long b_row;
    float *c;
    long c_row;
    long m, n, inner;
    enum { STORE, ADD } mode;
};

/* Compute the elements of c from row i and column j: `rows` rows, at most ROWS, of `vectors`
 * vectors, 1 or 2. */
static inline __attribute__((always_inline)) void tile(const struct product *p, long i, long j,
                                                       int rows, int vectors)
{
    const float *a = p->a + i * p->a_row, *b = p->b + j;
    float *c = p->c + i * p->c_row + j;
    vector sum[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] = p->mode == ADD ? load(c + r * p->c_row + LANES * v) : (vector){0};
    for (long k = 0; k < p->inner; k++) {
        vector x[2];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = load(b + k * p->b_row + LANES * v);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const float y = a[r * p->a_row + k * p->a_col];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] += y * x[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            store(c + r * p->c_row + LANES * v, sum[r][v]);
}

/* A full tile has a function of its own: with constant numbers of rows and vectors, the compiler
 * keeps the sums in registers. */
static __attribute__((noinline)) void full_tile(const struct product *p, long i, long j)
{
    tile(p, i, j, ROWS, 2);
}

static __attribute__((noinline)) void part_tile(const struct product *p, long i, long j, int rows,
                                                int vectors)
{
    tile(p, i, j, rows, vectors);
}

static void multiply(struct product p)
{
    for (long j = 0; j < p.n; j += 2 * LANES) {
        const int vectors = p.n - j < 2 * LANES ? 1 : 2;
        for (long i = 0; i < p.m; i += ROWS) {
            const int rows = (int)(p.m - i < ROWS ? p.m - i : ROWS);
            if (rows == ROWS && vectors == 2)
                full_tile(&p, i, j);
            else
                part_tile(&p, i, j, rows, vectors);
        }
    }
}

/* exp(x) for x from -80 to 0: 2^n times a polynomial on [-0.5, 0.5] ln 2, with a relative error
 * below 6e-6. For x < -80 the result is exp(-80), which is as good as 0 here. A large x > 0, which
 * only masked elements have, gives a result without meaning. */
static inline vector exponential(vector x)
{
    const vector least = (vector){0} - 80.0f;
    const integers is_less = x < least;
    const integers bits = (is_less & (integers)least) | (~is_less & (integers)x);
    const vector y = (vector)bits * 1.44269504f; /* divided by ln 2 */
    /* Rounds to an integer: a float near 1.5 * 2^23 has no bits below 1. The compiler must not
     * reorder the two additions, so model.py does not use -ffast-math. */
    const vector n = (y + 12582912.0f) - 12582912.0f;
    const vector z = (y - n) * 0.69314718f;
    vector p = z * (1 / 120.0f) + 1 / 24.0f;
    p = p * z + 1 / 6.0f;
    p = p * z + 0.5f;
    p = p * z + 1.0f;
    p = p * z + 1.0f;
    const integers exponent = __builtin_convertvector(n, integers) + 127;
    return p * (vector)(exponent << 23);
}

/* A query and the keys of its block: tokens key0 to key0 + n - 1, of which it attends to `first` up
 * to itself. key0 and n are multiples of LANES. */
struct query {
    int32_t token, first, key0;
    long n;
};

/* Query r of the block that begins with query0. `first` (tokens) is the row of attention.first. */
static struct query query_of(const int32_t *first, long query0, long r)
{
    const int32_t key0 = first[query0] / LANES * LANES; /* the first query needs the earliest key */
    return (struct query){(int32_t)(query0 + r), first[query0 + r], key0, query0 + BLOCK - key0};
}

/* x with 0 in the elements of tokens to which the query does not attend. Element i belongs to token
 * q.key0 + j + i. */
static inline vector inside(struct query q, int32_t j, vector x)
{
    integers key;
    for (int32_t i = 0; i < LANES; i++)
        key[i] = q.key0 + j + i;
    return (vector)((integers)x & (key >= q.first) & (key <= q.token));
}

/* s (n): products of the query and the keys -> probabilities, 0 outside. Returns the logarithm of
 * the sum of the exponentials of the scaled products. */
static float softmax(float *s, struct query q, float scale)
{
    float most = -INFINITY, sum = 0;
    for (int32_t j = q.first - q.key0; j <= q.token - q.key0; j++)
        most = fmaxf(most, s[j]);
    vector sums = {0};
    for (int32_t j = 0; j < q.n; j += LANES) {
        const vector e = inside(q, j, exponential((load(s + j) - most) * scale));
        store(s + j, e);
        sums += e;
    }
    for (int i = 0; i < LANES; i++)
        sum += sums[i];
    for (int32_t j = 0; j < q.n; j++)
        s[j] *= 1 / sum;
    return most * scale + logf(sum);
}

/*
 * p (n): products of the query and the keys -> probabilities. dp (n): gradients of the
 * probabilities -> those of the products, scale * p * (dp - sum of all p * dp). `norm` is the
 * result of softmax for this query. `o_dot` is this sum: because o is the sum of all p * v, it is
 * the scalar product of o and d_o of the query.
 */
static void softmax_backward(float *p, float *dp, struct query q, float scale, float norm,
                             float o_dot)
{
    for (int32_t j = 0; j < q.n; j += LANES) {
        const vector e = inside(q, j, exponential(load(p + j) * scale - norm));
        const vector d = load(dp + j) - o_dot;
        store(p + j, e);
        store(dp + j, e * d * scale);
    }
}

/* x (tokens, DIM) -> to (DIM, tokens) */
static void transpose(const float *x, float (*to)[STRIDE], long tokens)
{
    for (long t = 0; t < tokens; t++)
        for (long i = 0; i < DIM; i++)
            to[i][t] = x[t * DIM + i];
}

/* The query heads that share a KV head are adjacent. So `i` counts the queries of all of them, and
 * as n_tokens is a multiple of BLOCK, a block belongs to one head. The scratch matrices are static,
 * one set per thread, because they are large for a stack. They are aligned so that no vector
 * crosses the end of a cache line. */
void attend(const struct attention *a)
{
    const long n_tokens = a->tokens, group = a->heads / a->kv_heads;
#pragma omp parallel for schedule(static)
    for (long pair = 0; pair < a->batch * a->kv_heads; pair++) {
        static _Thread_local _Alignas(64) float kt[DIM][STRIDE], s[BLOCK][STRIDE];
        const int32_t *first = a->first + pair / a->kv_heads * n_tokens;
        transpose(a->k + pair * n_tokens * DIM, kt, n_tokens);
        for (long i = 0; i < group * n_tokens; i += BLOCK) {
            const long query0 = i % n_tokens, row0 = pair * group * n_tokens + i; /* of q and o */
            const struct query block = query_of(first, query0, 0);
            multiply((struct product){a->q + row0 * DIM, DIM, 1, &kt[0][block.key0], STRIDE, s[0],
                                      STRIDE, BLOCK, block.n, DIM, STORE});
            for (long r = 0; r < BLOCK; r++)
                a->norm[row0 + r] = softmax(s[r], query_of(first, query0, r), a->scale);
            multiply((struct product){s[0], STRIDE, 1, a->v + (pair * n_tokens + block.key0) * DIM,
                                      DIM, a->o + row0 * DIM, DIM, BLOCK, DIM, block.n, STORE});
        }
    }
}

/* With p and dp of a block: dq = dp k, dk += dp^T q, dv += p^T d_o. The blocks of a pair run one
 * after the other, and no other pair has the same keys, so the sums need no lock. */
void attend_backward(const struct attention *a)
{
    const long n_tokens = a->tokens, group = a->heads / a->kv_heads;
#pragma omp parallel for schedule(static)
    for (long pair = 0; pair < a->batch * a->kv_heads; pair++) {
        static _Thread_local _Alignas(64) float kt[DIM][STRIDE], vt[DIM][STRIDE];
        static _Thread_local _Alignas(64) float p[BLOCK][STRIDE], dp[BLOCK][STRIDE];
        const int32_t *first = a->first + pair / a->kv_heads * n_tokens;
        transpose(a->k + pair * n_tokens * DIM, kt, n_tokens);
        transpose(a->v + pair * n_tokens * DIM, vt, n_tokens);
        for (long i = 0; i < group * n_tokens; i += BLOCK) {
            const long query0 = i % n_tokens, row0 = pair * group * n_tokens + i; /* of q and o */
            const long at = row0 * DIM;
            const struct query block = query_of(first, query0, 0);
            const long n = block.n, key_at = (pair * n_tokens + block.key0) * DIM;
            multiply((struct product){a->q + at, DIM, 1, &kt[0][block.key0], STRIDE, p[0], STRIDE,
                                      BLOCK, n, DIM, STORE});
            multiply((struct product){a->d_o + at, DIM, 1, &vt[0][block.key0], STRIDE, dp[0],
                                      STRIDE, BLOCK, n, DIM, STORE});
            for (long r = 0; r < BLOCK; r++) {
                const float *o = a->o + at + r * DIM, *d_o = a->d_o + at + r * DIM;
                float o_dot = 0;
                for (long j = 0; j < DIM; j++)
                    o_dot += o[j] * d_o[j];
                softmax_backward(p[r], dp[r], query_of(first, query0, r), a->scale,
                                 a->norm[row0 + r], o_dot);
            }
            multiply((struct product){dp[0], STRIDE, 1, a->k + key_at, DIM, a->dq + at, DIM, BLOCK,
                                      DIM, n, STORE});
            multiply((struct product){dp[0], 1, STRIDE, a->q + at, DIM, a->dk + key_at, DIM, n, DIM,
                                      BLOCK, ADD});
            multiply((struct product){p[0], 1, STRIDE, a->d_o + at, DIM, a->dv + key_at, DIM, n,
                                      DIM, BLOCK, ADD});
        }
    }
}
