/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the bus answers: each dictionary has exactly the keys and types that interface.h documents,
 * lists obey their limit, cursor and filter, and wishes reach the manager.
 */
#include "bus-dump.h"
#include "bus-server.h"

static struct private_bus bus;
static struct server_process server;
static sd_bus *root;

struct key {
    const char *name;
    const char *type;
};

static const struct key pair_keys[] = {
    {"task_a", "(ut)"},     {"task_b", "(ut)"},  {"comm_a", "s"},     {"comm_b", "s"},
    {"pid_a", "u"},         {"pid_b", "u"},      {"uid_a", "u"},      {"uid_b", "u"},
    {"relation", "s"},      {"reason", "s"},     {"rate", "d"},       {"balance", "d"},
    {"stacking_gain", "d"}, {"latency_ab", "d"}, {"latency_ba", "d"}, {"tail_ab", "d"},
    {"tail_ba", "d"},       {"run_ab", "d"},     {"run_ba", "d"},     {"slept_ab", "d"},
    {"slept_ba", "d"},      {"levels", "a{sd}"}, {"load_a", "d"},     {"load_b", "d"},
    {"fan_out_a", "d"},     {"fan_out_b", "d"},  {"outcome", "s"},    {"outcome_text", "s"},
    {"decision", "t"},
};

static const struct key decision_keys[] = {
    {"id", "t"},
    {"state", "s"},
    {"why", "s"},
    {"task_a", "(ut)"},
    {"task_b", "(ut)"},
    {"comm_a", "s"},
    {"comm_b", "s"},
    {"pid_a", "u"},
    {"pid_b", "u"},
    {"uid_a", "u"},
    {"uid_b", "u"},
    {"cpus", "s"},
    {"level", "s"},
    {"level_before", "s"},
    {"rule", "s"},
    {"relation", "s"},
    {"policy", "s"},
    {"predicted_gain", "d"},
    {"candidates", "aa{sv}"},
    {"before", "a{sv}"},
    {"after", "a{sv}"},
    {"hot", "t"},
    {"decided", "t"},
    {"applied", "t"},
    {"changed", "t"},
};

static const struct key explanation_keys[] = {
    {"task", "(ut)"},      {"comm", "s"},          {"pid", "u"},        {"uid", "u"},
    {"mask", "s"},         {"former_mask", "s"},   {"summary", "s"},    {"outcome", "s"},
    {"outcome_text", "s"}, {"outcome_until", "t"}, {"pair", "a{sv}"},   {"candidates", "aa{sv}"},
    {"level_now", "s"},    {"decision", "a{sv}"},  {"policy", "a{sv}"}, {"facts", "a{sv}"},
};

static const struct key topology_keys[] = {
    {"generation", "t"}, {"source", "s"},       {"live", "b"},       {"model", "s"},
    {"online", "s"},     {"offline", "s"},      {"isolated", "s"},   {"disallowed", "s"},
    {"cpus", "aa{sv}"},  {"domains", "aa{sv}"}, {"costs", "aa{sv}"},
};

static const struct key cost_keys[] = {
    {"level", "s"},   {"ns", "d"},     {"raw", "d"},      {"spread", "d"},
    {"samples", "t"}, {"source", "s"}, {"doubtful", "b"}, {"present", "b"},
};

static const struct key property_keys[] = {
    {"Version", "s"},
    {"Mode", "s"},
    {"WakeSource", "s"},
    {"WakeSourceDetail", "s"},
    {"TopologyGeneration", "t"},
    {"StartedAt", "t"},
    {"ScoutAttaches", "t"},
    {"ScaleAttaches", "t"},
    {"DroppedHandoffs", "t"},
    {"LostEvents", "t"},
    {"Placements", "u"},
    {"DecisionCounts", "a{su}"},
    {"Policy", "a{sv}"},
    {"Neighbours", "as"},
};

