/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What every wake source shares: the end of samples and of sources. */
#include "wake/wake.h"

#include <stdlib.h>
#include <string.h>

void cp_wake_sample_done(struct cp_wake_sample *sample)
{
    free(sample->edges);
    free(sample->tasks);
    memset(sample, 0, sizeof(*sample));
}

struct cp_wake_source *cp_wake_source_free(struct cp_wake_source *source)
{
    if (source)
        source->ops->free(source);
    return NULL;
}
