/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads the BPF object and explains why it cannot be loaded. Nothing is decided by kernel version:
 * the kernel's own type information (BTF) and the outcome of loading decide.
 */
#include "wake/wake-bpf-internal.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/root.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A batch of the scout, and how far below the rate it may be: see scout.bpf.h. */
#define SCOUT_BATCH 32.0
#define SCOUT_SLACK 1.25

/* Enough for the log of any one of our programs: a log that does not fit would hide the cause.
 * Pages that the kernel does not write are never touched. */
#define LOG_SIZE (4u << 20)

static bool has_capability(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

static bool is_locked_down(void)
{
    _cleanup_free_ char *text = NULL;
    struct cp_root root = {.fd = -1};
    bool locked = false;

    if (cp_root_open(&root, NULL) < 0)
        return false;
    if (cp_root_read_file(&root, "sys/kernel/security/lockdown", 256, &text, NULL) == 0)
        locked = strstr(text, "[confidentiality]") != NULL;
    cp_root_done(&root);
    return locked;
}

static int explain_refusal(int code, const char *what, struct cp_error *error)
{
    bool has_bpf = has_capability(CAP_BPF) || has_capability(CAP_SYS_ADMIN);
    bool has_perfmon = has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);

    if (!has_bpf || !has_perfmon)
        return cp_error_set(
            error, code, "%s: not permitted: %s%s%s missing; run as root or grant %s", what,
            has_bpf ? "" : "CAP_BPF", !has_bpf && !has_perfmon ? " and " : "",
            has_perfmon ? "" : "CAP_PERFMON", !has_bpf && !has_perfmon ? "them" : "it");
    if (is_locked_down())
        return cp_error_set(error, code,
                            "%s: kernel lockdown is in confidentiality mode, which forbids BPF to "
                            "read the kernel; boot with lockdown=integrity or without it",
                            what);
    return cp_error_set(
        error, code,
        "%s: not permitted although CAP_BPF and CAP_PERFMON are there: a container, "
        "a seccomp filter or a security module forbids the bpf system call",
        what);
}

/* The last line of the log that says something: the lines after it are the verifier's statistics.
 */
static void last_line(const char *log, char *buffer, size_t size)
{
    const char *line = "";
    size_t length = 0;

    for (const char *p = log; *p;) {
        size_t n = strcspn(p, "\n");

        if (n > 0 && strncmp(p, "processed ", 10) != 0 &&
            strncmp(p, "verification time", 17) != 0) {
            line = p;
            length = n;
        }
        p += n + (p[n] == '\n');
    }
    length = CP_MIN(length, size - 1);
    memcpy(buffer, line, length);
    buffer[length] = '\0';
}

int cp_wake_bpf_explain(int code, const char *what, const char *log, struct cp_error *error)
{
    char said[256] = "";

    if (log)
        last_line(log, said, sizeof(said));
    switch (code) {
    case EPERM:
        return explain_refusal(code, what, error);
    case ENOMEM:
        return cp_error_set(error, code,
                            "%s: no memory (kernel memory counts against the daemon's "
                            "cgroup: look at its memory.max)",
                            what);
    case ENOSYS:
        return cp_error_set(error, code,
                            "%s: this kernel has no bpf system call "
                            "(CONFIG_BPF_SYSCALL)",
                            what);
    default:
        if (said[0] == '\0')
            return cp_error_set(error, code, "%s: %s; tested kernels are 6.1 and later", what,
                                strerror(code));
        return cp_error_set(error, code,
                            "%s: %s: the kernel says \"%s\"; tested kernels are 6.1 and "
                            "later",
                            what, strerror(code), said);
    }
}

/* Parameters of the tracepoint sched_switch: 3 before 5.18, 4 since; the first one of the type is
 * the handler's own data. Negative errno if the kernel does not tell. */
static int count_switch_parameters(const struct btf *btf)
{
    int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
    const struct btf_type *type;

    if (id < 0)
        return id;
    type = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
    if (type && btf_is_ptr(type))
        type = btf__type_by_id(btf, type->type);
    if (!type || !btf_is_func_proto(type) || btf_vlen(type) < 1)
        return -EINVAL;
    return btf_vlen(type) - 1;
}

