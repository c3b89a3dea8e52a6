/*
 * Option rows of bitnet-chat and the sampling settings that come out of them.
 *
 * What may be changed by /set is marked EVERYWHERE; the rest is fixed at start. A row without a
 * default is one whose default depends on where the program runs (--stats, --overflow) or on chance
 * (--seed).
 */
#include "app/options/chat_options.h"

#include "app/chat/answer/generator.h"
#include "app/options/model_args.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_CONFIG (OPTION_ON_COMMAND | OPTION_IN_CONFIG)
#define EVERYWHERE (OPTION_ON_COMMAND | OPTION_IN_CONFIG | OPTION_BY_SET)

static bool check_not_empty(const char *text, struct bn_error *err)
{
    return text[0] || bn_fail(err, BN_EARG, "expected some text");
}

/* ID=X with X a number or -inf. */
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
    return !*end && !isnan(bias) && bias < 1e6;
}

static bool check_bias(const char *text, struct bn_error *err)
{
    struct sampler_bias bias;
    return parse_bias(text, &bias) ||
           bn_fail(err, BN_EARG, "expected ID=X, a token's id and a number below 1e6 or -inf");
}

/* How many lanes, or auto. */
static bool check_batch(const char *text, struct bn_error *err)
{
    char *rest;
    const long n = strtol(text, &rest, 10);
    if (strcmp(text, "auto") == 0 ||
        (text[0] >= '0' && text[0] <= '9' && !*rest && n >= 1 && n <= GENERATOR_MAX_SEQS))
        return true;
    return bn_fail(err, BN_EARG, "expected auto or a whole number from 1 to %d",
                   GENERATOR_MAX_SEQS);
}

static const struct option sampling_rows[] = {
    {.name = "temp",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 100, false},
     .fallback = "0.7",
     .group = "Sampling",
     .arg = "T",
     .help = "how freely it chooses its words; 0: always the likeliest"},
    {.name = "top-k",
     .kind = OPTION_INT,
     .places = EVERYWHERE,
     .ints = {0, 1000000},
     .fallback = "40",
     .group = "Sampling",
     .arg = "N",
     .help = "only the N best tokens; 0: all"},
    {.name = "top-p",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 1, true},
     .fallback = "0.95",
     .group = "Sampling",
     .arg = "P",
     .help = "only the best tokens that together have probability P; 1: all"},
    {.name = "min-p",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 1, false},
     .fallback = "0.05",
     .group = "Sampling",
     .arg = "P",
     .help = "only tokens at least P times as likely as the best; 0: all"},
    {.name = "typical",
     .kind = OPTION_REAL,
     .advanced = true,
     .places = EVERYWHERE,
     .reals = {0, 1, true},
     .fallback = "1",
     .group = "Sampling",
     .arg = "P",
     .help = "locally typical tokens with probability P; 1: all"},
    {.name = "repeat-penalty",
     .kind = OPTION_REAL,
     .places = EVERYWHERE,
     .reals = {0, 10, true},
     .fallback = "1",
     .group = "Sampling",
     .arg = "X",
     .help = "above 1: makes it repeat itself less; 1: off"},
    {.name = "presence-penalty",
     .kind = OPTION_REAL,
     .advanced = true,
     .places = EVERYWHERE,
     .reals = {-10, 10, false},
     .fallback = "0",
     .group = "Sampling",
     .arg = "X",
     .help = "subtracted from the logit of each token seen lately; 0: off"},
    {.name = "frequency-penalty",
     .kind = OPTION_REAL,
     .advanced = true,
     .places = EVERYWHERE,
     .reals = {-10, 10, false},
     .fallback = "0",
     .group = "Sampling",
     .arg = "X",
     .help = "the same for each time it was seen; 0: off"},
    {.name = "repeat-last-n",
     .kind = OPTION_INT,
     .advanced = true,
     .places = EVERYWHERE,
     .ints = {-1, INT32_MAX},
     .fallback = "64",
     .group = "Sampling",
     .arg = "N",
     .help = "how far back the penalties look; -1: the whole context"},
    {.name = "logit-bias",
     .kind = OPTION_TEXT,
     .repeats = true,
     .advanced = true,
     .places = EVERYWHERE,
     .check = check_bias,
     .group = "Sampling",
     .arg = "ID=X",
     .help = "add X to the logit of a token; -inf bans it (may be repeated)"},
    {.name = "max-tokens",
     .letter = 'n',
     .kind = OPTION_INT,
     .places = EVERYWHERE,
     .ints = {0, INT32_MAX},
     .fallback = "0",
     .group = "Sampling",
     .arg = "N",
     .help = "longest answer, in tokens; 0: the rest of the context"},
    {.name = "stop",
     .kind = OPTION_TEXT,
     .repeats = true,
     .places = EVERYWHERE,
     .check = check_not_empty,
     .group = "Sampling",
     .arg = "TEXT",
     .help = "end the answer before this text (may be repeated)"},
    {.name = "seed",
     .kind = OPTION_INT,
     .places = EVERYWHERE,
     .ints = {0, INT64_MAX},
     .group = "Sampling",
     .arg = "N",
     .help = "fix the random numbers; without it each answer draws its own seed"},
    {.name = "spec",
     .kind = OPTION_CHOICE,
     .advanced = true,
     .places = EVERYWHERE,
     .choices = SPEC_CHOICES,
     .fallback = "auto",
     .group = "Sampling",
     .arg = SPEC_CHOICES,
     .help = "evaluate what followed earlier in the text ahead of time; auto: when it pays; the "
             "answers are the same"},
    {.name = "greedy",
     .kind = OPTION_FLAG,
     .places = EVERYWHERE,
     .group = "Sampling",
     .help = "the same as --temp 0"},
};
const struct option_table chat_sampling_options = OPTION_TABLE(sampling_rows);

