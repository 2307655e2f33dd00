/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logging to standard error, with the journal's priority prefix where a journal reads it. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* The one mutable state outside main files: logging is process-wide by nature. */
static const char *log_name = "coplace";
static int log_max_priority = LOG_INFO;
static bool log_to_journal;

void cp_log_setup(const char *name, int max_priority)
{
    log_name = name;
    log_max_priority = max_priority;
    log_to_journal = getenv("JOURNAL_STREAM") != NULL;
}

void cp_log(int priority, const char *format, ...)
{
    int saved_errno = errno;
    char line[1536];
    va_list arguments;

    if (priority > log_max_priority)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (log_to_journal)
        fprintf(stderr, "<%d>%s\n", priority, line);
    else
        fprintf(stderr, "%s: %s\n", log_name, line);
    errno = saved_errno;
}
