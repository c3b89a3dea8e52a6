/*
 * token_vectors MODEL TEXTS IDS: tokenises every text of TEXTS (each ends with a line
 * "__ggml_vocab_test__") without bos, compares the result with the line of ids in IDS, and converts
 * the ids back to the text.
 *
 * It is for real vocabularies, which are not in the repository. `token_vectors MODEL FILE` opens
 * the vocabulary and tokenises FILE three times and prints the best times. Exit code 1 means a
 * difference.
 */
#include "engine/base/clock.h"
#include "engine/file.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char marker[] = "\n__ggml_vocab_test__\n";

static char *read_file(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *bytes = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long n = ftell(file);
        rewind(file);
        bytes = n >= 0 ? calloc((size_t)n + 1, 1) : NULL;
        *n_bytes = bytes ? fread(bytes, 1, (size_t)n, file) : 0;
    }
    (void)fclose(file); /* only read */
    return bytes;
}

static bool encode(const struct tokenizer *t, const char *text, size_t n_bytes,
                   struct token_list *ids)
{
    struct bn_error err;
    const struct segment seg = {.kind = SEGMENT_MESSAGE, .text = {text, n_bytes}};
    if (tokenizer_encode(t, &seg, 1, TOKENIZER_BOS_NEVER, ids, &err))
        return true;
    fprintf(stderr, "%s\n", err.text);
    return false;
}

static bool decodes_to(const struct tokenizer *t, const struct token_list *ids, const char *text,
                       size_t n_bytes)
{
    struct bn_error err;
    struct detok *d;
    const struct detok_config cfg = {.at_start = true};
    if (!detok_open(t, &cfg, &d, &err))
        return false;
    size_t at = 0;
    bool same = true, stopped;
    for (size_t i = 0; i <= ids->n && same; i++) {
        struct bn_str part;
        if (i == ids->n)
            part = detok_flush(d);
        else
            same = detok_push(d, ids->ids[i], &part, &stopped, &err);
        same = same && part.n_bytes <= n_bytes - at &&
               (part.n_bytes == 0 || memcmp(part.ptr, text + at, part.n_bytes) == 0);
        at += part.n_bytes;
    }
    detok_close(d);
    return same && at == n_bytes;
}

static bool same_ids(const struct token_list *ids, const char **line)
{
    bool same = true;
    size_t n = 0;
    for (char *end; **line && **line != '\n'; *line = end, n++) {
        const long id = strtol(*line, &end, 10);
        if (end == *line)
            break;
        same = same && n < ids->n && ids->ids[n] == id;
        while (*end == ' ')
            end++;
    }
    *line += strcspn(*line, "\n");
    *line += **line == '\n';
    return same && n == ids->n;
}

static int compare(const struct tokenizer *t, const char *texts, const char *line)
{
    int n_wrong = 0, n_all = 0;
    const char *at = texts;
    for (const char *end; (end = strstr(at, marker)); n_all++) {
        struct token_list ids = {0};
        const size_t n_bytes = (size_t)(end - at);
        const char *expected = line;
        const bool ok = encode(t, at, n_bytes, &ids);
        const bool right = same_ids(&ids, &line);
        if (!ok || !right || !decodes_to(t, &ids, at, n_bytes)) {
            n_wrong++;
            printf("text %d differs (%s): '%.*s'\n  expected %.*s\n  got", n_all,
                   right ? "bytes" : "ids", (int)n_bytes, at, (int)(line - expected - 1), expected);
            for (size_t i = 0; i < ids.n; i++)
                printf(" %d", (int)ids.ids[i]);
            printf("\n");
        }
        token_list_finish(&ids);
        at = end + strlen(marker);
    }
    printf("%d texts, %d wrong\n", n_all, n_wrong);
    return n_wrong > 0 || n_all == 0;
}

static struct tokenizer *open_tokenizer(const char *path, struct bn_notes *notes)
{
    struct bn_error err;
    struct bn_file *file;
    struct tokenizer *t = NULL;
    const struct tokenizer_config cfg = {.notes = notes};
    if (!bn_file_open(path, &file, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return NULL;
    }
    if (!tokenizer_open(file, &cfg, &t, &err))
        fprintf(stderr, "%s\n", err.text);
    bn_file_close(file);
    return t;
}

static int measure(const char *model, const char *text, size_t n_bytes)
{
    double open_s = 1e9, encode_s = 1e9;
    size_t n_ids = 0;
    for (int i = 0; i < 3; i++) {
        const double start = clock_seconds();
        struct tokenizer *t = open_tokenizer(model, NULL);
        const double opened = clock_seconds();
        struct token_list ids = {0};
        if (!t || !encode(t, text, n_bytes, &ids))
            return 1;
        const double encoded = clock_seconds();
        open_s = opened - start < open_s ? opened - start : open_s;
        encode_s = encoded - opened < encode_s ? encoded - opened : encode_s;
        n_ids = ids.n;
        if (i == 0)
            printf("round trip: %s\n", decodes_to(t, &ids, text, n_bytes) ? "same" : "DIFFERS");
        token_list_finish(&ids);
        tokenizer_close(t);
    }
    printf("open %.1f ms; %zu bytes, %zu tokens in %.1f ms: %.2f M tokens/s\n", open_s * 1e3,
           n_bytes, n_ids, encode_s * 1e3, (double)n_ids / encode_s / 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    size_t n_texts = 0, n_ids = 0;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: token_vectors MODEL TEXTS [IDS]\n");
        return 2;
    }
    char *texts = read_file(argv[2], &n_texts);
    char *ids = argc > 3 ? read_file(argv[3], &n_ids) : NULL;
    if (!texts || (argc > 3 && !ids)) {
        fprintf(stderr, "cannot read %s\n", texts ? argv[3] : argv[2]);
        return 2;
    }
    int result;
    if (argc == 3) {
        result = measure(argv[1], texts, n_texts);
    } else {
        struct bn_notes notes = {0};
        struct tokenizer *t = open_tokenizer(argv[1], &notes);
        for (size_t i = 0; i < notes.n; i++)
            printf("note %s: %s\n", notes.items[i].id, notes.items[i].text);
        result = t ? compare(t, texts, ids) : 1;
        tokenizer_close(t);
    }
    free(texts);
    free(ids);
    return result;
}
