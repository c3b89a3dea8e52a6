/*
 * Numbers as Python prints and reads them, independent of the locale. Integers have 64 bits;
 * functions report overflow where Python's integers grow.
 */
#ifndef TEMPLATES_JINJA_NUMBER_H
#define TEMPLATES_JINJA_NUMBER_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_CHARS 64 /* for the longest integer or repr of a float, with NUL */
/* Digits. number_round needs 323; for other callers it is only a limit. */
#define NUMBER_MAX_PRECISION 400
/* 309 digits before the point and NUMBER_MAX_PRECISION after it fit. */
#define NUMBER_FORMAT_CHARS 800

/* False: overflow. */
bool int_add(int64_t a, int64_t b, int64_t *out);
bool int_sub(int64_t a, int64_t b, int64_t *out);
bool int_mul(int64_t a, int64_t b, int64_t *out);
/* The quotient is rounded down, the remainder has the sign of b. b is not 0. */
bool int_floordiv(int64_t a, int64_t b, int64_t *out);
int64_t int_mod(int64_t a, int64_t b);
double float_mod(double a, double b);
#define JNUM_UNORDERED (-2)                 /* at least one of two numbers is NaN */
int int_compare_float(int64_t a, double b); /* exact: -1, 0, 1 or JNUM_UNORDERED */

void number_print_int(int64_t v, char out[NUMBER_CHARS]);
/* repr(v): the shortest text that reads back as v. */
void number_print_float(double v, char out[NUMBER_CHARS]);
/* As printf with the conversion e, f, g, E, F or G; `precision` is from 0 to NUMBER_MAX_PRECISION,
 * `keep_point` is the flag '#'. Any other conversion gives the empty text. */
void number_format(double v, char conversion, int precision, bool keep_point,
                   char out[NUMBER_FORMAT_CHARS]);
/* round(v, n_digits): half to even on the exact decimal value. Infinite if the result is too large
 * for a double. */
double number_round(double v, int64_t n_digits);

/* float(text): white space around it, underscores between digits, inf and nan are allowed. False:
 * the text is no number. */
bool number_parse_float(struct bn_str text, double *out);

/* BAD: the text is no number in this base. TOO_LARGE: it does not fit 64 bits. */
enum number_result { NUMBER_OK, NUMBER_BAD, NUMBER_TOO_LARGE };
/* int(text, base). base: 2 to 36, where a prefix of the same base is allowed too, or 0 to take it
 * from a prefix such as 0x (10 without a prefix). *out is written only for NUMBER_OK. */
enum number_result number_parse_int(struct bn_str text, int64_t base, int64_t *out);

#endif
