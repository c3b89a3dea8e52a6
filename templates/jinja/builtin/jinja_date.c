/*
 * The conversions of glibc's strftime in the C locale, which is what Python calls; %f, %z and %Z
 * are as for a datetime without a zone. What glibc does not know is printed as it stands.
 */
#include "templates/jinja/builtin/jinja_date.h"

#include <stdio.h>

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

/* Week of the year of ISO 8601 and its year. */
static int iso_week(const struct tm *tm, int *year)
{
    const int weekday = (tm->tm_wday + 6) % 7; /* Monday is 0 */
    int week = (tm->tm_yday - weekday + 10) / 7;
    *year = tm->tm_year + 1900;
    if (week < 1) {
        const int before = *year - 1;
        const bool leap = before % 4 == 0 && (before % 100 != 0 || before % 400 == 0);
        const int yday = tm->tm_yday + 365 + leap;
        *year = before;
        return (yday - weekday + 10) / 7;
    }
    const bool leap = *year % 4 == 0 && (*year % 100 != 0 || *year % 400 == 0);
    if (week == 53 && tm->tm_yday - weekday + 3 >= 365 + leap) {
        ++*year;
        week = 1;
    }
    return week;
}

static bool put(struct jbuf *b, const char *fmt, int v)
{
    char text[16];
    const char pad = fmt[0]; /* '0', '_' or '-': then the width */
    const int width = fmt[1] - '0';
    (void)snprintf(text, sizeof text, pad == '0' ? "%0*d" : "%*d", pad == '-' ? 1 : width, v);
    return jbuf_text(b, text);
}

static bool put_all(struct jbuf *b, const char *conversions, const struct tm *tm);

/* Conversions that give words, or several conversions. */
static bool put_words(struct jbuf *b, char c, const struct tm *tm)
{
    const char unknown[3] = {'%', c, '\0'};
    char abbreviated[4] = "";
    switch (c) {
    case 'a':
    case 'b':
    case 'h':
        (void)snprintf(abbreviated, 4, "%.3s", c == 'a' ? days[tm->tm_wday] : months[tm->tm_mon]);
        return jbuf_text(b, abbreviated);
    case 'A':
        return jbuf_text(b, days[tm->tm_wday]);
    case 'B':
        return jbuf_text(b, months[tm->tm_mon]);
    case 'f':
        return jbuf_text(b, "000000");
    case 'n':
        return jbuf_text(b, "\n");
    case 'p':
        return jbuf_text(b, tm->tm_hour < 12 ? "AM" : "PM");
    case 'P':
        return jbuf_text(b, tm->tm_hour < 12 ? "am" : "pm");
    case 't':
        return jbuf_text(b, "\t");
    case 'z':
    case 'Z':
        return true;
    case '%':
        return jbuf_text(b, "%");
    case 'c':
        return put_all(b, "a b e T Y", tm);
    case 'D':
    case 'x':
        return put_all(b, "m/d/y", tm);
    case 'F':
        return put_all(b, "Y-m-d", tm);
    case 'r':
        return put_all(b, "I:M:S p", tm);
    case 'R':
        return put_all(b, "H:M", tm);
    case 'T':
    case 'X':
        return put_all(b, "H:M:S", tm);
    default:
        return jbuf_text(b, unknown);
    }
}

static bool put_one(struct jbuf *b, char c, const struct tm *tm)
{
    int year;
    const int week = iso_week(tm, &year);
    const int hour12 = tm->tm_hour % 12 ? tm->tm_hour % 12 : 12;
    switch (c) {
    case 'C':
        return put(b, "02", (tm->tm_year + 1900) / 100);
    case 'd':
        return put(b, "02", tm->tm_mday);
    case 'e':
        return put(b, "_2", tm->tm_mday);
    case 'g':
        return put(b, "02", year % 100);
    case 'G':
        return put(b, "-1", year);
    case 'H':
        return put(b, "02", tm->tm_hour);
    case 'I':
        return put(b, "02", hour12);
    case 'j':
        return put(b, "03", tm->tm_yday + 1);
    case 'k':
        return put(b, "_2", tm->tm_hour);
    case 'l':
        return put(b, "_2", hour12);
    case 'm':
        return put(b, "02", tm->tm_mon + 1);
    case 'M':
        return put(b, "02", tm->tm_min);
    case 'S':
        return put(b, "02", tm->tm_sec);
    case 'u':
        return put(b, "-1", tm->tm_wday ? tm->tm_wday : 7);
    case 'U':
        return put(b, "02", (tm->tm_yday + 7 - tm->tm_wday) / 7);
    case 'V':
        return put(b, "02", week);
    case 'w':
        return put(b, "-1", tm->tm_wday);
    case 'W':
        return put(b, "02", (tm->tm_yday + 7 - (tm->tm_wday + 6) % 7) / 7);
    case 'y':
        return put(b, "02", (tm->tm_year + 1900) % 100);
    case 'Y':
        return put(b, "-1", tm->tm_year + 1900);
    default:
        return put_words(b, c, tm);
    }
}

/* Letters are conversions, the rest is itself. */
static bool put_all(struct jbuf *b, const char *conversions, const struct tm *tm)
{
    for (const char *p = conversions; *p; p++) {
        const bool is_letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (is_letter ? !put_one(b, *p, tm) : !jbuf_add(b, p, 1, ORIGIN_TEMPLATE))
            return false;
    }
    return true;
}

/* glibc's flag "-": no padding. */
static bool put_unpadded(struct jbuf *b, char c, const struct tm *tm)
{
    struct jbuf part;
    jbuf_init(&part, b->vm);
    if (!put_one(&part, c, tm))
        return false;
    size_t at = 0;
    while (at + 1 < part.n && (part.ptr[at] == '0' || part.ptr[at] == ' '))
        at++;
    return jbuf_add(b, part.ptr + at, part.n - at, ORIGIN_TEMPLATE);
}

bool date_format(struct jbuf *b, const struct jstr *format, time_t when)
{
    struct tm tm;
    if (!localtime_r(&when, &tm))
        return jvm_fail(b->vm, "the time is out of range");
    for (size_t at = 0; at < format->n_bytes; at++) {
        const size_t left = format->n_bytes - at;
        bool ok;
        if (format->ptr[at] != '%' || left == 1) {
            ok = jbuf_part(b, format, at, at + 1);
        } else if (format->ptr[at + 1] == '-' && left > 2 && (format->ptr[at + 2] & 0x80) == 0) {
            ok = put_unpadded(b, format->ptr[at + 2], &tm);
            at += 2;
        } else if (format->ptr[at + 1] & 0x80) {
            ok = jbuf_part(b, format, at, at + 1);
        } else {
            ok = put_one(b, format->ptr[at + 1], &tm);
            at++;
        }
        if (!ok)
            return false;
    }
    return true;
}
