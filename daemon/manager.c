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
#include "machine/calibrate.h"
#include "machine/hotplug.h"
#include "manager-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <systemd/sd-daemon.h>

enum {
    PRIORITY_SIGNAL = -100,
    PRIORITY_BUS = -50,
    PRIORITY_TIMER = 0,
    PRIORITY_WAKE = 50,
};

#define CALIBRATION_BUDGET_NS (1500 * CP_NS_PER_MS)
#define MAX_DECISIONS 1024u
#define MAX_EDGES 16384u
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

    if (r >= 0)
        r = manager->actuator->ops->set_machine(manager->actuator, machine);
    if (r < 0) {
        cp_machine_unref(machine);
        return r;
    }
    cp_machine_unref(manager->machine);
    manager->machine = machine;
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

/* Calibration. */

static void *run_calibration(void *argument)
{
    struct cp_calibration *calibration = argument;
    const uint64_t one = 1;

    calibration->result =
        cp_calibrate(calibration->machine, CALIBRATION_BUDGET_NS, &calibration->cancel,
                     &calibration->costs, &calibration->error);
    /* An eventfd that nobody has read holds 0: this cannot block, and cannot fail. */
    if (write(calibration->done_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        abort();
    return NULL;
}

/* Tables are saved so that the next start need not measure. */
static void save_costs(struct cp_manager *manager)
{
    struct cp_error error = {0};
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%s/costs.yaml", manager->config.state_directory) < 0)
        return;
    if (cp_costs_save(&manager->costs, path, manager->fingerprint, &error) < 0)
        cp_log_warning("cannot keep the cost table: %s", error.message);
}

static int on_calibrated(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct cp_manager *manager = userdata;
    struct cp_calibration *calibration = &manager->calibration;
    uint64_t count;

    (void)source;
    (void)revents;
    (void)read(fd, &count, sizeof(count));
    (void)pthread_join(calibration->thread, NULL);
    calibration->running = false;
    calibration->machine = cp_machine_unref(calibration->machine);
    if (calibration->result < 0) {
        cp_log_warning("hand-off costs could not be measured (%s); %s values are used",
                       calibration->error.message, "the former");
    } else {
        manager->costs = calibration->costs;
        save_costs(manager);
        cp_log_info("hand-off costs measured%s",
                    manager->costs.doubtful ? "; the table is doubtful, see coplacectl topology"
                                            : "");
    }
    cp_bus_calibrated(manager->bus, calibration->result, &calibration->error);
    cp_manager_arm_look(manager);
    return 0;
}

int cp_manager_start_calibration(struct cp_manager *manager, struct cp_error *error)
{
    struct cp_calibration *calibration = &manager->calibration;
    int r;

    atomic_store(&calibration->cancel, false);
    calibration->costs = manager->costs;
    calibration->machine = cp_machine_ref(manager->machine);
    calibration->error = (struct cp_error){0};
    r = pthread_create(&calibration->thread, NULL, run_calibration, calibration);
    if (r != 0) {
        calibration->machine = cp_machine_unref(calibration->machine);
        return cp_error_set(error, r, "cannot start the calibration: %s", strerror(r));
    }
    calibration->running = true;
    return 0;
}

static bool all_costs_are_configured(const struct cp_manager *manager)
{
    bool present[CP_LEVEL_MAX];

    cp_machine_levels_present(manager->machine, present);
    for (unsigned level = 0; level < CP_LEVEL_MAX; level++)
        if (present[level] && manager->costs.level[level].source != CP_COST_CONFIGURED)
            return false;
    return true;
}

static int open_costs(struct cp_manager *manager, struct cp_error *error)
{
    _cleanup_free_ char *path = NULL;
    struct utsname kernel;
    struct cp_error reason = {0};
    int r;

    cp_costs_init_default(&manager->costs);
    if (manager->config.costs_text) {
        r = cp_costs_configure(&manager->costs, manager->config.costs_text, error);
        if (r < 0)
            return r;
    }
    if (uname(&kernel) < 0 || asprintf(&path, "%s/costs.yaml", manager->config.state_directory) < 0)
        return cp_error_set(error, ENOMEM, "no memory");
    cp_machine_fingerprint(manager->machine, kernel.release, manager->fingerprint);
    r = cp_costs_load(&manager->costs, path, manager->fingerprint, &reason);
    if (r < 0)
        cp_log_warning("the kept cost table is not used: %s", reason.message);
    if (r == 0 || all_costs_are_configured(manager))
        return 0;
    r = cp_manager_start_calibration(manager, &reason);
    if (r < 0)
        cp_log_warning("%s; published defaults are used", reason.message);
    return 0;
}

/* Opening. */

static int make_directory(const char *path, struct cp_error *error)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return cp_error_set(error, errno, "cannot create the directory %s: %s", path,
                            strerror(errno));
    return 0;
}

static void read_persisted_mode(struct cp_manager *manager)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_fclose_ FILE *file = NULL;
    char line[32] = "";
    enum cp_mode mode;

    if (manager->config.mode_given ||
        asprintf(&path, "%s/mode", manager->config.state_directory) < 0)
        return;
    file = fopen(path, "re");
    if (!file || !fgets(line, sizeof(line), file))
        return;
    line[strcspn(line, "\n")] = '\0';
    mode = cp_mode_from_string(line);
    if (mode == CP_MODE_INVALID)
        cp_log_warning("%s: '%.20s' is no mode (off, observe, enforce); ignored", path, line);
    else
        manager->policy.mode = mode;
}

