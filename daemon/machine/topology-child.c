/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hwloc in a child of our own, and its answer through a pipe.
 *
 * The answer is a header and three tables of plain records, written and read by the same program.
 * The child may have been damaged by what it read, so the parent believes no number in it. Must not
 * change anything of the parent: environment, signals, standard error.
 */
#include "machine/topology-child.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MAGIC 0x63704d31u
#define ANSWER_FD 3
#define TIMEOUT_NS (30 * CP_NS_PER_S)
#define MEMORY_NODES_MAX 65536u

struct answer {
    uint32_t magic;
    int32_t result; /* negative errno: only error follows */
    uint32_t n_cpus;
    uint32_t n_missing;
    uint32_t n_memory_nodes;
    char model[sizeof(((struct cp_topology *)NULL)->model)];
    struct cp_error error;
};

#define ANSWER_SIZE_MAX                                                                            \
    (sizeof(struct answer) + CP_MACHINE_CPUS_MAX * sizeof(struct cp_topology_cpu) +                \
     (CP_CPU_LIMIT + MEMORY_NODES_MAX) * sizeof(uint32_t))

/* The child */

static bool write_all(int fd, const void *data, size_t size)
{
    for (const char *next = data; size > 0;) {
        ssize_t n = write(fd, next, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        next += n;
        size -= (size_t)n;
    }
    return true;
}

static bool send_answer(const struct answer *answer, const struct cp_topology *facts)
{
    return write_all(ANSWER_FD, answer, sizeof(*answer)) &&
           write_all(ANSWER_FD, facts->cpus, facts->n_cpus * sizeof(*facts->cpus)) &&
           write_all(ANSWER_FD, facts->missing, facts->n_missing * sizeof(*facts->missing)) &&
           write_all(ANSWER_FD, facts->memory_nodes,
                     facts->n_memory_nodes * sizeof(*facts->memory_nodes));
}

/* Keeps of the parent's files only the pipe, as ANSWER_FD: a hung child must not hold a bus
 * connection or a BPF link open. What hwloc complains about on standard error goes nowhere: it
 * drops contradictory objects and goes on, and what is left is what we show. */
static bool child_isolate(int pipe_fd)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit no_core = {0, 0};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0)
        return false;
    if (pipe_fd != ANSWER_FD && dup2(pipe_fd, ANSWER_FD) < 0)
        return false;
    (void)close_range(ANSWER_FD + 1, UINT_MAX, 0);
    /* A handler of the parent's would go on with the parent's business in here. */
    for (size_t i = 0; i < CP_ELEMENTS(crashes); i++)
        (void)signal(crashes[i], SIG_DFL);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    return true;
}

/*
 * Gives the child an environment of its own. hwloc takes a recorded machine only from it;
 * "linux,stop" keeps this machine's CPUID out of it. No plugins: they know GPUs and would only pull
 * their libraries in.
 */
static bool child_set_environment(const struct cp_machine_source *source)
{
    if (clearenv() != 0 || setenv("HWLOC_HIDE_ERRORS", "2", 1) != 0 ||
        setenv("HWLOC_PLUGINS_PATH", "", 1) != 0)
        return false;
    if (source->kind != CP_MACHINE_ROOT)
        return true;
    return setenv("HWLOC_FSROOT", source->text, 1) == 0 &&
           setenv("HWLOC_COMPONENTS", "linux,stop", 1) == 0 &&
           setenv("HWLOC_THISSYSTEM", "0", 1) == 0;
}

