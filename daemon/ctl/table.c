/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables and labelled lines. Knows nothing of what it prints; escapes all of it.
 */
#include "ctl/table.h"

#include "ctl/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#define GAP 2u /* columns between two columns of a table */
#define LABEL_WIDTH 14u
#define DEFAULT_WIDTH 80u

static const char *const style_codes[CP_STYLE_MAX] = {
    [CP_STYLE_PLAIN] = "",       [CP_STYLE_STRONG] = "\033[1m", [CP_STYLE_GOOD] = "\033[32m",
    [CP_STYLE_BAD] = "\033[31m", [CP_STYLE_FAINT] = "\033[2m",
};

bool cp_view_wants_colour(bool is_terminal, const char *no_color, const char *term)
{
    /* no-color.org: present and not an empty string, whatever its value. */
    if (!is_terminal || (no_color && no_color[0]))
        return false;
    return term && strcmp(term, "dumb") != 0;
}

void cp_view_init(struct cp_view *view, FILE *out, uint64_t now_ns)
{
    bool is_terminal = isatty(fileno(out)) == 1;
    struct winsize size = {0};

    *view = (struct cp_view){.out = out, .now_ns = now_ns};
    if (is_terminal) {
        (void)ioctl(fileno(out), TIOCGWINSZ, &size);
        view->width = size.ws_col > 0 ? size.ws_col : DEFAULT_WIDTH;
    }
    view->colour = cp_view_wants_colour(is_terminal, getenv("NO_COLOR"), getenv("TERM"));
}

/* The formatted and escaped text, NULL: no memory. */
__attribute__((format(printf, 1, 0))) static char *format_escaped(const char *format,
                                                                  va_list arguments)
{
    _cleanup_free_ char *raw = NULL;

    if (vasprintf(&raw, format, arguments) < 0) {
        raw = NULL;
        return NULL;
    }
    return cp_text_escape(raw);
}

static void put_styled(const struct cp_view *view, enum cp_style style, const char *text)
{
    if (view->colour && style != CP_STYLE_PLAIN)
        (void)fprintf(view->out, "%s%s\033[0m", style_codes[style], text);
    else
        (void)fputs(text, view->out);
}

void cp_view_line(const struct cp_view *view, enum cp_style style, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = format_escaped(format, arguments);
    va_end(arguments);
    put_styled(view, style, text ? text : "(out of memory)");
    (void)fputc('\n', view->out);
}

/* Bytes of text for one line of so many columns: up to a space where there is one. */
static size_t fold_at(const char *text, unsigned width)
{
    size_t fit = cp_text_fit(text, width);
    size_t at = fit;

    if (text[fit] == '\0')
        return fit;
    while (at > 0 && text[at] != ' ')
        at--;
    if (at > 0)
        return at;
    return fit > 0 ? fit : strlen(text);
}

void cp_view_field(const struct cp_view *view, const char *label, const char *format, ...)
{
    _cleanup_free_ char *text = NULL;
    unsigned room = view->width > LABEL_WIDTH + 20 ? view->width - LABEL_WIDTH : 0;
    const char *rest;
    va_list arguments;

    va_start(arguments, format);
    text = format_escaped(format, arguments);
    va_end(arguments);
    rest = text ? text : "(out of memory)";
    if (view->colour && label[0])
        (void)fprintf(view->out, "\033[1m%-*s\033[0m", (int)LABEL_WIDTH, label);
    else
        (void)fprintf(view->out, "%-*s", (int)LABEL_WIDTH, label);
    while (room > 0) {
        size_t n = fold_at(rest, room);

        if (rest[n] == '\0')
            break;
        (void)fprintf(view->out, "%.*s\n%*s", (int)n, rest, (int)LABEL_WIDTH, "");
        rest += n;
        while (*rest == ' ')
            rest++;
    }
    (void)fprintf(view->out, "%s\n", rest);
}

void cp_text_table_init(struct cp_text_table *table, const struct cp_text_table_column *columns,
                        size_t n_columns)
{
    *table = (struct cp_text_table){
        .columns = columns,
        .n_columns = CP_MIN(n_columns, CP_TABLE_COLUMNS_MAX),
    };
}

void cp_text_table_done(struct cp_text_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].text);
    free(table->cells);
    *table = (struct cp_text_table){0};
}

void cp_text_table_cell(struct cp_text_table *table, enum cp_style style, const char *format, ...)
{
    va_list arguments;
    char *text;

    if (table->n_cells == table->n_allocated) {
        size_t wanted = table->n_allocated > 0 ? table->n_allocated * 2 : 64;
        struct cp_text_table_cell *cells =
            reallocarray(table->cells, wanted, sizeof(struct cp_text_table_cell));

        if (!cells) {
            table->out_of_memory = true;
            return;
        }
        table->cells = cells;
        table->n_allocated = wanted;
    }
    va_start(arguments, format);
    text = format_escaped(format, arguments);
    va_end(arguments);
    if (!text) {
        table->out_of_memory = true;
        return;
    }
    table->cells[table->n_cells++] = (struct cp_text_table_cell){.text = text, .style = style};
}

