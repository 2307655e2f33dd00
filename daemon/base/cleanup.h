/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cleanup attributes and ownership hand-over.
 *
 * A variable marked with one of these gives back what it owns when it leaves its scope; a function
 * that succeeds hands the value over with TAKE_PTR() or TAKE_FD(). Nothing here allocates.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __typeof__(p) *_taken_from = &(p);                                                         \
        __typeof__(p) _taken = *_taken_from;                                                       \
        *_taken_from = NULL;                                                                       \
        _taken;                                                                                    \
    })

#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int *_taken_from = &(fd);                                                                  \
        int _taken = *_taken_from;                                                                 \
        *_taken_from = -1;                                                                         \
        _taken;                                                                                    \
    })

/* Defines <free_function>p(T **), for use with _cleanup_(), from a function that frees a T *. */
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define CP_DEFINE_CLEANUP(type, free_function)                                                     \
    static inline void free_function##p(type **p)                                                  \
    {                                                                                              \
        if (*p)                                                                                    \
            free_function(*p);                                                                     \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void cp_cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cp_cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cp_cleanup_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}

#define _cleanup_free_ _cleanup_(cp_cleanup_free)
#define _cleanup_close_ _cleanup_(cp_cleanup_close)
#define _cleanup_fclose_ _cleanup_(cp_cleanup_fclose)

#define CP_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
#define CP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CP_MAX(a, b) ((a) > (b) ? (a) : (b))
