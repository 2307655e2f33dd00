/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may do what over the bus. Walks every member that introspection shows as somebody without
 * rights: a member that this table does not know fails, so that none is added without a thought
 * about who may use it.
 */
#include "bus-dump.h"
#include "bus-server.h"

#include <sched.h>
#include <sys/mount.h>

#define GROUP_GID 4242u

static struct private_bus bus;
static struct server_process server;

enum access {
    OWN,        /* anyone, for what is theirs */
    PRIVILEGED, /* root and the group */
    HARMLESS,   /* anyone, tells of no task */
};

static const struct {
    const char *name;
    enum access access;
    const char *in; /* types of the arguments that walk() appends: zeros and empty ones */
} members[] = {
    {"ListPairs", OWN, "u"},       {"ListDecisions", OWN, "a{sv}tu"}, {"ExplainTask", OWN, "(ut)"},
    {"GetTopology", HARMLESS, ""}, {"Undo", PRIVILEGED, "t"},         {"UndoAll", PRIVILEGED, ""},
    {"Allow", PRIVILEGED, "(ut)"}, {"SetMode", PRIVILEGED, "sb"},     {"Calibrate", PRIVILEGED, ""},
};

static const char *const properties[] = {
    "Version",    "Mode",           "WakeSource",    "WakeSourceDetail", "TopologyGeneration",
    "StartedAt",  "ScoutAttaches",  "ScaleAttaches", "DroppedHandoffs",  "LostEvents",
    "Placements", "DecisionCounts", "Policy",        "Neighbours",
};

static int call_with_zeros(sd_bus *connection, const char *name, const char *in,
                           struct cp_error *error)
{
    if (strcmp(in, "u") == 0)
        return cp_client_call(connection, name, 0, NULL, error, in, 0u);
    if (strcmp(in, "t") == 0)
        return cp_client_call(connection, name, 0, NULL, error, in, (uint64_t)0);
    if (strcmp(in, "(ut)") == 0)
        return cp_client_call(connection, name, 0, NULL, error, in, 0u, (uint64_t)0);
    if (strcmp(in, "sb") == 0)
        return cp_client_call(connection, name, 0, NULL, error, in, "off", 0);
    if (strcmp(in, "a{sv}tu") == 0)
        return cp_client_call(connection, name, 0, NULL, error, in, 0, (uint64_t)0, 0u);
    assert_string_equal(in, "");
    return cp_client_call(connection, name, 0, NULL, error, in);
}

static void walk_method(sd_bus *connection, const char *name)
{
    struct cp_error error = {0};
    size_t i = 0;
    int r;

    while (i < CP_ELEMENTS(members) && strcmp(members[i].name, name) != 0)
        i++;
    if (i == CP_ELEMENTS(members))
        fail_msg("method %s is not in the table of this test: who may call it?", name);
    r = call_with_zeros(connection, name, members[i].in, &error);
    if (members[i].access == PRIVILEGED) {
        assert_int_equal(r, -EACCES);
        assert_non_null(strstr(error.message, "root and members of group coplace"));
    } else if (strcmp(name, "ExplainTask") == 0) {
        assert_int_equal(r, -ESRCH);
    } else {
        assert_int_equal(r, 0);
    }
}

static void walk_property(sd_bus *connection, const char *name)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    size_t i = 0;

    while (i < CP_ELEMENTS(properties) && strcmp(properties[i], name) != 0)
        i++;
    if (i == CP_ELEMENTS(properties))
        fail_msg("property %s is not in the table of this test: may anyone read it?", name);
    assert_true(sd_bus_call_method(connection, CP_BUS_NAME, CP_BUS_PATH,
                                   "org.freedesktop.DBus.Properties", "Get", &error, &reply, "ss",
                                   CP_BUS_MANAGER, name) >= 0);
    /* No one may write any of them, not even root. */
    assert_true(sd_bus_set_property(connection, CP_BUS_NAME, CP_BUS_PATH, CP_BUS_MANAGER, name,
                                    &error, "s", "enforce") < 0);
}

