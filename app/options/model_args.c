/*
 * Option rows for models and templates, and their conversion to settings: see model_args.h.
 */
#include "app/options/model_args.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/json_out.h"
#include "engine/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATE_MAX_BYTES ((size_t)1 << 20) /* published templates have up to about 10 000 bytes */

static bool check_device(const char *text, struct bn_error *err)
{
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0)
        return true;
    const char *const number = strncmp(text, "cuda:", 5) == 0 ? text + 5 : "";
    const size_t n_digits = strspn(number, "0123456789");
    if (n_digits >= 1 && n_digits <= 3 && !number[n_digits]) /* no computer has 1000 GPUs */
        return true;
    return bn_fail(err, BN_EARG, "expected auto, cpu, cuda or cuda:N");
}

/* The largest number of threads: four per processor, but at least 64. More threads than processors
 * only wait for each other. The limit is far above useful numbers, because it only has to catch
 * mistakes. */
static long most_threads(void)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 16 ? 4 * n : 64;
}

static bool check_threads(const char *text, struct bn_error *err)
{
    const long most = most_threads();
    const char *digits = text + (*text == '+');
    const size_t n_digits = strspn(digits, "0123456789");
    /* strtoll gives its largest result for a number that is too large */
    return (n_digits > 0 && !digits[n_digits] && strtoll(digits, NULL, 10) <= most) ||
           bn_fail(err, BN_EARG, "expected a whole number from 0 to %ld", most);
}

/* clang-format off */
static const struct option run_rows[] = {
    {.name = "device", .kind = OPTION_TEXT, .places = OPTION_AT_START, .check = check_device,
     .offered = "auto|cpu|cuda", .fallback = "auto", .arg = "auto|cpu|cuda[:N]",
     .help = "device for the computation"},
    {.name = "threads", .letter = 't', .kind = OPTION_INT, .places = OPTION_AT_START,
     .ints = {0, INT32_MAX}, .check = check_threads, .fallback = "0",
     .help = "CPU threads; 0: one per core, fewer for little work"},
    {.name = "pin", .kind = OPTION_FLAG, .advanced = true, .places = OPTION_AT_START,
     .help = "keep each CPU thread on its own core"},
    {.name = "ubatch", .kind = OPTION_INT, .advanced = true, .places = OPTION_AT_START,
     .ints = {1, 4096}, .fallback = "512", .help = "largest number of prompt tokens in one pass"},
    {.name = "isa", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "ref|avx2|avxvnni|avx512vnni|amx|neon|dotprod|i8mm", .arg = "NAME",
     .help = "highest instruction set to use (ref ... i8mm); default: the best one"},
    {.name = "head", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "exact|q8|f16", .fallback = "exact",
     .help = "exact; f16: same logits; q8: approximate, reads more than exact"},
    {.name = "kv", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "f16|q8", .fallback = "f16",
     .help = "KV cache: f16; or q8: int8, half the memory, approximate"},
    {.name = "activations", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "auto|token|block|16|float", .fallback = "auto",
     .help = "inputs of ternary layers: int8 per token or block, 16 bits, float"},
    {.name = "window-rule", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "reference|mainline", .fallback = "reference",
     .help = "earlier tokens that a token sees in a window of W: W, or W - 1"},
};
/* clang-format on */
const struct option_table model_run_options = OPTION_TABLE("Model", run_rows);

/* Refuse a misspelt id: otherwise the repair would stay on without a message. The ids are those of
 * all repairs in engine/, tokenizer/ and templates/. */
static bool check_no_repair(const char *text, struct bn_error *err)
{
    static const char *const ids[] = {"all",          "activation",  "chat-template",
                                      "control-text", "end-of-turn", "pre-tokenizer",
                                      "token-type"};
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        bool is_known = false;
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
            is_known = is_known || (strlen(ids[i]) == n && memcmp(ids[i], at, n) == 0);
        if (!is_known)
            return bn_fail(err, BN_EARG,
                           "expected all, or some of these, separated by commas: "
                           "activation, chat-template, control-text, end-of-turn, pre-tokenizer, "
                           "token-type");
        at += n + (at[n] == ',');
    }
    return true;
}

