/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sets of CPUs by OS number. Pure: no system call, no global. */
#include "base/cpumask.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORD_BITS 64u

static int cpumask_grow(struct cp_cpumask *mask, size_t n_words)
{
    uint64_t *words;

    if (mask->words && n_words <= mask->n_words)
        return 0;
    words = reallocarray(mask->words, n_words, sizeof(*words));
    if (!words)
        return -ENOMEM;
    memset(words + mask->n_words, 0, (n_words - mask->n_words) * sizeof(*words));
    mask->words = words;
    mask->n_words = n_words;
    return 0;
}

static uint64_t cpumask_word(const struct cp_cpumask *mask, size_t i)
{
    return i < mask->n_words ? mask->words[i] : 0;
}

void cp_cpumask_done(struct cp_cpumask *mask)
{
    free(mask->words);
    *mask = (struct cp_cpumask){0};
}

int cp_cpumask_set(struct cp_cpumask *mask, struct cp_cpu cpu)
{
    return cp_cpumask_set_range(mask, cpu, cpu);
}

int cp_cpumask_set_range(struct cp_cpumask *mask, struct cp_cpu first, struct cp_cpu last)
{
    int r;

    if (last.os >= CP_CPU_LIMIT || first.os > last.os)
        return -ERANGE;
    r = cpumask_grow(mask, last.os / WORD_BITS + 1);
    if (r < 0)
        return r;
    for (unsigned os = first.os; os <= last.os; os++)
        mask->words[os / WORD_BITS] |= UINT64_C(1) << (os % WORD_BITS);
    return 0;
}

void cp_cpumask_clear(struct cp_cpumask *mask, struct cp_cpu cpu)
{
    if (cpu.os / WORD_BITS < mask->n_words)
        mask->words[cpu.os / WORD_BITS] &= ~(UINT64_C(1) << (cpu.os % WORD_BITS));
}

void cp_cpumask_zero(struct cp_cpumask *mask)
{
    if (mask->n_words)
        memset(mask->words, 0, mask->n_words * sizeof(*mask->words));
}

bool cp_cpumask_test(const struct cp_cpumask *mask, struct cp_cpu cpu)
{
    return cpumask_word(mask, cpu.os / WORD_BITS) >> (cpu.os % WORD_BITS) & 1;
}

bool cp_cpumask_is_empty(const struct cp_cpumask *mask)
{
    for (size_t i = 0; i < mask->n_words; i++)
        if (mask->words[i])
            return false;
    return true;
}

unsigned cp_cpumask_weight(const struct cp_cpumask *mask)
{
    unsigned weight = 0;

    for (size_t i = 0; i < mask->n_words; i++)
        weight += (unsigned)__builtin_popcountll(mask->words[i]);
    return weight;
}

bool cp_cpumask_equal(const struct cp_cpumask *a, const struct cp_cpumask *b)
{
    return cp_cpumask_is_subset(a, b) && cp_cpumask_is_subset(b, a);
}

bool cp_cpumask_intersects(const struct cp_cpumask *a, const struct cp_cpumask *b)
{
    for (size_t i = 0; i < CP_MIN(a->n_words, b->n_words); i++)
        if (a->words[i] & b->words[i])
            return true;
    return false;
}

bool cp_cpumask_is_subset(const struct cp_cpumask *inner, const struct cp_cpumask *outer)
{
    for (size_t i = 0; i < inner->n_words; i++)
        if (inner->words[i] & ~cpumask_word(outer, i))
            return false;
    return true;
}

enum cpumask_operation { CPUMASK_AND, CPUMASK_OR, CPUMASK_ANDNOT };

static int cpumask_combine(struct cp_cpumask *to, const struct cp_cpumask *a,
                           const struct cp_cpumask *b, enum cpumask_operation operation)
{
    /* Read the sizes first: growing *to changes the operand that it may be. */
    size_t n_words = CP_MAX(a->n_words, b->n_words);
    int r = cpumask_grow(to, n_words);

    if (r < 0)
        return r;
    for (size_t i = 0; i < to->n_words; i++) {
        uint64_t left = cpumask_word(a, i);
        uint64_t right = cpumask_word(b, i);

        if (operation == CPUMASK_AND)
            to->words[i] = left & right;
        else if (operation == CPUMASK_OR)
            to->words[i] = left | right;
        else
            to->words[i] = left & ~right;
    }
    return 0;
}

