/*
 * The option rows of bitnet-chat, and their conversion to settings of the sampler and the session.
 *
 * Rows marked EVERYWHERE can be changed by /set; the others are fixed at start. Without a default
 * (.fallback), a flag is off and a text or choice is unset. Exceptions: the defaults of --stats and
 * --overflow depend on the terminal and are not in the tables, and --seed is random. clang-format
 * is off for the tables because it would write one field per line.
 */
#include "app/options/chat_options.h"

#include "app/common/input_text.h"
#include "app/common/report.h"
#include "app/options/model_args.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVERYWHERE (OPTION_AT_START | OPTION_BY_SET)

static bool check_not_empty(const char *text, struct bn_error *err)
{
    return text[0] || bn_fail(err, BN_EARG, "expected some text");
}

/* ID=X with the range of X that sampler_set accepts. */
static bool parse_bias(const char *text, struct sampler_bias *out)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    const long id = strtol(text, &end, 10);
    if (*end != '=' || id > INT32_MAX || !end[1])
        return false;
    const double bias = strtod(end + 1, &end);
    *out = (struct sampler_bias){(int32_t)id, (float)bias};
    return !*end && (bias == -INFINITY || fabs(bias) <= SAMPLER_MAX_BIAS);
}

static bool check_bias(const char *text, struct bn_error *err)
{
    struct sampler_bias bias;
    return parse_bias(text, &bias) ||
           bn_fail(err, BN_EARG, "expected ID=X, a token id and -10000 to 10000 or -inf");
}

/* A whole number of bytes, perhaps with K, M or G (thousands, millions, billions), at most
 * 1000 G. */
static bool parse_size(const char *text, size_t *out)
{
    static const char units[] = "KMG";
    char *rest;
    const long n = strtol(text, &rest, 10);
    const char *unit = *rest ? strchr(units, *rest) : NULL;
    size_t bytes = (size_t)n;
    if (text[0] < '0' || text[0] > '9' || n > 1000000000000 || (*rest && (!unit || rest[1])))
        return false;
    for (size_t i = 0; unit && i <= (size_t)(unit - units); i++)
        if (!size_mul(&bytes, bytes, 1000))
            return false;
    *out = bytes;
    return bytes <= 1000000000000;
}

static bool check_state_memory(const char *text, struct bn_error *err)
{
    size_t bytes;
    return strcmp(text, "auto") == 0 || parse_size(text, &bytes) ||
           bn_fail(err, BN_EARG, "expected auto or a size such as 500M or 2G, at most 1000G");
}

static bool check_batch(const char *text, struct bn_error *err)
{
    char *rest;
    const long n = strtol(text, &rest, 10);
    const bool is_number = text[0] >= '0' && text[0] <= '9' && !*rest;
    return strcmp(text, "auto") == 0 || (is_number && n >= 1 && n <= CHAT_BATCH_MAX) ||
           bn_fail(err, BN_EARG, "expected auto or a whole number from 1 to %d", CHAT_BATCH_MAX);
}

static bool check_think_budget(const char *text, struct bn_error *err)
{
    const size_t n_digits = strspn(text, "0123456789");
    return strcmp(text, "off") == 0 || (n_digits > 0 && n_digits <= 9 && !text[n_digits]) ||
           bn_fail(err, BN_EARG, "expected off or a whole number of tokens, 0 to 999999999");
}