/* clang-format off */
static const struct option file_rows[] = {
    {.name = "i2s-layout", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "a|b|c", .fallback = "a",
     .help = "order of the weights in I2_S tensors; b and c are for other builds"},
    {.name = "no-repair", .kind = OPTION_TEXT, .advanced = true, .places = OPTION_AT_START,
     .check = check_no_repair, .arg = "all|ID,ID",
     .help = "do not repair these faults of the file: all, or IDs shown by info"},
    {.name = "ignore-tensor", .kind = OPTION_TEXT, .repeats = true, .advanced = true,
     .places = OPTION_AT_START, .arg = "NAME",
     .help = "leave out this unknown tensor; * is any text (may be repeated)"},
};
/* clang-format on */
const struct option_table model_file_options = OPTION_TABLE("Model", file_rows);

static bool check_template_arg(const char *text, struct bn_error *err)
{
    static const char *const reserved[] = {"messages", "add_generation_prompt"};
    const size_t n = strcspn(text, "=");
    if (n == 0 || text[n] == 0)
        return bn_fail(err, BN_EARG, "expected NAME=VALUE");
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (strlen(reserved[i]) == n && memcmp(text, reserved[i], n) == 0)
            return bn_fail(err, BN_EARG, "%s is set by the program", reserved[i]);
    return true;
}

/* clang-format off */
static const struct option template_rows[] = {
    {.name = "template", .kind = OPTION_TEXT, .advanced = true, .places = OPTION_AT_START,
     .paths = OPTION_PATH | OPTION_AT_PATH, .offered = "auto|bitnet|llama3|falcon3|chatml|plain",
     .fallback = "auto", .arg = "NAME|@FILE",
     .help = "chat template: auto (of the model), built-in name, Jinja file"},
    {.name = "template-arg", .kind = OPTION_TEXT, .repeats = true, .advanced = true,
     .places = OPTION_AT_START, .check = check_template_arg, .arg = "NAME=VALUE",
     .help = "variable for the template, JSON or text (may be repeated)"},
    {.name = "think", .kind = OPTION_CHOICE, .advanced = true,
     .places = OPTION_AT_START | OPTION_BY_SET,
     .choices = "on|off|auto", .fallback = "auto",
     .help = "think before the answer; auto: off for qwen3, else by the template"},
};
/* clang-format on */
const struct option_table model_template_options = OPTION_TABLE("Model", template_rows);

/* Set the threads from OMP_NUM_THREADS, at most most_threads(). The variable may be a list with a
 * number for each level of nested parallel regions; the first number counts. */
static bool use_omp_threads(struct options *o, const char *text, struct bn_error *err)
{
    char number[24];
    const long n = strtol(text, NULL, 10), most = most_threads();
    (void)snprintf(number, sizeof(number), "%ld", n < most ? n : most); /* fits */
    return options_set(o, "threads", number, OPTION_FROM_ENV, err);
}

bool model_args_environment(struct options *o, struct bn_error *err)
{
    const char *threads = env_get(ENV_THREADS), *omp = env_get(ENV_OMP_NUM_THREADS);
    /* As in OpenMP, an invalid value is ignored. The variable is removed before the OpenMP runtime
     * reads it, because the runtime of LLVM 14 would use a random number of threads. */
    if (omp && (omp[strspn(omp, "0123456789, \t")] || strtol(omp, NULL, 10) < 1)) {
        env_unset(ENV_OMP_NUM_THREADS);
        omp = NULL;
    }
    if (threads)
        return options_set(o, "threads", threads, OPTION_FROM_ENV, err) ||
               bn_fail_prefix(err, "BITNET_CHAT_THREADS");
    return !omp || use_omp_threads(o, omp, err);
}

