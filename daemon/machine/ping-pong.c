/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two threads that wake each other by one futex. Must not touch any task but these two.
 *
 * A player's wait has no timeout: arming and cancelling a timer would be part of what is timed (in
 * a virtual machine it costs more than the wake-up). The referee, which is the calling thread, ends
 * the game instead: it sets a bit in the futex word, so that a player cannot miss it.
 */
#include "machine/ping-pong.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#define WARM_UP 16u
/* How long the referee sleeps before it looks at the time and at *cancel. */
#define LOOK_NS (10 * CP_NS_PER_MS)
/* How long a player may take to leave before it is helped off its CPU. */
#define GRACE_NS (100 * CP_NS_PER_MS)

#define STOP 0x80000000u

struct game {
    /* The low bit tells whose turn it is; STOP that the game is over. */
    _Atomic uint32_t turn;
    _Atomic uint64_t sent_ns;
    _Atomic uint32_t n_left; /* players that have left */
    uint32_t max_samples;    /* of one player */
};

struct player {
    struct game *game;
    uint32_t side; /* 0 or 1 */
    struct cp_cpu cpu;
    uint32_t *samples; /* borrowed */
    uint32_t n_seen;
    uint32_t n_samples;
    _Atomic pid_t tid;
    atomic_bool left;
    bool stayed; /* played to the end on its CPU: otherwise nobody knows what was timed */
    pthread_t thread;
};

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * CP_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* 0: was woken from sleep; negative errno: -EAGAIN the word had changed, -ETIMEDOUT, -EINTR. */
static int futex_wait(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0) < 0 ? -errno
                                                                                        : 0;
}

static void futex_wake(_Atomic uint32_t *word, int n)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static void stop(struct game *game)
{
    atomic_fetch_or(&game->turn, STOP);
    futex_wake(&game->turn, 2);
}

/* Sleeps until it is this player's turn. *ret_slept: whether it slept when it was woken for it.
 * false: the game is over. */
static bool await_turn(const struct player *player, bool *ret_slept)
{
    struct game *game = player->game;
    bool slept = false;

    for (;;) {
        uint32_t turn = atomic_load_explicit(&game->turn, memory_order_acquire);

        if (turn & STOP)
            return false;
        if ((turn & 1) == player->side)
            break;
        slept = futex_wait(&game->turn, turn, NULL) == 0;
    }
    *ret_slept = slept;
    return true;
}

static void play(struct player *player)
{
    struct game *game = player->game;
    bool slept;

    while (await_turn(player, &slept)) {
        uint64_t now_ns = monotonic_ns();
        uint64_t sent_ns = atomic_load_explicit(&game->sent_ns, memory_order_relaxed);

        if (slept && ++player->n_seen > WARM_UP && now_ns > sent_ns)
            player->samples[player->n_samples++] =
                (uint32_t)CP_MIN(now_ns - sent_ns, (uint64_t)UINT32_MAX);
        if (player->n_samples == game->max_samples)
            break;
        atomic_store_explicit(&game->sent_ns, monotonic_ns(), memory_order_relaxed);
        atomic_fetch_add_explicit(&game->turn, 1, memory_order_release);
        futex_wake(&game->turn, 1);
    }
}

/* Negative errno: -EINVAL where the CPU is offline or outside of the cpuset. */
static int set_affinity(pid_t tid, const struct cp_cpumask *cpus)
{
    unsigned n_bits = (unsigned)(cpus->n_words * 64);
    cpu_set_t *set = CPU_ALLOC(n_bits);
    struct cp_cpu cpu;
    int r;

    if (!set)
        return -ENOMEM;
    CPU_ZERO_S(CPU_ALLOC_SIZE(n_bits), set);
    cp_cpumask_foreach (cpu, cpus)
        CPU_SET_S(cpu.os, CPU_ALLOC_SIZE(n_bits), set);
    r = sched_setaffinity(tid, CPU_ALLOC_SIZE(n_bits), set) < 0 ? -errno : 0;
    CPU_FREE(set);
    return r;
}

static int bind_self(struct cp_cpu cpu)
{
    _cleanup_cpumask_ struct cp_cpumask mask = {0};
    int r = cp_cpumask_set(&mask, cpu);

    return r < 0 ? r : set_affinity(0, &mask);
}