static _Noreturn void child_run(const struct cp_machine_source *source, const char *document,
                                size_t size, int pipe_fd)
{
    struct cp_topology facts = {0};
    struct answer answer;

    /* Every byte is written to the pipe. */
    memset(&answer, 0, sizeof(answer));
    answer.magic = ANSWER_MAGIC;
    if (!child_isolate(pipe_fd) || !child_set_environment(source))
        _exit(EXIT_FAILURE);
    answer.result = cp_topology_read(source, document, (int)size, &facts, &answer.error);
    if (answer.result == 0) {
        answer.n_cpus = (uint32_t)facts.n_cpus;
        answer.n_missing = (uint32_t)facts.n_missing;
        answer.n_memory_nodes = (uint32_t)facts.n_memory_nodes;
        memcpy(answer.model, facts.model, sizeof(answer.model));
    }
    _exit(send_answer(&answer, &facts) ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* The parent */

/* Reads to the end of the pipe, at most capacity bytes. -ETIMEDOUT, -E2BIG, errno. */
static int receive(int fd, char *buffer, size_t capacity, size_t *ret_size)
{
    uint64_t deadline_ns = cp_now_ns() + TIMEOUT_NS;
    size_t size = 0;

    for (;;) {
        uint64_t now_ns = cp_now_ns();
        struct pollfd input = {.fd = fd, .events = POLLIN};
        ssize_t n;
        int r;

        if (now_ns >= deadline_ns)
            return -ETIMEDOUT;
        r = poll(&input, 1, (int)((deadline_ns - now_ns) / CP_NS_PER_MS) + 1);
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r <= 0)
            continue;
        n = read(fd, buffer + size, capacity - size);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        if (n > 0)
            size += (size_t)n;
        if (size == capacity)
            return -E2BIG;
    }
    *ret_size = size;
    return 0;
}

/* true if a table of n records of a size lies at *offset of an answer; moves *offset behind it. */
static bool take_table(size_t total, size_t *offset, size_t n, size_t record_size)
{
    if (n > (total - *offset) / record_size)
        return false;
    *offset += n * record_size;
    return true;
}

static bool cpus_are_sound(const struct cp_topology_cpu *cpus, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cpus[i].cpu.os >= CP_CPU_LIMIT || cpus[i].disallowed > 1 ||
            (i > 0 && cpus[i].cpu.os <= cpus[i - 1].cpu.os))
            return false;
    return n > 0;
}

static void *copy_table(const char *data, size_t n, size_t record_size)
{
    void *copy = calloc(n ? n : 1, record_size);

    if (copy && n)
        memcpy(copy, data, n * record_size);
    return copy;
}

/* 0, -EBADMSG: no sound answer, -ENOMEM. */
static int parse_tables(const struct answer *answer, const char *buffer, size_t size,
                        struct cp_topology *facts)
{
    size_t cpus = sizeof(*answer);
    size_t missing = cpus;
    size_t memory_nodes;
    size_t end;

    if (answer->n_cpus > CP_MACHINE_CPUS_MAX || answer->n_missing > CP_CPU_LIMIT ||
        answer->n_memory_nodes > MEMORY_NODES_MAX ||
        !take_table(size, &missing, answer->n_cpus, sizeof(*facts->cpus)))
        return -EBADMSG;
    memory_nodes = missing;
    if (!take_table(size, &memory_nodes, answer->n_missing, sizeof(*facts->missing)))
        return -EBADMSG;
    end = memory_nodes;
    if (!take_table(size, &end, answer->n_memory_nodes, sizeof(*facts->memory_nodes)) ||
        end != size)
        return -EBADMSG;
    facts->cpus = copy_table(buffer + cpus, answer->n_cpus, sizeof(*facts->cpus));
    facts->missing = copy_table(buffer + missing, answer->n_missing, sizeof(*facts->missing));
    facts->memory_nodes =
        copy_table(buffer + memory_nodes, answer->n_memory_nodes, sizeof(*facts->memory_nodes));
    if (!facts->cpus || !facts->missing || !facts->memory_nodes)
        return -ENOMEM;
    facts->n_cpus = answer->n_cpus;
    facts->n_missing = answer->n_missing;
    facts->n_memory_nodes = answer->n_memory_nodes;
    memcpy(facts->model, answer->model, sizeof(facts->model));
    return cpus_are_sound(facts->cpus, facts->n_cpus) ? 0 : -EBADMSG;
}

/* As parse_tables(); the child's own error goes to *error and its code is returned. */
static int parse_answer(const char *buffer, size_t size, struct cp_topology *ret_topology,
                        struct cp_error *error)
{
    _cleanup_topology_ struct cp_topology facts = {0};
    struct answer answer;
    int r;

