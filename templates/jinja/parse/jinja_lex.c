/*
 * The lexer. jinja2 uses a table of regular expressions. This code accepts the same language,
 * except for some escapes (\N{...}, surrogates), names with characters other than letters, decimal
 * digits and '_', numbers with digits other than 0 to 9, integers that do not fit 64 bits, and
 * sources beyond its limits. It reproduces four oddities: {% raw %} cannot end with '+'; a newline
 * after {% raw %} or }} without '-' is kept; the end of a tag inside open brackets is read as
 * operators; a raw section or comment without an end is an error only if text follows its tag.
 *
 * The source is valid UTF-8. String literals are decoded in jinja_literal.c.
 */
#include "templates/jinja/parse/jinja_lex.h"

#include "engine/base/utf8.h"
#include "templates/jinja/value/jinja_text.h"
#include "templates/jinja/value/jinja_unicode.h"

#define MAX_SOURCE ((size_t)1 << 20) /* known chat templates have up to 20,000 bytes */
#define MAX_BRACKETS 256             /* the parser accepts fewer: PARSE_MAX_DEPTH */

struct lexer {
    struct jvm *vm;
    struct bn_str src; /* newlines are \n; one at the end is removed */
    size_t at;         /* the next byte to read */
    size_t counted;    /* `place` is the line and column of this byte */
    struct jplace place;
    bool line_start; /* the last match ended with a newline, or nothing was matched yet */
    struct jtoks *toks;
    char open[MAX_BRACKETS]; /* (n_open) the bracket that closes each open one */
    size_t n_open;
};

/* Move `place` forward to the byte at `at`. */
static void count_to(struct lexer *lx, size_t at)
{
    for (; lx->counted < at; lx->counted++) {
        const unsigned char c = (unsigned char)lx->src.ptr[lx->counted];
        if (c == '\n') {
            lx->place.line++;
            lx->place.col = 1;
        } else if (!utf8_is_continuation(c)) {
            lx->place.col++;
        }
    }
}

static bool lex_fail(struct lexer *lx, size_t at, const char *message, struct bn_str text)
{
    count_to(lx, at);
    lx->vm->at = &lx->place;
    (void)jvm_fail(lx->vm, "%s%.*s", message, bn_str_shown(text, 40), text.n_bytes ? text.ptr : "");
    lx->vm->at = NULL;
    return false;
}

static bool push(struct lexer *lx, enum jtok_kind kind, size_t b0, size_t b1, struct jval val)
{
    struct jtoks *const t = lx->toks;
    if (!jvm_grow(lx->vm, &t->items, t->n, &t->cap, t->n + 1, sizeof *t->items))
        return false;
    count_to(lx, b0);
    t->items[t->n++] = (struct jtok){
        .kind = kind, .place = lx->place, .text = {lx->src.ptr + b0, b1 - b0}, .val = val};
    return true;
}

static bool push_data(struct lexer *lx, size_t b0, size_t b1)
{
    struct jval v;
    if (b0 == b1)
        return true;
    if (!jstr_new(lx->vm, (struct bn_str){lx->src.ptr + b0, b1 - b0}, ORIGIN_TEMPLATE, &v))
        return false;
    jstr_chars(v.u.s); /* caches the count: the tree is read-only later */
    return push(lx, T_DATA, b0, b1, v);
}

static bool looking_at(const struct lexer *lx, size_t at, const char *text)
{
    const size_t n = strlen(text);
    return n <= lx->src.n_bytes - at && memcmp(lx->src.ptr + at, text, n) == 0;
}

/* The text [b0, b1) is before a tag. Returns its end after white space control. `sign` is the sign
 * of the tag: '-', '+' or '\0'. */
static size_t trimmed_end(const struct lexer *lx, size_t b0, size_t b1, char sign, bool is_var)
{
    const struct bn_str data = {lx->src.ptr + b0, b1 - b0};
    if (sign == '-')
        return b0 + text_trim_space(data, data.n_bytes);
    if (sign == '+' || is_var)
        return b1;
    size_t line = data.n_bytes;
    while (line > 0 && data.ptr[line - 1] != '\n')
        line--;
    if (line == 0 && !lx->line_start)
        return b1;
    return text_skip_space(data, line) == data.n_bytes ? b0 + line : b1;
}