/* clang-format off */
static const struct option sampling_rows[] = {
    {.name = "temp", .kind = OPTION_REAL, .places = EVERYWHERE, .reals = {0, 100, false},
     .fallback = "0.7", .arg = "T",
     .help = "how freely the model chooses words; 0: always the likeliest"},
    {.name = "top-k", .kind = OPTION_INT, .places = EVERYWHERE,
     .ints = {0, 1000000}, /* more than the tokens of any vocabulary */
     .fallback = "40", .help = "consider only the N likeliest tokens; 0: all"},
    {.name = "top-p", .kind = OPTION_REAL, .places = EVERYWHERE, .reals = {0, 1, true},
     .fallback = "0.95", .arg = "P",
     .help = "only the likeliest tokens with total probability P; 1: all"},
    {.name = "min-p", .kind = OPTION_REAL, .places = EVERYWHERE, .reals = {0, 1, false},
     .fallback = "0.05", .arg = "P",
     .help = "consider tokens at least P times as likely as the best; 0: all"},
    {.name = "typical", .kind = OPTION_REAL, .advanced = true, .places = EVERYWHERE,
     .reals = {0, 1, true}, .fallback = "1", .arg = "P",
     .help = "consider locally typical tokens with total probability P; 1: all"},
    {.name = "repeat-penalty", .kind = OPTION_REAL, .places = EVERYWHERE, .reals = {0, 10, true},
     .fallback = "1", .arg = "X", .help = "above 1: the model repeats itself less; 1: off"},
    {.name = "presence-penalty", .kind = OPTION_REAL, .advanced = true, .places = EVERYWHERE,
     .reals = {-10, 10, false}, .fallback = "0", .arg = "X",
     .help = "subtracted from the logit of each recent token; 0: off"},
    {.name = "frequency-penalty", .kind = OPTION_REAL, .advanced = true, .places = EVERYWHERE,
     .reals = {-10, 10, false}, .fallback = "0", .arg = "X",
     .help = "subtracted once for each occurrence of a recent token; 0: off"},
    {.name = "repeat-last-n", .kind = OPTION_INT, .advanced = true, .places = EVERYWHERE,
     .ints = {-1, INT32_MAX}, .fallback = "64",
     .help = "number of recent tokens for the penalties; -1: the whole context"},
    {.name = "logit-bias", .kind = OPTION_TEXT, .repeats = true, .advanced = true,
     .places = EVERYWHERE, .check = check_bias, .arg = "ID=X",
     .help = "add X to the logit of a token; -inf bans it (may be repeated)"},
    {.name = "max-tokens", .letter = 'n', .kind = OPTION_INT, .places = EVERYWHERE,
     .ints = {0, INT32_MAX}, .fallback = "0",
     .help = "longest answer, in tokens; 0: the rest of the context"},
    {.name = "think-budget", .kind = OPTION_TEXT, .advanced = true, .places = EVERYWHERE,
     .check = check_think_budget, .offered = "off", .fallback = "off", .arg = "N|off",
     .help = "end a thought after N tokens, so that the answer begins; 0: no thought"},
    {.name = "stop", .kind = OPTION_TEXT, .repeats = true, .places = EVERYWHERE,
     .check = check_not_empty, .arg = "TEXT",
     .help = "end the answer before this text (may be repeated)"},
    {.name = "seed", .kind = OPTION_INT, .places = EVERYWHERE, .ints = {0, INT64_MAX},
     .help = "fix the random numbers; if not given, each answer has a new seed"},
    {.name = "spec", .kind = OPTION_CHOICE, .advanced = true, .places = EVERYWHERE,
     .choices = SPEC_CHOICES, .fallback = "auto",
     .help = "speculative decoding; auto: when faster; answers do not change"},
    {.name = "greedy", .kind = OPTION_FLAG, .places = EVERYWHERE, .help = "the same as --temp 0"},
};
static const struct option_table sampling_options = OPTION_TABLE("Sampling", sampling_rows);

static const struct option model_rows[] = {
    {.name = "model", .letter = 'm', .kind = OPTION_TEXT, .places = OPTION_AT_START,
     .paths = OPTION_PATH, .arg = "FILE",
     .help = "the model, a GGUF file (see models.md); default: a small demo model"},
    {.name = "ctx", .letter = 'c', .kind = OPTION_INT, .places = OPTION_AT_START,
     .ints = {0, MAX_CTX}, .fallback = "0",
     .help = "context in tokens (3/4 of a word); 0: as in training, if it fits"},
    {.name = "state-memory", .kind = OPTION_TEXT, .advanced = true, .places = OPTION_AT_START,
     .check = check_state_memory, .offered = "auto", .fallback = "auto", .arg = "SIZE",
     .help = "memory for saved states, if the model needs them, such as 2G"},
    {.name = "raw", .kind = OPTION_FLAG, .places = OPTION_AT_START,
     .help = "no chat template: the model gets the text unchanged"},
    {.name = "check", .kind = OPTION_FLAG, .advanced = true, .places = OPTION_AT_START,
     .fallback = "on", .help = "test once whether the model predicts English text"},
};
static const struct option_table model_options = OPTION_TABLE("Model", model_rows);

