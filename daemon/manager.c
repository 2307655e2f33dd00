/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Life of the daemon: opens every room, wires event sources, closes in the reverse order.
 *
 * The only wiring between rooms. Event priorities: signals, bus, timers, then wake data, so that a
 * storm of wake-ups cannot starve an undo.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "machine/hotplug.h"
#include "manager-internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <systemd/sd-daemon.h>

enum {
    PRIORITY_SIGNAL = -100,
    PRIORITY_BUS = -50,
    PRIORITY_TIMER = 0,
    PRIORITY_WAKE = 50,
};

#define TIMER_ACCURACY_US 1000u

enum cp_mode cp_manager_mode(const struct cp_manager *manager)
{
    enum cp_mode mode = manager->policy.mode;

    if (mode == CP_MODE_ENFORCE && (manager->neighbours.sched_ext || !manager->journal))
        mode = CP_MODE_OBSERVE;
    return mode;
}

void cp_manager_notify_status(struct cp_manager *manager)
{
    size_t standing = cp_ledger_count(manager->ledger, CP_DECISION_APPLIED) +
                      cp_ledger_count(manager->ledger, CP_DECISION_KEPT);

    (void)sd_notifyf(0, "STATUS=%s, wake source %s, %zu placed, %zu kept, %zu undone, %zu proposed",
                     cp_mode_to_string(cp_manager_mode(manager)), manager->wake->ops->name,
                     standing, cp_ledger_count(manager->ledger, CP_DECISION_KEPT),
                     cp_ledger_count(manager->ledger, CP_DECISION_UNDONE),
                     cp_ledger_count(manager->ledger, CP_DECISION_PROPOSED));
}

/* Windows. */

void cp_manager_arm_look(struct cp_manager *manager)
{
    int r;

    if (manager->window_is_open || manager->calibration.running)
        return;
    if (manager->look.due_ns == UINT64_MAX || cp_manager_mode(manager) == CP_MODE_OFF) {
        (void)sd_event_source_set_enabled(manager->look_timer, SD_EVENT_OFF);
        return;
    }
    r = sd_event_source_set_time(manager->look_timer, manager->look.due_ns / CP_NS_PER_US);
    if (r >= 0)
        r = sd_event_source_set_enabled(manager->look_timer, SD_EVENT_ONESHOT);
    if (r < 0)
        cp_log_error("cannot set the timer of the next window: %s", strerror(-r));
}

static void open_window(struct cp_manager *manager)
{
    struct cp_error error = {0};
    int r;

    cp_manager_follow_hotplug(manager);
    cp_load_done(&manager->load_at_open);
    (void)cp_load_read(&manager->root, manager->machine, &manager->load_at_open);
    r = manager->wake->ops->window_open(manager->wake, &error);
    if (r < 0) {
        cp_log_error("cannot open a window: %s", error.message);
        cp_look_on_end(&manager->look, cp_now_ns(), false, manager->n_hot > 0);
        cp_manager_arm_look(manager);
        return;
    }
    manager->window_is_open = true;
    (void)sd_event_source_set_time(manager->look_timer,
                                   (cp_now_ns() + manager->look.config.window_ns) / CP_NS_PER_US);
    (void)sd_event_source_set_enabled(manager->look_timer, SD_EVENT_ONESHOT);
}

static void close_window(struct cp_manager *manager)
{
    struct cp_wake_sample sample = {0};
    struct cp_error error = {0};
    int r = manager->wake->ops->window_close(manager->wake, &sample, &error);

    manager->window_is_open = false;
    if (r < 0) {
        cp_log_error("a window is lost: %s", error.message);
        cp_look_on_end(&manager->look, cp_now_ns(), false, manager->n_hot > 0);
        cp_manager_arm_look(manager);
        return;
    }
    cp_manager_round(manager, &sample);
    cp_wake_sample_done(&sample);
}

static int on_look_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct cp_manager *manager = userdata;

    (void)source;
    (void)usec;
    if (manager->window_is_open)
        close_window(manager);
    else
        open_window(manager);
    return 0;
}

/* Events of the wake source. */

static void on_hot(struct cp_manager *manager, const struct cp_wake_event *event)
{
    struct cp_hot_pair pair = {.tasks = {event->task, event->other}, .since_ns = event->time_ns};

    if (cp_manager_mode(manager) == CP_MODE_OFF)
        return;
    if (cp_task_id_compare(pair.tasks[0], pair.tasks[1]) > 0) {
        pair.tasks[0] = event->other;
        pair.tasks[1] = event->task;
    }
    for (size_t i = 0; i < manager->n_hot; i++)
        if (cp_task_id_equal(manager->hot[i].tasks[0], pair.tasks[0]) &&
            cp_task_id_equal(manager->hot[i].tasks[1], pair.tasks[1]))
            return;
    if (manager->n_hot == CP_HOT_MAX)
        memmove(manager->hot, manager->hot + 1, --manager->n_hot * sizeof(*manager->hot));
    manager->hot[manager->n_hot++] = pair;
    cp_look_on_hot(&manager->look, cp_now_ns());
    cp_manager_arm_look(manager);
}