static char sign_at(const struct lexer *lx, size_t at)
{
    const char c = at < lx->src.n_bytes ? lx->src.ptr[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
}

static void match_end(struct lexer *lx, size_t end)
{
    lx->at = end;
    lx->line_start = end > 0 && lx->src.ptr[end - 1] == '\n';
}

/* Matches an optional sign and `close`, which has two bytes, at the offset `at`. Returns the offset
 * after them and after the white space that they remove; 0: no match. */
static size_t tag_end(const struct lexer *lx, size_t at, const char *close)
{
    const char sign = sign_at(lx, at);
    const size_t mark = at + (sign != '\0');
    if (mark >= lx->src.n_bytes || !looking_at(lx, mark, close))
        return 0;
    const size_t end = mark + 2;
    if (sign == '-')
        return text_skip_space(lx->src, end);
    return sign == '\0' && end < lx->src.n_bytes && lx->src.ptr[end] == '\n' ? end + 1 : end;
}

/* "{%" is at `at`. Matches an optional sign, white space, `word` and white space after it; white
 * space may be absent. Returns the offset after the match; 0: no match. */
static size_t raw_word(const struct lexer *lx, size_t at, const char *word)
{
    size_t p = at + 2;
    p += sign_at(lx, p) != '\0';
    p = text_skip_space(lx->src, p);
    if (p >= lx->src.n_bytes || !looking_at(lx, p, word))
        return 0;
    return text_skip_space(lx->src, p + strlen(word));
}

/* The text after {% raw %} up to and including {% endraw %}. `tag`: offset of {% raw %}, for
 * errors. */
static bool lex_raw(struct lexer *lx, size_t tag)
{
    const size_t start = lx->at;
    for (size_t p = start; p + 1 < lx->src.n_bytes; p++) {
        const size_t after = looking_at(lx, p, "{%") ? raw_word(lx, p, "endraw") : 0;
        const size_t end = after && after < lx->src.n_bytes ? tag_end(lx, after, "%}") : 0;
        if (end) {
            const size_t stop = trimmed_end(lx, start, p, sign_at(lx, p + 2), false);
            if (!push_data(lx, start, stop))
                return false;
            match_end(lx, end);
            return true;
        }
    }
    if (start == lx->src.n_bytes) /* jinja2 reports an error only if text follows {% raw %} */
        return true;
    return lex_fail(lx, tag, "Missing end of raw directive", (struct bn_str){0});
}

static bool lex_comment(struct lexer *lx, size_t tag)
{
    for (size_t p = lx->at; p + 1 < lx->src.n_bytes; p++) {
        const size_t end = tag_end(lx, p, "#}");
        if (end) {
            match_end(lx, end);
            return true;
        }
    }
    if (lx->at == lx->src.n_bytes) /* as in lex_raw */
        return true;
    return lex_fail(lx, tag, "Missing end of comment tag", (struct bn_str){0});
}

/* The first match counts, so the operators of two characters come first. */
static const struct {
    char text[3];
    enum jtok_kind kind;
} operators[] = {
    {"//", T_FLOORDIV}, {"**", T_POW},   {"==", T_EQ},      {"!=", T_NE},      {">=", T_GE},
    {"<=", T_LE},       {"+", T_ADD},    {"-", T_SUB},      {"/", T_DIV},      {"*", T_MUL},
    {"%", T_MOD},       {"~", T_TILDE},  {"[", T_LBRACKET}, {"]", T_RBRACKET}, {"(", T_LPAREN},
    {")", T_RPAREN},    {"{", T_LBRACE}, {"}", T_RBRACE},   {">", T_GT},       {"<", T_LT},
    {"=", T_ASSIGN},    {".", T_DOT},    {":", T_COLON},    {"|", T_PIPE},     {",", T_COMMA},
    {";", T_SEMICOLON},
};

/* Check that brackets match: note an opening one, and compare a closing one with the last. */
static bool balance(struct lexer *lx, char c)
{
    if (c == '{' || c == '(' || c == '[') {
        if (lx->n_open == MAX_BRACKETS)
            return lex_fail(lx, lx->at, "too many open brackets", (struct bn_str){0});
        lx->open[lx->n_open++] = c == '{' ? '}' : c == '(' ? ')' : ']';
    } else if (c == '}' || c == ')' || c == ']') {
        const struct bn_str text = {lx->src.ptr + lx->at, 1};
        if (lx->n_open == 0 || lx->open[lx->n_open - 1] != c)
            return lex_fail(lx, lx->at, "unexpected ", text);
        lx->n_open--;
    }
    return true;
}

static bool lex_operator(struct lexer *lx)
{
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        if (!looking_at(lx, lx->at, operators[i].text))
            continue;
        const size_t n = strlen(operators[i].text);
        if ((n == 1 && !balance(lx, operators[i].text[0])) ||
            !push(lx, operators[i].kind, lx->at, lx->at + n, jnone()))
            return false;
        match_end(lx, lx->at + n);
        return true;
    }
    uint32_t cp;
    const size_t n = text_next(lx->src, lx->at, &cp);
    return lex_fail(lx, lx->at, "unexpected character ", (struct bn_str){lx->src.ptr + lx->at, n});
}

