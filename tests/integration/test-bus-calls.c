/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Callers and the connection: calls that wait until the caller is known, callers that go, storms,
 * signals, and a bus that goes away.
 */
#include "bus-dump.h"
#include "bus-server.h"

static struct private_bus bus;
static struct server_process server;

#define N_STORM 100

struct answers {
    unsigned n;
    unsigned n_good;
    unsigned n_limited;
};

static int count_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    struct answers *answers = userdata;

    (void)error;
    answers->n++;
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_LIMITS_EXCEEDED) > 0)
        answers->n_limited++;
    else if (!sd_bus_message_is_method_error(reply, NULL))
        answers->n_good++;
    return 0;
}

static void call_many(sd_bus *connection, unsigned n, struct answers *answers)
{
    for (unsigned i = 0; i < n; i++)
        assert_true(sd_bus_call_method_async(connection, NULL, CP_BUS_NAME, CP_BUS_PATH,
                                             CP_BUS_MANAGER, "ListPairs", count_answer, answers,
                                             "u", 1u) >= 0);
    assert_true(sd_bus_flush(connection) >= 0);
}

/* When the bus has answered this, it has passed on all that came before it. */
static void wait_for_bus(sd_bus *connection)
{
    assert_true(sd_bus_call_method(connection, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                   "org.freedesktop.DBus", "GetId", NULL, NULL, "") >= 0);
}

static void wait_for_answers(sd_bus *connection, const struct answers *answers, unsigned n)
{
    while (answers->n < n) {
        int r = sd_bus_process(connection, NULL);

        assert_true(r >= 0);
        if (r == 0)
            assert_true(sd_bus_wait(connection, 20000000) > 0);
    }
}

/* The daemon finds all calls before it has the bus's word on who is calling. */
static void test_calls_wait_and_are_bounded(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, ME, 0);
    struct answers answers = {0};

    (void)state;
    server_pause(&server);
    call_many(connection, N_STORM, &answers);
    wait_for_bus(connection);
    server_continue(&server);
    wait_for_answers(connection, &answers, N_STORM);
    assert_int_equal(answers.n_good, CP_BUS_MAX_PENDING_PER_CALLER);
    assert_int_equal(answers.n_limited, N_STORM - CP_BUS_MAX_PENDING_PER_CALLER);
    /* Known by now: none has to wait. */
    answers = (struct answers){0};
    server_pause(&server);
    call_many(connection, N_STORM, &answers);
    wait_for_bus(connection);
    server_continue(&server);
    wait_for_answers(connection, &answers, N_STORM);
    assert_int_equal(answers.n_good, N_STORM);
}

static void test_all_waiting_calls_are_bounded(void **state)
{
    sd_bus *connections[12];
    struct answers answers = {0};
    unsigned n_all = CP_ELEMENTS(connections) * 60;

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++)
        connections[i] = private_bus_connect(&bus, ME, 0);
    server_pause(&server);
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++) {
        call_many(connections[i], 60, &answers);
        wait_for_bus(connections[i]);
    }
    server_continue(&server);
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++)
        wait_for_answers(connections[i], &answers, 60 * ((unsigned)i + 1));
    assert_int_equal(answers.n_good, CP_BUS_MAX_PENDING);
    assert_int_equal(answers.n_limited, n_all - CP_BUS_MAX_PENDING);
    assert_int_equal(server_tell(&server, 'p'), 0);
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++)
        sd_bus_flush_close_unref(connections[i]);
}

/* The daemon has heard of every earlier end of a connection when it answers this new caller. */
static uint64_t callers_after_a_call(void)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, ME, 0);

    assert_int_equal(cp_client_call(connection, "ListPairs", 0, NULL, NULL, "u", 1u), 0);
    return server_tell(&server, 'n');
}

static void test_callers_are_forgotten_when_they_go(void **state)
{
    sd_bus *connections[10];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++) {
        connections[i] = private_bus_connect(&bus, OTHER, 0);
        assert_int_equal(cp_client_call(connections[i], "ListPairs", 0, NULL, NULL, "u", 1u), 0);
    }
    assert_true(server_tell(&server, 'n') >= CP_ELEMENTS(connections));
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++)
        sd_bus_flush_close_unref(connections[i]);
    /* The bus may hear of a closed socket after it let the next caller in: ask until it has. */
    for (unsigned i = 0; i < 1000 && callers_after_a_call() > 2; i++)
        (void)usleep(10000);
    assert_true(callers_after_a_call() <= 2);
}

static void test_caller_that_goes_while_waiting(void **state)
{
    sd_bus *connection = private_bus_connect(&bus, ME, 0);
    struct answers answers = {0};

    (void)state;
    server_pause(&server);
    call_many(connection, 20, &answers);
    wait_for_bus(connection);
    sd_bus_close_unref(connection);
    server_continue(&server);
    for (unsigned i = 0; i < 1000 && callers_after_a_call() > 2; i++)
        (void)usleep(10000);
    assert_int_equal(server_tell(&server, 'p'), 0);
}

/* More callers than are remembered: the longest silent is asked for anew, nobody is refused. */
static void test_many_callers(void **state)
{
    static sd_bus *connections[CP_BUS_MAX_CALLERS + 40];

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++) {
        connections[i] = private_bus_connect(&bus, i % 2 ? ME : OTHER, 0);
        assert_int_equal(cp_client_call(connections[i], "ListPairs", 0, NULL, NULL, "u", 1u), 0);
    }
    assert_int_equal(server_tell(&server, 'n'), CP_BUS_MAX_CALLERS);
    for (size_t i = 0; i < CP_ELEMENTS(connections); i++) {
        struct cp_error error = {0};

        assert_int_equal(cp_client_call(connections[i], "UndoAll", 0, NULL, &error, ""), -EACCES);
        sd_bus_flush_close_unref(connections[i]);
    }
}