static void on_wake_event(const struct cp_wake_event *event, void *userdata)
{
    struct cp_manager *manager = userdata;

    switch (event->kind) {
    case CP_WAKE_EVENT_HOT:
        on_hot(manager, event);
        break;
    case CP_WAKE_EVENT_FORK:
    case CP_WAKE_EVENT_EXEC:
    case CP_WAKE_EVENT_EXIT:
        cp_manager_on_guarded(manager, event);
        break;
    case CP_WAKE_EVENT_LOST:
        cp_log_warning("%" PRIu64 " events of the kernel side were lost; looking again",
                       event->n_lost);
        cp_bus_emit_samples_lost(manager->bus, event->n_lost);
        (void)manager->actuator->ops->scan_strays(manager->actuator);
        cp_look_on_hot(&manager->look, cp_now_ns());
        cp_manager_arm_look(manager);
        break;
    }
}

static int on_wake_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct cp_manager *manager = userdata;
    int r = manager->wake->ops->dispatch(manager->wake, on_wake_event, manager);

    (void)source;
    (void)fd;
    (void)revents;
    if (r < 0)
        cp_log_error("cannot read events of the kernel side: %s", strerror(-r));
    return 0;
}

/* The machine. */

/* Placements whose CPUs have all gone are given back; the kernel has widened their masks already.
 */
static void end_stranded(struct cp_manager *manager)
{
    struct cp_act_held held;

    for (size_t i = 0; manager->actuator->ops->held(manager->actuator, i, &held); i++) {
        struct cp_decision *decision = cp_ledger_find(manager->ledger, held.decision);

        if (decision && cp_decision_state_is_standing(decision->state) &&
            !cp_cpumask_intersects(held.target, &manager->machine->usable)) {
            cp_manager_end_decision(manager, decision, CP_DECISION_RESTORED,
                                    "its CPUs went offline");
            i = (size_t)-1; /* the list has changed: from the beginning */
        }
    }
}

static int adopt_machine(struct cp_manager *manager, struct cp_machine *machine)
{
    int r = manager->wake->ops->set_machine(manager->wake, machine);
    bool present[CP_LEVEL_MAX];

    if (r >= 0)
        r = manager->actuator->ops->set_machine(manager->actuator, machine);
    if (r < 0) {
        cp_machine_unref(machine);
        return r;
    }
    cp_machine_unref(manager->machine);
    manager->machine = machine;
    cp_machine_levels_present(machine, present);
    cp_pairs_set_levels(manager->pairs, present);
    return 0;
}

void cp_manager_follow_hotplug(struct cp_manager *manager)
{
    const struct cp_machine_source source = {.kind = CP_MACHINE_LIVE};
    struct cp_machine *machine = NULL;
    struct cp_error error = {0};

    if (cp_machine_is_stale(manager->machine, &manager->root) != 1)
        return;
    if (cp_machine_load(&source, manager->machine->generation + 1, &machine, &error) < 0) {
        cp_log_error("the online CPUs changed, but the topology cannot be read: %s", error.message);
        return;
    }
    if (adopt_machine(manager, machine) < 0) {
        cp_log_error("the online CPUs changed, but the new topology cannot be used");
        return;
    }
    cp_log_notice("the online CPUs changed: topology generation %" PRIu64 ", %u CPUs",
                  manager->machine->generation, manager->machine->n_cpus);
    end_stranded(manager);
    cp_bus_emit_topology_changed(manager->bus);
}

static int on_hotplug_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    (void)source;
    (void)revents;
    if (cp_hotplug_read(fd) != 0)
        cp_manager_follow_hotplug(userdata);
    return 0;
}

/* Event sources. */

static int add_source_error(int r, const char *what, struct cp_error *error)
{
    return r < 0 ? cp_error_set(error, -r, "cannot listen to %s: %s", what, strerror(-r)) : 0;
}

static int add_io(struct cp_manager *manager, int fd, sd_event_io_handler_t handler,
                  int64_t priority, const char *name, sd_event_source **ret, struct cp_error *error)
{
    int r = sd_event_add_io(manager->event, ret, fd, EPOLLIN, handler, manager);

    if (r >= 0)
        r = sd_event_source_set_priority(*ret, priority);
    if (r >= 0)
        r = sd_event_source_set_description(*ret, name);
    return add_source_error(r, name, error);
}

static int add_signals(struct cp_manager *manager, struct cp_error *error)
{
    const int signals[] = {SIGTERM, SIGINT};
    sigset_t mask;

    sigemptyset(&mask);
    for (unsigned i = 0; i < CP_ELEMENTS(signals); i++)
        sigaddset(&mask, signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, &mask, NULL);
    for (unsigned i = 0; i < CP_ELEMENTS(signals); i++) {
        sd_event_source *source = NULL;
        /* A NULL handler ends the loop. */
        int r = sd_event_add_signal(manager->event, &source, signals[i], NULL, NULL);

        if (r >= 0)
            r = sd_event_source_set_priority(source, PRIORITY_SIGNAL);
        if (r >= 0)
            r = sd_event_source_set_floating(source, true);
        sd_event_source_unref(source);
        if (r < 0)
            return add_source_error(r, "signals", error);
    }
    return 0;
}

