// What programs of MPI do, for mpi.sh: arguments are what to do, one after the other. Each says its result in a line.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

// A number goes once around.
static void ring(void) {
    int token = 0;
    if (rank == 0) {
        token = 1;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        ++token;
        MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("ring %d\n", token);
}

static void all_reduce(void) {
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("sum %d at %d of %d\n", sum, rank, size);
}

// Halves of the world, and the ranks of a host.
static void split(void) {
    MPI_Comm half, host;
    int sum = 0, here = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &here);
    printf("half %d host %d at %d\n", sum, here, rank);
    MPI_Comm_free(&half);
    MPI_Comm_free(&host);
}

// In the first generation the last rank does not come back from here.
static void die(const char* how) {
    MPI_Barrier(MPI_COMM_WORLD);
    const char* count = getenv("TORCHELASTIC_RESTART_COUNT");
    if (!count || strcmp(count, "0") == 0) {
        if (rank == size - 1) {
            if (strcmp(how, "kill") == 0) raise(SIGKILL);
            if (strcmp(how, "leave") == 0) _exit(0);
            if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
            if (strcmp(how, "abort0") == 0) MPI_Abort(MPI_COMM_WORLD, 0);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "ring") == 0) ring();
        else if (strcmp(argv[i], "sum") == 0) all_reduce();
        else if (strcmp(argv[i], "split") == 0) split();
        else die(argv[i]);
    }
    MPI_Finalize();
    return 0;
}
