/* SPDX-License-Identifier: LGPL-2.1-or-later OR BSD-2-Clause */
/*
 * The kernel side of the wake source: one BPF object of three parts. The scout and the guard are
 * attached once and stay, the scale for the length of a window. Loads on 6.1 and later with the
 * helpers of 6.1; nothing here changes what the kernel does.
 */
#include "wake/guard.bpf.h"
#include "wake/scale.bpf.h"
#include "wake/scout.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