/* Calls visit for each <element name="…"> of the Manager interface; gives how many there were. */
static size_t walk(sd_bus *connection, char *xml, const char *element,
                   void (*visit)(sd_bus *connection, const char *name))
{
    char opening[32];
    char *at = strstr(xml, "<interface name=\"" CP_BUS_MANAGER "\">");
    char *end;
    size_t n = 0;

    assert_non_null(at);
    end = strstr(at, "</interface>");
    assert_non_null(end);
    (void)snprintf(opening, sizeof(opening), "<%s name=\"", element);
    while ((at = strstr(at, opening)) && at < end) {
        char name[64] = "";

        at += strlen(opening);
        assert_true(strcspn(at, "\"") < sizeof(name));
        memcpy(name, at, strcspn(at, "\""));
        visit(connection, name);
        n++;
    }
    return n;
}

static void test_every_member_as_somebody_else(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, ME, 0);
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_free_ char *xml = NULL;
    const char *text;

    (void)state;
    assert_true(sd_bus_call_method(connection, CP_BUS_NAME, CP_BUS_PATH,
                                   "org.freedesktop.DBus.Introspectable", "Introspect", NULL,
                                   &reply, "") >= 0);
    assert_true(sd_bus_message_read_basic(reply, 's', &text) >= 0);
    xml = strdup(text);
    assert_non_null(xml);
    assert_int_equal(walk(connection, xml, "method", walk_method), CP_ELEMENTS(members));
    assert_int_equal(walk(connection, xml, "property", walk_property), CP_ELEMENTS(properties));
    /* The arguments have their names. */
    assert_non_null(strstr(xml, "<arg type=\"t\" name=\"next_cursor\" direction=\"out\"/>"));
    assert_non_null(strstr(xml, "<arg type=\"a{sv}\" name=\"filter\" direction=\"in\"/>"));
}

static void assert_privileged(sd_bus *connection, int expected)
{
    struct cp_error error = {0};

    assert_int_equal(cp_client_call(connection, "Allow", 0, NULL, &error, "(ut)", 0u, (uint64_t)0),
                     expected);
}

static void test_root_is_privileged(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *connection = private_bus_connect(&bus, 0, 0);

    (void)state;
    assert_privileged(connection, 0);
}

static void test_group_is_privileged(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *member = private_bus_connect(&bus, ME, GROUP_GID);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *stranger =
        private_bus_connect(&bus, ME, GROUP_GID + 1);

    (void)state;
    assert_privileged(member, 0);
    assert_privileged(stranger, -EACCES);
}

/* The caller's rights are those of its connection: a second one of another user gains nothing. */
static void test_two_users_at_once(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *root = private_bus_connect(&bus, 0, 0);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *other = private_bus_connect(&bus, OTHER, 0);

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_privileged(root, 0);
        assert_privileged(other, -EACCES);
    }
}

static char *dump_call(sd_bus *connection, const char *method, const char *types, ...)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    char *text;
    va_list arguments;

    va_start(arguments, types);
    assert_true(sd_bus_message_new_method_call(connection, &message, CP_BUS_NAME, CP_BUS_PATH,
                                               CP_BUS_MANAGER, method) >= 0);
    assert_true(sd_bus_message_appendv(message, types, arguments) >= 0);
    va_end(arguments);
    assert_true(sd_bus_call(connection, message, 0, NULL, &reply) >= 0);
    text = bus_dump(reply);
    assert_non_null(text);
    return text;
}

