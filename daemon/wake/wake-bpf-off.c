/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stands for wake-bpf.c in a build without BPF: says so. */
#include "wake/wake.h"

#include <errno.h>

int cp_wake_bpf_new(const struct cp_wake_config *config, const struct cp_machine *machine,
                    struct cp_wake_source **ret_source, struct cp_error *error)
{
    (void)config;
    (void)machine;
    (void)ret_source;
    return cp_error_set(error, EOPNOTSUPP,
                        "this build has no eBPF wake source; build with -DCOPLACE_BPF=ON (needs "
                        "clang, bpftool and libbpf)");
}
