/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's side for the tests of the bus: a process that serves the real bus/ over real tables
 * (a synthetic machine, pairs from a sample, a ledger), with a small manager that carries wishes
 * out on them. The test tells it by single letters what to do next.
 *
 * Owners: tasks 100 and 101 belong to ME, 200 and 201 to OTHER, 300 to ME and its partner 301 to
 * OTHER; decisions 1 to 4 are about these pairs, those above 1000 about root's tasks.
 */
#pragma once

#include "base/cleanup.h"
#include "base/clock.h"
#include "bus/bus-internal.h"
#include "bus/interface.h"
#include "private-bus.h"

#include <sys/socket.h>
#include <systemd/sd-event.h>

/* dbus-daemon lets in only users that the system knows: nobody, daemon and bin of every Debian. */
#define ME 65534u
#define OTHER 1u
#define NEITHER 2u
#define N_ROOT_DECISIONS 1100u

static const struct {
    pid_t tid;
    uid_t uid;
    const char *comm;
} server_tasks[] = {
    {100, ME, "ping\xff\x1b[1m"}, {101, ME, "pong"},   {200, OTHER, "db"},
    {201, OTHER, "db-client"},    {300, ME, "reader"}, {301, OTHER, "writer"},
};

#define N_SERVER_TASKS (sizeof(server_tasks) / sizeof(server_tasks[0]))

struct server {
    sd_event *event;
    struct cp_bus *bus;
    int control; /* socket: a letter in, a number out */
    bool free_when_disconnected;
    bool was_disconnected;
    bool calibrating;
    bool persisted;
    enum cp_mode mode;
    struct cp_machine *machine;
    struct cp_costs costs;
    struct cp_policy policy;
    struct cp_wake_source *wake;
    struct cp_pairs *pairs;
    struct cp_ledger *ledger;
};

static inline struct cp_task_id server_task(pid_t tid)
{
    return (struct cp_task_id){.tid = tid, .start_ticks = (uint64_t)tid * 10};
}

static inline struct cp_wake_edge server_edge(pid_t waker, pid_t wakee, uint64_t handoffs)
{
    return (struct cp_wake_edge){
        .waker = server_task(waker),
        .wakee = server_task(wakee),
        .handoffs = handoffs,
        .slept = handoffs,
        .tail_ns = handoffs * 500,
        .n_tail = handoffs,
        .latency_ns = handoffs * 4000,
        .n_latency = handoffs,
        .run_ns = handoffs * 700,
        .n_run = handoffs,
        .level = {[CP_LEVEL_LLC] = handoffs},
    };
}

static inline void server_feed(struct server *server)
{
    struct cp_wake_edge edges[] = {
        server_edge(100, 101, 5000), server_edge(101, 100, 5000), server_edge(200, 201, 9000),
        server_edge(201, 200, 9000), server_edge(300, 301, 7000), server_edge(301, 300, 7000),
    };
    struct cp_wake_task tasks[N_SERVER_TASKS] = {0};
    struct cp_wake_sample sample = {
        .begin_ns = 1 * CP_NS_PER_S,
        .end_ns = 2 * CP_NS_PER_S,
        .n_edges = CP_ELEMENTS(edges),
        .edges = edges,
        .n_tasks = N_SERVER_TASKS,
        .tasks = tasks,
    };

    for (size_t i = 0; i < N_SERVER_TASKS; i++) {
        tasks[i] = (struct cp_wake_task){.id = server_task(server_tasks[i].tid),
                                         .tgid = server_tasks[i].tid,
                                         .uid = server_tasks[i].uid,
                                         .run_ns = 10000000};
        (void)snprintf(tasks[i].comm, sizeof(tasks[i].comm), "%s", server_tasks[i].comm);
    }
    assert_int_equal(cp_pairs_feed(server->pairs, &sample), 0);
}

