/*
 * Attention for the training of the demo model (model.py), forward and backward, in float. model.py
 * compiles and calls this file. Needs AVX2 and FMA.
 *
 * A row of training holds several conversations. A token attends to the tokens from the beginning
 * of its conversation to itself, so most elements of the full matrix of scores would be thrown
 * away. These functions handle BLOCK queries together, and only the keys from the first one that
 * these queries need, rounded down to a multiple of 8, to the last query.
 */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>

enum {
    DIM = 64,     /* elements of an attention head */
    BLOCK = 32,   /* queries that are handled together */
    TOKENS = 512, /* most tokens in a row of training */
    /* Floats between rows of a scratch matrix. With a power of two, the elements of a column would
     * share a few sets of the cache. */
    STRIDE = TOKENS + 16,
    ROWS = 6 /* rows of a register tile of 16 columns: 12 registers of sums, 2 of b, 1 of a */
};

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
 * row to the next. n is a multiple of 8. */
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
 * vectors, 1 or 2, of 8 elements. */
static inline __attribute__((always_inline)) void tile(const struct product *p, long i, long j,
                                                       int rows, int vectors)
{
    const float *a = p->a + i * p->a_row, *b = p->b + j;
    float *c = p->c + i * p->c_row + j;
    __m256 sum[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[r][v] =
                p->mode == ADD ? _mm256_loadu_ps(c + r * p->c_row + 8 * v) : _mm256_setzero_ps();
    for (long k = 0; k < p->inner; k++) {
        __m256 x[2];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            x[v] = _mm256_loadu_ps(b + k * p->b_row + 8 * v);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            const __m256 y = _mm256_broadcast_ss(a + r * p->a_row + k * p->a_col);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm256_fmadd_ps(y, x[v], sum[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_ps(c + r * p->c_row + 8 * v, sum[r][v]);
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
    for (long j = 0; j < p.n; j += 16) {
        const int vectors = p.n - j < 16 ? 1 : 2;
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
static inline __m256 exponential(__m256 x)
{
    const __m256 least = _mm256_set1_ps(-80.0f), log2e = _mm256_set1_ps(1.44269504f);
    const __m256 y = _mm256_mul_ps(_mm256_max_ps(x, least), log2e);
    const __m256 n = _mm256_round_ps(y, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 z = _mm256_mul_ps(_mm256_sub_ps(y, n), _mm256_set1_ps(0.69314718f));
    __m256 p = _mm256_set1_ps(1 / 120.0f);
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1 / 24.0f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1 / 6.0f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(1.0f));
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)));
}

/* A query and the keys of its block: tokens key0 to key0 + n - 1, of which it attends to `first` up
 * to itself. key0 and n are multiples of 8. */
struct query {
    int32_t token, first, key0;
    long n;
};

/* Query r of the block that begins with query0. `first` (tokens) is the row of attention.first. */
static struct query query_of(const int32_t *first, long query0, long r)
{
    const int32_t key0 = first[query0] / 8 * 8; /* the first query needs the earliest key */
    return (struct query){(int32_t)(query0 + r), first[query0 + r], key0, query0 + BLOCK - key0};
}

/* A mask of those of the tokens q.key0 + j to q.key0 + j + 7 to which the query does not attend. */
static inline __m256 outside(struct query q, int32_t j)
{
    const __m256i eight = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i key = _mm256_add_epi32(_mm256_set1_epi32(q.key0 + j), eight);
    const __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32(q.first), key);
    const __m256i after = _mm256_cmpgt_epi32(key, _mm256_set1_epi32(q.token));
    return _mm256_castsi256_ps(_mm256_or_si256(before, after));
}

/* s (n): products of the query and the keys -> probabilities, 0 outside. Returns the logarithm of
 * the sum of the exponentials of the scaled products. */
static float softmax(float *s, struct query q, float scale)
{
    float most = -INFINITY, sum = 0, parts[8];
    for (int32_t j = q.first - q.key0; j <= q.token - q.key0; j++)
        most = fmaxf(most, s[j]);
    __m256 sums = _mm256_setzero_ps();
    for (int32_t j = 0; j < q.n; j += 8) {
        const __m256 less = _mm256_sub_ps(_mm256_loadu_ps(s + j), _mm256_set1_ps(most));
        const __m256 e = exponential(_mm256_mul_ps(less, _mm256_set1_ps(scale)));
        const __m256 inside = _mm256_andnot_ps(outside(q, j), e);
        _mm256_storeu_ps(s + j, inside);
        sums = _mm256_add_ps(sums, inside);
    }
    _mm256_storeu_ps(parts, sums);
    for (int i = 0; i < 8; i++)
        sum += parts[i];
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
    const __m256 scales = _mm256_set1_ps(scale);
    for (int32_t j = 0; j < q.n; j += 8) {
        const __m256 x = _mm256_fmsub_ps(_mm256_loadu_ps(p + j), scales, _mm256_set1_ps(norm));
        const __m256 inside = _mm256_andnot_ps(outside(q, j), exponential(x));
        const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(dp + j), _mm256_set1_ps(o_dot));
        _mm256_storeu_ps(p + j, inside);
        _mm256_storeu_ps(dp + j, _mm256_mul_ps(_mm256_mul_ps(inside, d), scales));
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
 * one set per thread, because they are large for a stack. */
void attend(const struct attention *a)
{
    const long n_tokens = a->tokens, group = a->heads / a->kv_heads;
#pragma omp parallel for schedule(static)
    for (long pair = 0; pair < a->batch * a->kv_heads; pair++) {
        static _Thread_local float kt[DIM][STRIDE], s[BLOCK][STRIDE];
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
        static _Thread_local float kt[DIM][STRIDE], vt[DIM][STRIDE];
        static _Thread_local float p[BLOCK][STRIDE], dp[BLOCK][STRIDE];
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
