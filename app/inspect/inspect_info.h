/*
 * Everything bitnet-inspect info knows about a file, collected once and shown as lines or as JSON.
 *
 * A part that cannot be opened leaves its sentence behind instead: a file of a model that does not
 * run here can still be looked into.
 */
#ifndef APP_INSPECT_INFO_H
#define APP_INSPECT_INFO_H

#include "app/inspect/inspect.h"
#include "engine/backend/backend.h"
#include "engine/gguf/gguf.h"
#include "engine/model/model.h"

#define INFO_DEVICES 16

struct info_type { /* the tensors of one type */
    const char *name;
    size_t n_tensors;
    uint64_t n_elements;
    uint64_t n_bytes;
};

struct info {
    struct inspect *in; /* file, and where they opened tokenizer and template */
    const struct gguf *gguf;
    struct info_type types[TENSOR_N_TYPES];
    struct model *model; /* NULL: model_error */
    struct bn_error model_error, tokenizer_error, template_error;
    size_t n_ctx;               /* that memory is planned for */
    struct backend_plan plan;   /* all 0: plan_error, or no model */
    struct bn_error plan_error; /* code BN_OK: none */
    const char *backend;        /* that the plan is of */
    struct bn_device_line devices[INFO_DEVICES];
    size_t n_devices;
};

/* "ReLU-squared", "adjacent pairs", ...: graph differences in words. */
const char *info_act_name(const struct info *info);
const char *info_rope_name(const struct info *info);
const char *info_note_kind(enum bn_note_kind kind);
const char *info_kind_name(enum gguf_kind kind);

void info_print_lines(const struct info *info);
enum exit_code info_print_json(const struct info *info);

#endif
