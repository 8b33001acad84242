// The side of Open MPI and MPICH; worker.go and gloo.py are the same for the others.
//
//	mpi OPS SIZES STATES SECONDS
//
// Lists have commas in them; see main.go for what is measured. Rank 0 prints "result OP BYTES STATE MICROSECONDS" a cell.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batches = 9, few = 3, buckets = 8 }; // batches of a cell; of one whose calls are slow

static int rank, size, n, sent; // n elements are the operation's bytes, of which this rank sends so many
static float *a, *b, *c, stamp;

static int apart; // whether all_reduce has a result apart from its input, because Open MPI 4.1.4's han crashes with MPI_IN_PLACE

static void all_reduce(void) { MPI_Allreduce(apart ? a : MPI_IN_PLACE, apart ? b : a, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void all_reduce_buckets(void) {
	MPI_Request requests[buckets];
	for (int i = 0, part = n / buckets; i < buckets; i++)
		MPI_Iallreduce(MPI_IN_PLACE, a + i * part, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(buckets, requests, MPI_STATUSES_IGNORE);
}
static void reduce(void) { MPI_Reduce(rank ? a : MPI_IN_PLACE, a, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); }
static void broadcast(void) { MPI_Bcast(a, n, MPI_FLOAT, 0, MPI_COMM_WORLD); }
static void all_gather(void) { MPI_Allgather(a, n / size, MPI_FLOAT, b, n / size, MPI_FLOAT, MPI_COMM_WORLD); }
static void reduce_scatter(void) { MPI_Reduce_scatter_block(a, b, n / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }
static void all_to_all(void) { MPI_Alltoall(a, n / size, MPI_FLOAT, b, n / size, MPI_FLOAT, MPI_COMM_WORLD); }
static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void send(void) { MPI_Send(a, n, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD); }
static void recv(void) { MPI_Recv(b, n, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void sendrecv(void) {
	if (rank == 0) { send(); recv(); }
	if (rank == 1) { recv(); send(); }
}

// triad is STREAM's, of each rank by itself.
static void triad(void) {
	float *restrict out = a, *restrict x = b, *restrict y = c;
	for (int i = 0; i < n; i++) out[i] = x[i] + 3 * y[i];
	__asm__ volatile("" ::"r"(out) : "memory");
}

static const struct { const char *name; void (*call)(void); } operations[] = {
	{"all_reduce", all_reduce}, {"buckets", all_reduce_buckets}, {"reduce", reduce}, {"broadcast", broadcast}, {"all_gather", all_gather},
	{"reduce_scatter", reduce_scatter}, {"all_to_all", all_to_all}, {"sendrecv", sendrecv}, {"barrier", barrier}, {"triad", triad},
};

static void (*find(const char *name))(void) {
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(operations[i].name, name)) return operations[i].call;
	fprintf(stderr, "unknown operation %s\n", name);
	MPI_Abort(MPI_COMM_WORLD, 2);
	return NULL;
}

// rewrite gives what this rank sends new values, as a program does between two operations.
static void rewrite(void) {
	stamp = !stamp;
	for (int i = 0; i < sent; i++) a[i] = stamp;
	__asm__ volatile("" ::"r"(a) : "memory");
}

// mean returns how long one of count calls takes this rank, rewriting included if there is any.
static double mean(void (*before)(void), void (*call)(void), int count) {
	MPI_Barrier(MPI_COMM_WORLD);
	double began = MPI_Wtime();
	for (int i = 0; i < count; i++) {
		if (before) before();
		if (call) call();
	}
	return (MPI_Wtime() - began) / count;
}

static double slowest(double mine) {
	double all;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static int ascending(const void *p, const void *q) {
	double x = *(const double *)p, y = *(const double *)q;
	return (x > y) - (x < y);
}

// measure returns the median over batches of the slowest rank's mean.
static double measure(void (*before)(void), void (*call)(void), double seconds) {
	int count = 1;
	double one;
	mean(before, call, 1); // the first makes connections, and maps memory
	while ((one = slowest(mean(before, call, count))) * count < seconds / 20 && count < 1 << 20) count *= 2;
	int rounds = batches;
	count = (int)(seconds / batches / one);
	if (count < 1) {
		count = 1;
		rounds = seconds / one < few ? few : (int)(seconds / one);
	}
	double times[batches];
	for (int i = 0; i < rounds; i++) {
		double mine = mean(before, call, count);
		if (before) mine -= mean(before, NULL, count);
		times[i] = slowest(mine);
	}
	qsort(times, rounds, sizeof *times, ascending);
	return times[rounds / 2];
}

static float *buffer(size_t bytes) {
	float *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	if (!p) MPI_Abort(MPI_COMM_WORLD, 1);
	memset(p, 0, bytes);
	return p;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
	apart = getenv("BENCH_APART") != NULL;
	char *ops, *sizes, *states;
	for (char *op = strtok_r(argv[1], ",", &ops); op; op = strtok_r(NULL, ",", &ops)) {
		void (*call)(void) = find(op);
		char *list = strdup(call == barrier ? "0" : argv[2]);
		for (char *each = strtok_r(list, ",", &sizes); each; each = strtok_r(NULL, ",", &sizes)) {
			size_t bytes = strtoull(each, NULL, 10);
			n = (int)(bytes / sizeof(float));
			sent = call == all_gather ? n / size : call == sendrecv && rank > 1 ? 0 : n;
			a = buffer(bytes), b = buffer(bytes), c = call == triad ? buffer(bytes) : NULL;
			char *names = strdup(call == barrier || call == triad ? "hot" : argv[3]);
			for (char *state = strtok_r(names, ",", &states); state; state = strtok_r(NULL, ",", &states)) {
				double took = measure(strcmp(state, "dirty") ? NULL : rewrite, call, atof(argv[4]));
				if (call == sendrecv) took /= 2; // there and back
				if (rank == 0) printf("result %s %zu %s %.4f\n", op, bytes, state, took * 1e6);
				fflush(stdout);
			}
			free(names), free(a), free(b), free(c);
		}
		free(list);
	}
	MPI_Finalize();
	return 0;
}
