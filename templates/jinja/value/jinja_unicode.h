/*
 * Character classes and case mapping as Python's str methods define them.
 */
#ifndef TEMPLATES_JINJA_UNICODE_H
#define TEMPLATES_JINJA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uni_class {
    UNI_ALPHA = 1,
    UNI_DECIMAL = 2,
    UNI_DIGIT = 4,
    UNI_NUMERIC = 8,
    UNI_LOWER = 16,
    UNI_UPPER = 32,
    UNI_TITLE = 64, /* a titlecase letter such as U+01C5 */
    UNI_PRINTABLE = 128,
    UNI_IGNORABLE = 256, /* Case_Ignorable: skipped in the search for a cased neighbour */
    UNI_CASED = UNI_LOWER | UNI_UPPER | UNI_TITLE,
};

bool uni_is(uint32_t cp, unsigned classes); /* cp is in at least one of the classes */
bool uni_is_space(uint32_t cp);             /* str.isspace, also used by strip and split */
int uni_decimal(uint32_t cp);               /* 0 to 9, or -1 */

enum uni_map { UNI_TO_UPPER, UNI_TO_LOWER, UNI_TO_TITLE };

/* Full case mapping of one code point. Returns the number of code points in out, 1 to 3. In lower
 * case a capital sigma becomes the medial form; the caller handles the final one. Without memory
 * the result is cp. */
size_t uni_convert(enum uni_map map, uint32_t cp, uint32_t out[3]);

#endif