/* Reads the a{sv} at the message's position and holds it against the table, both ways. */
static void assert_keys(sd_bus_message *message, const struct key *keys, size_t n_keys)
{
    size_t n = 0;

    assert_true(sd_bus_message_enter_container(message, 'a', "{sv}") > 0);
    while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
        const char *name;
        const char *type;
        size_t i = 0;

        assert_true(sd_bus_message_read_basic(message, 's', &name) > 0);
        assert_true(sd_bus_message_peek_type(message, NULL, &type) > 0);
        while (i < n_keys && strcmp(keys[i].name, name) != 0)
            i++;
        if (i == n_keys)
            fail_msg("key '%s' is not documented", name);
        if (strcmp(keys[i].type, type) != 0)
            fail_msg("key '%s' has type %s, documented is %s", name, type, keys[i].type);
        assert_true(sd_bus_message_skip(message, "v") >= 0);
        assert_true(sd_bus_message_exit_container(message) >= 0);
        n++;
    }
    assert_true(sd_bus_message_exit_container(message) >= 0);
    assert_int_equal(n, n_keys);
}

static sd_bus_message *reply_to(const char *method, const char *types, ...)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    sd_bus_message *reply = NULL;
    va_list arguments;

    assert_true(sd_bus_message_new_method_call(root, &message, CP_BUS_NAME, CP_BUS_PATH,
                                               CP_BUS_MANAGER, method) >= 0);
    va_start(arguments, types);
    if (types[0])
        assert_true(sd_bus_message_appendv(message, types, arguments) >= 0);
    va_end(arguments);
    assert_true(sd_bus_call(root, message, 0, NULL, &reply) >= 0);
    return reply;
}

static void test_documented_keys(void **state)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *pairs = reply_to("ListPairs", "u", 1u);
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *decisions =
        reply_to("ListDecisions", "a{sv}tu", 0, (uint64_t)0, 1u);
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *explanation =
        reply_to("ExplainTask", "(ut)", 100u, (uint64_t)0);
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *topology = reply_to("GetTopology", "");
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *properties = NULL;

    (void)state;
    assert_true(sd_bus_message_enter_container(pairs, 'a', "a{sv}") > 0);
    assert_keys(pairs, pair_keys, CP_ELEMENTS(pair_keys));
    assert_true(sd_bus_message_enter_container(decisions, 'a', "a{sv}") > 0);
    assert_keys(decisions, decision_keys, CP_ELEMENTS(decision_keys));
    assert_keys(explanation, explanation_keys, CP_ELEMENTS(explanation_keys));
    assert_keys(topology, topology_keys, CP_ELEMENTS(topology_keys));
    assert_int_equal(cp_client_get_properties(root, &properties, NULL), 0);
    assert_keys(properties, property_keys, CP_ELEMENTS(property_keys));
}

static char *text_of(sd_bus_message *reply)
{
    char *text = bus_dump(reply);

    assert_non_null(text);
    sd_bus_message_unref(reply);
    return text;
}

static void test_decision_values(void **state)
{
    _cleanup_free_ char *text = text_of(reply_to("ListDecisions", "a{sv}tu", 0, (uint64_t)3, 1u));

    (void)state;
    assert_non_null(strstr(text, "\"id\":<t>4,\"state\":<s>\"kept\",\"why\":<s>\"for the test\""));
    assert_non_null(strstr(text, "\"cpus\":<s>\"1\""));
    assert_non_null(strstr(text, "\"candidates\":<aa{sv}>[{\"level\":<s>\"cpu\",\"total\":<d>1500,"
                                 "\"gain\":<d>1.5e+07,\"possible\":<b>true}]"));
    assert_non_null(strstr(text, "\"before\":<a{sv}>{\"rate\":<d>10000,\"loss\":<d>0,"));
    assert_non_null(strstr(text, "\"after\":<a{sv}>{}"));
    assert_non_null(strstr(text, "] 4"));
}

/* One task named with bytes that are no text must not spoil the list. */
static void test_names_are_cleaned(void **state)
{
    _cleanup_free_ char *text = text_of(reply_to("ListPairs", "u", 0u));

    (void)state;
    assert_non_null(strstr(text, "\"comm_a\":<s>\"ping\?\?[1m\""));
}

