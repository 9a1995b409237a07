// The beginning and the end of MPI.
#include "trainer/mpi/mpi_session.h"

#include "trainer/mpi/end_watch.h"

namespace ddprun::trainer {

std::atomic<bool> MpiSession::given_up_ = false;

namespace {

// Errors of the world come as codes, too: the last meeting is there.
int init(int* threads) {
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, threads);
    return code == MPI_SUCCESS ? MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) : code;
}

}  // namespace

Error MpiSession::no_more() {
    return Error(ErrorCode::closed,
                 "a group of this process has failed, and MPI cannot go on after that; end the "
                 "program, ddprun starts it again");
}

Error MpiSession::error_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int size = 0, kind = MPI_SUCCESS;
    MPI_Error_class(code, &kind);
    MPI_Error_string(code, text, &size);
    std::string sentence = "MPI: " + std::string(text, static_cast<std::size_t>(size));
    for (char& letter : sentence)
        if (letter == '\n') letter = ' ';
    if (kind == MPI_ERR_TRUNCATE)
        return Error(ErrorCode::refused, "the ranks do not give the same sizes; " + sentence);
    return Error(ErrorCode::unavailable, sentence);
}

// What the process has done with MPI so far.
Result<void> MpiSession::may_begin() {
    if (given_up_) return no_more();
    int over = 0;
    MPI_Finalized(&over);
    if (!over) return {};
    return Error(ErrorCode::refused,
                 "MPI has been finalised, and a process can use it once; keep a group until the "
                 "end, or call MPI_Init_thread() and MPI_Finalize() yourself");
}

Result<std::shared_ptr<MpiSession>> MpiSession::open(const Context& context,
                                                     std::chrono::milliseconds end) {
    static std::mutex one_at_a_time;
    static std::weak_ptr<MpiSession> current;
    std::lock_guard lock(one_at_a_time);
    if (auto good = may_begin(); !good) return good.error();
    auto session = current.lock();
    if (session) return session;
    int begun = 0, threads = MPI_THREAD_SINGLE;
    MPI_Initialized(&begun);
    const int code = begun ? MPI_Query_thread(&threads) : init(&threads);
    if (code != MPI_SUCCESS) return Error(ErrorCode::unavailable, "MPI cannot be initialised");
    session.reset(new MpiSession(!begun, end));
    if (threads < MPI_THREAD_SERIALIZED)
        return Error(ErrorCode::refused,
                     "MPI was initialised for one thread, and a group has a second one; call "
                     "MPI_Init_thread(…, MPI_THREAD_SERIALIZED, …), or leave it to the group");
    if (auto good = session->check_place(context); !good) return good.error();
    current = session;
    return session;
}

Result<void> MpiSession::check_place(const Context& context) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == context.rank.value && size == context.world_size) return {};
    return Error(ErrorCode::refused, "this process is rank " + std::to_string(rank) + " of " +
                                         std::to_string(size) + " to MPI, and rank " +
                                         std::to_string(context.rank.value) + " of " +
                                         std::to_string(context.world_size) +
                                         " to its launcher; start it with ddprun --pmi");
}

// The groups have made sure that all ranks come here.
MpiSession::~MpiSession() {
    int over = 0;
    MPI_Finalized(&over);
    if (!ours_ || given_up_ || over) return;
    const EndWatch watch(end_);
    MPI_Finalize();
}

}  // namespace ddprun::trainer
