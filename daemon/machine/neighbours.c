/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Detects others that place tasks. Reads only. */
#include "machine/neighbours.h"

#include "base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The first line of a small file, or "" . */
static void read_line(const struct cp_root *root, const char *path, char *line, size_t size)
{
    _cleanup_free_ char *text = NULL;

    line[0] = '\0';
    if (cp_root_read_file(root, path, 4096, &text, NULL) < 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(line, size, "%s", text);
}

static void __attribute__((format(printf, 2, 3)))
add_text(struct cp_neighbours *neighbours, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(neighbours->texts[neighbours->n_texts++], sizeof(neighbours->texts[0]), format,
                    arguments);
    va_end(arguments);
}

void cp_neighbours_detect(const struct cp_root *root, struct cp_neighbours *ret_neighbours)
{
    struct cp_neighbours found = {0};
    _cleanup_free_ char *kubelet = NULL;
    char line[256];

    /* kernel: Documentation/scheduler/sched-ext.rst */
    read_line(root, "sys/kernel/sched_ext/state", line, sizeof(line));
    if (strcmp(line, "enabled") == 0) {
        read_line(root, "sys/kernel/sched_ext/root/ops", found.sched_ext_name,
                  sizeof(found.sched_ext_name));
        found.sched_ext = true;
        add_text(&found, "sched_ext scheduler%s%s is loaded: coplaced only observes",
                 found.sched_ext_name[0] ? " " : "", found.sched_ext_name);
    }
    /* kernel: commit c1e7fe5e75ed (cache-aware scheduling), a switch in debugfs */
    read_line(root, "sys/kernel/debug/sched/llc_balancing/enabled", line, sizeof(line));
    if (line[0] == 'Y' || line[0] == '1') {
        found.cache_aware = true;
        add_text(&found, "the kernel's cache-aware scheduling is on: it keeps each process in one "
                         "LLC, coplaced places inside that");
    }
    if (cp_root_read_file(root, "var/lib/kubelet/cpu_manager_state", 1u << 20, &kubelet, NULL) ==
            0 &&
        strstr(kubelet, "\"policyName\":\"static\"")) {
        found.kubelet_static = true;
        add_text(&found, "kubelet's static CPU manager is on: its cpusets are kept");
    }
    *ret_neighbours = found;
}