static void test_pairs_are_limited_strongest_first(void **state)
{
    _cleanup_free_ char *one = text_of(reply_to("ListPairs", "u", 1u));
    _cleanup_free_ char *all = text_of(reply_to("ListPairs", "u", UINT32_MAX));

    (void)state;
    assert_null(strstr(one, "},{\"task_a\""));
    assert_non_null(strstr(all, "},{\"task_a\""));
    assert_int_equal(strncmp(one, all, 40), 0);
}

static void test_levels_are_shares(void **state)
{
    _cleanup_free_ char *text = text_of(reply_to("ListPairs", "u", 0u));

    (void)state;
    assert_non_null(strstr(text, "\"levels\":<a{sd}>{\"cpu\":0,\"core\":0,\"llc\":1,"));
}

static void test_topology_values(void **state)
{
    _cleanup_free_ char *text = text_of(reply_to("GetTopology", ""));

    (void)state;
    assert_non_null(strstr(text, "\"generation\":<t>3"));
    assert_non_null(strstr(text, "\"live\":<b>false"));
    assert_non_null(strstr(text, "\"online\":<s>\"0-15\""));
    assert_non_null(strstr(text, "{\"cpu\":<u>15,\"core\":<i>7,\"llc\":<i>3,\"node\":<i>0,"
                                 "\"package\":<i>1,"));
    assert_non_null(strstr(text, "{\"level\":<s>\"package\",\"index\":<u>1,"));
    assert_non_null(strstr(text, "\"costs\":<aa{sv}>[{\"level\":<s>\"cpu\",\"ns\":<d>1000,"));
}

static void test_property_values(void **state)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_free_ char *text = NULL;

    (void)state;
    assert_int_equal(cp_client_get_properties(root, &reply, NULL), 0);
    text = bus_dump(reply);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"Mode\":<s>\"observe\""));
    assert_non_null(strstr(text, "\"WakeSource\":<s>\"none\""));
    assert_non_null(strstr(text, "\"WakeSourceDetail\":<s>\"built without BPF"));
    assert_non_null(strstr(text, "\"TopologyGeneration\":<t>3"));
    assert_non_null(strstr(text, "\"StartedAt\":<t>77"));
    assert_non_null(strstr(text, "\"ScoutAttaches\":<t>1,\"ScaleAttaches\":<t>0,"
                                 "\"DroppedHandoffs\":<t>8,\"LostEvents\":<t>0,"
                                 "\"Placements\":<u>2"));
    assert_non_null(strstr(text, "\"kept\":1"));
    assert_non_null(strstr(text, "\"restored\":1100"));
    assert_non_null(strstr(text, "\"Neighbours\":<as>[\"sched_ext: none\"]"));
    assert_non_null(strstr(text, "\"name\":<s>\"builtin\""));
}

static void test_filters(void **state)
{
    _cleanup_free_ char *failed =
        text_of(reply_to("ListDecisions", "a{sv}tu", 1, "state", "s", "failed", (uint64_t)0, 0u));
    _cleanup_free_ char *of_task =
        text_of(reply_to("ListDecisions", "a{sv}tu", 1, "tid", "u", 101u, (uint64_t)0, 0u));
    _cleanup_free_ char *both = text_of(reply_to("ListDecisions", "a{sv}tu", 2, "tid", "u", 101u,
                                                 "state", "s", "kept", (uint64_t)0, 0u));
    _cleanup_free_ char *none =
        text_of(reply_to("ListDecisions", "a{sv}tu", 1, "tid", "u", 4u, (uint64_t)17, 0u));

    (void)state;
    assert_int_equal(strncmp(failed, "[{\"id\":<t>3,", 12), 0);
    assert_null(strstr(failed, "},{\"id\""));
    assert_int_equal(strncmp(of_task, "[{\"id\":<t>1,", 12), 0);
    assert_non_null(strstr(of_task, "},{\"id\":<t>4,"));
    assert_int_equal(strncmp(both, "[{\"id\":<t>4,", 12), 0);
    assert_string_equal(none, "[] 17");
}

