/* A worker for faults.py: notes when it begins and when it is told to stop, in files of a folder.
   Times are CLOCK_MONOTONIC in ns, as time.monotonic_ns() of Python has them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char told[4096];

static void note(const char* path) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    FILE* file = fopen(path, "w");
    if (file == NULL) _exit(3);
    fprintf(file, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    fclose(file);
}

int main(int argc, char** argv) {
    const char* generation = getenv("TORCHELASTIC_RESTART_COUNT");
    const char* rank = getenv("RANK");
    char begun[4096];
    sigset_t stop;
    int signal;
    if (argc != 2 || generation == NULL || rank == NULL) return 2;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    snprintf(begun, sizeof begun, "%s/begun.%s.%s", argv[1], generation, rank);
    snprintf(told, sizeof told, "%s/told.%s.%s", argv[1], generation, rank);
    note(begun);
    sigwait(&stop, &signal);
    note(told);
    return 143;
}
