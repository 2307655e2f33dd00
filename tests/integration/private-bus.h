/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A real bus of the test's own: dbus-daemon with the rules of a system bus and the policy file that
 * ships, in a temporary directory; and connections to it as other users.
 */
#pragma once

#include "bus/client.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants the above first */
#include <cmocka.h>

struct private_bus {
    pid_t pid; /* of dbus-daemon; 0: not running */
    char directory[64];
    char address[256];
};

static inline void private_bus_write(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void private_bus_write(const char *path, const char *format, ...)
{
    FILE *file = fopen(path, "we");
    va_list arguments;

    assert_non_null(file);
    va_start(arguments, format);
    assert_true(vfprintf(file, format, arguments) > 0);
    va_end(arguments);
    assert_int_equal(fclose(file), 0);
}

/* Calls and names are denied by default, as on the system bus, but for what the included file of
 * the project allows. The service file is a trap: it leaves a mark if anybody lets the bus start
 * the daemon. */
static inline void private_bus_configure(const struct private_bus *bus)
{
    char path[128];
    char source[512];

    assert_non_null(getcwd(source, sizeof(source)));
    (void)snprintf(path, sizeof(path), "%s/bus.conf", bus->directory);
    private_bus_write(
        path,
        "<!DOCTYPE busconfig PUBLIC '-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN' "
        "'http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd'>\n<busconfig>\n"
        "<listen>unix:path=%s/bus</listen><auth>EXTERNAL</auth>"
        "<servicedir>%s</servicedir>\n"
        "<policy context='default'><allow user='*'/><deny own='*'/>"
        "<deny send_type='method_call'/><allow send_type='signal'/>"
        "<allow send_requested_reply='true' send_type='method_return'/>"
        "<allow send_requested_reply='true' send_type='error'/>"
        "<allow receive_type='method_call'/><allow receive_type='method_return'/>"
        "<allow receive_type='error'/><allow receive_type='signal'/>"
        "<allow send_destination='org.freedesktop.DBus'/></policy>\n"
        "<limit name='max_connections_per_user'>1000</limit>\n"
        "<include>%s/config/org.coplace.Placement1.conf</include>\n</busconfig>\n",
        bus->directory, bus->directory, source);
    (void)snprintf(path, sizeof(path), "%s/org.coplace.Placement1.service", bus->directory);
    private_bus_write(path,
                      "[D-BUS Service]\nName=org.coplace.Placement1\n"
                      "Exec=/usr/bin/touch %s/started\n",
                      bus->directory);
}

static inline void private_bus_start(struct private_bus *bus)
{
    char config[128];
    char print[32];
    int pipe_fds[2];
    ssize_t n;

    *bus = (struct private_bus){.directory = "/tmp/coplace-test-bus-XXXXXX"};
    assert_non_null(mkdtemp(bus->directory));
    assert_int_equal(chmod(bus->directory, 0755), 0);
    private_bus_configure(bus);
    (void)snprintf(config, sizeof(config), "--config-file=%s/bus.conf", bus->directory);
    assert_int_equal(pipe(pipe_fds), 0);
    (void)snprintf(print, sizeof(print), "--print-address=%d", pipe_fds[1]);
    bus->pid = fork();
    assert_true(bus->pid >= 0);
    if (bus->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* not to outlive a test that crashed */
        close(pipe_fds[0]);
        execlp("dbus-daemon", "dbus-daemon", "--nofork", "--nopidfile", config, print, NULL);
        _exit(127);
    }
    close(pipe_fds[1]);
    n = read(pipe_fds[0], bus->address, sizeof(bus->address) - 1);
    close(pipe_fds[0]);
    if (n <= 0)
        fail_msg("dbus-daemon did not start");
    bus->address[strcspn(bus->address, "\n")] = '\0';
}

static inline void private_bus_end(struct private_bus *bus)
{
    if (bus->pid > 0) {
        assert_int_equal(kill(bus->pid, SIGTERM), 0);
        assert_int_equal(waitpid(bus->pid, NULL, 0), bus->pid);
    }
    bus->pid = 0;
}

static inline void private_bus_remove(struct private_bus *bus)
{
    static const char *const names[] = {"bus", "bus.conf", "org.coplace.Placement1.service",
                                        "started"};
    char path[128];

    private_bus_end(bus);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", bus->directory, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(bus->directory), 0);
}

/* Credentials of a connection are those of the process at connect(2): becomes another user for
 * that long. */
static inline void private_bus_become(uid_t uid, gid_t group)
{
    gid_t groups[] = {group};

    assert_int_equal(setgroups(group ? 1 : 0, groups), 0);
    assert_int_equal(setegid(uid ? 65534 : 0), 0);
    assert_int_equal(seteuid(uid), 0);
}

static inline void private_bus_become_root(void)
{
    assert_int_equal(seteuid(0), 0);
    private_bus_become(0, 0);
}

/* A connection as uid with one supplementary group (0: none). */
static inline sd_bus *private_bus_connect(const struct private_bus *bus, uid_t uid, gid_t group)
{
    struct cp_error error = {0};
    sd_bus *connection = NULL;
    int r;

    private_bus_become(uid, group);
    r = cp_client_open(bus->address, &connection, &error);
    private_bus_become_root();
    if (r != 0)
        fail_msg("cannot connect as %u: %s", uid, error.message);
    return connection;
}

/* A skip's reason is printed; 0: go on. */
static inline int private_bus_cannot_run(void)
{
    if (geteuid() != 0) {
        puts("skipped: needs root, to connect to a private bus as several users");
        return 77;
    }
    if (system("command -v dbus-daemon >/dev/null 2>&1") != 0) { /* NOLINT: fixed text */
        puts("skipped: dbus-daemon is not installed");
        return 77;
    }
    return 0;
}
