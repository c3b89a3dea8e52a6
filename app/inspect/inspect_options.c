/*
 * Verbs and options of bitnet-inspect.
 */
#include "app/inspect/inspect_options.h"

static const struct option rows[] = {
    {.name = "help",
     .letter = 'h',
     .kind = OPTION_FLAG,
     .group = "General",
     .help = "show what there is; after a verb, what that verb takes"},
    {.name = "version", .kind = OPTION_FLAG, .group = "General", .help = "show the version"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .group = "Output",
     .help = "info: one JSON object instead of lines for people"},
    {.name = "ctx",
     .letter = 'c',
     .kind = OPTION_INT,
     .ints = {0, 1048576},
     .fallback = "0",
     .group = "Output",
     .arg = "N",
     .help =
         "info: tokens of context to plan memory for; perplexity: tokens in a window (at most 2048 "
         "by itself); 0: what the model was trained with"},
    {.name = "special",
     .kind = OPTION_FLAG,
     .group = "Text",
     .help = "tokenize: recognise special tokens in the text; detokenize: show them"},
    {.name = "bos",
     .kind = OPTION_FLAG,
     .group = "Text",
     .help = "tokenize: begin with the token that begins a text"},
    {.name = "messages",
     .kind = OPTION_TEXT,
     .group = "Prompt",
     .arg = "FILE",
     .help = "the conversation, a JSON array of messages in the OpenAI form; - is standard input"},
    {.name = "ids", .kind = OPTION_FLAG, .group = "Prompt", .help = "print ids instead of text"},
    {.name = "generation-prompt",
     .kind = OPTION_FLAG,
     .fallback = "on",
     .group = "Prompt",
     .help = "leave out what asks the model to answer"},
    {.name = "tokens",
     .kind = OPTION_INTS,
     .ints = {0, INT32_MAX},
     .group = "Logits",
     .arg = "ID,ID,...",
     .help = "the ids to evaluate"},
    {.name = "out",
     .kind = OPTION_TEXT,
     .group = "Logits",
     .arg = "FILE",
     .help = "where the logits go: float32, (tokens, vocabulary), row-major"},
    {.name = "reuse",
     .kind = OPTION_INT,
     .ints = {0, INT32_MAX},
     .fallback = "0",
     .group = "Logits",
     .arg = "N",
     .help = "evaluate the first N ids, then the rest on top of them"},
};
static const struct option_table own_options = OPTION_TABLE(rows);

const struct option_table *const inspect_tables[] = {&own_options, &model_template_options,
                                                     &model_file_options, &model_run_options};
const size_t n_inspect_tables = sizeof(inspect_tables) / sizeof(inspect_tables[0]);

#define FILE_OPTIONS "i2s-layout", "no-repair"
#define RUN_OPTIONS "device", "threads", "ubatch", "isa", "head", "kv"

static const char *const info_options[] = {"json",      "ctx",      FILE_OPTIONS,
                                           RUN_OPTIONS, "template", NULL};
static const char *const check_options[] = {FILE_OPTIONS, RUN_OPTIONS, "template", NULL};
static const char *const tokenize_options[] = {"special", "bos", "no-repair", NULL};
static const char *const detokenize_options[] = {"special", "no-repair", NULL};
static const char *const prompt_options[] = {
    "messages", "ids", "generation-prompt", "template", "template-arg", "no-repair", NULL};
static const char *const logits_options[] = {"tokens",     "out",       "reuse",
                                             FILE_OPTIONS, RUN_OPTIONS, NULL};
static const char *const perplexity_options[] = {"ctx", FILE_OPTIONS, RUN_OPTIONS, NULL};

const struct inspect_verb inspect_verbs[] = {
    {"info", "MODEL [--json]", "what is in the file, what was detected and repaired, memory", 1, 1,
     info_options, inspect_info},
    {"check", "MODEL", "structure, ternary codes, kernels, a loss on a short text: does it speak?",
     1, 1, check_options, inspect_check},
    {"tokenize", "MODEL [--special] [--bos] < TEXT", "ids on one line, space-separated", 1, 1,
     tokenize_options, inspect_tokenize},
    {"detokenize", "MODEL [--special] < IDS", "the bytes that ids stand for", 1, 1,
     detokenize_options, inspect_detokenize},
    {"prompt", "MODEL|--template FILE --messages FILE [--ids]", "the rendered prompt, verbatim", 0,
     1, prompt_options, inspect_prompt},
    {"logits", "MODEL --tokens ID,ID,... --out FILE", "what the model computes, for comparison", 1,
     1, logits_options, inspect_logits},
    {"perplexity", "MODEL FILE", "how well the model foresees a text", 2, 2, perplexity_options,
     inspect_perplexity},
    {0},
};
