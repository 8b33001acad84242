// The limit of collectives in memory: ranks copy and add straight from the buffers of the others to their own, each a part of what there is to
// do, with nothing but a barrier before and after. mpi.c measures the same for MPI.
//
//	memory RANKS OPS SIZES STATES SECONDS
//
// Each operation is measured with stores through the caches and past them; the faster ones count. Rank 0 prints
// "result OP BYTES STATE MICROSECONDS WAY" for each cell.
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

enum { batches = 9, few = 3, block = 4 << 10, most = 64, line = 64 / sizeof(float) }; // block and line in elements

typedef struct {
	_Alignas(64) atomic_int come;
	_Alignas(64) atomic_int turn;
	_Alignas(64) double values[most];
} room;

static int rank, size, crowded, past; // past: stores go past the caches
static size_t n, sent;                // n elements are the operation's bytes, of which this rank sends so many
static float *a[most], *b[most], stamp;
static room *shared;

static void fail(const char *what) {
	fprintf(stderr, "memory: rank %d: %s\n", rank, what);
	exit(1);
}

static void barrier(void) {
	int turn = atomic_load(&shared->turn);
	if (atomic_fetch_add(&shared->come, 1) == size - 1) {
		atomic_store(&shared->come, 0);
		atomic_store(&shared->turn, turn + 1);
	}
	for (int looks = 0; atomic_load(&shared->turn) == turn; looks++)
		if (crowded || looks > 10000) sched_yield();
}

static void store(float *restrict to, const float *restrict from, size_t count) {
#ifdef __AVX__
	if (past && !((size_t)to % 32)) {
		size_t whole = count / 8 * 8;
		for (size_t i = 0; i < whole; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
		to += whole, from += whole, count -= whole;
	}
#endif
	memcpy(to, from, count * sizeof *to);
}

// combine stores the sum of what is at the beginnings in at all beginnings out.
static void combine(float **in, int ins, float **out, int outs, size_t first, size_t count) {
	static float sum[block] __attribute__((aligned(64)));
	for (size_t at = first, end = first + count; at < end; at += block) {
		size_t part = end - at < block ? end - at : block;
		const float *from = in[0] + at;
		if (ins > 1) {
			const float *restrict x = in[0] + at, *restrict y = in[1] + at;
			for (size_t i = 0; i < part; i++) sum[i] = x[i] + y[i];
			for (int k = 2; k < ins; k++) {
				const float *restrict more = in[k] + at;
				for (size_t i = 0; i < part; i++) sum[i] += more[i];
			}
			from = sum;
		}
		for (int k = 0; k < outs; k++)
			if (out[k] + at != from) store(out[k] + at, from, part);
	}
}

// slice is this rank's part of count elements, in whole cache lines.
static size_t slice(size_t count, size_t *length) {
	size_t lines = (count + line - 1) / line, first = lines * rank / size * line, end = lines * (rank + 1) / size * line;
	if (first > count) first = count;
	if (end > count) end = count;
	*length = end - first;
	return first;
}

static void all_reduce(void) {
	size_t length, first = slice(n, &length);
	combine(a, size, a, size, first, length);
}

static void reduce(void) {
	size_t length, first = slice(n, &length);
	combine(a, size, a, 1, first, length);
}

static void broadcast(void) {
	size_t length, first = slice(n, &length);
	combine(a, 1, a + 1, size - 1, first, length);
}

static void all_gather(void) {
	size_t part = n / size;
	for (int i = 0; i < size; i++) {
		int from = (rank + i) % size;
		float *to = b[rank] + from * part;
		combine(&a[from], 1, &to, 1, 0, part);
	}
}

static void reduce_scatter(void) {
	size_t part = n / size;
	float *in[most], *to = b[rank];
	for (int i = 0; i < size; i++) in[i] = a[i] + rank * part;
	combine(in, size, &to, 1, 0, part);
}

static void all_to_all(void) {
	size_t part = n / size;
	for (int i = 0; i < size; i++) {
		int from = (rank + i) % size;
		float *in = a[from] + rank * part, *to = b[rank] + from * part;
		combine(&in, 1, &to, 1, 0, part);
	}
}

static const struct { const char *name; void (*call)(void); } operations[] = {
	{"all_reduce", all_reduce}, {"reduce", reduce}, {"broadcast", broadcast},
	{"all_gather", all_gather}, {"reduce_scatter", reduce_scatter}, {"all_to_all", all_to_all},
};

// rewrite gives what this rank sends new values, as a program does between two operations.
static void rewrite(void) {
	float *mine = a[rank];
	stamp = !stamp;
	for (size_t i = 0; i < sent; i++) mine[i] = stamp;
	__asm__ volatile("" ::"r"(mine) : "memory");
}

// check calls an operation once, and compares the result.
static void check(void (*call)(void)) {
	size_t part = n / size, count = n;
	int gathers = call == all_gather || call == all_to_all;
	float total = size * (size + 1) / 2, *got = gathers || call == reduce_scatter ? b[rank] : a[rank];
	for (size_t i = 0; i < n; i++) a[rank][i] = rank + 1;
	memset(b[rank], 0, n * sizeof(float));
	barrier();
	call();
	barrier();
	if (gathers) count = part * size;
	if (call == reduce_scatter) count = part;
	if (call == reduce && rank > 0) count = 0;
	for (size_t i = 0; i < count; i++)
		if (got[i] != (gathers ? i / part + 1 : call == broadcast ? 1 : total)) fail("a wrong result");
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// mean returns how long one of count calls takes this rank, rewriting included if there is any.
static double mean(int dirty, void (*call)(void), int count) {
	barrier();
	double began = now();
	for (int i = 0; i < count; i++) {
		if (dirty) rewrite();
		if (!call) continue;
		barrier(); // until all have written what they send
		call();
#ifdef __AVX__
		if (past) _mm_sfence();
#endif
		barrier(); // until all have read it
	}
	return (now() - began) / count;
}

static double slowest(double mine) {
	shared->values[rank] = mine;
	barrier();
	double all = 0;
	for (int i = 0; i < size; i++)
		if (shared->values[i] > all) all = shared->values[i];
	barrier();
	return all;
}

static int ascending(const void *p, const void *q) {
	double x = *(const double *)p, y = *(const double *)q;
	return (x > y) - (x < y);
}

// measure returns the median over batches of the slowest rank's mean.
static double measure(int dirty, void (*call)(void), double seconds) {
	int count = 1;
	double one, times[batches];
	mean(dirty, call, 1);
	while ((one = slowest(mean(dirty, call, count))) * count < seconds / 20 && count < 1 << 20) count *= 2;
	int rounds = batches;
	count = (int)(seconds / batches / one);
	if (count < 1) {
		count = 1;
		rounds = seconds / one < few ? few : (int)(seconds / one);
	}
	for (int i = 0; i < rounds; i++) {
		double mine = mean(dirty, call, count);
		if (dirty) mine -= mean(dirty, NULL, count);
		times[i] = slowest(mine);
	}
	qsort(times, rounds, sizeof *times, ascending);
	return times[rounds / 2];
}

static void *map(size_t bytes) {
	void *p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) fail("no memory");
	return p;
}

static void test(const char *op, size_t bytes, const char *state, double seconds) {
	int dirty = !strcmp(state, "dirty");
	void (*call)(void) = NULL;
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(operations[i].name, op)) call = operations[i].call;
	if (!call) return; // it is not about memory
	n = bytes / sizeof(float);
	sent = call == all_gather ? n / size : n;
	double best = 0;
	int way = 0;
	for (past = 0; past < 2; past++) {
		check(call);
		double took = measure(dirty, call, seconds);
		if (!past || took < best) best = took, way = past;
	}
	if (rank == 0) printf("result %s %zu %s %.4f %s\n", op, bytes, state, best * 1e6, way ? "past-caches" : "cached");
	fflush(stdout);
}