void model_args_config(const struct options *o, struct bn_model_config *cfg)
{
    /* In the order of the choices in run_rows and file_rows. */
    static const enum bn_head_mode heads[] = {BN_HEAD_EXACT, BN_HEAD_Q8, BN_HEAD_FULL};
    static const enum bn_kv_type kvs[] = {BN_KV_F16, BN_KV_Q8};
    static const enum bn_activations activations[] = {BN_ACT_AUTO, BN_ACT_TOKEN, BN_ACT_BLOCK,
                                                      BN_ACT_16, BN_ACT_FLOAT};
    static const enum bn_window_rule rules[] = {BN_WINDOW_REFERENCE, BN_WINDOW_MAINLINE};
    static const enum bn_i2s_layout layouts[] = {BN_I2S_A, BN_I2S_B, BN_I2S_C};
    if (options_find(o, "device")) { /* `o` has model_run_options */
        cfg->device = options_text(o, "device");
        cfg->isa = options_text(o, "isa");
        cfg->n_threads = (size_t)options_int(o, "threads");
        cfg->pin = options_flag(o, "pin");
        cfg->n_ubatch = (size_t)options_int(o, "ubatch");
        cfg->head = heads[options_choice(o, "head")];
        cfg->kv = kvs[options_choice(o, "kv")];
        cfg->activations = activations[options_choice(o, "activations")];
        cfg->window_rule = rules[options_choice(o, "window-rule")];
    }
    if (options_find(o, "i2s-layout")) { /* `o` has model_file_options */
        cfg->i2s_layout = layouts[options_choice(o, "i2s-layout")];
        cfg->no_repair = options_text(o, "no-repair");
        cfg->ignored_tensors = options_list(o, "ignore-tensor", &cfg->n_ignored_tensors);
    }
}

static const char *no_repair_of(const struct options *o)
{
    return options_find(o, "no-repair") ? options_text(o, "no-repair") : NULL;
}