static int read_boot_id(const struct cp_root *root, char **ret_boot_id, struct cp_error *error)
{
    int r = cp_root_read_file(root, "proc/sys/kernel/random/boot_id", 64, ret_boot_id, NULL);

    if (r < 0)
        return cp_error_set(error, -r, "cannot read the boot id: %s", strerror(-r));
    (*ret_boot_id)[strcspn(*ret_boot_id, "\n")] = '\0';
    return 0;
}

static int open_journal(const struct cp_root *root, const char *run_directory,
                        struct cp_journal **ret_journal, struct cp_error *error)
{
    _cleanup_free_ char *boot_id = NULL;
    _cleanup_free_ char *warnings = NULL;
    int r = make_directory(run_directory, error);

    if (r < 0)
        return r;
    r = read_boot_id(root, &boot_id, error);
    if (r < 0)
        return r;
    r = cp_journal_open(run_directory, boot_id, ret_journal, &warnings, error);
    if (warnings)
        cp_log_warning("%s", warnings);
    return r;
}

static int open_machine(struct cp_manager *manager, struct cp_error *error)
{
    const struct cp_machine_source source = {.kind = CP_MACHINE_LIVE};
    int r = cp_root_open(&manager->root, NULL);

    if (r < 0)
        return cp_error_set(error, -r, "cannot open the root directory: %s", strerror(-r));
    r = cp_machine_load(&source, 1, &manager->machine, error);
    if (r < 0)
        return r;
    cp_neighbours_detect(&manager->root, &manager->neighbours);
    for (unsigned i = 0; i < manager->neighbours.n_texts; i++) {
        manager->neighbour_texts[i] = manager->neighbours.texts[i];
        cp_log_notice("%s", manager->neighbours.texts[i]);
    }
    return 0;
}

static int open_wake(struct cp_manager *manager, struct cp_error *error)
{
    const struct cp_wake_config config = {.min_rate_hz = manager->policy.min_rate_hz / 2,
                                          .max_edges = MAX_EDGES};
    struct cp_error reason = {0};
    int r = -ECANCELED;

    if (!manager->config.use_bpf)
        (void)cp_error_set(&reason, ECANCELED,
                           "switched off by --no-bpf; start without it to learn from wake-ups");
    else
        r = cp_wake_bpf_new(&config, manager->machine, &manager->wake, &reason);
    if (r == 0)
        return 0;
    cp_log_warning("no wake source, nothing will be placed: %s", reason.message);
    manager->wake = cp_wake_none_new(reason.message);
    return manager->wake ? 0 : cp_error_set(error, ENOMEM, "no memory");
}

