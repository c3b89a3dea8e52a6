/*
 * The contents of bitnet-inspect info: collected once, then printed as lines or as JSON.
 *
 * If something cannot be opened, its section contains the error, so info also works for models that
 * cannot run.
 */
#ifndef APP_INSPECT_INFO_H
#define APP_INSPECT_INFO_H

#include "app/inspect/inspect.h"
#include "engine/backend/backend.h"
#include "engine/gguf/gguf.h"
#include "engine/model/model.h"

#define INFO_DEVICES 16 /* more than there are kinds of devices */

struct info_type { /* the tensors of one type */
    const char *name;
    size_t n_tensors;
    uint64_t n_elements;
    uint64_t n_bytes;
};

struct info {
    struct inspect *in; /* the file is open; tokenizer and template are NULL after an error */
    const struct gguf *gguf;
    struct info_type types[TENSOR_N_TYPES]; /* by enum tensor_type, with those that do not occur */
    struct model *model;                    /* NULL after model_error */
    struct bn_error model_error, tokenizer_error, template_error;
    size_t n_ctx; /* tokens of context for which the memory is counted; not used without a plan */
    struct backend_plan plan; /* all 0 without a model or with a plan_error */
    /* Bytes of the token embedding and the output head that are read from the file while the model
     * runs. They need memory beside plan.weight_bytes. 0 on a GPU, which has copies of them in its
     * weights. */
    uint64_t table_bytes;
    uint64_t kv_bytes;          /* of n_ctx tokens */
    uint64_t total_bytes;       /* weights, tables, KV cache, states of a chat and scratch */
    struct bn_error plan_error; /* code BN_OK: no error */
    const char *backend;        /* name of the backend of the plan; NULL: none was chosen */
    struct bn_device_line devices[INFO_DEVICES];
    size_t n_devices;
};

static inline const char *info_note_kind(enum bn_note_kind kind)
{
    static const char *const names[] = {
        [BN_NOTE_INFO] = "note", [BN_NOTE_REPAIR] = "repair", [BN_NOTE_WARNING] = "warning"};
    return names[kind];
}

static inline const char *info_kind_name(enum gguf_kind kind)
{
    /* in the order of enum gguf_kind */
    static const char *const names[] = {"u8",   "i8",  "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "str", "array", "u64", "i64", "f64"};
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

#define INFO_KEY_BYTES 256 /* with a 0; GGUF allows 65535 bytes, but usual keys are far shorter */
/* Copy the key as a C string for the functions bn_file_get_... False if it is too long or contains
 * a 0 byte. */
static inline bool info_key(const struct gguf_kv *kv, char out[INFO_KEY_BYTES])
{
    if (kv->key.n_bytes >= INFO_KEY_BYTES || memchr(kv->key.ptr, 0, kv->key.n_bytes))
        return false;
    (void)snprintf(out, INFO_KEY_BYTES, "%.*s", (int)kv->key.n_bytes, kv->key.ptr);
    return true;
}

/* Print to stdout: sections of two columns, or one JSON object. An error of the JSON is printed on
 * stderr, and its code is returned. */
void info_print_lines(const struct info *info);
enum exit_code info_print_json(const struct info *info);

#endif
