/* Every collective, blocking and started, on several types, in place and not. */
#include "check.h"

/* A test of all collectives on count elements of a type: started is empty, or i. */
#define TEST(type, gorun, count, started) \
	static void test_##type##_##started##_##count(void) \
	{ \
		type in[count * 8], out[count * 8]; \
		gorun_work w = 0; \
		int n = size, sum = n * (n + 1) / 2; \
		CASE(in[i] = (type)(rank + 1), gorun_##started##all_reduce(world, in, out, count, gorun, GORUN_SUM END_##started), out[i] == (type)sum, count) \
		CASE(in[i] = (type)(rank + 1), gorun_##started##all_reduce(world, in, in, count, gorun, GORUN_MAX END_##started), in[i] == (type)n, count) \
		CASE(in[i] = (type)(rank + 1), gorun_##started##reduce(world, in, out, count, gorun, GORUN_SUM, n - 1 END_##started), rank != n - 1 || out[i] == (type)sum, count) \
		CASE(in[i] = (type)(rank + 1), gorun_##started##scan(world, in, out, count, gorun, GORUN_SUM END_##started), out[i] == (type)((rank + 1) * (rank + 2) / 2), count) \
		CASE(in[i] = (type)(rank + 1), gorun_##started##exscan(world, in, out, count, gorun, GORUN_SUM END_##started), rank == 0 || out[i] == (type)(rank * (rank + 1) / 2), count) \
		CASE(in[i] = (type)(rank == 1 ? 7 : 0), gorun_##started##broadcast(world, in, count, gorun, 1 END_##started), in[i] == 7, count) \
		CASE(in[i] = (type)rank, gorun_##started##all_gather(world, in, out, count, gorun END_##started), out[i] == (type)(i / count), count * n) \
		CASE(in[i] = (type)rank, gorun_##started##all_gather(world, in + rank * count, in, count, gorun END_##started), in[i] == (type)(i / count), count * n) \
		CASE(in[i] = (type)rank, gorun_##started##gather(world, in, out, count, gorun, 0 END_##started), rank > 0 || out[i] == (type)(i / count), count * n) \
		CASE(in[i] = (type)(i / count), gorun_##started##scatter(world, in, out, count, gorun, 0 END_##started), out[i] == (type)rank, count) \
		CASE(in[i] = (type)(i / count), gorun_##started##reduce_scatter(world, in, out, count, gorun, GORUN_SUM END_##started), out[i] == (type)(rank * n), count) \
		CASE(in[i] = (type)(10 * rank + i / count), gorun_##started##all_to_all(world, in, out, count, gorun END_##started), out[i] == (type)(10 * (i / count) + rank), count * n) \
		must(gorun_##started##barrier(world END_##started)); \
		DONE_##started; \
	}
#define END_
#define END_i , &w
#define DONE_ (void)w
#define DONE_i must(gorun_wait(w, NULL))
#define CASE(set, call, holds, length) \
	for (int i = 0; i < (int)(sizeof in / sizeof *in); i++) \
		set; \
	memset(out, 0, sizeof out); \
	must(call); \
	if (w != 0) \
		must(gorun_wait(w, NULL)); \
	w = 0; \
	for (int i = 0; i < length; i++) \
		want(holds);

#define BOTH(type, gorun) TEST(type, gorun, 3, ) TEST(type, gorun, 3, i)
BOTH(int8_t, GORUN_INT8)
BOTH(int16_t, GORUN_INT16)
BOTH(int32_t, GORUN_INT32)
BOTH(int64_t, GORUN_INT64)
BOTH(uint8_t, GORUN_UINT8)
BOTH(uint16_t, GORUN_UINT16)
BOTH(uint32_t, GORUN_UINT32)
BOTH(uint64_t, GORUN_UINT64)
BOTH(float, GORUN_FLOAT32)
BOTH(double, GORUN_FLOAT64)
TEST(float, GORUN_FLOAT32, 9001, )
TEST(double, GORUN_FLOAT64, 9001, i)

static void test_lists(void)
{
	int32_t in[64], out[64];
	gorun_buffer list[8], outs[8];
	size_t from[8], to[8];
	for (int started = 0; started < 2; started++) {
		gorun_work w, *work = &w;
#define CALL(name, ...) \
	if (started) { \
		must(gorun_i##name(__VA_ARGS__, work)); \
		must(gorun_wait(w, NULL)); \
	} else \
		must(gorun_##name(__VA_ARGS__));
		/* rank r has r + 1 elements */
		for (int i = 0; i < 64; i++)
			in[i] = 100 * rank + i, out[i] = -1;
		for (int r = 0, at = 0; r < size; at += ++r)
			list[r] = (gorun_buffer){out + at, r + 1};
		CALL(all_gatherv, world, in, rank + 1, list, GORUN_INT32)
		for (int r = 0; r < size; r++)
			for (int i = 0; i <= r; i++)
				want(((int32_t *)list[r].data)[i] == 100 * r + i);
		memset(out, 0, sizeof out);
		CALL(gatherv, world, in, rank + 1, list, GORUN_INT32, 1)
		for (int r = 0; r < size && rank == 1; r++)
			for (int i = 0; i <= r; i++)
				want(((int32_t *)list[r].data)[i] == 100 * r + i);
		for (int r = 0, at = 0; r < size; at += ++r)
			list[r] = (gorun_buffer){in + at, r + 1};
		CALL(scatterv, world, list, out, rank + 1, GORUN_INT32, 1)
		for (int i = 0; i <= rank; i++)
			want(out[i] == 100 + rank * (rank + 1) / 2 + i);
		CALL(reduce_scatterv, world, list, out, rank + 1, GORUN_INT32, GORUN_SUM)
		for (int i = 0; i <= rank; i++)
			want(out[i] == 100 * size * (size - 1) / 2 + size * (rank * (rank + 1) / 2 + i));
		/* rank r sends s + 1 elements to rank s, and gets r + 1 from each */
		for (int r = 0; r < size; r++)
			from[r] = r + 1, to[r] = rank + 1;
		CALL(all_to_allv, world, in, from, out, to, GORUN_INT32)
		for (int r = 0; r < size; r++)
			for (int i = 0; i <= rank; i++)
				want(out[r * (rank + 1) + i] == 100 * r + rank * (rank + 1) / 2 + i);
		memset(out, 0, sizeof out);
		for (int r = 0, at = 0; r < size; at += ++r)
			list[r] = (gorun_buffer){in + at, r + 1}, outs[r] = (gorun_buffer){out + r * size, rank + 1};
		CALL(all_to_allw, world, list, outs, GORUN_INT32)
		for (int r = 0; r < size; r++)
			for (int i = 0; i <= rank; i++)
				want(out[r * size + i] == 100 * r + rank * (rank + 1) / 2 + i);
		in[0] = rank, in[1] = 1, in[2] = 2, in[5] = rank;
		CALL(all_reduce_coalesced, world, ((gorun_buffer[]){{in, 3}, {in + 5, 1}}), 2, GORUN_INT32, GORUN_SUM)
		want(in[0] == size * (size - 1) / 2 && in[1] == size && in[2] == 2 * size && in[5] == in[0] && in[3] == 100 * rank + 3);
	}
}

int main(void)
{
	begin();
#define RUN(type) test_##type##__3(), test_##type##_i_3()
	RUN(int8_t), RUN(int16_t), RUN(int32_t), RUN(int64_t), RUN(uint8_t), RUN(uint16_t), RUN(uint32_t), RUN(uint64_t), RUN(float), RUN(double);
	test_float__9001(), test_double_i_9001();
	test_lists();
	must(gorun_monitored_barrier(world));
	return end();
}