static inline void server_decide(struct server *server, uint64_t id, enum cp_decision_state state,
                                 pid_t a, pid_t b, uid_t uid_a, uid_t uid_b)
{
    struct cp_decision decision = {
        .id = id,
        .state = state,
        .tasks = {server_task(a), server_task(b)},
        .tgid = {a, b},
        .uid = {uid_a, uid_b},
        .comm = {"one", "two"},
        .level = CP_LEVEL_CPU,
        .level_before = CP_LEVEL_LLC,
        .rule = CP_RULE_HANDOFF,
        .relation = CP_RELATION_SERIAL,
        .policy = "builtin",
        .predicted_gain = 1.5e7,
        .n_candidates = 1,
        .candidates = {{.level = CP_LEVEL_CPU, .total_ns = 1500, .gain = 1.5e7, .possible = true}},
        .before = {.begin_ns = 1, .end_ns = 2, .rate_hz = 10000, .handoffs = 10000},
        .decided_ns = 5,
        .applied_ns = 6,
        .changed_ns = 7,
        .why = "for the test",
    };

    assert_int_equal(cp_cpumask_set(&decision.target, (struct cp_cpu){1}), 0);
    assert_non_null(cp_ledger_add(server->ledger, &decision));
}

static inline void server_build(struct server *server)
{
    struct cp_machine_source source = {.kind = CP_MACHINE_SYNTHETIC,
                                       .text = "package:2 l3:2 core:2 pu:2"};
    struct cp_pairs_config config;
    struct cp_error error = {0};

    assert_int_equal(cp_machine_load(&source, 3, &server->machine, &error), 0);
    cp_costs_init_default(&server->costs);
    cp_policy_init_builtin(&server->policy);
    server->mode = CP_MODE_OBSERVE;
    server->wake = cp_wake_none_new("built without BPF");
    cp_pairs_config_init_default(&config);
    server->pairs = cp_pairs_new(&config);
    server->ledger = cp_ledger_new(4096, CP_NS_PER_S);
    assert_true(server->wake && server->pairs && server->ledger);
    server->wake->counters = (struct cp_wake_counters){.n_scout_attaches = 1, .n_dropped = 8};
    server_feed(server);
    server_decide(server, 1, CP_DECISION_UNDONE, 100, 101, ME, ME);
    server_decide(server, 2, CP_DECISION_APPLIED, 200, 201, OTHER, OTHER);
    server_decide(server, 3, CP_DECISION_FAILED, 300, 301, ME, OTHER);
    server_decide(server, 4, CP_DECISION_KEPT, 100, 101, ME, ME);
    for (unsigned i = 0; i < N_ROOT_DECISIONS; i++)
        server_decide(server, 1001 + i, CP_DECISION_RESTORED, (pid_t)(5000 + 2 * i),
                      (pid_t)(5001 + 2 * i), 0, 0);
}

static inline void server_view(void *userdata, struct cp_bus_view *ret_view)
{
    static const char *const neighbours[] = {"sched_ext: none", NULL};
    struct server *server = userdata;

    *ret_view = (struct cp_bus_view){
        .version = COPLACE_VERSION,
        .mode = server->mode,
        .started_ns = 77,
        .machine = server->machine,
        .costs = &server->costs,
        .policy = &server->policy,
        .wake = server->wake,
        .pairs = server->pairs,
        .ledger = server->ledger,
        .n_placements = 2,
        .neighbours = neighbours,
    };
}

static inline int server_explain(void *userdata, struct cp_task_id task,
                                 struct cp_bus_explanation *ret)
{
    struct server *server = userdata;
    const struct cp_pair *pair;
    size_t i = 0;

