// The least that a server can do for store_client.c on one thread: epoll, one recv and one send a request, no table, no checks.
// What a store takes beyond it is the store's; what this takes is the kernel's and the client's, and no store of one thread goes
// below it.
//
//   store_floor PORT       answers: VALIDATE nothing, PING its number, ADD 1, GET sixteen bytes, WAIT at once, unless the key
//                          begins with /bench/fanout: then when such a key is SET
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { VALIDATE = 0, SET = 1, GET = 3, ADD = 4, WAIT = 6, PING = 13, SOCKETS = 1 << 16, LONGEST = 512 };

static struct { size_t size; char *bytes; } rest[SOCKETS];  // of a request that came in part
static int waiting[SOCKETS], waiters;

static uint64_t u64_at(const char *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static int is_fanout(const char *key, uint64_t size) { return size > 13 && !memcmp(key, "/bench/fanout", 13); }

static void release(void) {
    const char stop = 0;
    for (int i = 0; i < waiters; i++)
        if (send(waiting[i], &stop, 1, MSG_NOSIGNAL) < 0) perror("send to a waiter");
    waiters = 0;
}

// One request: its length, 0 where it is not whole; its answer goes behind what is in `out`.
static size_t serve(int fd, const char *p, size_t n, char *out, size_t *answered) {
    if (n < 5) return 0;
    if (*p == VALIDATE) return 5;
    if (*p == PING) return memcpy(out + *answered, p + 1, 4), *answered += 4, 5;
    size_t head = *p == WAIT ? 17 : 9;
    if (n < head) return 0;
    uint64_t key = u64_at(p + head - 8), whole = head + key + (*p == ADD || *p == SET ? 8 : 0);
    if (n < whole) return 0;
    if (*p == SET && n < (whole += u64_at(p + head + key))) return 0;
    if (*p == SET && is_fanout(p + head, key)) release();
    if (*p == ADD) memcpy(out + *answered, "\1\0\0\0\0\0\0", 8), *answered += 8;
    if (*p == GET) memcpy(out + *answered, "\20\0\0\0\0\0\0\0sixteen bytes!!!", 24), *answered += 24;
    if (*p == WAIT && is_fanout(p + head, key)) waiting[waiters++] = fd;
    else if (*p == WAIT) out[(*answered)++] = 0;
    return whole;
}

static void read_from(int fd) {
    static char in[LONGEST + (1 << 16)], out[1 << 16];
    size_t have = rest[fd].size, done = 0, whole, answered = 0;
    if (have) memcpy(in, rest[fd].bytes, have);
    ssize_t got = recv(fd, in + have, sizeof in - have, 0);
    if (got <= 0) {
        rest[fd].size = 0, close(fd);
        return;
    }
    for (have += got; (whole = serve(fd, in + done, have - done, out, &answered)); done += whole);
    if (answered && send(fd, out, answered, MSG_NOSIGNAL) != (ssize_t)answered) perror("send");
    if ((rest[fd].size = have - done) == 0) return;
    if (rest[fd].size > LONGEST) exit(1);
    if (!rest[fd].bytes) rest[fd].bytes = malloc(LONGEST);
    memcpy(rest[fd].bytes, in + done, rest[fd].size);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files), files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int door = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), poll = epoll_create1(0), one = 1;
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(door, (struct sockaddr *)&a, sizeof a) || listen(door, 4096)) return perror("listen"), 1;
    struct epoll_event e[256] = {{.events = EPOLLIN, .data.fd = door}};
    epoll_ctl(poll, EPOLL_CTL_ADD, door, e);
    for (;;) {
        int n = epoll_wait(poll, e, 256, -1);
        for (int i = 0; i < n; i++) {
            if (e[i].data.fd != door) read_from(e[i].data.fd);
            for (int fd; e[i].data.fd == door && (fd = accept4(door, NULL, NULL, 0)) >= 0;) {
                struct epoll_event new = {.events = EPOLLIN, .data.fd = fd};
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                if (fd >= SOCKETS || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &new)) close(fd);
            }
        }
    }
}