static void bind(void) {
	cpu_set_t may, one;
	if (sched_getaffinity(0, sizeof may, &may)) return;
	int cpus = CPU_COUNT(&may), skip = rank % cpus;
	crowded = size > cpus;
	CPU_ZERO(&one);
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &may) && skip-- == 0) CPU_SET(c, &one);
	sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv) {
	if (argc != 6 || (size = atoi(argv[1])) < 1 || size > most) fail("want RANKS OPS SIZES STATES SECONDS");
	double seconds = atof(argv[5]);
	size_t largest = 0;
	char *sizes, *ops, *states, *list = strdup(argv[3]);
	for (char *each = strtok_r(list, ",", &sizes); each; each = strtok_r(NULL, ",", &sizes))
		if (strtoull(each, NULL, 10) > largest) largest = strtoull(each, NULL, 10);
	shared = map(sizeof *shared);
	for (int i = 0; i < size; i++) a[i] = map(largest), b[i] = map(largest);
	for (int i = 1; i < size && rank == 0; i++) {
		pid_t pid = fork();
		if (pid < 0) fail("no process");
		if (pid == 0) rank = i, prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	bind();
	memset(a[rank], 0, largest), memset(b[rank], 0, largest);
	for (char *op = strtok_r(argv[2], ",", &ops); op; op = strtok_r(NULL, ",", &ops)) {
		list = strdup(argv[3]);
		for (char *each = strtok_r(list, ",", &sizes); each; each = strtok_r(NULL, ",", &sizes)) {
			char *names = strdup(argv[4]);
			for (char *state = strtok_r(names, ",", &states); state; state = strtok_r(NULL, ",", &states))
				test(op, strtoull(each, NULL, 10), state, seconds);
			free(names);
		}
		free(list);
	}
	int failed = 0, status;
	if (rank == 0)
		while (wait(&status) > 0) failed |= status != 0;
	return failed;
}
