// The limit of collectives over TCP: moves bytes over raw sockets, without a library. Package limit starts it, connects the ranks and says
// what to do; engine.go and measure.go there are the same in Go.
//
//	limit RANK SECONDS TESTS SOCKET...
//
// TESTS and the sockets are descriptors; the sockets are those of all ranks, -1 for this one, and do not block. plan.write in package limit
// writes the tests. Rank 0 prints "result OP BYTES STATE MICROSECONDS WAY" for each.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { batches = 9, few = 3, element = sizeof(float), room = 256 << 10, ahead = 64 << 10, brief = 16 << 10 };

typedef struct {
	char kind; // of package pattern
	int peer;
	size_t from, at, length;
	size_t done;  // bytes
	size_t spare; // bytes in torn
	char torn[element]; // the beginning of an element of which the rest is still to come
} move;

typedef struct { int count; move *moves; } step;
typedef struct { char name[32]; int count; step *steps; } way;

// An inbox has what was read from a socket before it was wanted: of short messages, one call may return several.
typedef struct { size_t first, last; char bytes[ahead]; } inbox;

static inbox *inboxes; // of all ranks
static int rank, size, *sockets, parked;
static char *memory, *scratch;
static size_t sent; // bytes at the beginning of memory that this rank sends

static void fail(const char *what, int peer) {
	if (peer < 0) fprintf(stderr, "limit: rank %d: %s\n", rank, what);
	else fprintf(stderr, "limit: rank %d, rank %d: %s\n", rank, peer, what);
	exit(1);
}

static void *allocate(size_t bytes) {
	void *p = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096);
	if (!p) fail("no memory", -1);
	return memset(p, 0, bytes);
}

static void *table(int count, size_t each) {
	void *p = calloc(count + 1, each);
	if (!p) fail("no memory", -1);
	return p;
}

static void add(char *to, const char *from, size_t bytes) {
	float *restrict a = (float *)to;
	const float *restrict b = (const float *)from;
	for (size_t i = 0; i < bytes / element; i++) a[i] += b[i];
}

// take is recv, but reads ahead if the message is brief.
static ssize_t take(int peer, char *at, size_t rest) {
	inbox *in = &inboxes[peer];
	if (in->first == in->last) {
		if (rest > brief) return recv(sockets[peer], at, rest, MSG_DONTWAIT);
		ssize_t n = recv(sockets[peer], in->bytes, ahead, MSG_DONTWAIT);
		if (n <= 0) return n;
		in->first = 0, in->last = n;
	}
	size_t n = in->last - in->first < rest ? in->last - in->first : rest;
	memcpy(at, in->bytes + in->first, n);
	in->first += n;
	return n;
}

