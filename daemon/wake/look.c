/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When to look. Pure. */
#include "wake/look.h"

#include "base/cleanup.h"
#include "base/clock.h"

void cp_look_config_init_default(struct cp_look_config *config)
{
    *config = (struct cp_look_config){
        .window_ns = 100 * CP_NS_PER_MS,
        .verify_delay_ns = 100 * CP_NS_PER_MS,
        .hot_interval_ns = 150 * CP_NS_PER_MS,
        .min_interval_ns = CP_NS_PER_S,
        .max_interval_ns = 120 * CP_NS_PER_S,
        .min_hot_gap_ns = 50 * CP_NS_PER_MS,
        .max_hot_gap_ns = 30 * CP_NS_PER_S,
    };
}

void cp_look_init(struct cp_look *look, const struct cp_look_config *config)
{
    *look = (struct cp_look){
        .config = *config,
        .due_ns = UINT64_MAX,
        .interval_ns = config->min_interval_ns,
        .hot_gap_ns = config->min_hot_gap_ns,
    };
}

void cp_look_on_hot(struct cp_look *look, uint64_t now_ns)
{
    uint64_t earliest = look->last_end_ns ? look->last_end_ns + look->hot_gap_ns : now_ns;
    uint64_t wanted = CP_MAX(now_ns, earliest);

    if (wanted < look->due_ns) {
        look->due_ns = wanted;
        look->for_hot = true;
    }
    /* New tasks often begin on one CPU, where nothing can be told of them yet: look again soon. */
    look->interval_ns =
        CP_MIN(look->interval_ns, CP_MAX(look->config.hot_interval_ns, look->hot_gap_ns));
}

void cp_look_on_placed(struct cp_look *look, uint64_t now_ns)
{
    look->due_ns = CP_MIN(look->due_ns, now_ns + look->config.verify_delay_ns);
}

void cp_look_on_wait(struct cp_look *look, uint64_t now_ns, uint64_t until_ns)
{
    uint64_t begin = until_ns > look->config.window_ns ? until_ns - look->config.window_ns : 0;
    uint64_t earliest = now_ns + look->config.min_hot_gap_ns;

    look->due_ns = CP_MIN(look->due_ns, CP_MAX(begin, earliest));
}

void cp_look_on_end(struct cp_look *look, uint64_t now_ns, bool changed, bool watching)
{
    const struct cp_look_config *config = &look->config;

    if (changed) {
        look->interval_ns = config->min_interval_ns;
        look->hot_gap_ns = config->min_hot_gap_ns;
    } else if (look->for_hot) {
        look->hot_gap_ns = CP_MIN(look->hot_gap_ns * 2, config->max_hot_gap_ns);
    }
    look->for_hot = false;
    look->last_end_ns = now_ns;
    look->due_ns = watching ? now_ns + look->interval_ns : UINT64_MAX;
    if (!changed)
        look->interval_ns = CP_MIN(look->interval_ns * 2, config->max_interval_ns);
    if (!watching)
        look->interval_ns = config->min_interval_ns;
}
