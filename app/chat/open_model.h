/*
 * The model file with its tokenizer and its template. A program opens one model file, which stays
 * open until the program ends. The worker, or --batch itself, loads the weights later.
 *
 * The main thread owns it. The worker's thread also reads the file and the tokenizer, which do not
 * change any more when this thread starts.
 */
#ifndef APP_OPEN_MODEL_H
#define APP_OPEN_MODEL_H

#include "engine/base/notes.h"
#include "engine/file.h"
#include "templates/template.h"
#include "tokenizer/tokenizer.h"

struct open_model {
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct template *template; /* NULL with --raw */
    /* About the file, its vocabulary and its template; in a chat also about the weights once they
     * are loaded, and "no_place" if the chat cannot be saved. */
    struct bn_notes notes;
    char name[128]; /* general.name or the file's name, safe for a terminal */
    bool is_demo;   /* the built-in model */
};

/* Format of a warning; the arguments are --ctx and the context of training, in tokens. */
#define CONTEXT_NOTICE "a context of %zu tokens is more than the %zu the model was trained with"
/* Format of a line about the built-in model; the argument is millions of parameters. A user who can
 * type a next message also sees the hint. */
#define DEMO_NOTICE "built-in demo model (%.1f million parameters)"
#define DEMO_HINT ": try 'what can you do?'"

/* Format of a warning; the arguments are the loss of the sense check and the largest loss that
 * passes, in nats per token. */
#define SENSE_NOTICE                                                                               \
    "the model predicts a short English text worse than word frequencies do: its loss is %.1f, "   \
    "that of the frequencies is %.1f. Expect nonsense: the file may be damaged, or its weights "   \
    "may have another layout. 'bitnet-inspect check FILE' tests both."

#endif
