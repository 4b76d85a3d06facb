// Counts what a program sends, independently of the program: a PMPI layer, preloaded as a shared library.
//   mpirun -n 4 env LD_PRELOAD=libwire_counter.so ANNULET_WIRE_COUNT_FILE=/tmp/wire annulet train ...
// At MPI_Finalize each rank writes one line to /tmp/wire.RANK:  rank R bytes B messages M receives N
// B and M count point-to-point sends of any communicator, N the receives posted; MPI_PROC_NULL counts for nothing.
// What MPI sends inside its own collectives does not pass here. Persistent and partitioned sends are refused, since
// counting them as nothing would make a wrong total look right.
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

// Atomic: a progress thread may send as well.
std::atomic<long long> bytes{0}, messages{0}, receives{0};

void count_send(int count, MPI_Datatype type, int destination) {
  if (destination == MPI_PROC_NULL) return;
  int size = 0;
  PMPI_Type_size(type, &size);
  bytes += static_cast<long long>(count) * size;
  ++messages;
}

void count_receive(int source) {
  if (source != MPI_PROC_NULL) ++receives;
}

int refuse(const char* function) {
  std::fprintf(stderr, "wire_counter: %s is not counted (the total would be wrong). Count it here first.\n", function);
  return PMPI_Abort(MPI_COMM_WORLD, 1);
}

void write_line() {
  const char* file = std::getenv("ANNULET_WIRE_COUNT_FILE");
  if (file == nullptr) return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string name = std::string(file) + "." + std::to_string(rank);
  std::FILE* const out = std::fopen(name.c_str(), "w");
  const bool written = out != nullptr && std::fprintf(out, "rank %d bytes %lld messages %lld receives %lld\n", rank,
                                                      bytes.load(), messages.load(), receives.load()) > 0;
  if (out == nullptr || std::fclose(out) != 0 || !written) {
    std::fprintf(stderr, "wire_counter: cannot write %s\n", name.c_str());
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
}

}  // namespace

// The standard fixes the shape of these: as many arguments as it says.
#define ANNULET_COUNT_SEND(NAME)                                                                   \
  int MPI_##NAME(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
    count_send(count, type, to);                                                                   \
    return PMPI_##NAME(data, count, type, to, tag, comm);                                          \
  }
#define ANNULET_COUNT_ISEND(NAME)                                                                \
  int MPI_##NAME(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                         \
    count_send(count, type, to);                                                                 \
    return PMPI_##NAME(data, count, type, to, tag, comm, request);                               \
  }
#define ANNULET_REFUSE_INIT(NAME) \
  int MPI_##NAME(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) { return refuse("MPI_" #NAME); }

extern "C" {

ANNULET_COUNT_SEND(Send)
ANNULET_COUNT_SEND(Bsend)
ANNULET_COUNT_SEND(Rsend)
ANNULET_COUNT_SEND(Ssend)
ANNULET_COUNT_ISEND(Isend)
ANNULET_COUNT_ISEND(Ibsend)
ANNULET_COUNT_ISEND(Irsend)
ANNULET_COUNT_ISEND(Issend)
ANNULET_REFUSE_INIT(Send_init)
ANNULET_REFUSE_INIT(Bsend_init)
ANNULET_REFUSE_INIT(Rsend_init)
ANNULET_REFUSE_INIT(Ssend_init)

int MPI_Sendrecv(const void* sent, int send_count, MPI_Datatype send_type, int to, int send_tag, void* received,
                 int receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
                 MPI_Status* status) {
  count_send(send_count, send_type, to);
  count_receive(from);
  return PMPI_Sendrecv(sent, send_count, send_type, to, send_tag, received, receive_count, receive_type, from,
                       receive_tag, comm, status);
}

int MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int to, int send_tag, int from, int receive_tag,
                         MPI_Comm comm, MPI_Status* status) {
  count_send(count, type, to);
  count_receive(from);
  return PMPI_Sendrecv_replace(data, count, type, to, send_tag, from, receive_tag, comm, status);
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  count_receive(from);
  return PMPI_Recv(data, count, type, from, tag, comm, status);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  count_receive(from);
  return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Finalize() {
  write_line();
  return PMPI_Finalize();
}

}  // extern "C"
