/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The client: what it says when there is no bus, no daemon, or one that does not answer; and that
 * it never makes the bus start the daemon.
 */
#include "bus-dump.h"
#include "bus-server.h"

static struct private_bus bus;

static void test_no_bus(void **state)
{
    struct cp_error error = {0};
    sd_bus *connection = NULL;

    (void)state;
    assert_int_equal(cp_client_open("unix:path=/tmp/coplace-no-such-bus", &connection, &error),
                     CP_CLIENT_NO_DAEMON);
    assert_null(connection);
    assert_non_null(strstr(error.message, "cannot connect to unix:path=/tmp/coplace-no-such-bus"));
}

static void test_wrong_address(void **state)
{
    static const char *const addresses[] = {"", "nonsense", "unix:", "unix:path=relative"};

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(addresses); i++) {
        struct cp_error error = {0};
        sd_bus *connection = NULL;

        assert_true(cp_client_open(addresses[i], &connection, &error) != 0);
        assert_null(connection);
        assert_true(error.code != 0);
        assert_true(error.message[0] != '\0');
    }
}

/* The service file of the private bus is a trap; without set_auto_start(0) it snaps. */
static void test_daemon_is_not_started(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);
    struct cp_error error = {0};
    char mark[128];

    (void)state;
    assert_int_equal(cp_client_call(connection, "GetTopology", 0, NULL, &error, ""),
                     CP_CLIENT_NO_DAEMON);
    assert_non_null(strstr(error.message, "systemctl start coplaced"));
    assert_int_equal(cp_client_get_properties(connection, NULL, &error), CP_CLIENT_NO_DAEMON);
    (void)snprintf(mark, sizeof(mark), "%s/started", bus.directory);
    assert_int_equal(access(mark, F_OK), -1);
}

static void test_errors_have_their_errno(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *root = private_bus_connect(&bus, 0, 0);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *me = private_bus_connect(&bus, ME, 0);
    struct server_process server;
    struct cp_error error = {0};

    (void)state;
    server_start(&server, &bus);
    assert_int_equal(cp_client_call(me, "UndoAll", 0, NULL, &error, ""), -EACCES);
    assert_string_equal(error.message, "UndoAll is for root and members of group coplace only");
    assert_int_equal(error.code, EACCES);
    assert_int_equal(cp_client_call(root, "NoSuchMethod", 0, NULL, &error, ""), -EOPNOTSUPP);
    assert_non_null(strstr(error.message, "another version"));
    assert_int_equal(cp_client_call(root, "Undo", 0, NULL, &error, "s", "wrong type"), -EINVAL);
    assert_int_equal(cp_client_call(root, "Undo", 0, NULL, &error, "t", (uint64_t)0), -ENOENT);
    server_end(&server);
}

static void test_no_answer_in_time(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);
    struct server_process server;
    struct cp_error error = {0};

    (void)state;
    server_start(&server, &bus);
    server_pause(&server);
    assert_int_equal(cp_client_call(connection, "GetTopology", 50000, NULL, &error, ""),
                     -ETIMEDOUT);
    assert_string_equal(error.message, "coplaced did not answer in time");
    server_continue(&server);
    server_end(&server);
}

/* Does something to another process when the parent is waiting for an answer. */
static pid_t kill_soon(pid_t pid)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)usleep(100000);
        _exit(kill(pid, SIGKILL) == 0 ? 0 : 1);
    }
    return child;
}

static void test_daemon_dies_during_a_call(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);
    struct server_process server;
    struct cp_error error = {0};
    pid_t killer;

    (void)state;
    server_start(&server, &bus);
    killer = kill_soon(server.pid);
    assert_int_equal(cp_client_call(connection, "Calibrate", 0, NULL, &error, ""),
                     CP_CLIENT_NO_DAEMON);
    assert_non_null(strstr(error.message, "systemctl start coplaced"));
    assert_int_equal(waitpid(killer, NULL, 0), killer);
    assert_int_equal(waitpid(server.pid, NULL, 0), server.pid);
    close(server.control);
}

static void test_bus_dies_during_a_call(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);
    struct server_process server;
    struct cp_error error = {0};
    pid_t killer;

    (void)state;
    server_start(&server, &bus);
    killer = kill_soon(bus.pid);
    assert_int_equal(cp_client_call(connection, "Calibrate", 0, NULL, &error, ""),
                     CP_CLIENT_NO_DAEMON);
    assert_int_equal(cp_client_call(connection, "GetTopology", 0, NULL, &error, ""),
                     CP_CLIENT_NO_DAEMON);
    assert_int_equal(waitpid(killer, NULL, 0), killer);
    assert_int_equal(waitpid(bus.pid, NULL, 0), bus.pid);
    bus.pid = 0;
    server_end(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_bus),
        cmocka_unit_test(test_wrong_address),
        cmocka_unit_test(test_daemon_is_not_started),
        cmocka_unit_test(test_errors_have_their_errno),
        cmocka_unit_test(test_no_answer_in_time),
        cmocka_unit_test(test_daemon_dies_during_a_call),
        cmocka_unit_test(test_bus_dies_during_a_call), /* the last: leaves no bus behind */
    };
    int r = private_bus_cannot_run();

    if (r)
        return r;
    private_bus_start(&bus);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    private_bus_remove(&bus);
    return r;
}