static void test_wrong_filters(void **state)
{
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(cp_client_call(root, "ListDecisions", 0, NULL, &error, "a{sv}tu", 1, "pid",
                                    "u", 4u, (uint64_t)0, 0u),
                     -EINVAL);
    assert_string_equal(error.message,
                        "there is no filter key 'pid'; the keys are state (s) and tid (u)");
    assert_int_equal(cp_client_call(root, "ListDecisions", 0, NULL, &error, "a{sv}tu", 1, "tid",
                                    "s", "4", (uint64_t)0, 0u),
                     -EINVAL);
    assert_string_equal(error.message, "filter key 'tid' takes a number (u), not type 's'");
    assert_int_equal(cp_client_call(root, "ListDecisions", 0, NULL, &error, "a{sv}tu", 1, "state",
                                    "u", 4u, (uint64_t)0, 0u),
                     -EINVAL);
    assert_string_equal(error.message, "filter key 'state' takes a string (s), not type 'u'");
    assert_int_equal(cp_client_call(root, "ListDecisions", 0, NULL, &error, "a{sv}tu", 1, "state",
                                    "s", "good", (uint64_t)0, 0u),
                     -EINVAL);
    assert_non_null(strstr(error.message, "there is no state 'good'; the states are proposed"));
}

/* Reading on from each cursor gives every decision once, in rising order, and ends. */
static void test_cursor_walks_everything(void **state)
{
    uint64_t cursor = 0;
    size_t n_all = 0;
    size_t n_calls = 0;

    (void)state;
    for (;;) {
        _cleanup_free_ char *text = text_of(reply_to("ListDecisions", "a{sv}tu", 0, cursor, 300u));
        uint64_t last = cursor;
        size_t n = 0;
        uint64_t next;

        for (char *at = text; (at = strstr(at, "{\"id\":<t>")); n++) {
            uint64_t id;

            at += strlen("{\"id\":<t>");
            id = strtoull(at, NULL, 10);
            assert_true(id > last);
            last = id;
        }
        next = strtoull(strrchr(text, ' ') + 1, NULL, 10);
        assert_true(next == last);
        n_all += n;
        n_calls++;
        if (n == 0)
            break;
        assert_true(n <= 300);
        cursor = next;
    }
    assert_int_equal(n_all, 4 + N_ROOT_DECISIONS);
    assert_int_equal(n_calls, 5);
}

static size_t count_decisions(uint32_t limit)
{
    _cleanup_free_ char *text =
        text_of(reply_to("ListDecisions", "a{sv}tu", 0, (uint64_t)0, limit));
    size_t n = 0;

    for (char *at = text; (at = strstr(at, "{\"id\":<t>")); at++)
        n++;
    return n;
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(count_decisions(0), CP_BUS_LIST_LIMIT);
    assert_int_equal(count_decisions(UINT32_MAX), CP_BUS_LIST_LIMIT);
    assert_int_equal(count_decisions(999), 999);
}

static void test_undo(void **state)
{
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(cp_client_call(root, "Undo", 0, NULL, &error, "t", (uint64_t)2), 0);
    assert_int_equal(cp_client_call(root, "Undo", 0, NULL, &error, "t", (uint64_t)2), -EALREADY);
    assert_non_null(strstr(error.message, "not in effect"));
    assert_int_equal(cp_client_call(root, "Undo", 0, NULL, &error, "t", (uint64_t)999), -ENOENT);
    assert_non_null(strstr(error.message, "no such decision"));
}

/* The manager's own words reach the caller, even with a byte in them that is no text. */
static void test_failure_has_its_reason(void **state)
{
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(cp_client_call(root, "UndoAll", 0, NULL, &error, ""), -EIO);
    assert_string_equal(error.message, "the disk with ? is full");
}

static void test_allow(void **state)
{
    _cleanup_free_ char *all = text_of(reply_to("Allow", "(ut)", 0u, (uint64_t)0));
    _cleanup_free_ char *one = text_of(reply_to("Allow", "(ut)", 100u, (uint64_t)1000));
    struct cp_error error = {0};

    (void)state;
    assert_string_equal(all, "5");
    assert_string_equal(one, "1");
    assert_int_equal(
        cp_client_call(root, "Allow", 0, NULL, &error, "(ut)", UINT32_MAX, (uint64_t)0), -ESRCH);
}

