/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The clocks of the product. Pure rooms never call these: they get the time as an argument. */
#pragma once

#include <stdint.h>
#include <time.h>

#define CP_NS_PER_US 1000ull
#define CP_NS_PER_MS 1000000ull
#define CP_NS_PER_S 1000000000ull

/* Nanoseconds of CLOCK_BOOTTIME: the clock of every time that leaves the daemon (it goes on in
 * suspend, as the start times of tasks do). Cannot fail on a kernel that we support. */
static inline uint64_t cp_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * CP_NS_PER_S + (uint64_t)now.tv_nsec;
}
