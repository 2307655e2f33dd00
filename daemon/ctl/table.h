/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What people see: tables that fit the terminal, labelled lines, colour.
 *
 * Every text given to these functions is escaped (text.h) before it is printed. Off a terminal
 * nothing is cut and nothing coloured.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where and how to print. */
struct cp_view {
    FILE *out;       /* borrowed */
    unsigned width;  /* columns; 0: as many as it takes */
    bool colour;     /* may be coloured */
    uint64_t now_ns; /* CLOCK_BOOTTIME, for "3 s ago" */
};

enum cp_style {
    CP_STYLE_PLAIN,
    CP_STYLE_STRONG,
    CP_STYLE_GOOD,
    CP_STYLE_BAD,
    CP_STYLE_FAINT,
    CP_STYLE_MAX,
};

/* Looks at the file (a terminal? how wide?) and at NO_COLOR and TERM of the environment. */
void cp_view_init(struct cp_view *view, FILE *out, uint64_t now_ns);
/* May this output be coloured? no_color, term: the environment's values, NULL if not set. */
bool cp_view_wants_colour(bool is_terminal, const char *no_color, const char *term);

/* Prints "label   text" with the text folded at the width under its own beginning. An empty label
 * goes on with the text of the line before. */
void cp_view_field(const struct cp_view *view, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints one line, cut by nothing. */
void cp_view_line(const struct cp_view *view, enum cp_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define CP_TABLE_COLUMNS_MAX 16u

struct cp_text_table_column {
    const char *title;
    unsigned min_width; /* may shrink to this many columns; 0: never shrinks */
    bool right;         /* numbers */
    bool optional;      /* left out where shrinking is not enough, the last first */
};

struct cp_text_table_cell {
    char *text; /* owned, escaped */
    enum cp_style style;
};

struct cp_text_table {
    const struct cp_text_table_column *columns; /* borrowed */
    size_t n_columns;
    struct cp_text_table_cell *cells; /* owned; row by row */
    size_t n_cells;
    size_t n_allocated;
    bool out_of_memory; /* a cell was lost: printing tells */
};

/* columns must outlive the table; at most CP_TABLE_COLUMNS_MAX, more are left out. */
void cp_text_table_init(struct cp_text_table *table, const struct cp_text_table_column *columns,
                        size_t n_columns);
void cp_text_table_done(struct cp_text_table *table);
#define _cleanup_table_ _cleanup_(cp_text_table_done)

/* Adds the next cell of the present row; a row ends with its last column. */
void cp_text_table_cell(struct cp_text_table *table, enum cp_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints the title line and the rows, indented by so many columns. Where they do not fit, columns
 * that may shrink are cut, the widest first, and show it by a mark; then optional columns are left
 * out; what still does not fit is left to the terminal. -ENOMEM: nothing was printed. */
int cp_text_table_print(const struct cp_text_table *table, const struct cp_view *view,
                        unsigned indent);