static int open_actuator(struct cp_manager *manager, struct cp_error *error)
{
    int r = open_journal(&manager->root, manager->config.run_directory, &manager->journal, error);

    if (r == CP_JOURNAL_NEWER_VERSION) {
        cp_log_error("%s/journal was written by a newer coplaced: it is kept, and nothing is "
                     "enforced; run the newer version with --restore, then start again",
                     manager->config.run_directory);
        manager->actuator = cp_dry_actuator_new();
        return manager->actuator ? 0 : cp_error_set(error, ENOMEM, "no memory");
    }
    if (r < 0)
        return r;
    return cp_affinity_actuator_new(&manager->root, manager->machine, manager->wake,
                                    manager->journal, &manager->actuator, error);
}

static int open_rooms(struct cp_manager *manager, struct cp_error *error)
{
    struct cp_pairs_config pairs;
    struct cp_look_config look;
    int r = open_machine(manager, error);

    if (r < 0)
        return r;
    r = make_directory(manager->config.state_directory, error);
    if (r < 0)
        return r;
    read_persisted_mode(manager);
    r = open_wake(manager, error);
    if (r < 0)
        return r;
    r = open_actuator(manager, error);
    if (r < 0)
        return r;
    cp_pairs_config_init_default(&pairs);
    cp_look_config_init_default(&look);
    cp_look_init(&manager->look, &look);
    manager->pairs = cp_pairs_new(&pairs);
    manager->ledger = cp_ledger_new(MAX_DECISIONS, manager->policy.settle_ns);
    if (!manager->pairs || !manager->ledger)
        return cp_error_set(error, ENOMEM, "no memory");
    cp_manager_release_orphans(manager);
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
    r = add_io(manager, manager->calibration.done_fd, on_calibrated, PRIORITY_TIMER, "calibration",
               &manager->calibration.done_source, error);
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
        r = open_rooms(manager, error);
    if (r >= 0)
        r = cp_bus_new(manager->event, PRIORITY_BUS, config->bus_address, &cp_manager_bus_ops,
                       manager, &manager->bus, error);
    if (r >= 0)
        r = add_sources(manager, error);
    if (r >= 0)
        r = open_costs(manager, error);
    if (r < 0) {
        cp_manager_free(manager);
        return r;
    }
    *ret_manager = manager;
    return 0;
}

/* Lets a calibration end before the table that it works on goes away. */
static void stop_calibration(struct cp_manager *manager)
{
    struct cp_calibration *calibration = &manager->calibration;

    if (!calibration->running)
        return;
    atomic_store(&calibration->cancel, true);
    (void)pthread_join(calibration->thread, NULL);
    calibration->running = false;
    calibration->machine = cp_machine_unref(calibration->machine);
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
    stop_calibration(manager);
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
    stop_calibration(manager);
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

static void log_restored(const struct cp_journal_entry *entry, enum cp_act_result result,
                         const char *detail, void *userdata)
{
    (void)userdata;
    cp_log_info("task %d: %s%s%s", entry->task.tid, cp_act_result_to_string(result),
                detail[0] ? ": " : "", detail);
}

int cp_restore_run(const char *run_directory, struct cp_error *error)
{
    struct cp_root root = {.fd = -1};
    struct cp_journal *journal = NULL;
    struct cp_restore_summary summary = {0};
    int r = cp_root_open(&root, NULL);

    if (r < 0)
        return cp_error_set(error, -r, "cannot open the root directory: %s", strerror(-r));
    r = open_journal(&root, run_directory, &journal, error);
    if (r == CP_JOURNAL_NEWER_VERSION)
        r = cp_error_set(error, EPROTO,
                         "%s/journal was written by a newer coplaced; run that version's "
                         "coplaced --restore",
                         run_directory);
    if (r == 0)
        r = cp_restore_all(&root, journal, log_restored, NULL, &summary);
    if (r >= 0)
        cp_log_notice("%u masks given back, %u tasks gone, %u changed by others, %u refused",
                      summary.restored, summary.gone, summary.yielded, summary.refused);
    if (r >= 0 && summary.refused)
        r = cp_error_set(error, EBUSY, "%u masks could not be given back; see above",
                         summary.refused);
    cp_journal_close(journal);
    cp_root_done(&root);
    return r;
}
