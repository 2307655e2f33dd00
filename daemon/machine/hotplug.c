/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernel uevents of CPUs. Must not act on them: the manager does. */
#include "machine/hotplug.h"

#include "base/cleanup.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#define KERNEL_GROUP 1u /* lib/kobject_uevent.c: the group that kernel events are sent to */

int cp_hotplug_open(struct cp_error *error)
{
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    _cleanup_close_ int fd =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    if (fd < 0)
        return cp_error_set(error, errno, "cannot open a socket for kernel events: %s",
                            strerror(errno));
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return cp_error_set(error, errno, "cannot listen to kernel events: %s", strerror(errno));
    return TAKE_FD(fd);
}

/* An event is "action@path" and then KEY=value strings, each ended by a zero byte. */
static bool event_is_of_cpu(const char *event, size_t size)
{
    const char *end = event + size;

    while (event < end) {
        size_t length = strnlen(event, (size_t)(end - event));

        if (length == strlen("SUBSYSTEM=cpu") && memcmp(event, "SUBSYSTEM=cpu", length) == 0)
            return true;
        event += length + 1;
    }
    return false;
}

int cp_hotplug_read(int fd)
{
    char event[8192];
    int found = 0;

    for (;;) {
        struct sockaddr_nl sender = {0};
        socklen_t sender_size = sizeof(sender);
        ssize_t n = recvfrom(fd, event, sizeof(event), 0, (struct sockaddr *)&sender, &sender_size);

        if (n < 0) {
            if (errno == EINTR)
                continue;
            if (errno == ENOBUFS) {
                found = 1;
                continue;
            }
            return errno == EAGAIN ? found : -errno;
        }
        /* Only the kernel has port 0: other processes may not pretend. */
        if (sender.nl_pid == 0 && event_is_of_cpu(event, (size_t)n))
            found = 1;
    }
}