static void test_set_mode(void **state)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_free_ char *text = NULL;
    struct cp_error error = {0};

    (void)state;
    assert_int_equal(cp_client_call(root, "SetMode", 0, NULL, &error, "sb", "enforced", 0),
                     -EINVAL);
    assert_string_equal(error.message,
                        "there is no mode 'enforced'; the modes are off, observe and enforce");
    assert_int_equal(cp_client_call(root, "SetMode", 0, NULL, &error, "sb", "enforce", 1), 0);
    assert_int_equal(server_tell(&server, 'P'), 1);
    assert_int_equal(cp_client_get_properties(root, &reply, NULL), 0);
    text = bus_dump(reply);
    assert_non_null(strstr(text, "\"Mode\":<s>\"enforce\""));
}

static void test_explain_needs_a_task(void **state)
{
    const struct {
        uint32_t tid;
        uint64_t start;
    } absent[] = {{0, 0}, {UINT32_MAX, 0}, {100, 7}, {99, 0}};

    (void)state;
    for (size_t i = 0; i < CP_ELEMENTS(absent); i++)
        assert_int_equal(cp_client_call(root, "ExplainTask", 0, NULL, NULL, "(ut)", absent[i].tid,
                                        absent[i].start),
                         -ESRCH);
}

static int keep_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    (void)error;
    *(sd_bus_message **)userdata = sd_bus_message_ref(reply);
    return 0;
}

static void call_calibrate(sd_bus_message **reply)
{
    assert_true(sd_bus_call_method_async(root, NULL, CP_BUS_NAME, CP_BUS_PATH, CP_BUS_MANAGER,
                                         "Calibrate", keep_reply, reply, "") >= 0);
}

static void wait_for(sd_bus_message **reply)
{
    while (!*reply) {
        int r = sd_bus_process(root, NULL);

        assert_true(r >= 0);
        if (r == 0)
            assert_true(sd_bus_wait(root, 20000000) > 0);
    }
}

static void test_calibrate(void **state)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *measured = NULL;
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *failed = NULL;
    struct cp_error error = {0};

    (void)state;
    call_calibrate(&measured);
    /* Calls are served in order: when this one is answered, the first is being kept. */
    assert_int_equal(cp_client_call(root, "Calibrate", 0, NULL, &error, ""), -EBUSY);
    assert_null(measured);
    (void)server_tell(&server, 'C');
    wait_for(&measured);
    assert_true(sd_bus_message_enter_container(measured, 'a', "a{sv}") > 0);
    assert_keys(measured, cost_keys, CP_ELEMENTS(cost_keys));
    call_calibrate(&failed);
    assert_int_equal(cp_client_call(root, "Calibrate", 0, NULL, &error, ""), -EBUSY);
    (void)server_tell(&server, 'F');
    wait_for(&failed);
    assert_true(sd_bus_message_is_method_error(failed, CP_BUS_ERROR_FAILED) > 0);
    assert_string_equal(sd_bus_message_get_error(failed)->message, "only one CPU is usable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documented_keys),
        cmocka_unit_test(test_decision_values),
        cmocka_unit_test(test_names_are_cleaned),
        cmocka_unit_test(test_pairs_are_limited_strongest_first),
        cmocka_unit_test(test_levels_are_shares),
        cmocka_unit_test(test_topology_values),
        cmocka_unit_test(test_property_values),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_wrong_filters),
        cmocka_unit_test(test_cursor_walks_everything),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_undo),
        cmocka_unit_test(test_failure_has_its_reason),
        cmocka_unit_test(test_allow),
        cmocka_unit_test(test_set_mode),
        cmocka_unit_test(test_explain_needs_a_task),
        cmocka_unit_test(test_calibrate),
    };
    int r = private_bus_cannot_run();

    if (r)
        return r;
    private_bus_start(&bus);
    server_start(&server, &bus);
    root = private_bus_connect(&bus, 0, 0);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    sd_bus_flush_close_unref(root);
    server_end(&server);
    private_bus_remove(&bus);
    return r;
}
