/*
 * The twin: the kernels of engine/cuda compiled as C, and the fibers that run their threads. Each
 * fiber has a separate stack. On x86-64, a few instructions save the registers that a call must
 * preserve; other machines use ucontext.
 */
#include "tests/engine/cuda/twin_run.h"

#include "engine/cuda/kernels/cuda_kernels.cu"

#include <stdio.h>
#include <stdlib.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#define MAX_THREADS 1024
/* Not a power of two: otherwise the tops of all stacks would share a few cache sets. */
#define STACK_BYTES (((size_t)64 << 10) + 9 * 64)
#define EXCHANGE_WORDS 6 /* most words that a lane exchanges at once */
#define MAX_COPIES 64    /* asynchronous copies of a thread that are not complete */

enum fiber_state { FIBER_RUNS, FIBER_AT_WARP, FIBER_AT_BLOCK, FIBER_DONE };

struct fiber {
    struct twin_indices index;
    enum fiber_state state;
    uint32_t n_exchanges, n_words; /* exchanges so far; words of the last one */
    uint32_t n_counts;             /* calls of twin_block_count so far */
    uint32_t n_copies, n_groups;   /* used entries of twin.copies; groups of copies so far */
    uint8_t *stack;
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
};

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    uint32_t group;   /* number of its group, in order */
};

static struct {
    struct fiber fibers[MAX_THREADS];
    struct copy copies[MAX_THREADS][MAX_COPIES]; /* apart, so that the fibers fit into the cache */
    struct fiber *now;
    const struct twin_kernel *kernel;
    const void *args;
    enum twin_order order;
    uint8_t *stacks; /* (MAX_THREADS, STACK_BYTES) */
    uint32_t exchanged[MAX_THREADS / 32][2][32 * EXCHANGE_WORDS];
    uint32_t counts[3]; /* of the last three calls of twin_block_count */
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
} twin;

static void fail(const char *why)
{
    fprintf(stderr, "twin of %s: thread %u of block (%u, %u, %u): %s\n", twin.kernel->name,
            twin.now->index.thread, twin.now->index.block[0], twin.now->index.block[1],
            twin.now->index.block[2], why);
    abort();
}

/* The lane of the same warp that runs after f, or NULL: then the scheduler, run_warp, continues. */
static struct fiber *next_lane(struct fiber *f)
{
    const bool ascending = twin.order == TWIN_ASCENDING;
    if (f->index.thread % 32 == (ascending ? 31 : 0))
        return NULL;
    f = ascending ? f + 1 : f - 1;
    return f->state == FIBER_RUNS ? f : NULL;
}

static void fiber_leave(void);
static void fiber_main(void)
{
    twin.kernel->run(twin.args);
    if (twin.now->n_copies > 0)
        fail("the kernel ends before its asynchronous copies");
    twin.now->state = FIBER_DONE;
    fiber_leave();
}

#if defined(__x86_64__)
void twin_switch(void **save, void *to);
__asm__(".text\n.globl twin_switch\n.type twin_switch, @function\ntwin_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\n"
        "pop %rcx\njmp *%rcx\n" /* a ret would be predicted to return to the caller */
        ".size twin_switch, . - twin_switch\n"
        ".section .note.GNU-stack,\"\",@progbits\n.text\n");

/* The new stack has six registers, the address that twin_switch jumps to, and an unused return
 * address, because a function starts 8 bytes below a multiple of 16. */
static void fiber_make(struct fiber *f)
{
    void (*const entry)(void) = fiber_main;
    uint8_t *top = f->stack + STACK_BYTES - 16;
    memset(top, 0, 16);
    memcpy(top, &entry, sizeof entry);
    f->sp = top - 48;
    memset(f->sp, 0, 48);
}
static void fiber_enter(struct fiber *f)
{
    twin.now = f;
    twin_switch(&twin.sp, f->sp);
}
static void fiber_leave(void)
{
    struct fiber *f = twin.now, *next = next_lane(f);
    if (next)
        twin.now = next;
    twin_switch(&f->sp, next ? next->sp : twin.sp);
}
#else
static void fiber_make(struct fiber *f)
{
    (void)getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
}
static void fiber_enter(struct fiber *f)
{
    twin.now = f;
    (void)swapcontext(&twin.context, &f->context);
}
static void fiber_leave(void)
{
    struct fiber *f = twin.now, *next = next_lane(f);
    if (next)
        twin.now = next;
    (void)swapcontext(&f->context, next ? &next->context : &twin.context);
}
#endif

const struct twin_indices *twin_current(void)
{
    return &twin.now->index;
}

void twin_block_sync(void)
{
    twin.now->state = FIBER_AT_BLOCK;
    fiber_leave();
}

/* Also clears the counter of the next call. Every thread has read its old value, two calls ago. */
uint32_t twin_block_count(uint32_t yes)
{
    const uint32_t at = twin.now->n_counts++ % 3;
    twin.counts[at] += yes;
    twin.counts[(at + 1) % 3] = 0;
    twin_block_sync();
    return twin.counts[at];
}