static int read_switch_parameters(struct cp_error *error)
{
    struct btf *btf = btf__load_vmlinux_btf();
    int r;

    if (!btf) {
        r = errno;
        return cp_error_set(error, r,
                            "the kernel's type information (BTF) cannot be read: %s; it "
                            "needs a kernel with CONFIG_DEBUG_INFO_BTF, and sysfs mounted",
                            strerror(r));
    }
    r = count_switch_parameters(btf);
    btf__free(btf);
    if (r == 3 || r == 4)
        return r;
    return cp_error_set(error, ENOTSUP,
                        "this kernel's tracepoint sched_switch is unknown to this "
                        "version of coplace (%d parameters)",
                        r);
}

static uint64_t batch_limit_ns(double min_rate_hz)
{
    double limit = SCOUT_BATCH * SCOUT_SLACK / min_rate_hz * 1e9;

    return limit < 1e18 ? (uint64_t)limit : (uint64_t)1e18;
}

static void choose_programs(struct wake_bpf *skeleton, bool asks, int n_parameters)
{
    (void)bpf_program__set_autoload(skeleton->progs.scout_waking, !asks);
    (void)bpf_program__set_autoload(skeleton->progs.scout_waking_asking, asks);
    (void)bpf_program__set_autoload(skeleton->progs.scale_waking, !asks);
    (void)bpf_program__set_autoload(skeleton->progs.scale_waking_asking, asks);
    (void)bpf_program__set_autoload(skeleton->progs.scale_switch, n_parameters == 4);
    (void)bpf_program__set_autoload(skeleton->progs.scale_switch_3, n_parameters == 3);
}

/* One attempt. 0 or negative errno; log holds what the verifier said. */
static int try_load(const struct cp_wake_config *config, uint32_t n_domains, bool asks,
                    int n_parameters, char *log, struct wake_bpf **ret_skeleton)
{
    const struct bpf_object_open_opts options = {
        .sz = sizeof(options), .kernel_log_buf = log, .kernel_log_size = LOG_SIZE};
    struct wake_bpf *skeleton = wake_bpf__open_opts(&options);
    int r;

    if (!skeleton)
        return -errno;
    choose_programs(skeleton, asks, n_parameters);
    skeleton->rodata->own_tgid = (uint32_t)getpid();
    skeleton->rodata->scout_batch_limit_ns = batch_limit_ns(config->min_rate_hz);
    r = bpf_map__set_max_entries(skeleton->maps.scale_edges, config->max_edges);
    if (r == 0)
        r = bpf_map__set_max_entries(skeleton->maps.scale_domains, n_domains);
    if (r == 0)
        r = wake_bpf__load(skeleton);
    if (r < 0) {
        wake_bpf__destroy(skeleton);
        return r;
    }
    *ret_skeleton = skeleton;
    return 0;
}

int cp_wake_bpf_load(const struct cp_wake_config *config, uint32_t n_domains,
                     struct wake_bpf **ret_skeleton, bool *ret_asks, struct cp_error *error)
{
    _cleanup_free_ char *log = NULL;
    bool asks = true;
    int n_parameters;
    int r;

    /* Its messages go to standard error without a level; the log has the kernel's part. */
    (void)libbpf_set_print(NULL);
    n_parameters = read_switch_parameters(error);
    if (n_parameters < 0)
        return n_parameters;
    log = malloc(LOG_SIZE);
    if (!log)
        return cp_error_set(error, ENOMEM, "no memory to load the BPF programs");
    log[0] = '\0';
    r = try_load(config, n_domains, asks, n_parameters, log, ret_skeleton);
    if (r < 0 && r != -EPERM) {
        cp_log_debug("loading with the interrupt state failed: %s: %s", strerror(-r), log);
        log[0] = '\0';
        asks = false;
        r = try_load(config, n_domains, asks, n_parameters, log, ret_skeleton);
    }
#ifdef __GLIBC__
    /* Loading took some 10 MB for a moment, which the allocator would keep. */
    (void)malloc_trim(0);
#endif
    if (r < 0) {
        cp_log_debug("loading failed: %s: %s", strerror(-r), log);
        return cp_wake_bpf_explain(-r, "cannot load the BPF programs", log, error);
    }
    *ret_asks = asks;
    return 0;
}