int cp_cpumask_and(struct cp_cpumask *to, const struct cp_cpumask *a, const struct cp_cpumask *b)
{
    return cpumask_combine(to, a, b, CPUMASK_AND);
}

int cp_cpumask_or(struct cp_cpumask *to, const struct cp_cpumask *a, const struct cp_cpumask *b)
{
    return cpumask_combine(to, a, b, CPUMASK_OR);
}

int cp_cpumask_andnot(struct cp_cpumask *to, const struct cp_cpumask *a, const struct cp_cpumask *b)
{
    return cpumask_combine(to, a, b, CPUMASK_ANDNOT);
}

int cp_cpumask_copy(struct cp_cpumask *to, const struct cp_cpumask *from)
{
    return cpumask_combine(to, from, from, CPUMASK_OR);
}

bool cp_cpumask_next(const struct cp_cpumask *mask, unsigned from, struct cp_cpu *ret_cpu)
{
    for (size_t i = from / WORD_BITS; i < mask->n_words; i++) {
        uint64_t word = mask->words[i];

        if (i == from / WORD_BITS)
            word &= ~UINT64_C(0) << (from % WORD_BITS);
        if (word) {
            *ret_cpu = (struct cp_cpu){(unsigned)i * WORD_BITS + (unsigned)__builtin_ctzll(word)};
            return true;
        }
    }
    return false;
}

/* Reads a decimal number at *text and moves *text behind it. -EINVAL, -ERANGE. */
static int parse_number(const char **text, unsigned *ret)
{
    unsigned value = 0;

    if (!isdigit((unsigned char)**text))
        return -EINVAL;
    while (isdigit((unsigned char)**text)) {
        value = value * 10 + (unsigned)(**text - '0');
        if (value > CP_CPU_LIMIT)
            return -ERANGE;
        (*text)++;
    }
    *ret = value;
    return 0;
}

/* One element of a list: N, N-M or N-M:used/group. */
static int parse_range(const char **text, struct cp_cpumask *mask)
{
    unsigned first;
    unsigned last;
    unsigned used;
    unsigned group;
    int r;

    r = parse_number(text, &first);
    if (r < 0)
        return r;
    last = first;
    if (**text == '-') {
        (*text)++;
        r = parse_number(text, &last);
        if (r < 0)
            return r;
    }
    if (first > last)
        return -EINVAL;
    used = group = last - first + 1;
    if (**text == ':') {
        (*text)++;
        r = parse_number(text, &used);
        if (r < 0)
            return r;
        if (**text != '/')
            return -EINVAL;
        (*text)++;
        r = parse_number(text, &group);
        if (r < 0)
            return r;
        if (used == 0 || used > group)
            return -EINVAL;
    }
    if (last >= CP_CPU_LIMIT)
        return -ERANGE;
    for (unsigned start = first; start <= last; start += group) {
        r = cp_cpumask_set_range(mask, (struct cp_cpu){start},
                                 (struct cp_cpu){CP_MIN(start + used - 1, last)});
        if (r < 0)
            return r;
    }
    return 0;
}

int cp_cpumask_parse_list(const char *text, struct cp_cpumask *ret_mask)
{
    _cleanup_cpumask_ struct cp_cpumask mask = {0};

    while (isspace((unsigned char)*text))
        text++;
    while (*text) {
        int r = parse_range(&text, &mask);

        if (r < 0)
            return r;
        /* A comma must be followed by another range. */
        if (*text == ',' && text[1]) {
            text++;
            continue;
        }
        while (isspace((unsigned char)*text))
            text++;
        if (*text)
            return -EINVAL;
    }
    cp_cpumask_done(ret_mask);
    *ret_mask = mask;
    mask = (struct cp_cpumask){0};
    return 0;
}

char *cp_cpumask_to_list(const struct cp_cpumask *mask)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    struct cp_cpu cpu;
    const char *separator = "";

    if (!stream)
        return NULL;
    for (unsigned from = 0; cp_cpumask_next(mask, from, &cpu);) {
        unsigned last = cpu.os;

        while (cp_cpumask_test(mask, (struct cp_cpu){last + 1}))
            last++;
        if (last > cpu.os)
            fprintf(stream, "%s%u-%u", separator, cpu.os, last);
        else
            fprintf(stream, "%s%u", separator, cpu.os);
        separator = ",";
        from = last + 1;
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