const uint32_t *twin_exchange(const uint32_t *v, uint32_t n)
{
    struct fiber *f = twin.now;
    uint32_t *all = twin.exchanged[f->index.thread / 32][f->n_exchanges % 2];
    memcpy(all + f->index.thread % 32 * n, v, n * sizeof *v);
    f->n_exchanges++;
    f->n_words = n;
    f->state = FIBER_AT_WARP;
    fiber_leave();
    return all;
}

void twin_copy(void *to, const void *from, bool exists)
{
    struct fiber *f = twin.now;
    if (f->n_copies == MAX_COPIES)
        fail("too many asynchronous copies");
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0)
        fail("an asynchronous copy is not aligned");
    twin.copies[f->index.thread][f->n_copies++] =
        (struct copy){to, exists ? from : NULL, f->n_groups};
}

void twin_copy_commit(void)
{
    twin.now->n_groups++;
}

void twin_copy_wait(uint32_t n_groups)
{
    struct fiber *f = twin.now;
    struct copy *copies = twin.copies[f->index.thread];
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < f->n_copies; i++) {
        if (n_groups > 0 && copies[i].group + n_groups >= f->n_groups)
            copies[n_kept++] = copies[i];
        else if (copies[i].from)
            memcpy(copies[i].to, copies[i].from, sizeof(struct words));
        else
            memset(copies[i].to, 0, sizeof(struct words));
    }
    f->n_copies = n_kept;
}

/* Index of the lane or warp that runs as number i of n. */
static uint32_t run_index(uint32_t i, uint32_t n)
{
    return twin.order == TWIN_ASCENDING ? i : n - 1 - i;
}

/* Runs a warp until every lane has reached a block barrier or has ended. */
static void run_warp(struct fiber *lanes)
{
    for (;;) {
        uint32_t n_waiting = 0;
        for (uint32_t i = 0; i < 32; i++) {
            struct fiber *f = &lanes[run_index(i, 32)];
            if (f->state == FIBER_RUNS)
                fiber_enter(f);
            n_waiting += f->state == FIBER_AT_WARP;
        }
        if (n_waiting == 0)
            return;
        for (uint32_t i = 0; i < 32; i++) {
            if (lanes[i].state != FIBER_AT_WARP || lanes[i].n_exchanges != lanes[0].n_exchanges ||
                lanes[i].n_words != lanes[0].n_words)
                fail("some lanes of the warp miss an exchange");
            lanes[i].state = FIBER_RUNS;
        }
    }
}

static void run_block(const struct twin_grid *grid)
{
    for (uint32_t i = 0; i < grid->n_threads; i++)
        fiber_make(&twin.fibers[i]);
    for (;;) {
        uint32_t n_waiting = 0;
        for (uint32_t w = 0; w < grid->n_threads / 32; w++)
            run_warp(twin.fibers + 32 * run_index(w, grid->n_threads / 32));
        for (uint32_t i = 0; i < grid->n_threads; i++)
            n_waiting += twin.fibers[i].state == FIBER_AT_BLOCK;
        if (n_waiting == 0)
            return;
        if (n_waiting != grid->n_threads)
            fail("some threads of the block miss a barrier");
        for (uint32_t i = 0; i < grid->n_threads; i++)
            twin.fibers[i].state = FIBER_RUNS;
    }
}

void twin_launch(const struct twin_kernel *k, struct twin_grid grid, const void *args,
                 enum twin_order order)
{
    twin.kernel = k;
    twin.args = args;
    twin.order = order;
    twin.now = &twin.fibers[0];
    if (grid.n_threads % 32 != 0 || grid.n_threads > k->max_threads || grid.n_threads == 0 ||
        grid.n_blocks[0] == 0 || grid.n_blocks[1] == 0 || grid.n_blocks[2] == 0 ||
        grid.n_blocks[1] > 65535 || grid.n_blocks[2] > 65535)
        fail("invalid grid");
    if (!twin.stacks) /* never freed */
        twin.stacks = malloc(MAX_THREADS * STACK_BYTES);
    if (!twin.stacks)
        fail("no memory for stacks");
    for (uint32_t z = 0; z < grid.n_blocks[2]; z++)
        for (uint32_t y = 0; y < grid.n_blocks[1]; y++)
            for (uint32_t x = 0; x < grid.n_blocks[0]; x++) {
                for (uint32_t i = 0; i < grid.n_threads; i++) {
                    struct fiber *f = &twin.fibers[i];
                    f->index = (struct twin_indices){
                        i,
                        grid.n_threads,
                        {x, y, z},
                        {grid.n_blocks[0], grid.n_blocks[1], grid.n_blocks[2]}};
                    f->state = FIBER_RUNS;
                    f->n_exchanges = f->n_words = f->n_counts = 0;
                    f->n_copies = f->n_groups = 0;
                    f->stack = twin.stacks + i * STACK_BYTES;
                }
                memset(twin.counts, 0, sizeof twin.counts);
                run_block(&grid);
            }
}

static const struct twin_kernel kernels[] = {
#define KERNEL_ROW(name, args, n_threads) {#name, name, sizeof(struct args), n_threads},
    CUDA_KERNELS(KERNEL_ROW)};

const struct twin_kernel *twin_find(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return NULL;
}
