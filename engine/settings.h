/*
 * Settings, measurements and callbacks that the public API and the backends share. Public header;
 * engine.h includes it.
 */
#ifndef ENGINE_SETTINGS_H
#define ENGINE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Order of the codes in an I2_S tensor, see docs/formats.md, "I2_S". Files do not record it. */
enum bn_i2s_layout { BN_I2S_A, BN_I2S_B, BN_I2S_C };

/* How to compute the output head. EXACT and FULL give the same logits. */
enum bn_head_mode {
    /* Read a 4-bit copy of the rows first, if that saves time, and then only those rows of the file
     * that can matter for the request. */
    BN_HEAD_EXACT,
    /* An approximation, only on the CPU: read an 8-bit copy of an F16, BF16 or F32 matrix. Matrices
     * of another type, and ternary ones, are read as in FULL. */
    BN_HEAD_Q8,
    /* --head f16, whatever the type of the matrix: read every row. Exception: HEAD_TOP with k 0
     * (head.h). */
    BN_HEAD_FULL
};

/* Type of the keys and values in the KV cache: F16, or int8 with one scale per position and KV
 * head. Q8 needs about half the memory and is an approximation. */
enum bn_kv_type { BN_KV_F16, BN_KV_Q8 };

/* Whether to skip weights that would be multiplied by an exact zero, where a backend can. Skipping
 * changes no byte of the results. OFF is for measurements. */
enum bn_skip { BN_SKIP_ON, BN_SKIP_OFF };

/* Most tokens of a pass. A CUDA grid has at most 65,535 thread blocks in y and z, and some kernels
 * have one for each token there: attn_split in z, r16_float in y. The CPU has no such limit, but
 * with one limit for all devices "auto" can use any of them. A 2B model needs 100 kB of scratch
 * memory per token, 6.5 GB for this number. */
#define BN_MAX_UBATCH 65535

/* How to round the inputs of ternary layers. enum act_scheme (engine/model/model.h) is the result
 * of the choice. */
enum bn_activations {
    /* TOKEN if the model was trained with it, or if the training is unknown and each matrix has one
     * scale; else int8 with one scale per 32 columns (act_scheme.h) */
    BN_ACT_AUTO,
    BN_ACT_TOKEN, /* int8 with one scale per token */
    /* int8 with one scale per 128 columns, or per 64 where the scales of the weights differ that
     * often */
    BN_ACT_BLOCK,
    BN_ACT_16,   /* 16-bit integers, as two int8 values each */
    BN_ACT_FLOAT /* no rounding; slow, for comparisons */
};

/* Which earlier keys a token of a window layer attends to, for a window of W: position i sees
 * position j if i - j <= W (REFERENCE, as in training), or if i - j < W (MAINLINE, as in
 * llama.cpp). */
enum bn_window_rule { BN_WINDOW_REFERENCE, BN_WINDOW_MAINLINE };

/* Kind of multiply-add, for measured peaks and profiles. */
enum bn_mac {
    BN_MAC_INT8, /* int8 products, as in the linear layers during prefill */
    BN_MAC_F32   /* fused multiply-adds of floats, as in attention */
};

/* Work of one kind since the previous call of bn_model_profile. */
struct bn_profile_step {
    const char *name; /* static text */
    double seconds;
    uint64_t n_calls; /* how often the work ran */
    uint64_t n_bytes; /* read from memory; 0: negligible or not counted */
    uint64_t n_macs;  /* multiply-adds; 0: negligible or not counted */
    enum bn_mac mac;  /* kind of these multiply-adds */
};
#define BN_PROFILE_STEPS 48 /* most kinds of work of a device */

/* The saved states of a session: their number and their memory. */
struct bn_state_stats {
    size_t n_states, n_bytes;
};

/* Progress callback, on the thread that called the engine, which waits for it. bn_model_open
 * reports bytes of the file. bn_session_sync and bn_session_eval report tokens: 0 at first, then
 * rising numbers up to n_total. On the CPU they include a part of the micro-batch that runs: its
 * tokens times the layers that are done, divided by all layers. The session does not hold these
 * tokens yet; bn_session_ids, which the callback may call, has those of whole micro-batches. On a
 * GPU a micro-batch is short, and only whole ones are reported. */
struct bn_progress {
    void (*report)(void *ud, size_t n_done, size_t n_total); /* may be NULL */
    void *ud;
};

/* A byte stream for saving or loading a KV cache. When saving, `move` takes the n_bytes at `bytes`;
 * when loading, it fills them. If it returns false, the call fails with BN_EIO. */
struct bn_stream {
    bool (*move)(void *ud, void *bytes, size_t n_bytes);
    void *ud;
};

#endif