static void *player_main(void *userdata)
{
    struct player *player = userdata;

    atomic_store(&player->tid, (pid_t)syscall(SYS_gettid));
    if (!(atomic_load(&player->game->turn) & STOP) && bind_self(player->cpu) == 0) {
        play(player);
        /* A cpuset or hotplug change may have moved it. */
        player->stayed = (unsigned)sched_getcpu() == player->cpu.os;
    }
    stop(player->game);
    atomic_store(&player->left, true);
    atomic_fetch_add(&player->game->n_left, 1);
    futex_wake(&player->game->n_left, 1);
    return NULL;
}

/* Waits until n players have left, but not beyond until_ns. */
static bool await_players(struct game *game, uint32_t n, uint64_t until_ns,
                          const atomic_bool *cancel)
{
    for (;;) {
        uint32_t n_left = atomic_load(&game->n_left);
        uint64_t now_ns = monotonic_ns();
        struct timespec pause = {.tv_nsec = (long)CP_MIN(LOOK_NS, until_ns - now_ns)};

        if (n_left >= n)
            return true;
        if (now_ns >= until_ns || (cancel && atomic_load(cancel)))
            return false;
        (void)futex_wait(&game->n_left, n_left, &pause);
    }
}

/*
 * A player that cannot leave waits for its CPU behind something that does not yield it (a real-time
 * task): it is moved to other CPUs. A mask without its present CPU moves even a task that only
 * waits to run. It is a thread of ours, and ends at once.
 */
static void help_off(const struct player *player)
{
    _cleanup_cpumask_ struct cp_cpumask others = {0};
    struct cp_cpu last = {CP_CPU_LIMIT / 8 - 1};
    pid_t tid = atomic_load(&player->tid);

    /* 0: it has not begun, so it is not bound, and will not bind itself any more. */
    if (tid == 0 || cp_cpumask_set_range(&others, (struct cp_cpu){0}, last) < 0)
        return;
    cp_cpumask_clear(&others, player->cpu);
    (void)set_affinity(tid, &others);
}

/* Starts a player with every signal blocked, which are the business of other threads. */
static int start(struct player *player)
{
    sigset_t all;
    sigset_t before;
    int r;

    (void)sigfillset(&all);
    r = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (r != 0)
        return -r;
    r = pthread_create(&player->thread, NULL, player_main, player);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

static void referee(struct game *game, struct player players[2], uint32_t n_started,
                    uint64_t budget_ns, const atomic_bool *cancel)
{
    if (n_started == 2)
        (void)await_players(game, 1, monotonic_ns() + budget_ns, cancel);
    stop(game);
    while (!await_players(game, n_started, monotonic_ns() + GRACE_NS, NULL))
        for (uint32_t i = 0; i < n_started; i++)
            if (!atomic_load(&players[i].left))
                help_off(&players[i]);
    for (uint32_t i = 0; i < n_started; i++)
        (void)pthread_join(players[i].thread, NULL);
}

int cp_ping_pong(struct cp_cpu_pair pair, uint64_t budget_ns, const atomic_bool *cancel,
                 uint32_t *samples, size_t max_samples, size_t *ret_n_samples)
{
    uint32_t half = (uint32_t)CP_MIN(max_samples / 2, UINT32_MAX);
    struct game game = {.max_samples = half};
    struct player players[2] = {
        {.game = &game, .side = 0, .cpu = pair.a, .samples = samples},
        {.game = &game, .side = 1, .cpu = pair.b, .samples = samples + half},
    };
    uint32_t n_started = 0;
    int r = 0;

    while (n_started < 2 && r == 0) {
        r = start(&players[n_started]);
        if (r == 0)
            n_started++;
    }
    referee(&game, players, n_started, budget_ns, cancel);
    if (r < 0)
        return r;
    *ret_n_samples = 0;
    if (!players[0].stayed || !players[1].stayed)
        return 0;
    memmove(samples + players[0].n_samples, samples + half,
            players[1].n_samples * sizeof(*samples));
    *ret_n_samples = (size_t)players[0].n_samples + players[1].n_samples;
    return 0;
}
