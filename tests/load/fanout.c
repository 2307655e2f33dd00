/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A 1:N load: one dispatcher wakes N workers at once, each works for a while, the dispatcher waits
 * for all and starts over.
 *
 *     fanout SECONDS WORKERS MICROSECONDS
 *
 * Prints the pid ("pids P"), then each half second the rounds a second ("rate N").
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct worker {
    pthread_t thread;
    int start;
    int done;
    double work_s;
};

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void signal_fd(int fd)
{
    const unsigned long long one = 1;

    if (write(fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        exit(1);
}

static void wait_fd(int fd)
{
    unsigned long long value;

    if (read(fd, &value, sizeof(value)) != (ssize_t)sizeof(value))
        exit(1);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    for (;;) {
        double until;

        wait_fd(worker->start);
        until = now_s() + worker->work_s;
        while (now_s() < until)
            ;
        signal_fd(worker->done);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker *workers;
    unsigned long n;
    unsigned long count = 0;
    double reported;
    double end;
    int done;

    if (argc != 4) {
        fprintf(stderr, "Usage: fanout SECONDS WORKERS MICROSECONDS\n");
        return 2;
    }
    n = strtoul(argv[2], NULL, 10);
    workers = calloc(n ? n : 1, sizeof(*workers));
    done = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (!workers || done < 0) {
        perror("fanout");
        return 1;
    }
    for (unsigned long i = 0; i < n; i++) {
        workers[i] = (struct worker){
            .start = eventfd(0, EFD_CLOEXEC), .done = done, .work_s = strtod(argv[3], NULL) / 1e6};
        if (workers[i].start < 0 ||
            pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "fanout: cannot start worker %lu\n", i);
            return 1;
        }
    }
    printf("pids %d\n", getpid());
    fflush(stdout);
    reported = now_s();
    end = reported + strtod(argv[1], NULL);
    for (;;) {
        double now;

        for (unsigned long i = 0; i < n; i++)
            signal_fd(workers[i].start);
        for (unsigned long i = 0; i < n; i++)
            wait_fd(done);
        count++;
        now = now_s();
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
