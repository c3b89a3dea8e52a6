/*
 * Classes and case mapping from libunistring. The definitions are those of CPython's unicodectype.c
 * and agree with CPython on every code point of Unicode 14.
 */
#include "templates/jinja/value/jinja_unicode.h"

#include <stdlib.h>
#include <unicase.h>
#include <unictype.h>

/* Ideographs with a numeric value in Unihan, which libunistring does not include. */
static const uint32_t numeric_ideographs[] = {
    0x3405,  0x3483,  0x382a,  0x3b4d,  0x4e00,  0x4e03,  0x4e07,  0x4e09,  0x4e5d,  0x4e8c,
    0x4e94,  0x4e96,  0x4ebf,  0x4ec0,  0x4edf,  0x4ee8,  0x4f0d,  0x4f70,  0x5104,  0x5146,
    0x5169,  0x516b,  0x516d,  0x5341,  0x5343,  0x5344,  0x5345,  0x534c,  0x53c1,  0x53c2,
    0x53c3,  0x53c4,  0x56db,  0x58f1,  0x58f9,  0x5e7a,  0x5efe,  0x5eff,  0x5f0c,  0x5f0d,
    0x5f0e,  0x5f10,  0x62fe,  0x634c,  0x67d2,  0x6f06,  0x7396,  0x767e,  0x8086,  0x842c,
    0x8cae,  0x8cb3,  0x8d30,  0x9621,  0x9646,  0x964c,  0x9678,  0x96f6,  0x20001, 0x20064,
    0x200e2, 0x20121, 0x2092a, 0x20983, 0x2098c, 0x2099c, 0x20aea, 0x20afd, 0x20b19, 0x22390,
    0x22998, 0x23b1b, 0x2626d};

static bool is_numeric(uint32_t cp)
{
    for (size_t i = 0; i < sizeof numeric_ideographs / sizeof *numeric_ideographs; i++)
        if (numeric_ideographs[i] == cp)
            return true;
    return uc_numeric_value(cp).denominator != 0;
}

static bool in_category(uint32_t cp, uint32_t mask)
{
    return uc_is_general_category_withtable(cp, mask);
}

bool uni_is(uint32_t cp, unsigned classes)
{
    return ((classes & UNI_ALPHA) && in_category(cp, UC_CATEGORY_MASK_L)) ||
           ((classes & UNI_DECIMAL) && uc_decimal_value(cp) >= 0) ||
           ((classes & UNI_DIGIT) && uc_digit_value(cp) >= 0) ||
           ((classes & UNI_NUMERIC) && is_numeric(cp)) ||
           ((classes & UNI_LOWER) && uc_is_property_lowercase(cp)) ||
           ((classes & UNI_UPPER) && uc_is_property_uppercase(cp)) ||
           ((classes & UNI_TITLE) && in_category(cp, UC_CATEGORY_MASK_Lt)) ||
           ((classes & UNI_PRINTABLE) &&
            (cp == ' ' || !in_category(cp, UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Z))) ||
           ((classes & UNI_IGNORABLE) && uc_is_property_case_ignorable(cp));
}

bool uni_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || in_category(cp, UC_CATEGORY_MASK_Z);
}

int uni_decimal(uint32_t cp)
{
    return uc_decimal_value(cp);
}

size_t uni_convert(enum uni_map map, uint32_t cp, uint32_t out[3])
{
    uint32_t *mapped;
    size_t n = 3;
    if (cp < 0x80) {
        /* In ASCII bit 0x20 is the case, and title case is upper case. */
        const uint32_t first = map == UNI_TO_LOWER ? 'A' : 'a';
        out[0] = cp >= first && cp < first + 26 ? cp ^ 0x20 : cp;
        return 1;
    }
    if (map == UNI_TO_UPPER)
        mapped = u32_toupper(&cp, 1, NULL, NULL, out, &n);
    else if (map == UNI_TO_LOWER)
        mapped = u32_tolower(&cp, 1, NULL, NULL, out, &n);
    else
        mapped = u32_totitle(&cp, 1, NULL, NULL, out, &n);
    if (mapped == out)
        return n;
    /* Only if out of memory (NULL): no mapping in Unicode is longer than three code points, so
     * `out` is always large enough. Then cp stays as it is. */
    free(mapped);
    out[0] = cp;
    return 1;
}