static bool lex_string(struct lexer *lx)
{
    const char quote = lx->src.ptr[lx->at];
    size_t p = lx->at + 1;
    while (p < lx->src.n_bytes && lx->src.ptr[p] != quote)
        p += lx->src.ptr[p] == '\\' ? 2 : 1;
    if (p >= lx->src.n_bytes)
        return lex_fail(lx, lx->at, "unexpected character ",
                        (struct bn_str){lx->src.ptr + lx->at, 1});
    const char *problem = NULL;
    struct jval v = jnone();
    const struct bn_str inside = {lx->src.ptr + lx->at + 1, p - lx->at - 1};
    if (!literal_string(lx->vm, inside, &v, &problem))
        return problem ? lex_fail(lx, lx->at, problem, (struct bn_str){0}) : false;
    if (!push(lx, T_STRING, lx->at, p + 1, v))
        return false;
    match_end(lx, p + 1);
    return true;
}

static bool lex_number(struct lexer *lx)
{
    const struct bn_str rest = {lx->src.ptr + lx->at, lx->src.n_bytes - lx->at};
    const bool after_dot = lx->at > 0 && lx->src.ptr[lx->at - 1] == '.';
    struct jval v = jnone();
    const size_t n = literal_number(rest, after_dot, &v);
    if (v.kind == J_NONE)
        return lex_fail(lx, lx->at,
                        "the integer does not fit 64 bits: ", (struct bn_str){rest.ptr, n});
    if (!push(lx, v.kind == J_INT ? T_INTEGER : T_FLOAT, lx->at, lx->at + n, v))
        return false;
    match_end(lx, lx->at + n);
    return true;
}

static size_t name_end(const struct lexer *lx)
{
    size_t p = lx->at;
    while (p < lx->src.n_bytes) {
        uint32_t cp;
        const size_t n = text_next(lx->src, p, &cp);
        const unsigned kinds = p == lx->at ? UNI_ALPHA : UNI_ALPHA | UNI_DECIMAL;
        if (cp != '_' && !uni_is(cp, kinds))
            break;
        p += n;
    }
    return p;
}

