/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens the rooms at the start of the daemon, in the order in which they need each other.
 *
 * What is missing but can be done without (a wake source, a readable journal) costs a warning and
 * the part of the service that needs it; everything else is an error with advice.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "manager-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DECISIONS 1024u
#define MAX_EDGES 16384u

static int make_directory(const char *path, struct cp_error *error)
{
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return cp_error_set(error, errno, "cannot create the directory %s: %s", path,
                            strerror(errno));
    return 0;
}

/* Somebody once asked for a mode; one that cannot be read must not end in the most invasive. */
static void distrust_mode(struct cp_manager *manager, const char *path, const char *what)
{
    manager->policy.mode = CP_MODE_OBSERVE;
    cp_log_warning("%s: %s; mode observe until 'coplacectl mode MODE --persist' sets one", path,
                   what);
}

static void read_persisted_mode(struct cp_manager *manager)
{
    _cleanup_free_ char *path = NULL;
    _cleanup_close_ int fd = -1;
    char line[32] = "";
    struct stat status;
    enum cp_mode mode;

    if (manager->config.mode_given ||
        asprintf(&path, "%s/mode", manager->config.state_directory) < 0)
        return;
    /* O_NONBLOCK: a FIFO in its place must not hold the daemon. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        read(fd, line, sizeof(line) - 1) < 0) {
        distrust_mode(manager, path, "not a readable file");
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    mode = cp_mode_from_string(line);
    if (mode == CP_MODE_INVALID)
        distrust_mode(manager, path, "holds no mode (off, observe, enforce)");
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
        cp_log_error("%s; nothing is enforced", error->message);
        manager->actuator = cp_dry_actuator_new();
        return manager->actuator ? 0 : cp_error_set(error, ENOMEM, "no memory");
    }
    if (r < 0)
        return r;
    return cp_affinity_actuator_new(&manager->root, manager->machine, manager->wake,
                                    manager->journal, &manager->actuator, error);
}

int cp_manager_open_rooms(struct cp_manager *manager, struct cp_error *error)
{
    struct cp_pairs_config pairs;
    struct cp_look_config look;
    bool present[CP_LEVEL_MAX];
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
    cp_machine_levels_present(manager->machine, present);
    cp_pairs_set_levels(manager->pairs, present);
    cp_manager_release_orphans(manager);
    return 0;
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
        r = -EPROTO;
    if (r >= 0) {
        r = cp_restore_all(&root, journal, log_restored, NULL, &summary);
        if (r < 0)
            (void)cp_error_set(error, -r, "cannot look at the tasks: %s", strerror(-r));
    }
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