/* Of the shown columns, the widest that may shrink further; n_columns: none. */
static size_t find_shrinkable(const struct cp_text_table *table, const unsigned *widths)
{
    size_t widest = table->n_columns;

    for (size_t c = 0; c < table->n_columns; c++) {
        unsigned least = table->columns[c].min_width;

        if (least > 0 && widths[c] > least &&
            (widest == table->n_columns || widths[c] > widths[widest]))
            widest = c;
    }
    return widest;
}

static unsigned total_width(const struct cp_text_table *table, const unsigned *widths)
{
    unsigned total = 0;

    for (size_t c = 0; c < table->n_columns; c++)
        total += widths[c] > 0 ? widths[c] + GAP : 0;
    return total > 0 ? total - GAP : 0;
}

/* Shrinks the natural widths; false if they still do not fit. */
static bool shrink(const struct cp_text_table *table, unsigned available, unsigned *widths)
{
    unsigned total = total_width(table, widths);

    while (total > available) {
        size_t widest = find_shrinkable(table, widths);

        if (widest == table->n_columns)
            return false;
        widths[widest]--;
        total--;
    }
    return true;
}

/* Width of each column in the end; 0: left out. */
static void find_widths(const struct cp_text_table *table, unsigned available, unsigned *widths)
{
    unsigned natural[CP_TABLE_COLUMNS_MAX] = {0};
    size_t n = table->n_columns;

    for (size_t c = 0; c < n; c++) {
        natural[c] = CP_MAX(cp_text_width(table->columns[c].title), 1u);
        for (size_t i = c; i < table->n_cells; i += n)
            natural[c] = CP_MAX(natural[c], cp_text_width(table->cells[i].text));
    }
    for (size_t last = n;; last--) {
        memcpy(widths, natural, n * sizeof(*widths));
        if (available == 0 || shrink(table, available, widths))
            return;
        while (last > 0 && !table->columns[last - 1].optional)
            last--;
        if (last == 0)
            return;
        natural[last - 1] = 0;
    }
}

/* One line being printed; spaces wait for the next text, so that no line ends with them. */
struct line {
    const struct cp_view *view;
    unsigned spaces;
};

static void put_text(struct line *line, const char *text, enum cp_style style)
{
    if (text[0] == '\0')
        return;
    (void)fprintf(line->view->out, "%*s", (int)line->spaces, "");
    line->spaces = 0;
    put_styled(line->view, style, text);
}

static void put_cell(struct line *line, const char *text, enum cp_style style, unsigned width,
                     bool right)
{
    unsigned own = cp_text_width(text);
    _cleanup_free_ char *cut = NULL;

    if (own > width) {
        size_t fit = cp_text_fit(text, width - 1);

        /* The mark takes one column in either case. */
        if (asprintf(&cut, "%.*s%s", (int)fit, text, MB_CUR_MAX > 1 ? "…" : "~") < 0)
            cut = NULL;
        if (cut)
            text = cut;
        own = cp_text_width(text);
    }
    if (right && own < width)
        line->spaces += width - own;
    put_text(line, text, style);
    line->spaces += (!right && own < width ? width - own : 0) + GAP;
}

static void put_row(const struct cp_text_table *table, const struct cp_view *view, unsigned indent,
                    const unsigned *widths, const struct cp_text_table_cell *cells)
{
    struct line line = {.view = view, .spaces = indent};

    for (size_t c = 0; c < table->n_columns; c++) {
        if (widths[c] == 0)
            continue;
        put_cell(&line, cells ? cells[c].text : table->columns[c].title,
                 cells ? cells[c].style : CP_STYLE_STRONG, widths[c], table->columns[c].right);
    }
    (void)fputc('\n', view->out);
}

int cp_text_table_print(const struct cp_text_table *table, const struct cp_view *view,
                        unsigned indent)
{
    unsigned widths[CP_TABLE_COLUMNS_MAX];
    unsigned room = view->width > indent ? view->width - indent : view->width;

    if (table->out_of_memory)
        return -ENOMEM;
    find_widths(table, room, widths);
    put_row(table, view, indent, widths, NULL);
    /* Whole rows only: a row that was begun and not ended is a mistake of the caller. */
    for (size_t i = 0; i + table->n_columns <= table->n_cells; i += table->n_columns)
        put_row(table, view, indent, widths, &table->cells[i]);
    return 0;
}