/* The content of {% %} (is_var is false) or {{ }} and the end of the tag. */
static bool lex_tag(struct lexer *lx, bool is_var)
{
    lx->n_open = 0;
    while (lx->at < lx->src.n_bytes) {
        const char c = lx->src.ptr[lx->at];
        size_t end = 0;
        if (lx->n_open == 0 && !is_var)
            end = tag_end(lx, lx->at, "%}");
        else if (lx->n_open == 0 && looking_at(lx, lx->at, "}}"))
            end = lx->at + 2;
        else if (lx->n_open == 0 && looking_at(lx, lx->at, "-}}"))
            end = text_skip_space(lx->src, lx->at + 3);
        if (end) {
            if (!push(lx, is_var ? T_VAR_END : T_BLOCK_END, lx->at, end, jnone()))
                return false;
            match_end(lx, end);
            return true;
        }
        const size_t blank = text_skip_space(lx->src, lx->at);
        const size_t name = name_end(lx);
        if (blank > lx->at) {
            match_end(lx, blank);
        } else if (c >= '0' && c <= '9') {
            if (!lex_number(lx))
                return false;
        } else if (name > lx->at) {
            if (!push(lx, T_NAME, lx->at, name, jnone()))
                return false;
            match_end(lx, name);
        } else if (c == '\'' || c == '"') {
            if (!lex_string(lx))
                return false;
        } else if (!lex_operator(lx)) {
            return false;
        }
    }
    return true; /* the parser reports the missing end */
}

/* The text before the next tag, and the tag; without a tag, the rest of the source. */
static bool lex_root(struct lexer *lx)
{
    size_t tag = lx->at;
    char kind = '\0';
    for (; tag + 1 < lx->src.n_bytes; tag++) {
        kind = lx->src.ptr[tag + 1];
        if (lx->src.ptr[tag] == '{' && (kind == '{' || kind == '%' || kind == '#'))
            break;
        kind = '\0';
    }
    if (kind == '\0') {
        const size_t b0 = lx->at;
        match_end(lx, lx->src.n_bytes);
        return push_data(lx, b0, lx->src.n_bytes);
    }
    const char sign = sign_at(lx, tag + 2);
    if (!push_data(lx, lx->at, trimmed_end(lx, lx->at, tag, sign, kind == '{')))
        return false;
    const size_t raw = kind == '%' ? raw_word(lx, tag, "raw") : 0;
    const bool is_raw =
        raw && raw < lx->src.n_bytes && (looking_at(lx, raw, "%}") || looking_at(lx, raw, "-%}"));
    if (is_raw) {
        match_end(lx, lx->src.ptr[raw] == '-' ? text_skip_space(lx->src, raw + 3) : raw + 2);
        return lex_raw(lx, tag);
    }
    const size_t inside = tag + 2 + (sign != '\0');
    if (kind != '#' && !push(lx, kind == '{' ? T_VAR_BEGIN : T_BLOCK_BEGIN, tag, inside, jnone()))
        return false;
    match_end(lx, inside);
    return kind == '#' ? lex_comment(lx, tag) : lex_tag(lx, kind == '{');
}

/* Convert \r\n and \r to \n, remove one newline at the end. */
static bool normalise(struct jvm *vm, struct bn_str source, struct bn_str *out)
{
    char *const p = jvm_alloc(vm, source.n_bytes + 1, 1);
    size_t n = 0;
    if (!p)
        return false;
    for (size_t i = 0; i < source.n_bytes; i++) {
        p[n++] = source.ptr[i] == '\r' ? '\n' : source.ptr[i];
        if (source.ptr[i] == '\r' && i + 1 < source.n_bytes && source.ptr[i + 1] == '\n')
            i++;
    }
    *out = (struct bn_str){p, n > 0 && p[n - 1] == '\n' ? n - 1 : n};
    return true;
}

bool jinja_lex(struct jvm *vm, struct bn_str source, struct jtoks *out)
{
    struct lexer lx = {.vm = vm, .place = {1, 1}, .line_start = true, .toks = out};
    *out = (struct jtoks){0};
    if (source.n_bytes > MAX_SOURCE)
        return jvm_fail(vm, "the template has %zu bytes, more than %zu", source.n_bytes,
                        MAX_SOURCE);
    if (!normalise(vm, source, &lx.src))
        return false;
    while (lx.at < lx.src.n_bytes)
        if (!lex_root(&lx))
            return false;
    return push(&lx, T_EOF, lx.src.n_bytes, lx.src.n_bytes, jnone());
}