    if (size < sizeof(answer))
        return -EBADMSG;
    memcpy(&answer, buffer, sizeof(answer));
    if (answer.magic != ANSWER_MAGIC || answer.result > 0 || answer.result < -4095 ||
        memchr(answer.model, '\0', sizeof(answer.model)) == NULL ||
        memchr(answer.error.file, '\0', sizeof(answer.error.file)) == NULL ||
        memchr(answer.error.message, '\0', sizeof(answer.error.message)) == NULL)
        return -EBADMSG;
    if (answer.result < 0) {
        if (error)
            *error = answer.error;
        return answer.result;
    }
    r = parse_tables(&answer, buffer, size, &facts);
    if (r < 0)
        return r;
    *ret_topology = facts;
    facts = (struct cp_topology){0};
    return 0;
}

/* Says that the child gave no answer that can be used. wait_status -1: unknown. */
static int report_no_answer(const struct cp_machine_source *source, int code, int wait_status,
                            struct cp_error *error)
{
    bool live = source->kind == CP_MACHINE_LIVE;
    const char *what = live ? "this machine" : source->text;

    if (code == -ETIMEDOUT)
        return cp_error_set(error, ETIMEDOUT, "hwloc did not come to an end on \"%.200s\" in %u s",
                            what, (unsigned)(TIMEOUT_NS / CP_NS_PER_S));
    if (code != -EBADMSG)
        return cp_error_set(error, -code, "cannot read \"%.200s\" by hwloc: %s", what,
                            strerror(-code));
    return cp_error_set(error, EBADMSG, "hwloc crashed on \"%.200s\"%s (%s)", what,
                        live ? "" : ": it must be damaged",
                        wait_status >= 0 && WIFSIGNALED(wait_status)
                            ? strsignal(WTERMSIG(wait_status))
                            : "no usable answer");
}

/* Starts the child; *ret_input is the end of the pipe that its answer comes from. */
static int child_start(const struct cp_machine_source *source, const char *document, size_t size,
                       pid_t *ret_child, int *ret_input)
{
    int ends[2];
    pid_t child;
    int r;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0)
        child_run(source, document, size, ends[1]);
    r = child < 0 ? -errno : 0;
    close(ends[1]);
    if (r < 0) {
        close(ends[0]);
        return r;
    }
    *ret_child = child;
    *ret_input = ends[0];
    return 0;
}

/* Returns the status for waitpid(2)'s macros, or -1: unknown (somebody ignores SIGCHLD). */
static int child_reap(pid_t child)
{
    int wait_status;

    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return wait_status;
}

/* Reads the child's answer into buffer[ANSWER_SIZE_MAX + 1] and understands it. */
static int exchange(const struct cp_machine_source *source, const char *document, size_t size,
                    char *buffer, struct cp_topology *ret_topology, struct cp_error *error)
{
    _cleanup_close_ int input = -1;
    struct cp_error told = {0};
    int wait_status;
    size_t n = 0;
    pid_t child = -1;
    int r = child_start(source, document, size, &child, &input);

    if (r < 0)
        return report_no_answer(source, r, -1, error);
    r = receive(input, buffer, ANSWER_SIZE_MAX + 1, &n);
    if (r < 0)
        (void)kill(child, SIGKILL);
    wait_status = child_reap(child);
    if (r == 0)
        r = parse_answer(buffer, n, ret_topology, &told);
    if (r < 0 && !told.code)
        return report_no_answer(source, r, wait_status, error);
    if (r < 0 && error)
        *error = told;
    return r;
}

int cp_topology_fetch(const struct cp_machine_source *source, const char *document, size_t size,
                      struct cp_topology *ret_topology, struct cp_error *error)
{
    char *buffer = malloc(ANSWER_SIZE_MAX + 1);
    int r;

    if (!buffer)
        return cp_error_set(error, ENOMEM, "no memory to read a machine");
    r = exchange(source, document, size, buffer, ret_topology, error);
    free(buffer);
    return r;
}