bool model_args_tokenizer(const struct options *o, const struct bn_file *file,
                          struct bn_notes *notes, struct tokenizer **out, struct bn_error *err)
{
    const struct tokenizer_config cfg = {.no_repair = no_repair_of(o), .notes = notes};
    return tokenizer_open(file, &cfg, out, err);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

static bool fail_no_template(const char *choice, struct bn_error *err)
{
    char names[200] = "";
    size_t n = 0;
    for (const char *const *b = template_builtin_names(); *b && n < sizeof(names); b++)
        n += (size_t)snprintf(names + n, sizeof(names) - n, ", %s", *b);
    return bn_fail(err, BN_EARG, "--template '%s': not a file and not a built-in template (auto%s)",
                   choice, names);
}

static bool has_token(const void *tokenizer, struct bn_str text)
{
    return tokenizer_has_special(tokenizer, text);
}

/* Set the template and the special tokens of the model file; without a file, the usual texts of BOS
 * and EOS. */
static void describe_model(const struct bn_file *file, const struct tokenizer *tokenizer,
                           struct template_config *cfg)
{
    if (!file || !tokenizer) {
        cfg->bos_token = bn_str_of("<s>");
        cfg->eos_token = bn_str_of("</s>");
        return;
    }
    const struct tokenizer_info *info = tokenizer_info(tokenizer);
    /* A missing key leaves the text empty. */
    (void)bn_file_get_str(file, "tokenizer.chat_template", &cfg->model_text);
    (void)bn_file_get_str(file, "general.architecture", &cfg->arch);
    cfg->has_token = has_token;
    cfg->vocab = tokenizer;
    cfg->bos_token = tokenizer_token_text(tokenizer, info->bos);
    cfg->eos_token = tokenizer_token_text(tokenizer, info->eos);
    cfg->unk_token = tokenizer_token_text(tokenizer, info->unk);
    cfg->pad_token = tokenizer_token_text(tokenizer, info->pad);
}

bool model_args_template(const struct options *o, const struct bn_file *file,
                         const struct tokenizer *tokenizer, struct bn_notes *notes,
                         struct template **out, struct bn_error *err)
{
    const char *choice = options_text(o, "template");
    struct template_config cfg = {.choice = choice, .no_repair = no_repair_of(o), .notes = notes};
    describe_model(file, tokenizer, &cfg);
    const bool is_auto = strcmp(choice, "auto") == 0;
    if (is_auto && !file)
        return bn_fail(err, BN_EARG, "--template auto needs a model");
    if (is_auto || options_list_has(template_builtin_names(), choice))
        return template_open(&cfg, out, err);
    const char *path = choice[0] == '@' ? choice + 1 : choice;
    if (choice[0] != '@' && !strchr(choice, '/') && !is_file(choice))
        return fail_no_template(choice, err);
    char *text;
    size_t n_bytes;
    if (!path_read_all(path, TEMPLATE_MAX_BYTES, &text, &n_bytes, err))
        return bn_fail_prefix(err, "--template");
    if (n_bytes == 0) {
        mem_free(text);
        return bn_fail(err, BN_EARG, "--template: '%s' is empty", path);
    }
    cfg.user_text = (struct bn_str){text, n_bytes};
    const bool ok = template_open(&cfg, out, err);
    mem_free(text);
    if (ok)
        return true;
    if (err->code != BN_ENOMEM)
        err->code = BN_EARG; /* an unusable template file is a bad value of the option */
    return bn_fail_prefix(err, "--template %s", path);
}

/* Convert the VALUE of a --template-arg: JSON, or else text. NULL: out of memory, or JSON with too
 * many levels. */
static struct template_value *arg_value(const char *text, struct template_arena *arena)
{
    json_error_t why;
    json_t *json = json_loads(text, JSON_DECODE_ANY, &why);
    const enum json_error_code code = json ? json_error_unknown : json_error_code(&why);
    if (code == json_error_out_of_memory || code == json_error_stack_overflow)
        return NULL; /* the text may be JSON, so it must not be used as text */
    struct template_value *v =
        json ? json_to_template_value(json, arena) : template_string(arena, bn_str_of(text));
    json_decref(json);
    return v;
}

bool model_args_thinks(const struct options *o, const struct template *t, bool *thinks)
{
    enum { THINK_ON, THINK_OFF, THINK_AUTO }; /* in the order of the choices in template_rows */
    const size_t choice = options_choice(o, "think");
    /* Only bitnet-chat has this option: a number or "off", which strtoul would read as 0. */
    const bool has_budget = options_find(o, "think-budget") != NULL;
    const char *const budget = has_budget ? options_text(o, "think-budget") : "off";
    const bool is_zero_budget = budget[0] == '0' && strtoul(budget, NULL, 10) == 0;
    *thinks = choice == THINK_ON;
    return choice != THINK_AUTO || template_info(t)->is_thinking_off || is_zero_budget;
}

/* Set enable_thinking for --think. It stays undefined without a setting, because templates
 * distinguish undefined from false. *dict may be NULL before and after. False: out of memory. */
static bool add_think(const struct options *o, const struct template *t,
                      struct template_arena *arena, struct template_value **dict)
{
    bool thinks;
    if (!model_args_thinks(o, t, &thinks))
        return true;
    *dict = template_set(arena, *dict ? *dict : template_dict(arena), "enable_thinking",
                         template_bool(arena, thinks));
    return *dict != NULL;
}

bool model_args_template_args(const struct options *o, const struct template *t,
                              struct template_arena *arena, struct template_value **out,
                              struct bn_error *err)
{
    size_t n;
    const char *const *items = options_list(o, "template-arg", &n);
    struct template_value *dict = NULL;
    if (!add_think(o, t, arena, &dict))
        return bn_fail(err, BN_ENOMEM, "out of memory for the template argument of --think");
    if (n && !dict)
        dict = template_dict(arena);
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(items[i], '='); /* not NULL: see check_template_arg */
        char name[64];
        const size_t n_name = (size_t)(equals - items[i]);
        if (n_name >= sizeof(name))
            return bn_fail(err, BN_EARG, "--template-arg: a name of %zu bytes is too long", n_name);
        memcpy(name, items[i], n_name);
        name[n_name] = '\0';
        dict = template_set(arena, dict, name, arg_value(equals + 1, arena));
    }
    if (n && !dict)
        return bn_fail(err, BN_ENOMEM,
                       "out of memory for %zu template arguments, or one is nested too deep", n);
    *out = dict;
    return true;
}