static int add_sources(struct cp_manager *manager, struct cp_error *error)
{
    int wake_fd = manager->wake->ops->event_fd(manager->wake);
    int r = sd_event_add_time(manager->event, &manager->look_timer, CLOCK_BOOTTIME, 0,
                              TIMER_ACCURACY_US, on_look_timer, manager);

    if (r < 0)
        return add_source_error(r, "the clock", error);
    (void)sd_event_source_set_priority(manager->look_timer, PRIORITY_TIMER);
    (void)sd_event_source_set_description(manager->look_timer, "look");
    (void)sd_event_source_set_enabled(manager->look_timer, SD_EVENT_OFF);
    if (wake_fd >= 0) {
        r = add_io(manager, wake_fd, on_wake_io, PRIORITY_WAKE, "wake events",
                   &manager->wake_source_io, error);
        if (r < 0)
            return r;
    }
    r = add_io(manager, manager->calibration.done_fd, cp_manager_on_calibrated, PRIORITY_TIMER,
               "calibration", &manager->calibration.done_source, error);
    if (r < 0)
        return r;
    manager->hotplug_fd = cp_hotplug_open(error);
    if (manager->hotplug_fd < 0) {
        cp_log_warning("%s; CPU hotplug is noticed at the next window only", error->message);
        return 0;
    }
    return add_io(manager, manager->hotplug_fd, on_hotplug_io, PRIORITY_TIMER, "CPU hotplug",
                  &manager->hotplug_io, error);
}

int cp_manager_new(const struct cp_manager_config *config, struct cp_manager **ret_manager,
                   struct cp_error *error)
{
    struct cp_manager *manager = calloc(1, sizeof(*manager));
    int r;

    if (!manager)
        return cp_error_set(error, ENOMEM, "no memory");
    manager->config = *config;
    manager->policy = config->policy;
    manager->started_ns = cp_now_ns();
    manager->root.fd = -1;
    manager->hotplug_fd = -1;
    manager->calibration.done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = manager->calibration.done_fd < 0 ? -errno : sd_event_new(&manager->event);
    if (r < 0)
        r = cp_error_set(error, -r, "cannot make an event loop: %s", strerror(-r));
    else
        r = add_signals(manager, error);
    if (r >= 0)
        r = cp_manager_open_rooms(manager, error);
    if (r >= 0)
        r = cp_bus_new(manager->event, PRIORITY_BUS, config->bus_address, &cp_manager_bus_ops,
                       manager, &manager->bus, error);
    if (r >= 0)
        r = add_sources(manager, error);
    if (r >= 0)
        r = cp_manager_open_costs(manager, error);
    if (r < 0) {
        cp_manager_free(manager);
        return r;
    }
    *ret_manager = manager;
    return 0;
}

int cp_manager_run(struct cp_manager *manager, struct cp_error *error)
{
    int r = sd_event_set_watchdog(manager->event, true);

    if (r < 0)
        return cp_error_set(error, -r, "cannot set up the watchdog: %s", strerror(-r));
    cp_log_notice("coplaced " COPLACE_VERSION ": mode %s, wake source %s, %u CPUs, %u LLCs",
                  cp_mode_to_string(cp_manager_mode(manager)), manager->wake->ops->name,
                  manager->machine->n_cpus, manager->machine->n_domains[CP_LEVEL_LLC]);
    cp_manager_notify_status(manager);
    (void)sd_notify(0, "READY=1");
    r = sd_event_loop(manager->event);
    (void)sd_notify(0, "STOPPING=1");
    cp_manager_stop_calibration(manager);
    if (manager->config.keep_on_exit)
        cp_log_notice("placements are kept (--on-exit=keep); coplaced --restore gives them back");
    else
        (void)cp_manager_end_all(manager, CP_DECISION_RESTORED, "coplaced stops");
    return r < 0 ? cp_error_set(error, -r, "the event loop failed: %s", strerror(-r)) : 0;
}

struct cp_manager *cp_manager_free(struct cp_manager *manager)
{
    if (!manager)
        return NULL;
    cp_manager_stop_calibration(manager);
    cp_bus_free(manager->bus);
    sd_event_source_unref(manager->wake_source_io);
    sd_event_source_unref(manager->look_timer);
    sd_event_source_unref(manager->hotplug_io);
    sd_event_source_unref(manager->calibration.done_source);
    if (manager->hotplug_fd >= 0)
        close(manager->hotplug_fd);
    if (manager->calibration.done_fd >= 0)
        close(manager->calibration.done_fd);
    cp_plan_done(&manager->last_plan);
    cp_load_done(&manager->load_at_open);
    free(manager->busy_permille);
    cp_actuator_free(manager->actuator);
    cp_journal_close(manager->journal);
    cp_ledger_free(manager->ledger);
    cp_pairs_free(manager->pairs);
    cp_wake_source_free(manager->wake);
    cp_machine_unref(manager->machine);
    sd_event_unref(manager->event);
    cp_root_done(&manager->root);
    free(manager);
    return NULL;
}
