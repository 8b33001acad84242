/* Reductions of the program's own: in order, in blocks, started and not, one that fails, and wrong ones. */
#include "check.h"

/* Composes functions x -> a * x + b, of which a value is {a, b}. The order matters. */
static int compose(void *context, void *acc, const void *in, size_t count, gorun_type type)
{
	int64_t *f = acc;
	const int64_t *g = in;
	want(context == &rank && type == GORUN_INT64 && count % 2 == 0);
	for (size_t i = 0; i < count; i += 2) {
		f[i + 1] += f[i] * g[i + 1];
		f[i] *= g[i];
	}
	return 0;
}

static int fails(void *context, void *acc, const void *in, size_t count, gorun_type type)
{
	(void)context, (void)acc, (void)in, (void)count, (void)type;
	return 17;
}

enum { PAIRS = 5000 };
static int64_t in[4][2 * PAIRS], out[2 * PAIRS], expected[2 * PAIRS];

/* expect sets expected to what ranks 0 to n - 1 make of their pairs. */
static void expect(int n)
{
	memcpy(expected, in[0], sizeof expected);
	for (int r = 1; r < n; r++)
		compose(&rank, expected, in[r], 2 * PAIRS, GORUN_INT64);
}

static void check(gorun_op op)
{
	gorun_work work;
	size_t n = 2 * PAIRS;
	expect(size);
	must(gorun_all_reduce(world, in[rank], out, n, GORUN_INT64, op));
	want(memcmp(out, expected, sizeof out) == 0);
	memset(out, 0, sizeof out);
	must(gorun_iall_reduce(world, in[rank], out, n, GORUN_INT64, op, &work));
	must(gorun_wait(work, NULL));
	want(memcmp(out, expected, sizeof out) == 0);
	must(gorun_reduce(world, in[rank], out, n, GORUN_INT64, op, size - 1));
	want(rank != size - 1 || memcmp(out, expected, sizeof out) == 0);
	n = 2 * (PAIRS / size); /* a block of each rank's pairs */
	must(gorun_reduce_scatter(world, in[rank], out, n, GORUN_INT64, op));
	want(memcmp(out, expected + rank * n, n * sizeof *out) == 0);
	expect(rank + 1);
	must(gorun_scan(world, in[rank], out, 2 * PAIRS, GORUN_INT64, op));
	want(memcmp(out, expected, sizeof out) == 0);
}

int main(void)
{
	gorun_op op, no_op, sum;
	gorun_comm other;
	gorun_error e;
	begin();
	for (int r = 0; r < size; r++)
		for (int i = 0; i < 2 * PAIRS; i++)
			in[r][i] = (i * 7 + r * 3) % 5 - 2;
	must(gorun_op_create(compose, &rank, "compose", 2, 0, &op));
	check(op);
	wants_error(gorun_all_reduce(world, out, out, 3, GORUN_INT64, op), GORUN_ERR_ARGUMENT, "want a multiple of 2");
	wants_error(gorun_op_create(NULL, NULL, "none", 1, 0, &no_op), GORUN_ERR_ARGUMENT, "function is NULL");
	must(gorun_op_create(compose, &rank, "compose", 0, 0, &no_op));
	wants_error(gorun_all_reduce(world, out, out, 2, GORUN_INT64, no_op), GORUN_ERR_ARGUMENT, "blocks of 0");
	must(gorun_op_free(no_op));
	wants_error(gorun_op_free(no_op), GORUN_ERR_ARGUMENT, "no reduction of gorun_op_create");
	wants_error(gorun_op_free(GORUN_SUM), GORUN_ERR_ARGUMENT, "no reduction of gorun_op_create");
	wants_error(gorun_all_reduce(world, out, out, 2, GORUN_INT64, no_op), GORUN_ERR_ARGUMENT, "there is no reduction");

	/* The function fails on all ranks, in a blocking call and in a started one: only that group fails. */
	must(gorun_op_create(fails, NULL, "fails", 1, 1, &sum));
	for (int started = 0; started < 2 && size > 1; started++) {
		gorun_work work;
		must(gorun_comm_split(world, 0, rank, &other));
		int code = started ? gorun_iall_reduce(other, in[rank], out, 1 << 10, GORUN_INT64, sum, &work)
				   : gorun_all_reduce(other, in[rank], out, 1 << 10, GORUN_INT64, sum);
		if (started) {
			want(code == 0);
			code = gorun_wait(work, NULL);
		}
		gorun_last_error(&e);
		want(code == GORUN_ERR_ABORTED || (code == GORUN_ERR_FUNCTION && e.exit_code == 17 && strstr(e.text, "\"fails\" has returned 17")));
		want(gorun_barrier(other) == GORUN_ERR_ABORTED);
		must(gorun_close(other));
	}
	check(op);
	must(gorun_op_free(op));
	return end();
}
