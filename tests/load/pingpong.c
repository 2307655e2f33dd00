/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A strictly alternating pair: two processes that hand one byte to and fro through pipes.
 *
 *     pingpong SECONDS [CPU_A CPU_B]
 *
 * With CPUs, each side binds itself to one at the start, as a launcher would. Prints the pids
 * first ("pids A B"), then each half second the hand-offs of the pair a second ("rate N").
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void bind_to(const char *text)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)strtoul(text, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0) {
        perror("pingpong: sched_setaffinity");
        exit(1);
    }
}

static void serve(int from, int to)
{
    char byte;

    while (read(from, &byte, 1) == 1)
        if (write(to, &byte, 1) != 1)
            break;
    _exit(0);
}

int main(int argc, char **argv)
{
    double begin;
    double reported;
    double end;
    unsigned long count = 0;
    int there[2];
    int back[2];
    pid_t child;

    if (argc != 2 && argc != 4) {
        fprintf(stderr, "Usage: pingpong SECONDS [CPU_A CPU_B]\n");
        return 2;
    }
    if (pipe(there) < 0 || pipe(back) < 0) {
        perror("pingpong: pipe");
        return 1;
    }
    child = fork();
    if (child < 0) {
        perror("pingpong: fork");
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(there[1]);
        close(back[0]);
        if (argc == 4)
            bind_to(argv[3]);
        serve(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    if (argc == 4)
        bind_to(argv[2]);
    printf("pids %d %d\n", getpid(), child);
    fflush(stdout);
    begin = reported = now_s();
    end = begin + strtod(argv[1], NULL);
    for (;;) {
        char byte = 'x';

        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
            fprintf(stderr, "pingpong: the partner has gone\n");
            return 1;
        }
        count += 2;
        if (count % 64 == 0) {
            double now = now_s();

            if (now - reported >= 0.5) {
                printf("rate %.0f\n", (double)count / (now - reported));
                fflush(stdout);
                count = 0;
                reported = now;
            }
            if (now >= end)
                return 0;
        }
    }
}
