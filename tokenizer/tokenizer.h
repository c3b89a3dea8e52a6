/*
 * Text to ids and back, for one vocabulary. PUBLIC.
 *
 * A tokenizer is immutable after tokenizer_open and may be used by several threads at once, each
 * with its own detok. It keeps no pointer into the file. Byte-level BPE ("gpt2") and SentencePiece
 * ("llama") vocabularies; the formats and rules are those of docs/formats.md.
 */
#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include "engine/base/error.h"
#include "engine/base/notes.h"
#include "tokenizer/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_file;
struct tokenizer;

#define TOKEN_NONE (-1)

struct tokenizer_config {
    const char *pre;        /* pre-tokenizer to use whatever the file says, or NULL */
    const char *no_repair;  /* see bn_repair_allowed: pre-tokenizer, end-of-turn, control-text */
    struct bn_notes *notes; /* receives repairs and warnings; may be NULL */
};

/* Growing list of ids; zero-initialise, finish with token_list_finish. */
struct token_list {
    int32_t *ids; /* (n) */
    size_t n;
    size_t cap;
};

bool token_list_push(struct token_list *list, int32_t id, struct bn_error *err);
void token_list_finish(struct token_list *list);

/* BN_EFORMAT: no vocabulary, arrays of different lengths, broken merges, texts made to collide.
 * BN_EUNSUPPORTED: another tokenizer model. BN_EARG: cfg->pre is no known name. BN_ENOMEM. A
 * special id outside the vocabulary is ignored with a warning; so is a `pre` of the file that
 * nobody knows, and "default" is used. */
bool tokenizer_open(const struct bn_file *file, const struct tokenizer_config *cfg,
                    struct tokenizer **out, struct bn_error *err);
void tokenizer_close(struct tokenizer *t); /* NULL is fine */

struct tokenizer_info {
    const char *model; /* "gpt2" or "llama" */
    const char *pre;   /* pre-tokenizer in use; "" for SentencePiece */
    size_t n_vocab;
    size_t n_merges;
    int32_t bos, eos, eot, unk, pad; /* TOKEN_NONE where the vocabulary has none */
    const int32_t *eog;              /* (n_eog) ascending: every id that ends an answer */
    size_t n_eog;
    bool add_bos;          /* a prompt begins with exactly one bos */
    bool add_space_prefix; /* SentencePiece */
    uint64_t hash;         /* of all token texts and types: does a stored conversation fit? */
};
const struct tokenizer_info *tokenizer_info(const struct tokenizer *t);
bool tokenizer_is_eog(const struct tokenizer *t, int32_t id);

/* The text of a token as it stands in the vocabulary (special tokens included), in plain UTF-8 or
 * raw bytes; n_bytes 0 for an id out of range. Lives as long as the tokenizer. */
struct bn_str tokenizer_token_text(const struct tokenizer *t, int32_t id);
/* The id whose token_text is exactly `text`, or TOKEN_NONE. */
int32_t tokenizer_find(const struct tokenizer *t, struct bn_str text);
bool tokenizer_is_control(const struct tokenizer *t, int32_t id);

enum tokenizer_bos {
    TOKENIZER_BOS_NEVER,
    TOKENIZER_BOS_AUTO, /* when the vocabulary wants it; never two, whatever the template wrote */
};

/* Append the ids of `segments` to `out`. Time is O(n log n) in the bytes, whatever they are.
 * TEMPLATE text names any special token, leftmost first, then longest. MESSAGE and ANSWER text
 * names user-defined tokens only, and none that ends an answer or occurs in TEMPLATE text of this
 * call. Bytes that are no UTF-8 are tokenised as bytes. BN_ENOMEM. BN_EARG: an id outside the
 * vocabulary. On failure `out` is as it was. */
bool tokenizer_encode(const struct tokenizer *t, const struct segment *segments, size_t n_segments,
                      enum tokenizer_bos bos, struct token_list *out, struct bn_error *err);

/* The raw bytes that `id` adds to the text; control tokens add nothing unless `special` is SHOW.
 * SentencePiece's first-space rule is detok's business, not this function's. */
enum tokenizer_special { TOKENIZER_SPECIAL_HIDE, TOKENIZER_SPECIAL_SHOW };
struct bn_str tokenizer_piece(const struct tokenizer *t, int32_t id,
                              enum tokenizer_special special);

/*
 * Streaming detokeniser: ids in, bytes out, holding back what is not certain yet.
 *
 * It never hands out part of a UTF-8 character (an invalid byte goes out as it is: detok_text's
 * caller decides how to show it), and never text that may be the beginning of a stop string.
 */
struct detok;

struct detok_config {
    const char *const *stops; /* (n_stops) stop strings, not empty, copied */
    size_t n_stops;
    enum tokenizer_special special;
    bool at_start; /* the first piece begins the text: SentencePiece drops one leading space */
};

/* `t` outlives the detokeniser. BN_EARG: an empty stop string. BN_ENOMEM. */
bool detok_open(const struct tokenizer *t, const struct detok_config *cfg, struct detok **out,
                struct bn_error *err);
void detok_close(struct detok *d); /* NULL is fine */

/* Feed one id. `*text` is what may be shown now (may be empty), valid until the next call on `d`.
 * `*stopped` becomes true when a stop string is complete: the text ends before it, and later ids
 * are ignored. BN_ENOMEM. */
bool detok_push(struct detok *d, int32_t id, struct bn_str *text, bool *stopped,
                struct bn_error *err);
/* The rest that was held back, at the end of the answer. */
struct bn_str detok_flush(struct detok *d);

#endif