// advance moves what the socket takes or has, and returns how many bytes that is.
static size_t advance(move *m) {
	char *at = memory + m->at + m->done;
	size_t rest = m->length - m->done;
	ssize_t n;
	if (m->kind == 's') n = send(sockets[m->peer], at, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (m->kind == 'r') n = take(m->peer, at, rest);
	else {
		memcpy(scratch, m->torn, m->spare);
		n = take(m->peer, scratch + m->spare, rest < room ? rest : room);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
	if (n < 0) fail(strerror(errno), m->peer);
	if (n == 0) fail("it has ended", m->peer);
	m->done += n;
	if (m->kind == 'a') {
		size_t have = m->spare + n, whole = have - have % element;
		add(memory + m->at + m->done - have, scratch, whole);
		m->spare = have - whole;
		memcpy(m->torn, scratch + whole, m->spare);
	}
	return n;
}

// await waits until one of the moves may go on.
static void await(const step *s) {
	if (!parked) { sched_yield(); return; }
	struct pollfd polled[s->count];
	int n = 0;
	for (int i = 0; i < s->count; i++)
		if (s->moves[i].done < s->moves[i].length)
			polled[n++] = (struct pollfd){.fd = sockets[s->moves[i].peer], .events = s->moves[i].kind == 's' ? POLLOUT : POLLIN};
	if (poll(polled, n, -1) < 0 && errno != EINTR) fail(strerror(errno), -1);
}

static void perform_step(step *s) {
	for (int i = 0; i < s->count; i++) {
		move *m = &s->moves[i];
		m->done = m->spare = 0;
		if (m->kind == 'c') memmove(memory + m->at, memory + m->from, m->length), m->done = m->length;
		if (m->kind == 'p') add(memory + m->at, memory + m->from, m->length), m->done = m->length;
	}
	for (;;) {
		int left = 0;
		size_t moved = 0;
		for (int i = 0; i < s->count; i++) {
			move *m = &s->moves[i];
			if (m->done == m->length) continue;
			moved += advance(m);
			left += m->done < m->length;
		}
		if (!left) return;
		if (!moved) await(s);
	}
}

static void perform(way *w) {
	for (int i = 0; i < w->count; i++) perform_step(&w->steps[i]);
}

// slowest returns the largest value of all ranks. Nobody returns before everybody has called it.
static double slowest(double value) {
	double values[2] = {value, 0};
	char *saved = memory;
	memory = (char *)values;
	for (int d = 1; d < size; d *= 2) {
		move moves[] = {{.kind = 's', .peer = (rank + d) % size, .length = sizeof value},
			{.kind = 'r', .peer = (rank - d + size) % size, .at = sizeof value, .length = sizeof value}};
		perform_step(&(step){2, moves});
		if (values[1] > values[0]) values[0] = values[1];
	}
	memory = saved;
	return values[0];
}

// rewrite gives what this rank sends new values, as a program does between two operations.
static void rewrite(void) {
	static float stamp;
	stamp = !stamp;
	float *a = (float *)memory;
	for (size_t i = 0; i < sent / element; i++) a[i] = stamp;
	__asm__ volatile("" ::"r"(a) : "memory");
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

// mean returns how long one of count calls takes this rank, rewriting included if there is any.
static double mean(int dirty, way *w, int count) {
	slowest(0);
	double began = now();
	for (int i = 0; i < count; i++) {
		if (dirty) rewrite();
		if (w) perform(w);
	}
	return (now() - began) / count;
}

static double calibrate(int dirty, way *w, double seconds) {
	double one = 0;
	mean(dirty, w, 1);
	for (int count = 1; count <= 1 << 20; count *= 2) {
		one = slowest(mean(dirty, w, count));
		if (one * count >= seconds / 20) break;
	}
	return one;
}

static int ascending(const void *p, const void *q) {
	double x = *(const double *)p, y = *(const double *)q;
	return (x > y) - (x < y);
}

// median returns the median over batches of the slowest rank's mean. one is the time of a call, about.
static double median(int dirty, way *w, double seconds, double one) {
	int rounds = batches, count = (int)(seconds / batches / one);
	if (count < 1) {
		count = 1;
		rounds = seconds / one < few ? few : (int)(seconds / one);
	}
	double times[batches];
	for (int i = 0; i < rounds; i++) {
		double mine = mean(dirty, w, count);
		if (dirty) mine -= mean(dirty, NULL, count);
		times[i] = slowest(mine);
	}
	qsort(times, rounds, sizeof *times, ascending);
	return times[rounds / 2];
}

// measure finds the best way with a few calls, measures that one, and prints.
static void measure(const char *op, size_t bytes, int dirty, way *ways, int count, double seconds) {
	way *best = NULL;
	int wait = 0;
	double least = 0;
	for (int i = 0; i < count; i++)
		for (parked = 0; parked < 2; parked++) {
			double one = calibrate(dirty, &ways[i], seconds);
			if (!best || one < least) best = &ways[i], wait = parked, least = one;
		}
	parked = wait;
	double took = median(dirty, best, seconds, least);
	if (!strcmp(op, "sendrecv")) took /= 2; // there and back
	if (rank == 0) {
		printf("result %s %zu %s %.4f %s,%s\n", op, bytes, dirty ? "dirty" : "hot", took * 1e6, best->name, parked ? "poll" : "yield");
		fflush(stdout);
	}
}

static way read_way(FILE *f, size_t limit) {
	way w;
	if (fscanf(f, " way %31s %d", w.name, &w.count) != 2 || w.count < 0) fail("no way", -1);
	w.steps = table(w.count, sizeof *w.steps);
	for (int i = 0; i < w.count; i++) {
		step *s = &w.steps[i];
		if (fscanf(f, " step %d", &s->count) != 1 || s->count < 1 || s->count > 2 * size) fail("no step", -1);
		s->moves = table(s->count, sizeof *s->moves);
		for (int k = 0; k < s->count; k++) {
			move *m = &s->moves[k];
			if (fscanf(f, " %c %d %zu %zu %zu", &m->kind, &m->peer, &m->from, &m->at, &m->length) != 5 || !strchr("sracp", m->kind))
				fail("no move", -1);
			if (m->peer < 0 || m->peer >= size || m->from > limit || m->at > limit || m->length > limit - m->at || m->length > limit - m->from)
				fail("a move beyond memory", -1);
		}
	}
	return w;
}

static void free_way(way *w) {
	for (int i = 0; i < w->count; i++) free(w->steps[i].moves);
	free(w->steps);
}

int main(int argc, char **argv) {
	if (argc < 6) fail("want RANK SECONDS TESTS SOCKET...", -1);
	rank = atoi(argv[1]), size = argc - 4;
	double seconds = atof(argv[2]);
	FILE *f = fdopen(atoi(argv[3]), "r");
	if (!f || rank < 0 || rank >= size || !(seconds > 0)) fail("bad arguments", -1);
	sockets = table(size, sizeof *sockets);
	for (int i = 0; i < size; i++) sockets[i] = atoi(argv[4 + i]);
	inboxes = table(size, sizeof *inboxes);
	scratch = allocate(room + element);
	char op[32];
	size_t bytes, total;
	int hot, dirty, count, words;
	while ((words = fscanf(f, " test %31s %zu %zu %zu %d %d %d", op, &bytes, &sent, &total, &hot, &dirty, &count)) == 7) {
		if (sent > total || count < 1 || count > 16) fail("a bad test", -1);
		memory = allocate(total);
		way ways[count];
		for (int i = 0; i < count; i++) ways[i] = read_way(f, total);
		if (hot) measure(op, bytes, 0, ways, count, seconds);
		if (dirty) measure(op, bytes, 1, ways, count, seconds);
		for (int i = 0; i < count; i++) free_way(&ways[i]);
		free(memory);
	}
	if (words != EOF) fail("the tests end with something else", -1);
	return 0;
}