static const struct option chat_rows[] = {
    {.name = "model",
     .letter = 'm',
     .kind = OPTION_TEXT,
     .places = COMMAND_CONFIG,
     .group = "Model",
     .arg = "FILE",
     .help = "the model, a GGUF file (docs/models.md); without one a small demo runs"},
    {.name = "ctx",
     .letter = 'c',
     .kind = OPTION_INT,
     .places = COMMAND_CONFIG,
     .ints = {0, 4194304},
     .fallback = "0",
     .group = "Model",
     .arg = "N",
     .help = "text it keeps in mind, in tokens (3/4 of a word); 0: as it was trained"},
    {.name = "raw",
     .kind = OPTION_FLAG,
     .places = COMMAND_CONFIG,
     .group = "Model",
     .help = "no chat template: the text goes to the model as it is"},
    {.name = "prompt",
     .letter = 'p',
     .kind = OPTION_TEXT,
     .group = "Prompt",
     .arg = "TEXT",
     .help = "the prompt; answer and leave"},
    {.name = "system",
     .letter = 's',
     .kind = OPTION_TEXT,
     .places = COMMAND_CONFIG,
     .group = "Prompt",
     .arg = "TEXT|@FILE",
     .help = "system message"},
    {.name = "file",
     .letter = 'f',
     .kind = OPTION_TEXT,
     .repeats = true,
     .group = "Prompt",
     .arg = "PATH",
     .help = "put a text file before the prompt, - for stdin (may be repeated)"},
    {.name = "interactive",
     .letter = 'i',
     .kind = OPTION_FLAG,
     .group = "Prompt",
     .help = "stay after the first prompt; on piped stdin: lines and commands"},
    {.name = "continue",
     .letter = 'C',
     .kind = OPTION_FLAG,
     .group = "Conversation",
     .help = "go on with the last conversation"},
    {.name = "session",
     .kind = OPTION_TEXT,
     .group = "Conversation",
     .arg = "NAME",
     .help = "open or begin the session NAME, saved after every turn"},
    {.name = "load",
     .kind = OPTION_TEXT,
     .group = "Conversation",
     .arg = "FILE",
     .help = "begin with the conversation in FILE"},
    {.name = "private",
     .kind = OPTION_FLAG,
     .places = COMMAND_CONFIG,
     .group = "Conversation",
     .help = "write nothing: no history, no last conversation"},
    {.name = "snapshot",
     .kind = OPTION_FLAG,
     .advanced = true,
     .places = EVERYWHERE,
     .group = "Conversation",
     .help = "on leaving and with /save keep the KV cache, so that a long chat goes on at once"},
    {.name = "overflow",
     .kind = OPTION_CHOICE,
     .places = EVERYWHERE,
     .choices = "drop|stop",
     .group = "Conversation",
     .arg = "drop|stop",
     .help = "full context: drop the oldest, or stop (default in scripts)"},
    {.name = "tui",
     .kind = OPTION_FLAG,
     .group = "Interface",
     .help = "the whole screen, with a scrolling transcript"},
    {.name = "inline",
     .kind = OPTION_FLAG,
     .advanced = true,
     .group = "Interface",
     .help = "the ordinary screen; the same as --ui inline"},
    {.name = "ui",
     .kind = OPTION_CHOICE,
     .advanced = true,
     .places = COMMAND_CONFIG,
     .choices = "inline|full",
     .fallback = "inline",
     .group = "Interface",
     .arg = "inline|full",
     .help = "where a chat is shown; F2 and /ui change it"},
    {.name = "exit-transcript",
     .kind = OPTION_FLAG,
     .advanced = true,
     .places = EVERYWHERE,
     .fallback = "on",
     .group = "Interface",
     .help = "print the full screen's transcript when it is left"},
    {.name = "plain",
     .kind = OPTION_FLAG,
     .places = COMMAND_CONFIG,
     .group = "Interface",
     .help = "no status row, no colour, nothing is ever rewritten"},
    {.name = "color",
     .kind = OPTION_CHOICE,
     .places = EVERYWHERE,
     .choices = "auto|always|never",
     .fallback = "auto",
     .group = "Interface",
     .arg = "auto|always|never",
     .help = "bold and coloured text; auto: unless NO_COLOR is set"},
    {.name = "wrap",
     .kind = OPTION_FLAG,
     .places = EVERYWHERE,
     .fallback = "on",
     .group = "Interface",
     .help = "break lines between words at a terminal"},
    {.name = "stats",
     .kind = OPTION_FLAG,
     .places = EVERYWHERE,
     .group = "Interface",
     .help = "a line of numbers after each answer (default: at a terminal)"},
    {.name = "history",
     .kind = OPTION_FLAG,
     .advanced = true,
     .places = EVERYWHERE,
     .fallback = "on",
     .group = "Interface",
     .help = "keep what is typed in the history file"},
    {.name = "thoughts",
     .kind = OPTION_FLAG,
     .advanced = true,
     .places = EVERYWHERE,
     .fallback = "on",
     .group = "Interface",
     .help = "show what the model thinks before it answers"},
    {.name = "quiet",
     .letter = 'q',
     .kind = OPTION_FLAG,
     .places = COMMAND_CONFIG,
     .group = "Interface",
     .help = "no banner and no notices, only errors"},
    {.name = "verbose",
     .letter = 'v',
     .kind = OPTION_FLAG,
     .advanced = true,
     .places = COMMAND_CONFIG,
     .group = "Interface",
     .help = "say more about how the file was read"},
    {.name = "log",
     .kind = OPTION_TEXT,
     .advanced = true,
     .places = COMMAND_CONFIG,
     .group = "Interface",
     .arg = "FILE",
     .help = "append to FILE what the engine says and how long each answer took"},
    {.name = "lines",
     .kind = OPTION_FLAG,
     .group = "Scripts",
     .help = "each line of stdin is one turn of one conversation"},
    {.name = "batch",
     .kind = OPTION_TEXT,
     .check = check_batch,
     .group = "Scripts",
     .arg = "N|auto",
     .help = "each line of stdin is a prompt of its own; N are answered at a time"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .group = "Scripts",
     .help = "one JSON object for each answer"},
    {.name = "jsonl",
     .kind = OPTION_FLAG,
     .group = "Scripts",
     .help = "JSON lines while answering: start, token, end"},
    {.name = "logprobs",
     .kind = OPTION_INT,
     .advanced = true,
     .ints = {0, 20},
     .fallback = "0",
     .group = "Scripts",
     .arg = "K",
     .help = "with --json: log-probability and K alternatives of each token"},
    {.name = "stream",
     .kind = OPTION_FLAG,
     .places = COMMAND_CONFIG,
     .fallback = "on",
     .group = "Scripts",
     .help = "write the answer while it is made"},
    {.name = "info",
     .kind = OPTION_FLAG,
     .group = "Ask and leave",
     .help = "what model runs, and how, then leave; with --json one object"},
    {.name = "explain",
     .kind = OPTION_FLAG,
     .advanced = true,
     .group = "Ask and leave",
     .help = "what runs how for a prompt and for each token of an answer, then leave"},
    {.name = "list-sessions",
     .kind = OPTION_FLAG,
     .advanced = true,
     .group = "Ask and leave",
     .help = "names of the saved sessions, then leave"},
    {.name = "completion",
     .kind = OPTION_CHOICE,
     .choices = "bash|zsh|fish",
     .group = "Ask and leave",
     .arg = "bash|zsh|fish",
     .help = "completion script for a shell, then leave"},
    {.name = "version",
     .kind = OPTION_FLAG,
     .group = "Ask and leave",
     .help = "version, then leave"},
    {.name = "help",
     .letter = 'h',
     .kind = OPTION_FLAG,
     .group = "Ask and leave",
     .help = "this text, then leave; --help all: every option"},
};
const struct option_table chat_options = OPTION_TABLE(chat_rows);

bool chat_options_open(struct options **out, struct bn_error *err)
{
    const struct option_table *const tables[] = {&chat_options, &model_run_options,
                                                 &model_file_options, &model_template_options,
                                                 &chat_sampling_options};
    return options_open(tables, sizeof(tables) / sizeof(tables[0]), out, err);
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
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        double value;
        char text[40];
        struct bn_error ignored; /* a hint out of range is no reason to refuse a model */
        if (!bn_file_get_f64(file, hints[i].key, &value))
            continue;
        (void)snprintf(text, sizeof(text), "%.9g", value); /* 9 digits name every float */
        (void)options_set(o, hints[i].name, text, OPTION_FROM_MODEL, &ignored);
    }
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
        if ((size_t)items[i].id >= tokenizer_info(t)->n_vocab) {
            mem_free(items);
            return bn_fail(err, BN_EARG, "--logit-bias %s: the vocabulary has %zu tokens", texts[i],
                           tokenizer_info(t)->n_vocab);
        }
    }
    *list = (struct bias_list){items, n};
    return true;
}

void chat_options_sampler(const struct options *o, struct sampler_params *params)
{
    *params = (struct sampler_params){
        .temp = options_flag(o, "greedy") ? 0 : (float)options_real(o, "temp"),
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
