/*
 * strftime in English, whatever the locale, for the time that the caller gives.
 */
#ifndef TEMPLATES_JINJA_DATE_H
#define TEMPLATES_JINJA_DATE_H

#include "templates/jinja/value/jinja_text.h"

bool date_format(struct jbuf *b, const struct jstr *format, time_t when); /* local time */

#endif