static const struct option prompt_rows[] = {
    {.name = "prompt", .letter = 'p', .kind = OPTION_TEXT, .arg = "TEXT",
     .help = "the prompt; answer it and exit; @path in it is text: see -f"},
    {.name = "system", .letter = 's', .kind = OPTION_TEXT, .places = OPTION_AT_START,
     .paths = OPTION_AT_PATH, .arg = "TEXT|@FILE", .help = "system message"},
    {.name = "file", .letter = 'f', .kind = OPTION_TEXT, .repeats = true,
     .paths = OPTION_PATH, .arg = "PATH",
     .help = "put a text file before the prompt; -: standard input (may be repeated)"},
    {.name = "interactive", .letter = 'i', .kind = OPTION_FLAG,
     .help = "continue after the first prompt; from a pipe: lines and commands"},
};
static const struct option_table prompt_options = OPTION_TABLE("Prompt", prompt_rows);

static const struct option conversation_rows[] = {
    {.name = "continue", .letter = 'C', .kind = OPTION_FLAG,
     .help = "continue the last conversation"},
    {.name = "session", .kind = OPTION_TEXT, .paths = OPTION_PATH | OPTION_SAVED, .arg = "NAME",
     .help = "open or create the saved chat NAME; it is saved after every turn"},
    {.name = "load", .kind = OPTION_TEXT, .paths = OPTION_PATH | OPTION_SAVED, .arg = "FILE",
     .help = "start with the conversation in FILE"},
    {.name = "private", .kind = OPTION_FLAG, .places = OPTION_AT_START,
     .help = "write no files: no input history, no last conversation"},
    {.name = "snapshot", .kind = OPTION_FLAG, .advanced = true, .places = EVERYWHERE,
     .help = "save the KV cache too, so that a long chat continues at once"},
    {.name = "overflow", .kind = OPTION_CHOICE, .places = EVERYWHERE,
     .choices = "drop|keep-first|stop", .arg = "NAME", /* in the order of enum prompt_overflow */
     .help = "full context: drop (oldest turns), keep-first (all but turn 1), stop"},
    {.name = "overflow-to", .kind = OPTION_INT, .advanced = true, .places = EVERYWHERE,
     .ints = {1, 100}, .fallback = "60", .arg = "PERCENT",
     .help = "a full context drops old turns until this part of it is in use"},
};
static const struct option_table conversation_options =
    OPTION_TABLE("Conversation", conversation_rows);

static const struct option interface_rows[] = {
    {.name = "tui", .kind = OPTION_FLAG,
     .help = "full screen with a scrolling transcript; the same as --ui full"},
    {.name = "inline", .kind = OPTION_FLAG, .advanced = true,
     .help = "ordinary screen; the same as --ui inline"},
    {.name = "ui", .kind = OPTION_CHOICE, .advanced = true, .places = OPTION_AT_START,
     .choices = "inline|full", .fallback = "inline",
     .help = "ordinary screen or full screen; F2 and /ui change it"},
    {.name = "exit-transcript", .kind = OPTION_FLAG, .advanced = true, .places = EVERYWHERE,
     .fallback = "on", .help = "print the transcript when the full screen closes"},
    {.name = "plain", .kind = OPTION_FLAG, .places = OPTION_AT_START,
     .help = "no status row, no colour, no text is rewritten"},
    {.name = "color", .kind = OPTION_CHOICE, .places = EVERYWHERE, .choices = "auto|always|never",
     .fallback = "auto", .help = "bold and coloured text; auto: unless NO_COLOR is set"},
    {.name = "wrap", .kind = OPTION_FLAG, .places = EVERYWHERE, .fallback = "on",
     .help = "break lines between words at a terminal"},
    {.name = "stats", .kind = OPTION_FLAG, .places = EVERYWHERE,
     .help = "show statistics after each answer (default: in a chat at a terminal)"},
    {.name = "history", .kind = OPTION_FLAG, .advanced = true, .places = EVERYWHERE,
     .fallback = "on", .help = "save the input in the history file"},
    {.name = "thoughts", .kind = OPTION_FLAG, .advanced = true, .places = EVERYWHERE,
     .fallback = "on", .help = "show what the model thinks before its answer; see --think"},
    {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .places = OPTION_AT_START,
     .help = "no banner and no notices, only errors"},
    {.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, .advanced = true,
     .places = OPTION_AT_START, .help = "show more about how the model file was read"},
    {.name = "log", .kind = OPTION_TEXT, .advanced = true, .places = OPTION_AT_START,
     .paths = OPTION_PATH, .arg = "FILE",
     .help = "append the messages of the engine and the time of each answer to FILE"},
};
static const struct option_table interface_options = OPTION_TABLE("Interface", interface_rows);

