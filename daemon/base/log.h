/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Logging to standard error.
 *
 * Under systemd (JOURNAL_STREAM is set) each line carries the "<N>" priority prefix that the
 * journal reads; elsewhere it carries the program's name. Pure rooms never log.
 */
#pragma once

#include <syslog.h>

/* Sets what is printed: messages of priority above max_priority (LOG_ERR … LOG_DEBUG) are dropped.
 * name is borrowed for the life of the process. Call once from main. */
void cp_log_setup(const char *name, int max_priority);

/* Prints one line. Does not change errno. May block on standard error as any write does. */
void cp_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define cp_log_error(...) cp_log(LOG_ERR, __VA_ARGS__)
#define cp_log_warning(...) cp_log(LOG_WARNING, __VA_ARGS__)
#define cp_log_notice(...) cp_log(LOG_NOTICE, __VA_ARGS__)
#define cp_log_info(...) cp_log(LOG_INFO, __VA_ARGS__)
#define cp_log_debug(...) cp_log(LOG_DEBUG, __VA_ARGS__)