    while (i < N_SERVER_TASKS && server_tasks[i].tid != task.tid)
        i++;
    if (i == N_SERVER_TASKS ||
        (task.start_ticks && task.start_ticks != server_task(task.tid).start_ticks))
        return CP_BUS_NO_SUCH_TASK;
    task = server_task(task.tid);
    ret->facts.id = task;
    ret->facts.tgid = task.tid;
    ret->facts.uid = server_tasks[i].uid;
    (void)snprintf(ret->facts.comm, sizeof(ret->facts.comm), "%s", server_tasks[i].comm);
    (void)snprintf(ret->summary, sizeof(ret->summary), "Its partner is another task.");
    (void)snprintf(ret->summary_alone, sizeof(ret->summary_alone), "No partner was seen.");
    if (cp_cpumask_set(&ret->facts.allowed, (struct cp_cpu){1}) < 0 ||
        cp_cpumask_set_range(&ret->facts.cpuset, (struct cp_cpu){0}, (struct cp_cpu){15}) < 0)
        return -ENOMEM;
    ret->decision = cp_ledger_find_task(server->ledger, task);
    pair = cp_pairs_strongest(server->pairs, task);
    if (!pair)
        return 0;
    ret->have_pair = true;
    ret->pair = *pair;
    ret->finding.outcome = CP_OUTCOME_STAND;
    ret->finding.n_candidates = 1;
    ret->finding.candidates[0].level = CP_LEVEL_LLC;
    cp_pair_judge(server->pairs, pair, &server->policy, &server->costs, &ret->finding.verdict);
    return 0;
}

static inline void server_pair_outcome(void *userdata, const struct cp_pair *pair,
                                       enum cp_plan_outcome *ret_outcome,
                                       const struct cp_decision **ret_decision)
{
    struct server *server = userdata;

    *ret_outcome = CP_OUTCOME_STAND;
    *ret_decision = cp_ledger_find_task(server->ledger, pair->a);
}

static inline int server_undo(void *userdata, uint64_t id, struct cp_error *error)
{
    struct server *server = userdata;
    struct cp_decision *decision = cp_ledger_find(server->ledger, id);

    (void)error;
    if (!decision)
        return CP_BUS_NO_SUCH_DECISION;
    if (!cp_decision_state_is_standing(decision->state))
        return CP_BUS_NOT_IN_EFFECT;
    cp_ledger_set_state(server->ledger, decision, CP_DECISION_UNDONE, 9, "by hand");
    cp_bus_emit_decision_changed(server->bus, id, CP_DECISION_UNDONE);
    return 0;
}

static inline int server_undo_all(void *userdata, unsigned *ret_undone, struct cp_error *error)
{
    (void)userdata;
    *ret_undone = 0;
    return cp_error_set(error, EIO, "the disk with \xff is full");
}

static inline int server_allow(void *userdata, struct cp_task_id task, unsigned *ret_lifted)
{
    (void)userdata;
    *ret_lifted = task.tid == 0 ? 5 : 1;
    return 0;
}

static inline int server_set_mode(void *userdata, enum cp_mode mode, bool persist,
                                  struct cp_error *error)
{
    struct server *server = userdata;

    (void)error;
    server->mode = mode;
    server->persisted = persist;
    cp_bus_emit_mode_changed(server->bus);
    return 0;
}

static inline int server_calibrate(void *userdata, struct cp_error *error)
{
    struct server *server = userdata;

    (void)error;
    if (server->calibrating)
        return CP_BUS_BUSY;
    server->calibrating = true;
    return 0;
}

static inline void server_disconnected(void *userdata)
{
    struct server *server = userdata;

    server->was_disconnected = true;
    if (server->free_when_disconnected)
        server->bus = cp_bus_free(server->bus);
}

static const struct cp_bus_ops server_ops = {
    .view = server_view,
    .explain = server_explain,
    .pair_outcome = server_pair_outcome,
    .undo = server_undo,
    .undo_all = server_undo_all,
    .allow = server_allow,
    .set_mode = server_set_mode,
    .calibrate = server_calibrate,
    .disconnected = server_disconnected,
};

static inline void server_calibrated(struct server *server, int result)
{
    static const struct cp_error error = {.code = ENODATA, .message = "only one CPU is usable"};

    server->calibrating = false;
    cp_bus_calibrated(server->bus, result, result ? &error : NULL);
}