static const struct option script_rows[] = {
    {.name = "lines", .kind = OPTION_FLAG,
     .help = "each line of stdin is one turn of the same conversation"},
    {.name = "keep-going", .kind = OPTION_FLAG, .advanced = true,
     .help = "with -i or --lines: continue after a command or message that failed"},
    {.name = "batch", .kind = OPTION_TEXT, .check = check_batch, .offered = "auto", .arg = "N|auto",
     .help = "each line of stdin is a separate prompt; N are answered at a time"},
    {.name = "json", .kind = OPTION_FLAG, .help = "one JSON object for each answer"},
    {.name = "jsonl", .kind = OPTION_FLAG,
     .help = "JSON lines during the answer: start, token, end"},
    {.name = "logprobs", .kind = OPTION_INT, .advanced = true, .ints = {0, 20}, .fallback = "0",
     .arg = "K", .help = "with --json: log-probability and K alternatives of each token"},
    {.name = "stream", .kind = OPTION_FLAG, .places = OPTION_AT_START, .fallback = "on",
     .help = "write the answer while it is generated"},
};
static const struct option_table script_options = OPTION_TABLE("Scripts", script_rows);

static const struct option report_rows[] = {
    {.name = "info", .kind = OPTION_FLAG,
     .help = "describe the model and how it runs, then exit; with --json: one object"},
    {.name = "explain", .kind = OPTION_FLAG, .advanced = true,
     .help = "describe how prompts and answer tokens are computed, then exit"},
    {.name = "list-sessions", .kind = OPTION_FLAG, .advanced = true,
     .help = "list the names of the saved chats, then exit"},
    {.name = "completion", .kind = OPTION_CHOICE, .choices = "bash|zsh|fish",
     .help = "print the completion script for a shell, then exit"},
    {.name = "version", .kind = OPTION_FLAG, .help = "print the version, then exit"},
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG,
     .help = "list options, then exit; --help all: every option; --help NAME: one"},
};
/* clang-format on */
static const struct option_table report_options = OPTION_TABLE("Information", report_rows);

const struct option_table *const chat_tables[] = {
    &model_options,          &prompt_options,  &conversation_options, &interface_options,
    &script_options,         &report_options,  &model_run_options,    &model_file_options,
    &model_template_options, &sampling_options};
const size_t n_chat_tables = sizeof(chat_tables) / sizeof(chat_tables[0]);

bool chat_options_open(struct options **out, struct bn_error *err)
{
    return options_open(chat_tables, n_chat_tables, out, err);
}

/* Set the values with which the publisher of such models runs them (docs/models.md). Here a family
 * is all models of one architecture, not a chat template. The values belong together, so a file
 * with values of its own gets none of them. */
static void set_family_defaults(struct options *o, const struct bn_file *file)
{
    static const struct {
        const char *arch, *name, *value;
    } rows[] = {
        {"qwen3", "temp", "0.5"},    {"qwen3", "top-k", "20"},   {"qwen3", "top-p", "0.85"},
        {"qwen3", "min-p", "0"},     {"qwen35", "temp", "0.7"},  {"qwen35", "top-k", "20"},
        {"qwen35", "top-p", "0.95"}, {"qwen35", "min-p", "0"},   {"maple", "temp", "0.6"},
        {"maple", "top-k", "20"},    {"maple", "top-p", "0.95"}, {"maple", "min-p", "0"},
    };
    struct bn_str arch;
    struct bn_error ignored; /* without memory the general defaults remain */
    if (!bn_file_get_str(file, "general.architecture", &arch))
        return;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (bn_str_equal(arch, bn_str_of(rows[i].arch)))
            (void)options_set(o, rows[i].name, rows[i].value, OPTION_FROM_FAMILY, &ignored);
}