static void test_lists_hold_what_is_the_callers(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *me = private_bus_connect(&bus, ME, 0);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *root = private_bus_connect(&bus, 0, 0);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *neither = private_bus_connect(&bus, NEITHER, 0);
    _cleanup_free_ char *mine = dump_call(me, "ListPairs", "u", 0u);
    _cleanup_free_ char *all = dump_call(root, "ListPairs", "u", 0u);
    _cleanup_free_ char *none = dump_call(neither, "ListPairs", "u", 0u);
    _cleanup_free_ char *decisions = dump_call(me, "ListDecisions", "a{sv}tu", 0, (uint64_t)0, 0u);

    (void)state;
    assert_non_null(strstr(all, "\"task_a\":<(ut)>(200,2000)"));
    assert_non_null(strstr(all, "\"task_a\":<(ut)>(300,3000)"));
    assert_non_null(strstr(mine, "\"task_a\":<(ut)>(100,1000)"));
    assert_null(strstr(mine, "(200,"));
    assert_null(strstr(mine, "(300,")); /* half of the pair is another's */
    assert_string_equal(none, "[]");
    assert_non_null(strstr(decisions, "\"id\":<t>1,"));
    assert_non_null(strstr(decisions, "\"id\":<t>4,"));
    assert_null(strstr(decisions, "\"id\":<t>2,"));
    assert_null(strstr(decisions, "\"id\":<t>3,"));
    /* The cursor does not tell that there are more. */
    assert_non_null(strstr(decisions, "}] 4"));
}

static void test_explain_hides_others(void **state)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *me = private_bus_connect(&bus, ME, 0);
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *root = private_bus_connect(&bus, 0, 0);
    _cleanup_free_ char *mine = dump_call(me, "ExplainTask", "(ut)", 100u, (uint64_t)0);
    _cleanup_free_ char *half = dump_call(me, "ExplainTask", "(ut)", 300u, (uint64_t)3000);
    _cleanup_free_ char *full = dump_call(root, "ExplainTask", "(ut)", 300u, (uint64_t)3000);
    struct cp_error foreign = {0};
    struct cp_error absent = {0};

    (void)state;
    assert_non_null(strstr(mine, "\"summary\":<s>\"Its partner is another task.\""));
    assert_non_null(strstr(mine, "\"task_b\":<(ut)>(101,1010)"));
    assert_non_null(strstr(full, "(301,3010)"));
    assert_null(strstr(half, "301"));
    assert_null(strstr(half, "writer"));
    assert_non_null(strstr(half, "\"summary\":<s>\"No partner was seen.\""));
    assert_non_null(strstr(half, "\"outcome\":<s>\"\""));
    assert_non_null(strstr(half, "\"pair\":<a{sv}>{}"));
    assert_non_null(strstr(half, "\"decision\":<a{sv}>{}"));
    assert_non_null(strstr(half, "\"candidates\":<aa{sv}>[]"));
    /* Another's task and no task at all look the same but for the number asked for. */
    assert_int_equal(
        cp_client_call(me, "ExplainTask", 0, NULL, &foreign, "(ut)", 200u, (uint64_t)0), -ESRCH);
    assert_int_equal(cp_client_call(me, "ExplainTask", 0, NULL, &absent, "(ut)", 299u, (uint64_t)0),
                     -ESRCH);
    assert_string_equal(foreign.message, "there is no task 200");
    assert_string_equal(absent.message, "there is no task 299");
}

/* Gives this process and the server to come a group file of their own. */
static bool make_group(void)
{
    char path[] = "/tmp/coplace-test-group-XXXXXX";
    bool made;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_true(dprintf(fd, "root:x:0:\ncoplace:x:%u:\n", GROUP_GID) > 0);
    assert_int_equal(fchmod(fd, 0644), 0);
    close(fd);
    made = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(path, "/etc/group", NULL, MS_BIND, NULL) == 0;
    (void)unlink(path);
    return made;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_as_somebody_else),
        cmocka_unit_test(test_root_is_privileged),
        cmocka_unit_test(test_group_is_privileged),
        cmocka_unit_test(test_two_users_at_once),
        cmocka_unit_test(test_lists_hold_what_is_the_callers),
        cmocka_unit_test(test_explain_hides_others),
    };
    int r = private_bus_cannot_run();

    if (r)
        return r;
    if (!make_group()) {
        puts("skipped: no mount namespace for a group file with group coplace");
        return 77;
    }
    private_bus_start(&bus);
    server_start(&server, &bus);
    r = cmocka_run_group_tests(tests, NULL, NULL);
    server_end(&server);
    private_bus_remove(&bus);
    return r;
}
