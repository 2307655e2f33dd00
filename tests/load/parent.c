/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A placed process that has children: a ping-pong pair whose first side forks on demand.
 *
 *     parent CHILDREN
 *
 * Prints "pids A B". Waits until its own mask is one CPU (it was placed), forks CHILDREN times
 * while the ping-pong goes on, and prints for each child how long it carried the inherited mask
 * ("window MICROSECONDS", -1: longer than five seconds). Then "exec": it runs itself anew as
 * `parent mask`, which prints how long that program carried the mask in the same way, and ends.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int mask_weight(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        exit(1);
    return CPU_COUNT(&set);
}

/* Microseconds until the mask of the caller is wider than one CPU, -1 after five seconds. */
static long narrow_for_us(void)
{
    double begin = now_s();

    while (mask_weight() == 1) {
        if (now_s() - begin > 5)
            return -1;
        usleep(20);
    }
    return (long)((now_s() - begin) * 1e6);
}

static void report_window(void)
{
    printf("window %ld\n", narrow_for_us());
    fflush(stdout);
}

static void exchange(int to, int from)
{
    char byte = 'x';

    if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1) {
        fprintf(stderr, "parent: the partner has gone\n");
        exit(1);
    }
}

static void serve(int from, int to)
{
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(from, &byte, 1) == 1)
        if (write(to, &byte, 1) != 1)
            break;
    _exit(0);
}

/* Hand-offs until the own mask is one CPU, or for a time. false: it was not placed. */
static int exchange_until_placed(int to, int from, double seconds)
{
    double until = now_s() + seconds;

    while (mask_weight() > 1) {
        if (now_s() > until)
            return 0;
        for (int i = 0; i < 50; i++)
            exchange(to, from);
    }
    return 1;
}

int main(int argc, char **argv)
{
    int there[2];
    int back[2];
    pid_t partner;

    if (argc == 2 && strcmp(argv[1], "mask") == 0) {
        report_window();
        return 0;
    }
    if (argc != 2 || pipe(there) < 0 || pipe(back) < 0) {
        fprintf(stderr, "Usage: parent CHILDREN\n");
        return 2;
    }
    partner = fork();
    if (partner == 0)
        serve(there[0], back[1]);
    printf("pids %d %d\n", getpid(), partner);
    fflush(stdout);
    for (int i = 0; i < atoi(argv[1]); i++) {
        pid_t child;

        if (!exchange_until_placed(there[1], back[0], 20)) {
            printf("never placed\n");
            return 1;
        }
        child = fork();
        if (child == 0) {
            report_window();
            _exit(0);
        }
        for (int k = 0; k < 2000; k++)
            exchange(there[1], back[0]);
        waitpid(child, NULL, 0);
    }
    printf("exec\n");
    fflush(stdout);
    execl(argv[0], argv[0], "mask", (char *)NULL);
    perror("parent: exec");
    return 1;
}