/* What each letter does. Every letter is answered by one number. */
static inline uint64_t server_obey(struct server *server, char letter)
{
    uint64_t number = 0;

    switch (letter) {
    case 'd':
        cp_bus_emit_decision_made(server->bus, 7, CP_DECISION_APPLIED);
        break;
    case 'c':
        cp_bus_emit_decision_changed(server->bus, 7, CP_DECISION_KEPT);
        break;
    case 'l':
        cp_bus_emit_samples_lost(server->bus, 9);
        break;
    case 'm':
        cp_bus_emit_mode_changed(server->bus);
        break;
    case 't':
        cp_bus_emit_topology_changed(server->bus);
        break;
    case 'C':
        server_calibrated(server, 0);
        break;
    case 'F':
        server_calibrated(server, -ENODATA);
        break;
    case 'n':
        number = server->bus->callers.n_callers;
        break;
    case 'p':
        number = server->bus->callers.n_pending;
        break;
    case 'P':
        number = server->persisted;
        break;
    case 'f':
        server->free_when_disconnected = true;
        break;
    case 'D':
        number = server->was_disconnected;
        break;
    case 'i':
        (void)sd_event_get_iteration(server->event, &number);
        break;
    default:
        break;
    }
    return number;
}

static inline int server_on_letter(sd_event_source *source, int fd, uint32_t revents,
                                   void *userdata)
{
    struct server *server = userdata;
    uint64_t number;
    char letter;

    (void)source;
    (void)revents;
    if (read(fd, &letter, 1) != 1)
        return sd_event_exit(server->event, 0);
    number = server_obey(server, letter);
    return write(fd, &number, sizeof(number)) == sizeof(number) ? 0 : -EIO;
}

static inline int server_main(const char *address, int control)
{
    struct server server = {.control = control};
    struct cp_error error = {0};
    int r;

    server_build(&server);
    if (sd_event_new(&server.event) < 0 ||
        sd_event_add_io(server.event, NULL, control, EPOLLIN, server_on_letter, &server) < 0)
        return 1;
    r = cp_bus_new(server.event, -10, address, &server_ops, &server, &server.bus, &error);
    if (r < 0) {
        (void)fprintf(stderr, "server: %s\n", error.message);
        return 1;
    }
    if (write(control, &(uint64_t){0}, sizeof(uint64_t)) != sizeof(uint64_t))
        return 1;
    r = sd_event_loop(server.event);
    cp_bus_free(server.bus);
    cp_ledger_free(server.ledger);
    cp_pairs_free(server.pairs);
    cp_wake_source_free(server.wake);
    cp_machine_unref(server.machine);
    sd_event_unref(server.event);
    return r < 0;
}

/* The test's end. */
struct server_process {
    pid_t pid;
    int control;
};

static inline uint64_t server_answer(const struct server_process *process)
{
    uint64_t number;

    assert_int_equal(read(process->control, &number, sizeof(number)), sizeof(number));
    return number;
}

static inline uint64_t server_tell(const struct server_process *process, char letter)
{
    assert_int_equal(write(process->control, &letter, 1), 1);
    return server_answer(process);
}

static inline void server_start(struct server_process *process, const struct private_bus *bus)
{
    int sockets[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    (void)fflush(NULL);
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        close(sockets[0]);
        exit(server_main(bus->address, sockets[1]));
    }
    close(sockets[1]);
    process->control = sockets[0];
    (void)server_answer(process);
}

/* Ends it in good order; a leak under AddressSanitizer shows in its exit status. */
static inline void server_end(struct server_process *process)
{
    int status;

    close(process->control);
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void server_pause(const struct server_process *process)
{
    int status;

    assert_int_equal(kill(process->pid, SIGSTOP), 0);
    assert_int_equal(waitpid(process->pid, &status, WUNTRACED), process->pid);
    assert_true(WIFSTOPPED(status));
}

static inline void server_continue(const struct server_process *process)
{
    assert_int_equal(kill(process->pid, SIGCONT), 0);
}
