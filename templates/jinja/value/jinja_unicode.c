/*
 * Looks code points up in the generated tables, ASCII without a search.
 */
#include "templates/jinja/value/jinja_unicode.h"

#include "templates/jinja/value/jinja_case_data.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

unsigned uni_classes(uint32_t cp)
{
    size_t lo = 0, hi = COUNT(class_ranges);
    while (hi - lo > 1) { /* the last range that starts at or before cp */
        const size_t mid = lo + (hi - lo) / 2;
        if (class_ranges[mid].first <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return (cp - class_ranges[lo].first) & 1 ? class_ranges[lo].odd : class_ranges[lo].even;
}

bool uni_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

int uni_decimal(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= '0' && cp <= '9' ? (int)(cp - '0') : -1;
    size_t lo = 0, hi = COUNT(decimal_zeros);
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (decimal_zeros[mid] <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return cp - decimal_zeros[lo] < 10 ? (int)(cp - decimal_zeros[lo]) : -1;
}

struct case_table {
    const struct case_range *ranges;
    size_t n_ranges;
    const struct case_special *special;
    size_t n_special;
};

static const struct case_table tables[] = {
    [UNI_TO_UPPER] = {upper_ranges, COUNT(upper_ranges), upper_special, COUNT(upper_special)},
    [UNI_TO_LOWER] = {lower_ranges, COUNT(lower_ranges), lower_special, COUNT(lower_special)},
    [UNI_TO_TITLE] = {title_ranges, COUNT(title_ranges), title_special, COUNT(title_special)},
};

static bool convert_special(const struct case_table *t, uint32_t cp, uint32_t out[3], size_t *n)
{
    for (size_t lo = 0, hi = t->n_special; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        const struct case_special *const s = &t->special[mid];
        if (s->cp == cp) {
            for (*n = 0; *n < 3 && s->to[*n]; ++*n)
                out[*n] = s->to[*n];
            return true;
        }
        if (s->cp < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}

size_t uni_convert(enum uni_map map, uint32_t cp, uint32_t out[3])
{
    const struct case_table *const t = &tables[map];
    size_t n;
    out[0] = cp;
    if (cp < 0x80) {
        if (map == UNI_TO_LOWER ? cp >= 'A' && cp <= 'Z' : cp >= 'a' && cp <= 'z')
            out[0] = cp ^ 0x20;
        return 1;
    }
    if (convert_special(t, cp, out, &n))
        return n;
    size_t lo = 0, hi = t->n_ranges;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->ranges[mid].first <= cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0) {
        const struct case_range *const r = &t->ranges[lo - 1];
        if (cp <= r->last && (cp - r->first) % (uint32_t)r->stride == 0) {
            out[0] = cp + (uint32_t)r->delta;
            return 1;
        }
    }
    return map == UNI_TO_TITLE ? uni_convert(UNI_TO_UPPER, cp, out) : 1; /* the title table has
                                                                           what differs */
}
