/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cost table of the daemon: read, measured in a thread of its own, kept for the next start.
 *
 * Measuring blocks for up to two seconds, so the loop only learns of its end; until then published
 * or kept values stand and nothing is placed.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "machine/calibrate.h"
#include "manager-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>

#define CALIBRATION_BUDGET_NS (1500 * CP_NS_PER_MS)

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
    char text[1200];

    if (asprintf(&path, "%s/costs.yaml", manager->config.state_directory) < 0)
        return;
    if (cp_costs_save(&manager->costs, path, manager->fingerprint, &error) < 0) {
        cp_error_format(&error, text, sizeof(text));
        cp_log_warning("cannot keep the cost table: %s", text);
    }
}

/* The levels of this machine whose cost is a published default, as "core, llc"; "" for none. */
static void name_unmeasured(const struct cp_manager *manager, char *names, size_t size)
{
    bool present[CP_LEVEL_MAX];
    size_t used = 0;

    names[0] = '\0';
    cp_machine_levels_present(manager->machine, present);
    for (unsigned level = 0; level < CP_LEVEL_MAX && used < size; level++)
        if (present[level] && manager->costs.level[level].source == CP_COST_DEFAULT)
            used += (size_t)snprintf(names + used, size - used, "%s%s", used ? ", " : "",
                                     cp_level_to_string((enum cp_level)level));
}

int cp_manager_on_calibrated(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct cp_manager *manager = userdata;
    struct cp_calibration *calibration = &manager->calibration;
    char names[128];
    uint64_t count;

    (void)source;
    (void)revents;
    (void)read(fd, &count, sizeof(count));
    (void)pthread_join(calibration->thread, NULL);
    calibration->running = false;
    calibration->machine = cp_machine_unref(calibration->machine);
    if (calibration->result < 0) {
        cp_log_warning("hand-off costs could not be measured (%s); the former values are used",
                       calibration->error.message);
    } else {
        manager->costs = calibration->costs;
        save_costs(manager);
        name_unmeasured(manager, names, sizeof(names));
        if (names[0])
            cp_log_warning("too busy to measure what a hand-off costs at level %s: a published "
                           "default is used until the next start or coplacectl calibrate",
                           names);
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

int cp_manager_open_costs(struct cp_manager *manager, struct cp_error *error)
{
    _cleanup_free_ char *path = NULL;
    struct utsname kernel;
    struct cp_error reason = {0};
    char text[1200];
    char names[128];
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
    if (r < 0) {
        cp_error_format(&reason, text, sizeof(text));
        cp_log_warning("the kept cost table is not used: %s", text);
    }
    /* A busy machine may have left gaps in the kept table: they are measured now. */
    name_unmeasured(manager, names, sizeof(names));
    if (!names[0])
        return 0;
    r = cp_manager_start_calibration(manager, &reason);
    if (r < 0)
        cp_log_warning("%s; published defaults are used", reason.message);
    return 0;
}

/* Lets a calibration end before the table that it works on goes away. */
void cp_manager_stop_calibration(struct cp_manager *manager)
{
    struct cp_calibration *calibration = &manager->calibration;

    if (!calibration->running)
        return;
    atomic_store(&calibration->cancel, true);
    (void)pthread_join(calibration->thread, NULL);
    calibration->running = false;
    calibration->machine = cp_machine_unref(calibration->machine);
}
