/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the eBPF wake source share; nobody else includes this. */
#pragma once

#include "base/error.h"
#include "wake.skel.h"
#include "wake/wake.h"

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum cp_wake_bpf_link {
    CP_WAKE_BPF_SCOUT,
    CP_WAKE_BPF_FORK,
    CP_WAKE_BPF_EXEC,
    CP_WAKE_BPF_EXIT,
    CP_WAKE_BPF_DUMP, /* the task iterator; runs only when it is read */
    CP_WAKE_BPF_LINK_MAX,
};

struct cp_wake_bpf {
    struct cp_wake_source source; /* first: the face that others hold */
    struct wake_bpf *skeleton;
    struct ring_buffer *ring;
    struct bpf_link *links[CP_WAKE_BPF_LINK_MAX];
    struct bpf_link *scale_waking; /* NULL: no window is open */
    struct bpf_link *scale_switch;
    uint32_t epoch; /* of the last window */
    uint64_t begin_ns;
    size_t max_edges;
    uint32_t n_domains; /* CPU numbers that the kernel side knows: 0 … n_domains - 1 */
    uint64_t n_lost_reported;
    /* During dispatch. */
    cp_wake_event_handler handler;
    void *userdata;
    unsigned n_handled;
};

static inline struct cp_wake_bpf *cp_wake_bpf(struct cp_wake_source *source)
{
    return (struct cp_wake_bpf *)source;
}

/*
 * wake-bpf-load.c: opens and loads the BPF object; attaches nothing. n_domains: entries of the
 * table of CPUs. *ret_asks: the programs tell hard interrupts apart. Negative errno with *error,
 * which says what is missing and what to do. Blocks 20-60 ms.
 */
int cp_wake_bpf_load(const struct cp_wake_config *config, uint32_t n_domains,
                     struct wake_bpf **ret_skeleton, bool *ret_asks, struct cp_error *error);

/* wake-bpf-load.c: fills *error with the cause of a failure of the bpf system call (positive
 * errno). log: what the kernel's verifier said, NULL or "" if nothing. Returns -code. */
int cp_wake_bpf_explain(int code, const char *what, const char *log, struct cp_error *error);

/* wake-bpf-window.c: window_open and window_close of the source, see wake.h. */
int cp_wake_bpf_window_open(struct cp_wake_source *source, struct cp_error *error);
int cp_wake_bpf_window_close(struct cp_wake_source *source, struct cp_wake_sample *ret_sample,
                             struct cp_error *error);
/* Detaches the scale if a window is open. */
void cp_wake_bpf_detach_scale(struct cp_wake_bpf *source);

/* read(2) again when interrupted. The number of bytes or negative errno. */
ssize_t cp_wake_bpf_read(int fd, void *buffer, size_t size);
