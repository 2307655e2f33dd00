/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of the levels. */
#include "base/level.h"

#include "base/cleanup.h"

#include <string.h>

static const char *const level_names[CP_LEVEL_MAX] = {
    [CP_LEVEL_CPU] = "cpu",   [CP_LEVEL_CORE] = "core",       [CP_LEVEL_LLC] = "llc",
    [CP_LEVEL_NODE] = "node", [CP_LEVEL_PACKAGE] = "package", [CP_LEVEL_MACHINE] = "machine",
};

const char *cp_level_to_string(enum cp_level level)
{
    return (unsigned)level < CP_LEVEL_MAX ? level_names[level] : NULL;
}

enum cp_level cp_level_from_string(const char *text)
{
    for (unsigned i = 0; i < CP_LEVEL_MAX; i++)
        if (strcmp(text, level_names[i]) == 0)
            return (enum cp_level)i;
    return CP_LEVEL_INVALID;
}