static int keep_signal(sd_bus_message *signal, void *userdata, sd_bus_error *error)
{
    char **ret_text = userdata;
    _cleanup_free_ char *body = bus_dump(signal);

    (void)error;
    free(*ret_text);
    assert_true(asprintf(ret_text, "%s %s", sd_bus_message_get_member(signal), body) > 0);
    return 0;
}

static void assert_signal(sd_bus *connection, char **text, char letter, const char *expected)
{
    (void)server_tell(&server, letter);
    while (!*text) {
        int r = sd_bus_process(connection, NULL);

        assert_true(r >= 0);
        if (r == 0)
            assert_true(sd_bus_wait(connection, 20000000) > 0);
    }
    assert_string_equal(*text, expected);
    free(*text);
    *text = NULL;
}

static void test_signals(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, ME, 0);
    char *text = NULL;

    (void)state;
    assert_true(sd_bus_match_signal(connection, NULL, CP_BUS_NAME, CP_BUS_PATH, NULL, NULL,
                                    keep_signal, &text) >= 0);
    assert_signal(connection, &text, 'd', "DecisionMade 7 \"applied\"");
    assert_signal(connection, &text, 'c', "DecisionChanged 7 \"kept\"");
    assert_signal(connection, &text, 'l', "SamplesLost 9");
    assert_signal(connection, &text, 'm',
                  "PropertiesChanged \"" CP_BUS_MANAGER "\" {\"Mode\":<s>\"observe\"} []");
    assert_signal(connection, &text, 't',
                  "PropertiesChanged \"" CP_BUS_MANAGER "\" {\"TopologyGeneration\":<t>3} []");
}

static int new_bus(const char *address, struct cp_error *error)
{
    struct server unused = {0};
    struct cp_bus *second = NULL;
    sd_event *event = NULL;
    int r;

    assert_true(sd_event_new(&event) >= 0);
    r = cp_bus_new(event, 0, address, &server_ops, &unused, &second, error);
    assert_null(second);
    sd_event_unref(event);
    return r;
}

static void test_name_is_taken(void **state)
{
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(new_bus(bus.address, &error), -EEXIST);
    assert_non_null(strstr(error.message, "another coplaced owns org.coplace.Placement1"));
}

static void test_name_is_not_for_everyone(void **state)
{
    struct cp_error error = {0};
    int r;

    (void)state;
    private_bus_become(ME, 0);
    r = new_bus(bus.address, &error);
    private_bus_become_root();
    assert_int_equal(r, -EACCES);
    assert_non_null(strstr(error.message, "does not let this user own"));
}

static void test_no_bus(void **state)
{
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(new_bus("unix:path=/tmp/coplace-no-such-bus", &error), -ENOENT);
    assert_non_null(strstr(error.message, "cannot connect to unix:path=/tmp/coplace-no-such-bus"));
    assert_non_null(strstr(error.message, "--bus-address"));
}

/* Answered even if the daemon ends in the middle of it. */
static void test_calibration_ends_with_the_daemon(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);
    struct answers answers = {0};

    (void)state;
    assert_true(sd_bus_call_method_async(connection, NULL, CP_BUS_NAME, CP_BUS_PATH, CP_BUS_MANAGER,
                                         "Calibrate", count_answer, &answers, "") >= 0);
    assert_int_equal(cp_client_call(connection, "Calibrate", 0, NULL, NULL, ""), -EBUSY);
    server_end(&server);
    wait_for_answers(connection, &answers, 1);
    assert_int_equal(answers.n_good + answers.n_limited, 0);
    server_start(&server, &bus);
}

/* The daemon lives on without a bus, quietly: its loop does not spin and emitters do nothing. */
static void lose_bus(bool free_it)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, ME, 0);
    struct answers answers = {0};
    uint64_t before;

    server_pause(&server);
    call_many(connection, 5, &answers);
    wait_for_bus(connection);
    private_bus_end(&bus);
    server_continue(&server);
    if (free_it)
        (void)server_tell(&server, 'f');
    for (unsigned i = 0; i < 1000 && !server_tell(&server, 'D'); i++)
        (void)usleep(10000);
    assert_int_equal(server_tell(&server, 'D'), 1);
    before = server_tell(&server, 'i');
    (void)usleep(100000);
    assert_true(server_tell(&server, 'i') - before <= 4);
    for (const char *letter = "dclmtC"; *letter; letter++)
        (void)server_tell(&server, *letter);
    if (!free_it)
        assert_int_equal(server_tell(&server, 'n'), 0);
}

static void test_bus_goes_away(void **state)
{
    (void)state;
    lose_bus(false);
    server_end(&server);
    private_bus_remove(&bus);
    private_bus_start(&bus);
    server_start(&server, &bus);
    (void)server_tell(&server, 'f');
    lose_bus(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_wait_and_are_bounded),
        cmocka_unit_test(test_all_waiting_calls_are_bounded),
        cmocka_unit_test(test_callers_are_forgotten_when_they_go),
        cmocka_unit_test(test_caller_that_goes_while_waiting),
        cmocka_unit_test(test_many_callers),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_name_is_taken),
        cmocka_unit_test(test_name_is_not_for_everyone),
        cmocka_unit_test(test_no_bus),
        cmocka_unit_test(test_calibration_ends_with_the_daemon),
        cmocka_unit_test(test_bus_goes_away), /* the last: leaves no bus behind */
    };
    int r = private_bus_cannot_run();

    if (r)
        return r;
    private_bus_start(&bus);
    server_start(&server, &bus);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    server_end(&server);
    private_bus_remove(&bus);
    return r;
}