void chat_options_from_model(struct options *o, const struct bn_file *file)
{
    static const struct {
        const char *key, *name;
    } hints[] = {
        {"general.sampling.temp", "temp"},
        {"general.sampling.top_k", "top-k"},
        {"general.sampling.top_p", "top-p"},
        {"general.sampling.min_p", "min-p"},
        {"general.sampling.penalty_repeat", "repeat-penalty"},
        {"general.sampling.penalty_last_n", "repeat-last-n"},
    };
    bool has_values = false;
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        double value;
        char text[40];
        struct bn_error ignored; /* a model with a bad hint is still usable */
        if (!bn_file_get_f64(file, hints[i].key, &value))
            continue;
        (void)snprintf(text, sizeof(text), "%.9g", value); /* 9 digits identify a float */
        has_values |= options_set(o, hints[i].name, text, OPTION_FROM_MODEL, &ignored);
    }
    if (!has_values)
        set_family_defaults(o, file);
}

bool chat_options_system(const struct options *o, struct strbuf *out, struct bn_error *err)
{
    const char *given = options_text(o, "system");
    size_t bad_at;
    if (!given)
        return true;
    if (!input_text_or_file(given, out, &bad_at, err))
        return false;
    if (bad_at != SIZE_MAX && !options_flag(o, "quiet"))
        report_line(PROGRAM, "warning: " INPUT_UTF8_NOTICE, "the system message", bad_at);
    return true;
}

bool chat_options_check_bias(const char *text, const struct tokenizer *t, struct bn_error *err)
{
    const size_t n_vocab = tokenizer_info(t)->n_vocab;
    struct sampler_bias bias;
    return !parse_bias(text, &bias) || (size_t)bias.id < n_vocab ||
           bn_fail(err, BN_EARG, "--logit-bias %s: the vocabulary has %zu tokens", text, n_vocab);
}

bool chat_options_biases(const struct options *o, const struct tokenizer *t, struct bias_list *list,
                         struct bn_error *err)
{
    size_t n;
    const char *const *texts = options_list(o, "logit-bias", &n);
    struct sampler_bias *items = mem_alloc(n, sizeof(*items));
    if (!items)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        (void)parse_bias(texts[i], &items[i]); /* check_bias has accepted it */
        if (!chat_options_check_bias(texts[i], t, err)) {
            mem_free(items);
            return false;
        }
    }
    *list = (struct bias_list){items, n};
    return true;
}

size_t chat_options_think_budget(const struct options *o)
{
    const char *text = options_text(o, "think-budget");
    return strcmp(text, "off") == 0 ? SIZE_MAX : (size_t)strtoul(text, NULL, 10);
}

bool chat_options_is_greedy(const struct options *o)
{
    return options_flag(o, "greedy") && options_outranks(o, "greedy", "temp");
}

void chat_options_sampler(const struct options *o, struct sampler_params *params)
{
    *params = (struct sampler_params){
        .temp = chat_options_is_greedy(o) ? 0 : (float)options_real(o, "temp"),
        .top_k = (int32_t)options_int(o, "top-k"),
        .top_p = (float)options_real(o, "top-p"),
        .min_p = (float)options_real(o, "min-p"),
        .typical = (float)options_real(o, "typical"),
        .repeat_penalty = (float)options_real(o, "repeat-penalty"),
        .presence_penalty = (float)options_real(o, "presence-penalty"),
        .frequency_penalty = (float)options_real(o, "frequency-penalty"),
        .repeat_last_n = (int32_t)options_int(o, "repeat-last-n"),
        .seed = (uint64_t)options_int(o, "seed"),
    };
}

struct bn_session_config chat_options_session(const struct options *o)
{
    size_t bytes = 0;
    const char *size = options_text(o, "state-memory");
    if (strcmp(size, "auto") != 0 && parse_size(size, &bytes))
        bytes = size_max(bytes, 1); /* not 0, which means auto; no state fits into 1 byte */
    return (struct bn_session_config){.n_ctx = (size_t)options_int(o, "ctx"),
                                      .state_memory = bytes};
}
