/*
 * The tables of verbs and options of bitnet-inspect: see inspect.h.
 */
#include "app/inspect/inspect.h"

/* clang-format off */
static const struct option general_rows[] = {
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG,
     .help = "show the verbs and options; after a verb, the options of that verb"},
    {.name = "version", .kind = OPTION_FLAG, .help = "show the version"},
};

static const struct option output_rows[] = {
    {.name = "json", .kind = OPTION_FLAG, .help = "info, experts: print one JSON object"},
    {.name = "ctx", .letter = 'c', .kind = OPTION_INT, .ints = {0, MAX_CTX}, .fallback = "0",
     .help = "info: context to plan for; perplexity, experts: window; logits: context of the "
             "session"},
};

static const struct option text_rows[] = {
    {.name = "special", .kind = OPTION_FLAG,
     .help = "tokenize: recognise special tokens in the text; detokenize: show them"},
    {.name = "bos", .kind = OPTION_FLAG, .help = "tokenize: put the beginning-of-text token first"},
};

static const struct option prompt_rows[] = {
    {.name = "messages", .kind = OPTION_TEXT, .paths = OPTION_PATH, .arg = "FILE",
     .help = "the conversation: JSON messages in the OpenAI form; -: stdin"},
    {.name = "ids", .kind = OPTION_FLAG, .help = "print ids instead of text"},
    {.name = "generation-prompt", .kind = OPTION_FLAG, .fallback = "on",
     .help = "end the prompt with the text that starts an answer"},
};

static const struct option logits_rows[] = {
    {.name = "tokens", .kind = OPTION_INTS, .ints = {0, INT32_MAX}, .arg = "ID,ID,...",
     .help = "the ids to evaluate"},
    {.name = "out", .kind = OPTION_TEXT, .paths = OPTION_PATH, .arg = "FILE",
     .help = "output file for the logits: float32, (tokens, vocabulary), row-major"},
    {.name = "reuse", .kind = OPTION_INT, .ints = {0, INT32_MAX}, .fallback = "0",
     .help = "evaluate the first N ids, then the rest on top of them"},
};
/* clang-format on */

static const struct option_table general = OPTION_TABLE("General", general_rows);
static const struct option_table output = OPTION_TABLE("Output", output_rows);
static const struct option_table text = OPTION_TABLE("Text", text_rows);
static const struct option_table prompt = OPTION_TABLE("Prompt", prompt_rows);
static const struct option_table logits = OPTION_TABLE("Logits", logits_rows);
const struct option_table *const inspect_tables[] = {&general,
                                                     &output,
                                                     &text,
                                                     &prompt,
                                                     &logits,
                                                     &model_template_options,
                                                     &model_file_options,
                                                     &model_run_options};
const size_t n_inspect_tables = sizeof(inspect_tables) / sizeof(inspect_tables[0]);

#define FILE_OPTIONS "i2s-layout", "no-repair", "ignore-tensor"
/* All rows of model_run_options. A row that is missing here would be refused by every verb. */
#define RUN_OPTIONS                                                                                \
    "device", "threads", "ubatch", "isa", "head", "kv", "activations", "window-rule", "pin"

static const char *const info_options[] = {"json",      "ctx",      FILE_OPTIONS,
                                           RUN_OPTIONS, "template", NULL};
static const char *const check_options[] = {FILE_OPTIONS, RUN_OPTIONS, "template", NULL};
static const char *const tokenize_options[] = {"special", "bos", "no-repair", NULL};
static const char *const detokenize_options[] = {"special", "no-repair", NULL};
static const char *const prompt_options[] = {
    "messages", "ids", "generation-prompt", "template", "template-arg", "think", "no-repair", NULL};
static const char *const logits_options[] = {"tokens",     "out",       "reuse", "ctx",
                                             FILE_OPTIONS, RUN_OPTIONS, NULL};
static const char *const experts_options[] = {"ctx", "json", FILE_OPTIONS, RUN_OPTIONS, NULL};
static const char *const perplexity_options[] = {"ctx", FILE_OPTIONS, RUN_OPTIONS, NULL};

const struct inspect_verb inspect_verbs[] = {
    {"info", "MODEL [--json]",
     "show the contents of the file, the repairs, the memory that it needs", 1, 1, info_options,
     inspect_info},
    {"check", "MODEL",
     "check the structure, the weights, the kernels, and the loss on a short text", 1, 1,
     check_options, inspect_check},
    {"tokenize", "MODEL [--special] [--bos] < TEXT",
     "print the token ids of a text on one line, separated by spaces", 1, 1, tokenize_options,
     inspect_tokenize},
    {"detokenize", "MODEL [--special] < IDS", "print the bytes of token ids", 1, 1,
     detokenize_options, inspect_detokenize},
    {"prompt", "MODEL|--template FILE --messages FILE [--ids]",
     "print the prompt of a conversation", 0, 1, prompt_options, inspect_prompt},
    {"logits", "MODEL --tokens ID,ID,... --out FILE", "write the logits after each token id", 1, 1,
     logits_options, inspect_logits},
    {"perplexity", "MODEL FILE", "measure how well the model predicts a text", 2, 2,
     perplexity_options, inspect_perplexity},
    {"experts", "MODEL FILE [--json]", "count how often a text uses each expert of each layer", 2,
     2, experts_options, inspect_experts},
    {0},
};
